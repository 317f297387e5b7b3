//! A run's branch goes into the user's checkout, or nothing is touched.

use proctor_domain::{Branch, RepoPath};
use proctor_process::Program;
use proctor_workspace::{MergeEnd, MergeRequest};

use crate::world::{World, path, paths, write};

const MESSAGE: &str = "Merge what run_1 made\n\nRun: run_1\n";

fn request(world: &World) -> MergeRequest {
    MergeRequest {
        branch: "side".to_owned(),
        into: Branch::Named("main".to_owned()),
        message: MESSAGE.to_owned(),
        marker: format!("{}/merge", world.top.display()),
        log: world.outside("merge.log"),
    }
}

/// A world whose branch `side` has one commit more, with these files.
fn with_side(files: &[(&str, &str)]) -> World {
    let world = World::new();
    world.git(&["switch", "--quiet", "--create", "side"]);
    commit(&world, files, "side");
    world.git(&["switch", "--quiet", "main"]);
    world
}

fn commit(world: &World, files: &[(&str, &str)], subject: &str) {
    for (name, contents) in files {
        world.write(name, contents);
    }
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", subject]);
}

fn merge(world: &World) -> MergeEnd {
    world.repository().merge_branch(&request(world)).unwrap()
}

fn assert_merged(world: &World, end: &MergeEnd) {
    assert!(matches!(end, MergeEnd::Merged(oid) if oid.0 == world.head()), "{end:?}");
    assert_eq!(world.git(&["merge-base", "--is-ancestor", "side", "HEAD"]), "");
}

/// That the merge ends so, and leaves head, index and files alone.
fn check_untouched(world: &World, expected: &MergeEnd) {
    let before = (world.head(), world.short_status(), world.git(&["ls-files", "--stage"]), world.read("kept"));

    assert_eq!(&merge(world), expected);

    assert_eq!((world.head(), world.short_status(), world.git(&["ls-files", "--stage"]), world.read("kept")), before);
}

#[test]
fn a_conflict_is_foretold_and_nothing_is_touched() {
    let world = with_side(&[("kept", "side\n"), ("dir/b", "side\n"), ("ä \n", "side\n"), ("fine", "side\n")]);
    commit(&world, &[("kept", "main\n"), ("ä \n", "main\n")], "main");
    world.write("note", "untracked\n");

    check_untouched(&world, &MergeEnd::Conflict { paths: vec![path("kept"), path("ä \n")] });

    assert!(!world.on_disk(".git/MERGE_HEAD").exists());
}

#[test]
fn changes_that_are_not_committed_stop_it() {
    let world = with_side(&[("kept", "side\n")]);
    world.write("dir/a", "edited\n");
    check_untouched(&world, &MergeEnd::Dirty { paths: paths(&["dir/a"]) });

    world.git(&["add", "dir/a"]);
    check_untouched(&world, &MergeEnd::Dirty { paths: paths(&["dir/a"]) });
}

#[test]
fn untracked_files_stay_and_stop_it_only_where_they_are_in_the_way() {
    let world = with_side(&[("new/file", "side\n")]);
    world.write("note", "mine\n");
    world.write("new/file", "mine\n");
    check_untouched(&world, &MergeEnd::Dirty { paths: paths(&["new/file"]) });

    world.remove("new/file");
    assert_merged(&world, &merge(&world));
    assert_eq!(world.read("note"), "mine\n");
}

#[test]
fn an_ignored_file_is_not_overwritten() {
    let world = with_side(&[("secret", "side\n")]);
    write(&world.on_disk(".git/info/exclude"), "secret\n");
    world.write("secret", "mine\n");

    let end = merge(&world);

    assert!(matches!(end, MergeEnd::Refused { .. }), "{end:?}");
    assert_eq!(world.read("secret"), "mine\n");
}

#[test]
fn another_branch_is_said() {
    let world = with_side(&[("kept", "side\n")]);
    world.git(&["switch", "--quiet", "--create", "third"]);
    check_untouched(&world, &MergeEnd::OtherBranch { found: Branch::Named("third".to_owned()) });

    world.git(&["switch", "--quiet", "--detach"]);
    check_untouched(&world, &MergeEnd::OtherBranch { found: Branch::Detached });
}

#[test]
fn an_operation_in_progress_stops_it() {
    let world = with_side(&[("kept", "side\n")]);
    world.git(&["switch", "--quiet", "--create", "other"]);
    commit(&world, &[("dir/a", "other\n")], "other");
    world.git(&["switch", "--quiet", "main"]);
    commit(&world, &[("dir/b", "main\n")], "main");
    world.git(&["merge", "--quiet", "--no-commit", "other"]);
    check_untouched(&world, &MergeEnd::InProgress { operation: "merge".to_owned() });
    assert!(world.on_disk(".git/MERGE_HEAD").exists());

    world.git(&["merge", "--abort"]);
    world.git(&["bisect", "start"]);
    check_untouched(&world, &MergeEnd::InProgress { operation: "bisect".to_owned() });
}

#[test]
fn a_branch_that_is_not_there_or_not_related_is_refused() {
    let world = with_side(&[("kept", "side\n")]);
    world.git(&["branch", "--move", "side", "gone"]);
    assert!(matches!(merge(&world), MergeEnd::Refused { .. }));

    world.git(&["switch", "--quiet", "--orphan", "side"]);
    commit(&world, &[("x", "x\n")], "unrelated");
    world.git(&["switch", "--quiet", "main"]);
    let end = merge(&world);
    assert!(matches!(&end, MergeEnd::Refused { output } if output.contains("unrelated histories")), "{end:?}");
}

#[test]
fn it_goes_forward_where_it_can_whatever_the_users_settings_say() {
    let world = with_side(&[("kept", "side\n")]);
    world.git(&["config", "merge.ff", "false"]);

    let end = merge(&world);

    assert_merged(&world, &end);
    assert_eq!(world.head(), world.git(&["rev-parse", "side"]).trim());
    assert_eq!((world.read("kept").as_str(), world.short_status().as_str()), ("side\n", ""));
    assert_eq!(merge(&world), end, "found again");
}

#[test]
fn else_it_makes_a_merge_commit_with_the_message_and_the_hooks() {
    let world = with_side(&[("kept", "side\n")]);
    commit(&world, &[("dir/a", "main\n")], "main");
    for setting in [["merge.ff", "only"], ["merge.log", "true"], ["branch.main.mergeOptions", "--no-commit"], ["merge.autoStash", "true"]] {
        world.git(&["config", setting[0], setting[1]]);
    }
    world.hook("commit-msg", "test \"$PROCTOR_EFFECT\" && echo 'Signed-off-by: hook' >> \"$1\"");

    let end = merge(&world);

    assert_merged(&world, &end);
    assert_eq!(world.git(&["log", "-1", "--format=%B%P"]).trim().split(' ').count(), MESSAGE.split(' ').count() + 2);
    let text = world.git(&["log", "-1", "--format=%B"]);
    assert!(text.starts_with(MESSAGE) && text.contains("Signed-off-by: hook"), "{text}");
    assert_eq!((world.read("kept").as_str(), world.short_status().as_str()), ("side\n", ""));
    assert_eq!(merge(&world), end, "found again");
}

#[test]
fn a_hook_that_refuses_leaves_everything_as_it_was() {
    for hook in ["pre-merge-commit", "commit-msg"] {
        let world = with_side(&[("kept", "side\n"), ("new", "side\n")]);
        commit(&world, &[("dir/a", "main\n")], "main");
        world.write("note", "mine\n");
        world.hook(hook, "echo not today >&2; exit 1");
        let (head, status) = (world.head(), world.short_status());

        let end = merge(&world);

        assert!(matches!(&end, MergeEnd::Refused { output } if output.contains("not today")), "{hook}: {end:?}");
        assert_eq!((world.head(), world.short_status(), world.read("kept")), (head, status, "kept\n".to_owned()));
        assert_eq!(world.repository().operation_in_progress(), None);
    }
}

/// A git that died in a hook of the merge that was asked for.
fn die_in(world: &World, hook: &str) {
    world.hook(hook, "kill -KILL $PPID");
    let message = world.outside("message");
    write(&message, MESSAGE);
    let program = Program::new("git").args(["merge", "-F"]).arg(&message).arg("side");
    let finished = program.dir(&world.top).env(world.variables()).run(None).unwrap();
    assert!(finished.status.signal.is_some(), "{hook} did not kill it");
    world.remove(format!(".git/hooks/{hook}"));
}

#[test]
fn a_merge_that_was_killed_before_its_commit_is_made_again() {
    // In the first hook git has not yet noted that a merge is in progress; in the second it has.
    for (hook, operation) in [("pre-merge-commit", None), ("commit-msg", Some("merge".to_owned()))] {
        let world = with_side(&[("kept", "side\n"), ("new", "side\n")]);
        commit(&world, &[("dir/a", "main\n")], "main");
        world.write("note", "mine\n");
        die_in(&world, hook);
        assert_eq!(world.repository().operation_in_progress(), operation, "{hook}");
        assert_eq!(world.read("new"), "side\n");

        let end = merge(&world);

        assert_merged(&world, &end);
        assert_eq!(world.short_status(), "?? note\n", "{hook}");
    }
}

#[test]
fn files_that_a_killed_git_had_written_already_are_not_the_users() {
    let world = with_side(&[("kept", "side\n"), ("new", "side\n"), ("dir/b", "side\n")]);
    world.write("kept", "side\n");
    world.write("new", "side\n");

    assert_merged(&world, &merge(&world));
    assert_eq!(world.short_status(), "");

    let world = with_side(&[("kept", "side\n"), ("new", "side\n")]);
    world.write("kept", "side\n");
    world.write("new", "half of wh");
    let expected: Vec<RepoPath> = paths(&["kept", "new"]);
    check_untouched(&world, &MergeEnd::Dirty { paths: expected });
}

#[test]
fn a_merge_of_the_users_own_is_not_taken_back() {
    let world = with_side(&[("kept", "side\n")]);
    commit(&world, &[("dir/a", "main\n")], "main");
    world.git(&["merge", "--quiet", "--no-commit", "side"]);

    check_untouched(&world, &MergeEnd::InProgress { operation: "merge".to_owned() });
}

#[test]
fn a_repository_with_other_object_names_merges_too() {
    let world = World::without_repository();
    world.git(&["init", "--quiet", "--template=", "--object-format=sha256"]);
    world.populate();
    world.git(&["switch", "--quiet", "--create", "side"]);
    commit(&world, &[("kept", "side\n")], "side");
    world.git(&["switch", "--quiet", "main"]);
    commit(&world, &[("dir/a", "main\n")], "main");

    assert_merged(&world, &merge(&world));
}
