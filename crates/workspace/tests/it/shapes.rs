//! Repositories of every shape.

use std::time::{Duration, Instant};

use proctor_domain::{Branch, Oid, RepoPath};
use proctor_workspace::{ChangeKind, CommitEnd, ObjectFormat};

use crate::world::{World, changes, path, paths};

/// Changes, commits, snapshots and restores, which all must work.
fn check_whole_cycle(world: &World) {
    let repository = world.repository();
    let base = repository.head().unwrap().commit;
    world.write("kept", "changed\n");
    world.write("new", "x\n");
    let status = repository.status().unwrap();
    assert_eq!(status.paths(), paths(&["kept", "new"]));
    let snapshot = repository.snapshot(&status.paths()).unwrap();
    let CommitEnd::Committed(commit) = world.commit_all(&repository) else { panic!("not committed") };
    assert_eq!(commit.0, world.head());
    assert_eq!(repository.head().unwrap().commit, Some(commit.clone()));
    assert_eq!(repository.differing(&commit, &snapshot).unwrap(), []);
    let commits = repository.commits_since(base.as_ref()).unwrap();
    assert_eq!(commits.iter().map(|commit| &commit.oid).collect::<Vec<_>>(), [&commit]);
    repository.save("refs/proctor/salvage/x", &snapshot, Some(&commit), "x").unwrap();
    world.write("kept", "changed again\n");
    world.remove("new");
    repository.restore(&paths(&["kept", "new"]), Some(&commit)).unwrap();
    assert_eq!(world.short_status(), "");
}

#[test]
fn an_ordinary_repository_works() {
    check_whole_cycle(&World::new());
}

#[test]
fn sha256_works() {
    let world = World::without_repository();
    world.git(&["init", "--quiet", "--object-format=sha256"]);
    world.populate();

    check_whole_cycle(&world);

    assert_eq!(world.repository().object_format, ObjectFormat::Sha256);
    assert_eq!(world.repository().head().unwrap().commit.unwrap().0.len(), 64);
}

#[test]
fn references_that_are_no_files_work() {
    let world = World::without_repository();
    if !world.try_git(&world.top, &["init", "--quiet", "--ref-format=reftable"]).status.is_success() {
        return; // A git without them.
    }
    world.populate();

    check_whole_cycle(&world);

    assert_eq!(world.repository().head().unwrap().branch, Branch::Named("main".to_owned()));
}

#[test]
fn a_detached_head_works() {
    let world = World::new();
    world.git(&["checkout", "--quiet", "--detach"]);

    check_whole_cycle(&world);

    assert_eq!(world.repository().head().unwrap().branch, Branch::Detached);
}

#[test]
fn a_shallow_clone_works() {
    let origin = World::new();
    origin.git(&["commit", "--quiet", "--allow-empty", "--message", "second"]);
    let world = World::without_repository();
    let url = format!("file://{}", origin.top.display());
    world.git(&["clone", "--quiet", "--depth=1", &url, "."]);

    check_whole_cycle(&world);
}

#[test]
fn a_linked_work_tree_works() {
    let main = World::new();
    let mut world = World::without_repository();
    world.top = world.outside("linked");
    main.git(&["worktree", "add", "--quiet", world.top.to_str().unwrap()]);

    check_whole_cycle(&world);
}

#[test]
fn split_indexes_and_untracked_caches_work() {
    let world = World::new();
    world.git(&["config", "core.splitIndex", "true"]);
    world.git(&["config", "core.untrackedCache", "true"]);
    world.git(&["update-index", "--split-index", "--untracked-cache"]);

    check_whole_cycle(&world);
}

#[test]
fn a_sparse_checkout_keeps_what_it_leaves_out() {
    for index in ["--sparse-index", "--no-sparse-index"] {
        let world = World::new();
        world.write("out/x", "x\n");
        world.git(&["add", "--all"]);
        world.git(&["commit", "--quiet", "--message", "out"]);
        world.git(&["sparse-checkout", "set", "--cone", index, "dir"]);
        assert!(!world.on_disk("out/x").exists());

        check_whole_cycle(&world);

        // A file that a step makes outside the part that is checked out.
        let repository = world.repository();
        world.write("out/new", "x\n");
        assert_eq!(changes(&repository.status().unwrap()), [("out/new".to_owned(), ChangeKind::Untracked, false)]);
        let end = world.commit_all(&repository);
        assert!(matches!(end, CommitEnd::Committed(_)), "{end:?}");
        assert_eq!(world.git(&["ls-tree", "-r", "--name-only", "HEAD", "out/"]), "out/new\nout/x\n");
    }
}

#[test]
fn submodules_are_pointers_and_their_own_changes_are_told_apart() {
    let world = World::new();
    let library = World::new();
    let repository = world.repository();
    world.git(&["submodule", "--quiet", "add", library.top.to_str().unwrap(), "sub"]);
    let added = repository.status().unwrap();
    assert_eq!(changes(&added), [(".gitmodules".to_owned(), ChangeKind::Added, true), ("sub".to_owned(), ChangeKind::Added, true)]);
    let end = world.commit_all(&repository);
    assert!(matches!(end, CommitEnd::Committed(_)), "{end:?}");
    assert_eq!(world.short_status(), "");
    let sub = world.on_disk("sub");

    world.git_in(&sub, &["commit", "--quiet", "--allow-empty", "--message", "moved"]);
    assert_eq!(changes(&repository.status().unwrap()), [("sub".to_owned(), ChangeKind::SubmoduleMoved, false)]);
    let base = Oid(world.head());
    let snapshot = repository.snapshot(&paths(&["sub"])).unwrap();
    assert_eq!(repository.differing(&base, &snapshot).unwrap(), paths(&["sub"]));
    let end = world.commit_all(&repository);
    assert!(matches!(end, CommitEnd::Committed(_)), "{end:?}");
    assert_eq!(world.git(&["rev-parse", "HEAD:sub"]), world.git_in(&sub, &["rev-parse", "HEAD"]));

    for name in ["sub/kept", "sub/new"] {
        world.write(name, "changed\n");
        assert_eq!(changes(&repository.status().unwrap()), [("sub".to_owned(), ChangeKind::SubmoduleDirty, false)], "{name}");
        assert_eq!(changes(&world.repository().status().unwrap()), [("sub".to_owned(), ChangeKind::SubmoduleDirty, false)], "{name}");
        world.git_in(&sub, &["checkout", "--quiet", "."]);
    }
}

#[test]
fn twenty_thousand_files_are_no_trouble() {
    let world = World::unborn();
    for number in 0..20_000 {
        if number % 200 == 0 {
            std::fs::create_dir(world.on_disk(format!("d{}", number / 200))).unwrap();
        }
        // The same in all, which makes one object.
        let mut file = std::fs::File::create(world.on_disk(format!("d{}/f{number}", number / 200))).unwrap();
        std::io::Write::write_all(&mut file, b"x\n").unwrap();
    }
    world.git(&["add", "--all"]);
    world.git(&["-c", "core.fsync=none", "commit", "--quiet", "--message", "many"]);
    let repository = world.repository();
    let begun = Instant::now();

    // Some, and then more than git's own way of naming them would bear.
    let several: Vec<RepoPath> = (0..1_500).map(|number| path(format!("d{}/f{number}", number / 200))).collect();
    for some in [&several[..3], &several[..]] {
        for one in some {
            world.write(one.as_bytes(), &format!("changed {}\n", some.len()));
        }
        world.write(format!("new {}", some.len()), "x\n");
        let status = repository.status().unwrap();
        assert_eq!(status.changes.len(), some.len() + 1);
        let snapshot = repository.snapshot(&status.paths()).unwrap();
        let CommitEnd::Committed(commit) = world.commit_all(&repository) else { panic!("not committed") };
        assert_eq!(repository.differing(&commit, &snapshot).unwrap(), []);
        assert_eq!(world.short_status(), "");
    }

    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
