//! What a status says, and what it does not do.

use std::os::unix::fs::symlink;

use proctor_domain::{Branch, RepoPath};
use proctor_workspace::{Change, ChangeKind, TooMuch, too_much};

use crate::world::{World, changes, make_executable, path, write};

#[test]
fn each_kind_of_change_is_told_from_the_others() {
    let world = World::new();
    for name in ["mode", "gone", "unstaged", "uncached", "link"] {
        world.write(name, "x\n");
    }
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "second"]);
    let repository = world.repository();

    world.write("kept", "changed\n");
    make_executable(&world.on_disk("mode"));
    world.git(&["rm", "--quiet", "gone"]);
    world.remove("unstaged");
    world.git(&["rm", "--quiet", "--cached", "uncached"]);
    world.remove("link");
    symlink("kept", world.on_disk("link")).unwrap();
    world.write("staged", "x\n");
    world.git(&["add", "staged"]);
    world.write("new", "x\n");
    world.write("staged and gone", "x\n");
    world.git(&["add", "staged and gone"]);
    world.remove("staged and gone");

    let status = repository.status().unwrap();

    let expected = [
        ("gone", ChangeKind::Deleted, true),
        ("kept", ChangeKind::Modified, false),
        ("link", ChangeKind::Modified, false),
        ("mode", ChangeKind::Modified, false),
        ("new", ChangeKind::Untracked, false),
        ("staged", ChangeKind::Added, true),
        ("staged and gone", ChangeKind::Deleted, true),
        ("uncached", ChangeKind::Untracked, true),
        ("unstaged", ChangeKind::Deleted, false),
    ];
    assert_eq!(changes(&status), expected.map(|(name, kind, staged)| (name.to_owned(), kind, staged)));
    assert_eq!(status.head.unwrap().0, world.head());
    assert_eq!(status.branch, Branch::Named("main".to_owned()));
}

#[test]
fn odd_paths_are_reported_byte_for_byte() {
    let world = World::new();
    let repository = world.repository();
    let odd: [&[u8]; 6] = [b" lead and trail ", b"-n", b":(top)x", b"bytes \xff\xfe", b"line\nbreak", b"quote\"\\"];
    for name in odd {
        world.write(name, "x");
    }

    let status = repository.status().unwrap();

    let mut expected: Vec<RepoPath> = odd.iter().map(path).collect();
    expected.sort();
    assert_eq!(status.paths(), expected);
}

#[test]
fn no_commit_yet_and_detached_are_said() {
    let world = World::unborn();
    let status = world.repository().status().unwrap();
    assert_eq!((status.head, status.branch), (None, Branch::Named("main".to_owned())));
    assert_eq!(world.repository().head().unwrap().commit, None);

    world.populate();
    world.git(&["checkout", "--quiet", "--detach"]);
    let status = world.repository().status().unwrap();
    assert_eq!((status.head.unwrap().0, status.branch), (world.head(), Branch::Detached));
}

#[test]
fn head_is_the_same_however_its_branch_is_stored() {
    let world = World::new();
    let repository = world.repository();
    let loose = repository.head().unwrap();
    world.git(&["pack-refs", "--all"]);
    let packed = repository.head().unwrap();
    world.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    world.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    let alias = repository.head().unwrap();

    assert_eq!(loose.commit.as_ref().unwrap().0, world.head());
    assert_eq!(packed, loose);
    assert_eq!(alias.commit, loose.commit);
}

#[test]
fn operations_in_progress_are_named() {
    let world = World::new();
    let repository = world.repository();
    assert_eq!(repository.operation_in_progress(), None);
    world.git(&["checkout", "--quiet", "-b", "side"]);
    world.write("kept", "side\n");
    world.git(&["commit", "--quiet", "--all", "--message", "side"]);
    world.git(&["checkout", "--quiet", "main"]);
    world.write("kept", "main\n");
    world.git(&["commit", "--quiet", "--all", "--message", "main"]);
    world.write("kept", "main again\n");
    world.git(&["commit", "--quiet", "--all", "--message", "main again"]);

    for (name, begin, end) in [
        ("merge", vec!["merge", "side"], vec!["merge", "--abort"]),
        ("rebase", vec!["rebase", "side"], vec!["rebase", "--abort"]),
        ("rebase", vec!["rebase", "--apply", "side"], vec!["rebase", "--abort"]),
        ("cherry-pick", vec!["cherry-pick", "side"], vec!["cherry-pick", "--abort"]),
        ("revert", vec!["revert", "--no-edit", "HEAD~1"], vec!["revert", "--abort"]),
        ("bisect", vec!["bisect", "start"], vec!["bisect", "reset"]),
    ] {
        let _ = world.try_git(&world.top, &begin);
        assert_eq!(repository.status().unwrap().operation.as_deref(), Some(name), "{begin:?}");
        world.git(&end);
        assert_eq!(repository.status().unwrap().operation, None, "{end:?}");
    }
}

#[test]
fn a_conflict_is_unmerged() {
    let world = World::new();
    world.git(&["checkout", "--quiet", "-b", "side"]);
    world.write("kept", "side\n");
    world.git(&["commit", "--quiet", "--all", "--message", "side"]);
    world.git(&["checkout", "--quiet", "main"]);
    world.write("kept", "main\n");
    world.git(&["commit", "--quiet", "--all", "--message", "main"]);
    let _ = world.try_git(&world.top, &["merge", "side"]);

    let status = world.repository().status().unwrap();

    assert_eq!(changes(&status), [("kept".to_owned(), ChangeKind::Unmerged, true)]);
}

#[test]
fn the_users_status_settings_change_nothing() {
    let world = World::new();
    for (name, value) in [
        ("status.showUntrackedFiles", "no"),
        ("status.renames", "copies"),
        ("status.branch", "false"),
        ("status.short", "true"),
        ("color.ui", "always"),
        ("core.quotePath", "true"),
        ("diff.ignoreSubmodules", "all"),
        ("status.showStash", "true"),
    ] {
        world.git(&["config", name, value]);
    }
    world.git(&["mv", "kept", "moved"]);
    world.write("deep/er/new", "x");

    let status = world.repository().status().unwrap();

    let expected = [("deep/er/new", ChangeKind::Untracked, false), ("kept", ChangeKind::Deleted, true), ("moved", ChangeKind::Added, true)];
    assert_eq!(changes(&status), expected.map(|(name, kind, staged)| (name.to_owned(), kind, staged)));
}

#[test]
fn a_status_writes_nothing_into_the_repository() {
    let world = World::new();
    let repository = world.repository();
    // The same contents in another file: a status with locks would note that in the index.
    world.write("beside", "kept\n");
    std::fs::rename(world.on_disk("beside"), world.on_disk("kept")).unwrap();
    let before = std::fs::read(world.top.join(".git/index")).unwrap();

    let status = repository.status().unwrap();

    assert!(status.changes.is_empty());
    assert_eq!(std::fs::read(world.top.join(".git/index")).unwrap(), before);
    repository.refresh_index().unwrap();
    assert_ne!(std::fs::read(world.top.join(".git/index")).unwrap(), before);
}

#[test]
fn a_repository_inside_the_work_tree_is_too_much() {
    let world = World::new();
    world.git(&["init", "--quiet", "inner"]);
    world.write("inner/x", "x");
    let repository = world.repository();

    let status = repository.status().unwrap();

    assert_eq!(changes(&status), [("inner/".to_owned(), ChangeKind::NestedRepository, false)]);
    assert_eq!(too_much(&repository, &status.changes), Err(TooMuch::NestedRepository { path: path("inner/") }));
}

#[test]
fn too_many_new_files_are_named_by_their_folder() {
    let world = World::new();
    let repository = world.repository();
    let new = |name: String| Change { path: path(name), kind: ChangeKind::Untracked, staged: false };
    let mut changes: Vec<Change> = (0..2_000).map(|number| new(format!("out/{number}"))).collect();
    assert_eq!(too_much(&repository, &changes), Ok(()));
    changes.push(new("one".to_owned()));

    let refused = too_much(&repository, &changes).unwrap_err();

    assert_eq!(refused, TooMuch::Files { count: 2_001, mostly: path("out/") });
    assert_eq!(refused.to_string(), "there are 2001 new files, most of them under out/ (the limit is 2000)");
}

#[test]
fn too_many_bytes_are_named_by_the_largest_file() {
    let world = World::new();
    let repository = world.repository();
    // A file with a hole: its size counts, and it takes no room.
    write(&world.on_disk("large"), "");
    std::fs::File::options().write(true).open(world.on_disk("large")).unwrap().set_len(50 * 1024 * 1024).unwrap();
    let status = repository.status().unwrap();
    assert_eq!(too_much(&repository, &status.changes), Ok(()));
    world.write("small", "x");

    let refused = too_much(&repository, &repository.status().unwrap().changes).unwrap_err();

    assert_eq!(refused, TooMuch::Bytes { bytes: 50 * 1024 * 1024 + 1, largest: path("large") });
}
