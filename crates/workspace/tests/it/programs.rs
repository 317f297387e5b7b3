//! What an agent plants is found before git works in the repository again, and put back.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use proctor_workspace::{Programs, Repository};

use crate::world::{World, write, write_script};

/// What differs after `plant`, with the programs read back from JSON; then, that putting back mends it.
fn check(world: &World, plant: impl FnOnce(&World), expected: &[&str]) {
    let repository = world.repository();
    let before = remembered(&repository);
    let config = world.read(".git/config");
    plant(world);

    assert_eq!(before.differences(&repository).unwrap(), expected);
    let kept = world.outside("kept");
    before.put_back(&repository, &kept).unwrap();
    before.put_back(&repository, &kept).unwrap();

    assert_eq!(before.differences(&repository).unwrap(), [""; 0], "after putting back");
    assert_eq!(repository.programs().unwrap(), before);
    assert_eq!(world.read(".git/config"), config);
    world.git(&["status"]);
}

fn remembered(repository: &Repository) -> Programs {
    let programs = repository.programs().unwrap();
    let text = serde_json::to_string(&programs).unwrap();
    let back: Programs = serde_json::from_str(&text).unwrap();
    assert_eq!(back, programs);
    back
}

#[test]
fn nothing_planted_is_no_difference() {
    let world = World::new();
    world.hook("pre-commit", "true");
    let repository = world.repository();
    let before = remembered(&repository);

    world.git(&["config", "user.name", "Somebody"]);
    world.git(&["config", "branch.main.remote", "origin"]);
    world.git(&["remote", "add", "origin", "/somewhere"]);
    world.hook("pre-push.sample", "true");
    world.write("kept", "work\n");
    world.git(&["commit", "--quiet", "--all", "--message", "work"]);

    assert_eq!(before.differences(&repository).unwrap(), [""; 0]);
    before.put_back(&repository, &world.outside("kept")).unwrap();
    assert_eq!(world.git(&["config", "user.name"]), "Somebody\n");
}

#[test]
fn planted_settings_are_named_and_put_back() {
    for (key, name) in [
        ("core.fsmonitor", "core.fsmonitor"),
        ("core.hooksPath", "core.hookspath"),
        ("core.worktree", "core.worktree"),
        ("alias.status", "alias.status"),
        ("filter.evil.clean", "filter.evil.clean"),
        ("filter.a=b.process", "filter.a=b.process"),
        ("include.path", "include.path"),
        ("includeIf.onbranch:main.path", "includeif.onbranch:main.path"),
        ("gpg.program", "gpg.program"),
        ("core.sshCommand", "core.sshcommand"),
        ("submodule.x.update", "submodule.x.update"),
    ] {
        let world = World::new();
        let value = world.top.join("planted");
        let plant = |world: &World| drop(world.git(&["config", key, value.to_str().unwrap()]));

        check(&world, plant, &[&format!("config {name} was set")]);
        assert!(std::fs::read_to_string(world.outside("kept").join("config")).unwrap().contains("planted"));
    }
}

#[test]
fn a_setting_that_was_there_can_be_changed_or_removed_only_with_notice() {
    for (plant, expected) in [
        (&["config", "filter.x.clean", "evil"][..], "config filter.x.clean was changed"),
        (&["config", "--unset", "filter.x.clean"][..], "config filter.x.clean was removed"),
        (&["config", "--add", "filter.x.clean", "evil"][..], "config filter.x.clean was changed"),
    ] {
        let world = World::new();
        world.git(&["config", "filter.x.clean", "cat"]);

        check(&world, |world| drop(world.git(plant)), &[expected]);
    }
}

#[test]
fn settings_in_included_and_worktree_files_count() {
    for place in ["included", "not there yet", "worktree"] {
        let world = World::new();
        write(&world.outside("included"), "[user]\nname = X\n");
        world.git(&["config", "extensions.worktreeConfig", "true"]);
        world.git(&["config", "include.path", world.outside("included").to_str().unwrap()]);
        world.git(&["config", "includeIf.onbranch:main.path", world.outside("not there yet").to_str().unwrap()]);
        let file = if place == "worktree" { world.on_disk(".git/config.worktree") } else { world.outside(place) };

        check(&world, |_| write(&file, "[core]\nfsmonitor = evil\n"), &["config core.fsmonitor was set"]);
    }
}

#[test]
fn settings_that_git_cannot_read_are_a_difference() {
    let world = World::new();
    let file = world.on_disk(".git/config");
    check(&world, |_| write(&file, "[what\n"), &[&format!("config {} can't be read", file.display())]);
}

#[test]
fn a_settings_file_that_became_a_link_is_a_file_again() {
    let world = World::new();
    let (file, target) = (world.on_disk(".git/config"), world.outside("theirs"));
    let plant = |_: &World| {
        std::fs::rename(&file, &target).unwrap();
        symlink(&target, &file).unwrap();
    };

    check(&world, plant, &[&format!("config {} was replaced by a link", file.display())]);

    assert!(target.exists(), "what the link led to is not ours");
    assert!(!file.is_symlink());
}

#[test]
fn hooks_are_compared_one_by_one() {
    let world = World::new();
    world.hook("pre-commit", "true");
    world.hook("commit-msg", "true");
    world.hook("post-commit", "true");
    let plant = |world: &World| {
        world.hook("pre-commit", "evil");
        world.remove(".git/hooks/commit-msg");
        world.hook("post-merge", "evil");
    };

    check(&world, plant, &["hook commit-msg was removed", "hook pre-commit was changed", "hook post-merge was added"]);

    let names: Vec<_> = std::fs::read_dir(world.outside("kept")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn hooks_in_a_folder_that_the_settings_name_count_too() {
    let world = World::new();
    world.git(&["config", "core.hooksPath", "own-hooks"]);
    write_script(&world.on_disk("own-hooks/pre-commit"), "true");
    write(&world.on_disk("own-hooks/README"), "about hooks\n");

    let plant = |world: &World| {
        write_script(&world.on_disk("own-hooks/pre-commit"), "evil");
        write(&world.on_disk("own-hooks/README"), "more about hooks\n");
    };

    check(&world, plant, &["hook pre-commit was changed"]);
}

#[test]
fn a_hooks_folder_that_leads_elsewhere_is_a_folder_again() {
    let world = World::new();
    world.hook("pre-commit", "true");
    let (hooks, elsewhere) = (world.on_disk(".git/hooks"), world.outside("elsewhere"));
    let plant = |_: &World| {
        std::fs::rename(&hooks, &elsewhere).unwrap();
        symlink(&elsewhere, &hooks).unwrap();
    };

    check(&world, plant, &[&format!("the hooks folder {} was replaced", hooks.display())]);

    assert!(elsewhere.join("pre-commit").exists());
}

#[test]
fn attributes_of_the_repository_count() {
    let world = World::new();
    let file = world.on_disk(".git/info/attributes");

    check(&world, |_| write(&file, "* filter=evil\n"), &["info/attributes was added"]);
}

#[test]
fn a_git_directory_that_was_moved_away_is_said_and_not_invented() {
    let world = World::new();
    let repository = world.repository();
    let before = remembered(&repository);
    let away = world.outside("away");

    std::fs::rename(world.on_disk(".git"), &away).unwrap();
    assert_eq!(before.differences(&repository).unwrap(), [".git was removed"]);
    write(&world.on_disk(".git"), &format!("gitdir: {}\n", away.display()));
    assert_eq!(before.differences(&repository).unwrap(), [".git points elsewhere"]);

    let error = before.put_back(&repository, &world.outside("kept")).unwrap_err().to_string();
    assert!(error.contains("is gone"), "{error}");
    assert!(world.on_disk(".git").is_file());
}

/// A linked worktree, as an agent gets one.
fn linked(world: &World) -> (Repository, PathBuf) {
    let path = world.outside("linked");
    world.git(&["worktree", "add", "--quiet", "-b", "side", path.to_str().unwrap()]);
    (Repository::discover(&path, &world.environment()).unwrap(), path)
}

#[test]
fn a_pointer_of_a_worktree_that_leads_elsewhere_is_put_back() {
    let world = World::new();
    let (repository, path) = linked(&world);
    let before = remembered(&repository);
    let (pointer, evil) = (path.join(".git"), world.outside("evil"));
    let original = std::fs::read_to_string(&pointer).unwrap();
    std::fs::create_dir(&evil).unwrap();
    world.git_in(&evil, &["init", "--quiet"]);

    write(&pointer, &format!("gitdir: {}/.git\n", evil.display()));
    write(&repository.git_dir.join("commondir"), "/nowhere\n");
    assert_eq!(before.differences(&repository).unwrap(), [".git points elsewhere", "commondir points elsewhere"]);
    before.put_back(&repository, &world.outside("kept")).unwrap();
    assert_eq!(std::fs::read_to_string(&pointer).unwrap(), original);

    std::fs::remove_file(&pointer).unwrap();
    assert_eq!(before.differences(&repository).unwrap(), [".git was removed"]);
    before.put_back(&repository, &world.outside("kept")).unwrap();

    std::fs::remove_file(&pointer).unwrap();
    world.git_in(&path, &["init", "--quiet"]);
    before.put_back(&repository, &world.outside("kept")).unwrap();
    assert_eq!(before.differences(&repository).unwrap(), [""; 0]);
    assert_eq!(world.git_in(&path, &["status", "--short"]), "");
    assert!(world.outside("kept/git.2/HEAD").exists(), "the planted repository is kept");
}

#[test]
fn places_that_git_would_look_in_are_as_they_were() {
    for (name, contents) in
        [("commondir", "../evil\n"), ("gitdir", "../evil\n"), ("objects/info/alternates", "/evil\n"), ("info/exclude", "*\n")]
    {
        let world = World::new();
        let file = world.on_disk(".git").join(name);

        check(&world, |_| write(&file, contents), &[&format!("{name} was added")]);

        assert!(!file.exists(), "{name}");
    }
}

#[test]
fn links_that_git_would_write_through_are_moved_away() {
    let logs = ["logs/HEAD", "logs/refs/heads/main", "logs/refs/heads/other/deep"];
    for name in ["COMMIT_EDITMSG", "ORIG_HEAD", "MERGE_MSG", "FETCH_HEAD", "index", "HEAD", "index.lock", "objects/17"].iter().chain(&logs)
    {
        let world = World::new();
        let (link, victim) = (world.on_disk(".git").join(name), world.outside("victim"));
        write(&victim, "ref: refs/heads/main\n");
        let plant = |_: &World| {
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&link);
            symlink(&victim, &link).unwrap();
        };
        let words = if *name == "HEAD" { "HEAD was changed".to_owned() } else { format!("{name} leads elsewhere") };

        check(&world, plant, &[&words]);

        assert!(!link.is_symlink(), "{name}");
        world.write("kept", "work\n");
        world.git(&["commit", "--quiet", "--all", "--message", "work"]);
        assert_eq!(world.short_status(), "", "{name}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "ref: refs/heads/main\n", "{name}");
    }
}

#[test]
fn files_with_a_second_name_that_git_would_write_into_are_moved_away() {
    for name in ["COMMIT_EDITMSG", "logs/HEAD"] {
        let world = World::new();
        let (file, victim) = (world.on_disk(".git").join(name), world.outside("victim"));
        write(&victim, "precious\n");
        let plant = |_: &World| {
            std::fs::remove_file(&file).unwrap();
            std::fs::hard_link(&victim, &file).unwrap();
        };

        check(&world, plant, &[&format!("{name} is a file of another name too")]);

        assert!(!file.exists(), "{name}");
    }
}

#[test]
fn a_branch_that_became_a_link_keeps_its_commit() {
    let world = World::new();
    let (branch, head, victim) = (world.on_disk(".git/refs/heads/main"), world.head(), world.outside("victim"));
    let plant = |_: &World| {
        std::fs::rename(&branch, &victim).unwrap();
        symlink(&victim, &branch).unwrap();
    };

    check(&world, plant, &["refs/heads/main leads elsewhere"]);

    assert_eq!((world.head(), branch.is_symlink()), (head, false));
}

#[test]
fn objects_that_are_elsewhere_are_said_and_not_invented() {
    let world = World::new();
    let repository = world.repository();
    let before = remembered(&repository);
    let objects = world.on_disk(".git/objects");
    std::fs::rename(&objects, world.outside("objects")).unwrap();
    symlink(world.outside("objects"), &objects).unwrap();

    assert_eq!(before.differences(&repository).unwrap(), ["objects leads elsewhere"]);
    let error = before.put_back(&repository, &world.outside("kept")).unwrap_err().to_string();
    assert!(error.contains("objects is gone"), "{error}");
}

#[test]
fn links_that_were_there_before_stay_and_lead_where_they_led() {
    let world = World::new();
    let link = world.on_disk(".git/rr-cache");
    symlink(world.outside("shared"), &link).unwrap();
    let plant = |_: &World| {
        std::fs::remove_file(&link).unwrap();
        symlink(world.outside("evil"), &link).unwrap();
    };

    check(&world, plant, &["rr-cache leads elsewhere"]);

    assert_eq!(std::fs::read_link(&link).unwrap(), world.outside("shared"));
}

#[test]
fn an_operation_left_in_progress_is_moved_away() {
    for (name, words) in [
        ("rebase-merge/git-rebase-todo", "a rebase was left in progress"),
        ("rebase-apply/applying", "a rebase was left in progress"),
        ("sequencer/todo", "a cherry-pick or revert was left in progress"),
        ("MERGE_HEAD", "a merge was left in progress"),
        ("BISECT_LOG", "a bisect was left in progress"),
    ] {
        let world = World::new();
        check(&world, |world| world.write(format!(".git/{name}"), "exec evil\n"), &[words]);
        assert_eq!(world.repository().operation_in_progress(), None, "{name}");
    }
}

#[test]
fn marks_that_hide_an_agents_edits_are_taken_off_and_the_users_own_stay() {
    let world = World::new();
    world.git(&["update-index", "--skip-worktree", "dir/b"]);
    let repository = world.repository();
    let before = remembered(&repository);
    world.write("kept", "edited\n");
    world.write("dir/a", "edited\n");
    world.git(&["update-index", "--assume-unchanged", "kept"]);
    world.git(&["update-index", "--skip-worktree", "--assume-unchanged", "dir/a"]);
    assert_eq!(world.short_status(), "");

    before.uncover(&repository, &world.outside("kept")).unwrap();
    before.uncover(&repository, &world.outside("kept")).unwrap();

    assert_eq!(world.short_status(), " M dir/a\n M kept\n");
    assert_eq!(world.git(&["ls-files", "-v"]), "H dir/a\nS dir/b\nH kept\n");
}

#[test]
fn files_that_a_sparse_checkout_leaves_out_stay_marked() {
    let world = World::new();
    world.git(&["config", "core.sparseCheckout", "true"]);
    let repository = world.repository();
    let before = remembered(&repository);
    world.git(&["update-index", "--skip-worktree", "dir/a"]);
    world.remove("dir/a");

    before.uncover(&repository, &world.outside("kept")).unwrap();

    assert_eq!(world.git(&["ls-files", "-v"]), "S dir/a\nH dir/b\nH kept\n");
}

#[test]
fn an_ignore_file_that_ignores_itself_is_said_and_moved_away() {
    let world = World::new();
    world.write("dir/.gitignore", ".gitignore\nold\n");
    let repository = world.repository();
    let before = remembered(&repository);
    assert_eq!(before.hiding(&repository).unwrap(), [""; 0]);
    world.write(".gitignore", "*\n");
    world.write("dir/.gitignore", "*\n");
    world.write("dir/new", "work\n");
    world.write("cache/.gitignore", "*\n");

    assert_eq!(
        before.hiding(&repository).unwrap(),
        [".gitignore hides work, and ignores itself", "dir/.gitignore hides work, and ignores itself"]
    );
    before.uncover(&repository, &world.outside("kept")).unwrap();

    assert_eq!(before.hiding(&repository).unwrap(), [""; 0]);
    assert_eq!(world.short_status(), "?? dir/new\n");
    assert_eq!(world.read("dir/.gitignore"), ".gitignore\nold\n");
    assert!(world.outside("kept/gitignore").exists());
}

#[test]
fn what_other_worktrees_and_submodules_follow_counts_too() {
    let (world, other) = (World::new(), World::new());
    let (_, gone) = linked(&world);
    let path = world.outside("second");
    world.git(&["worktree", "add", "--quiet", "-b", "second", path.to_str().unwrap()]);
    world.git(&["submodule", "--quiet", "add", other.top.to_str().unwrap(), "deep/sub"]);
    let (record, module) = (world.on_disk(".git/worktrees/second"), world.on_disk(".git/modules/deep/sub"));
    let (commondir, victim) = (record.join("commondir"), world.outside("victim"));
    let repository = world.repository();
    let before = remembered(&repository);

    world.git(&["worktree", "remove", gone.to_str().unwrap()]);
    assert_eq!(before.differences(&repository).unwrap(), [""; 0]);
    write(&commondir, "/evil\n");
    symlink(&victim, record.join("COMMIT_EDITMSG")).unwrap();
    write(&module.join("commondir"), "/evil\n");
    write(&module.join("config"), "[core]\nfsmonitor = evil\n");
    write_script(&module.join("hooks/pre-commit"), "evil");

    assert_eq!(
        before.differences(&repository).unwrap(),
        [
            "commondir points elsewhere",
            "commondir was added",
            "config core.fsmonitor was set",
            "config core.worktree was removed",
            "hook pre-commit was added",
            "worktrees/second/COMMIT_EDITMSG leads elsewhere",
        ]
    );
    before.put_back(&repository, &world.outside("kept")).unwrap();
    assert_eq!(before.differences(&repository).unwrap(), [""; 0]);
    world.git_in(&path, &["status"]);
}
