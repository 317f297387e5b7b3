//! Commits take the named paths and nothing else, and say who refused.

use std::os::unix::fs::symlink;
use std::time::Duration;

use proctor_domain::{Oid, RepoPath};
use proctor_workspace::{CommitEnd, Hooks, Repository, WorkspaceError};

use crate::world::{World, make_executable, path, paths, wait_until, write_script};

fn oid(end: CommitEnd) -> Oid {
    match end {
        CommitEnd::Committed(oid) => oid,
        CommitEnd::HookRefused { .. } | CommitEnd::SigningFailed { .. } | CommitEnd::NothingToCommit | CommitEnd::Refused { .. } => {
            panic!("not committed: {end:?}")
        }
    }
}

#[test]
fn a_commit_takes_the_named_paths_and_leaves_all_else_as_it_was() {
    let world = World::new();
    let repository = world.repository();
    world.write("kept", "the step's\n");
    world.write("new", "the step's\n");
    world.write("dir/a", "the user's, staged\n");
    world.git(&["add", "dir/a"]);
    world.write("dir/a", "the user's, staged and edited again\n");
    world.write("dir/b", "the user's\n");
    world.write("users-new", "x\n");
    world.write("users-staged", "x\n");
    world.git(&["add", "users-staged"]);

    let commit = oid(world.commit(&repository, &paths(&["kept", "new"])));

    assert_eq!(commit.0, world.head());
    assert_eq!(world.committed(), "M\tkept\nA\tnew\n");
    assert_eq!(world.short_status(), "MM dir/a\n M dir/b\nA  users-staged\n?? users-new\n");
    assert_eq!(world.git(&["show", ":dir/a"]), "the user's, staged\n");
    assert_eq!(world.git(&["log", "-1", "--format=%B"]).trim(), "Subject\n\nRun: run_1\nStep: a");
}

#[test]
fn odd_paths_are_committed_as_they_are() {
    let world = World::new();
    let repository = world.repository();
    let odd: [&[u8]; 8] = [b" lead and trail ", b"-n", b":(top)x", b":x", b"bytes \xff\xfe", b"line\nbreak", b"quote\"\\", b"*"];
    for name in odd {
        world.write(name, "x");
    }
    // Would be taken by `*` as a pattern.
    world.write("not named", "x");
    let named: Vec<RepoPath> = odd.iter().map(path).collect();

    oid(world.commit(&repository, &named));

    assert_eq!(repository.status().unwrap().paths(), paths(&["not named"]));
    for name in odd {
        world.write(name, "y");
    }
    oid(world.commit(&repository, &named));
    assert_eq!(repository.status().unwrap().paths(), paths(&["not named"]));
    for name in odd {
        world.remove(name);
    }
    oid(world.commit(&repository, &named));
    assert_eq!(repository.status().unwrap().paths(), paths(&["not named"]));
}

#[test]
fn every_shape_of_change_is_committed_whole() {
    let world = World::new();
    for name in ["mode", "gone", "moved", "to link", "to folder", "folder/x", "folder/y"] {
        world.write(name, "x\n");
    }
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "second"]);
    let repository = world.repository();
    make_executable(&world.on_disk("mode"));
    world.remove("gone");
    std::fs::rename(world.on_disk("moved"), world.on_disk("moved here")).unwrap();
    world.remove("to link");
    symlink("nowhere", world.on_disk("to link")).unwrap();
    world.remove("to folder");
    world.write("to folder/inner/x", "x\n");
    std::fs::remove_dir_all(world.on_disk("folder")).unwrap();
    world.write("folder", "a file now\n");

    oid(world.commit_all(&repository));

    assert_eq!(world.short_status(), "");
    let tree = world.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]);
    let expected = "100644 dir/a\n100644 dir/b\n100644 folder\n100644 kept\n100755 mode\n100644 moved here\n\
                    100644 to folder/inner/x\n120000 to link\n";
    assert_eq!(tree, expected);
}

#[test]
fn a_refused_commit_leaves_files_and_folders_that_changed_places_in_the_index_as_they_were() {
    let world = World::new();
    world.write("was file", "x\n");
    world.write("was folder/x", "x\n");
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "second"]);
    let repository = world.repository();
    world.remove("was file");
    world.write("was file/x", "x\n");
    std::fs::remove_dir_all(world.on_disk("was folder")).unwrap();
    world.write("was folder", "x\n");
    world.hook("pre-commit", "exit 1");
    let index = world.git(&["ls-files", "--stage"]);

    let end = world.commit_all(&repository);

    assert!(matches!(end, CommitEnd::HookRefused { .. }), "{end:?}");
    assert_eq!(world.git(&["ls-files", "--stage"]), index);
}

#[test]
fn what_the_step_staged_itself_is_committed_with_its_newest_contents() {
    let world = World::new();
    let repository = world.repository();
    world.write("new", "staged\n");
    world.git(&["add", "new"]);
    world.write("new", "newest\n");
    world.git(&["rm", "--quiet", "dir/a"]);
    world.git(&["rm", "--quiet", "--cached", "dir/b"]);
    world.write("dir/b", "changed\n");

    oid(world.commit_all(&repository));

    assert_eq!(world.short_status(), "");
    assert_eq!(world.git(&["show", "HEAD:new"]), "newest\n");
    assert_eq!(world.committed(), "D\tdir/a\nM\tdir/b\nA\tnew\n");
}

#[test]
fn untracked_paths_that_the_caller_did_not_mark_are_found() {
    let world = World::new();
    let repository = world.repository();
    world.write("new", "x\n");
    world.write("kept", "y\n");
    let mut request = world.request(&paths(&["new", "kept", "vanished"]), &repository.status().unwrap());
    request.untracked.clear();

    oid(repository.commit(&request).unwrap());

    assert_eq!(world.committed(), "M\tkept\nA\tnew\n");
}

#[test]
fn a_file_that_the_user_only_intends_to_add_is_added_or_left_as_it_is_named() {
    let world = World::new();
    let repository = world.repository();
    for name in ["ours", "users"] {
        world.write(name, "x\n");
        world.git(&["add", "--intent-to-add", name]);
    }

    oid(world.commit(&repository, &paths(&["ours"])));

    assert_eq!(world.committed(), "A\tours\n");
    assert_eq!(world.short_status(), " A users\n");
}

#[test]
fn the_first_commit_of_a_repository_takes_the_named_paths_only() {
    let world = World::unborn();
    let repository = world.repository();
    world.write("new", "x\n");
    world.write("other", "x\n");
    world.write("staged", "x\n");
    world.git(&["add", "staged"]);

    let commit = oid(world.commit(&repository, &paths(&["new"])));

    assert_eq!(commit.0, world.head());
    assert_eq!(world.committed(), "A\tnew\n");
    assert_eq!(world.short_status(), "A  staged\n?? other\n");
}

#[test]
fn paths_that_are_as_in_head_make_no_commit() {
    let world = World::new();
    let repository = world.repository();
    world.write("other", "x\n");

    assert_eq!(world.commit(&repository, &paths(&["kept"])), CommitEnd::NothingToCommit);
    assert_eq!(world.commit(&repository, &[]), CommitEnd::NothingToCommit);
}

#[test]
fn a_hook_that_refuses_is_named_with_what_it_printed_and_the_index_is_as_before() {
    for hook in ["pre-commit", "commit-msg", "prepare-commit-msg"] {
        let world = World::new();
        let repository = world.repository();
        world.write("new", "x\n");
        world.write("kept", "changed\n");
        world.write("dir/a", "staged\n");
        world.git(&["add", "dir/a"]);
        world.hook(hook, "echo to stdout; echo nothing to commit; exit 7");
        let before = (world.head(), world.short_status(), world.git(&["ls-files", "--stage"]));

        let end = world.commit(&repository, &paths(&["new", "kept"]));

        let CommitEnd::HookRefused { output } = end else { panic!("{hook}: {end:?}") };
        assert_eq!(output, "to stdout\nnothing to commit\n", "{hook}");
        assert_eq!((world.head(), world.short_status(), world.git(&["ls-files", "--stage"])), before, "{hook}");
    }
}

#[test]
fn bookkeeping_runs_no_checking_hook() {
    let world = World::new();
    let repository = world.repository();
    world.hook("pre-commit", "exit 1");
    world.hook("commit-msg", "exit 1");
    world.write("kept", "changed\n");
    let mut request = world.request(&paths(&["kept"]), &repository.status().unwrap());
    request.hooks = Hooks::Skip;

    oid(repository.commit(&request).unwrap());
}

#[test]
fn a_hook_sees_the_users_patterns_and_the_mark() {
    let world = World::new();
    let repository = world.repository();
    world.hook("pre-commit", "git diff --cached --name-only -- 'k*' >&2; echo \"mark $PROCTOR_EFFECT\"; exit 1");
    world.write("kept", "changed\n");

    let end = world.commit(&repository, &paths(&["kept"]));

    let CommitEnd::HookRefused { output } = end else { panic!("{end:?}") };
    assert_eq!(output, format!("kept\nmark test-{}/a/1/commit\n", world.top.display()));
}

#[test]
fn a_hook_that_adds_to_the_commit_and_one_that_amends_it_are_followed() {
    let world = World::new();
    let repository = world.repository();
    world.hook("pre-commit", "echo formatted > kept; git add kept");
    world.write("kept", "raw\n");
    oid(world.commit(&repository, &paths(&["kept"])));
    assert_eq!(world.git(&["show", "HEAD:kept"]), "formatted\n");
    assert_eq!(world.short_status(), "", "the index follows what the hook made of the commit");
    world.remove(".git/hooks/pre-commit");
    world.hook(
        "post-commit",
        "test -e .git/amended || { touch .git/amended; git commit --quiet --amend --no-edit --date=2001-01-01T00:00:00Z; }",
    );
    world.write("kept", "again\n");

    let commit = oid(world.commit(&repository, &paths(&["kept"])));

    assert_eq!(commit.0, world.head());
    assert!(world.git(&["show", "--no-patch", "--format=%ad"]).contains("2001"));
}

#[test]
fn a_reference_hook_that_refuses_is_a_hook() {
    let world = World::new();
    let repository = world.repository();
    world.hook("reference-transaction", "test \"$1\" != prepared || { echo no; exit 1; }");
    world.write("kept", "changed\n");

    let end = world.commit(&repository, &paths(&["kept"]));

    assert!(matches!(end, CommitEnd::HookRefused { .. }), "{end:?}");
}

#[test]
fn hooks_are_found_where_the_settings_say_and_samples_are_none() {
    let world = World::without_repository();
    world.git(&["init", "--quiet"]);
    let repository = world.repository();
    assert!(!repository.has_commit_hooks().unwrap());

    world.write("tools/hooks/pre-commit", "#!/bin/sh\n");
    world.git(&["config", "core.hooksPath", "tools/hooks"]);
    assert!(!repository.has_commit_hooks().unwrap(), "not executable");
    make_executable(&world.on_disk("tools/hooks/pre-commit"));
    assert!(repository.has_commit_hooks().unwrap());
}

#[test]
fn signing_that_fails_is_told_from_a_hook_and_tried_beforehand() {
    for (format, output) in [("openpgp", "gpg failed to sign"), ("ssh", "")] {
        let world = World::new();
        let repository = world.repository();
        repository.probe_signing().unwrap();
        let program = world.outside("no-key");
        write_script(&program, "echo no key >&2; exit 2");
        for (name, value) in [("commit.gpgSign", "true"), ("user.signingKey", "0123"), ("gpg.format", format)] {
            world.git(&["config", name, value]);
        }
        world.git(&["config", "gpg.program", program.to_str().unwrap()]);
        world.git(&["config", "gpg.ssh.program", program.to_str().unwrap()]);
        world.hook("pre-commit", "exit 0");
        world.write("new", "x\n");

        let probed = repository.probe_signing().unwrap_err();
        let end = world.commit(&repository, &paths(&["new"]));

        assert!(matches!(probed, WorkspaceError::Signing { .. }), "{probed}");
        let CommitEnd::SigningFailed { output: printed } = end else { panic!("{format}: {end:?}") };
        assert!(printed.contains(output), "{printed}");
        assert_eq!(world.short_status(), "?? new\n");
    }
}

#[test]
fn signing_that_works_is_done() {
    let world = World::new();
    let program = world.outside("signs");
    write_script(&program, "cat > /dev/null; printf '\\n[GNUPG:] SIG_CREATED ' >&2; echo '-----BEGIN PGP SIGNATURE-----'");
    world.git(&["config", "commit.gpgSign", "true"]);
    world.git(&["config", "gpg.program", program.to_str().unwrap()]);
    let repository = world.repository();
    world.write("kept", "changed\n");

    repository.probe_signing().unwrap();
    oid(world.commit(&repository, &paths(&["kept"])));

    assert!(world.git(&["cat-file", "commit", "HEAD"]).contains("gpgsig "));
}

#[test]
fn without_an_identity_the_refusal_says_which_settings_to_make() {
    let world = World::new();
    world.git(&["config", "--global", "--remove-section", "user"]);
    world.git(&["config", "user.useConfigOnly", "true"]);
    let repository = world.repository();
    world.write("new", "x\n");

    let request = world.request(&paths(&["new"]), &repository.status().unwrap());
    let probed = repository.identity_works().unwrap_err();
    let refused = repository.commit(&request).unwrap_err();

    assert!(matches!(probed, WorkspaceError::NoIdentity), "{probed}");
    assert!(matches!(refused, WorkspaceError::NoIdentity), "{refused}");
    assert!(refused.hint().unwrap().contains("user.email"));
    assert_eq!(world.short_status(), "?? new\n");
}

#[test]
fn an_identity_that_the_caller_passes_is_enough() {
    let world = World::new();
    world.git(&["config", "--global", "--remove-section", "user"]);
    world.git(&["config", "user.useConfigOnly", "true"]);
    let mut environment = world.environment();
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        environment = environment.with(name, "demo@example.com");
    }
    let repository = Repository::discover(&world.top, &environment).unwrap();
    world.write("kept", "changed\n");

    repository.identity_works().unwrap();
    oid(world.commit(&repository, &paths(&["kept"])));
}

#[test]
fn an_author_who_is_missing_is_noticed_where_only_the_committer_is_given() {
    let world = World::new();
    world.git(&["config", "--global", "--remove-section", "user"]);
    world.git(&["config", "user.useConfigOnly", "true"]);
    let environment = world.environment().with("GIT_COMMITTER_NAME", "c").with("GIT_COMMITTER_EMAIL", "c@example.com");
    let repository = Repository::discover(&world.top, &environment).unwrap();

    assert!(matches!(repository.identity_works(), Err(WorkspaceError::NoIdentity)));
}

#[test]
fn lines_of_the_message_that_look_like_comments_are_kept() {
    let world = World::new();
    world.git(&["config", "commit.cleanup", "strip"]);
    world.git(&["config", "commit.verbose", "true"]);
    let repository = world.repository();
    world.write("kept", "changed\n");
    let mut request = world.request(&paths(&["kept"]), &repository.status().unwrap());
    request.message = "Subject\n\n# not a comment\n\nRun: r\n".to_owned();

    oid(repository.commit(&request).unwrap());

    assert_eq!(world.git(&["log", "-1", "--format=%B"]).trim(), "Subject\n\n# not a comment\n\nRun: r");
}

#[test]
fn a_hook_beyond_the_limit_is_ended_and_said() {
    let world = World::new();
    let repository = world.repository();
    world.hook("pre-commit", "sleep 600");
    world.write("new", "x\n");
    let mut request = world.request(&paths(&["new"]), &repository.status().unwrap());
    request.limit = Some(Duration::from_millis(200));

    let error = repository.commit(&request).unwrap_err();

    assert!(matches!(error, WorkspaceError::TimedOut { command: "commit", .. }), "{error}");
    assert_eq!(world.short_status(), "?? new\n");
    assert!(!world.on_disk(".git/index.lock").exists());
}

#[test]
fn filters_and_line_ends_apply_as_in_the_users_own_commits() {
    let world = World::new();
    world.write(".gitattributes", "*.up filter=upper\n*.txt text eol=crlf\n");
    world.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    let repository = world.repository();
    world.write("x.up", "loud\n");
    world.write("x.txt", "a\r\nb\r\n");

    oid(world.commit_all(&repository));

    assert_eq!(world.git(&["show", "HEAD:x.up"]), "LOUD\n");
    assert_eq!(world.git(&["show", "HEAD:x.txt"]), "a\nb\n");
    assert_eq!(repository.status().unwrap().changes, []);
}

#[test]
fn a_path_whose_folder_became_a_link_is_not_followed() {
    let world = World::new();
    let repository = world.repository();
    let elsewhere = world.outside("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(world.on_disk("dir/a"), elsewhere.join("a")).unwrap();
    std::fs::remove_dir_all(world.on_disk("dir")).unwrap();
    symlink(&elsewhere, world.on_disk("dir")).unwrap();

    oid(world.commit_all(&repository));

    assert_eq!(world.committed(), "A\tdir\nD\tdir/a\nD\tdir/b\n");
}

#[test]
fn an_ignored_path_that_is_named_is_committed() {
    let world = World::new();
    world.write(".gitignore", "records/\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "--quiet", "--message", "ignore"]);
    let repository = world.repository();
    world.write("records/run.card", "x\n");

    oid(world.commit(&repository, &paths(&["records/run.card"])));

    assert_eq!(world.committed(), "A\trecords/run.card\n");
}

#[test]
fn maintenance_goes_on_by_itself() {
    let world = World::new();
    for (name, value) in [
        ("maintenance.auto", "true"),
        ("maintenance.gc.enabled", "false"),
        ("maintenance.commit-graph.enabled", "true"),
        // However little there is to do.
        ("maintenance.commit-graph.auto", "-1"),
    ] {
        world.git(&["config", name, value]);
    }

    world.repository().maintenance().unwrap();

    let graph = world.top.join(".git/objects/info/commit-graphs/commit-graph-chain");
    wait_until("a commit graph", || graph.exists());
}
