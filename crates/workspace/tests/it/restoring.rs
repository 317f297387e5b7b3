//! Exactly the named paths go back to the baseline, and nothing foreign goes with them.

use std::os::unix::fs::{PermissionsExt, symlink};

use proctor_domain::{Oid, RepoPath};
use proctor_workspace::{Repository, WorkspaceError};

use crate::world::{World, make_executable, path, paths};

fn restore_all(world: &World, repository: &Repository) {
    let head = Oid(world.head());
    repository.restore(&repository.status().unwrap().paths(), Some(&head)).unwrap();
}

fn check_clean(world: &World) {
    assert_eq!(world.short_status(), "");
    assert_eq!(world.git(&["diff", "--cached", "--raw"]), "");
}

#[test]
fn the_named_paths_go_back_and_all_others_stay_as_they_are() {
    let world = World::new();
    let repository = world.repository();
    world.write("kept", "the step's\n");
    world.write("new/deep", "the step's\n");
    world.write("staged", "the step's\n");
    world.git(&["add", "staged"]);
    world.write("dir/a", "the user's, staged\n");
    world.git(&["add", "dir/a"]);
    world.write("dir/b", "the user's\n");
    world.write("users-new", "x\n");

    repository.restore(&paths(&["kept", "new/deep", "staged"]), Some(&Oid(world.head()))).unwrap();

    assert_eq!(world.short_status(), "M  dir/a\n M dir/b\n?? users-new\n");
    assert_eq!(world.read("kept"), "kept\n");
    assert!(!world.on_disk("new").exists(), "a folder that became empty goes");
}

#[test]
fn every_shape_of_change_goes_back() {
    let world = World::new();
    for name in ["mode", "gone", "moved", "to link", "to folder", "folder/x", "folder/y/z", "uncached"] {
        world.write(name, "x\n");
    }
    symlink("kept", world.on_disk("link")).unwrap();
    make_executable(&world.on_disk("gone"));
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "second"]);
    let tree = world.git(&["ls-files", "--stage"]);
    let repository = world.repository();
    let change = || {
        make_executable(&world.on_disk("mode"));
        world.git(&["rm", "--quiet", "gone"]);
        world.git(&["mv", "moved", "moved here"]);
        world.remove("to link");
        symlink("nowhere", world.on_disk("to link")).unwrap();
        world.remove("to folder");
        world.write("to folder/inner/x", "x\n");
        std::fs::remove_dir_all(world.on_disk("folder")).unwrap();
        world.write("folder", "a file now\n");
        world.remove("link");
        world.write("link", "a file now\n");
        world.git(&["rm", "--quiet", "--cached", "uncached"]);
    };
    change();
    let changed = repository.status().unwrap().paths();
    let head = Oid(world.head());

    repository.restore(&changed, Some(&head)).unwrap();

    check_clean(&world);
    assert_eq!(world.git(&["ls-files", "--stage"]), tree);
    // Staged as well, and asked for twice.
    change();
    world.git(&["add", "--all"]);
    repository.restore(&changed, Some(&head)).unwrap();
    repository.restore(&changed, Some(&head)).unwrap();
    check_clean(&world);
    assert_eq!(world.git(&["ls-files", "--stage"]), tree);
}

#[test]
fn without_a_baseline_the_named_paths_are_removed() {
    let world = World::unborn();
    let repository = world.repository();
    world.write("a/b", "x\n");
    world.write("staged", "x\n");
    world.write("users", "x\n");
    world.git(&["add", "staged", "users"]);

    repository.restore(&paths(&["a/b", "staged"]), None).unwrap();

    assert_eq!(world.short_status(), "A  users\n");
}

#[test]
fn odd_paths_go_back() {
    let world = World::new();
    let odd: [&[u8]; 7] = [b" lead and trail ", b"-n", b":(top)x", b"bytes \xff\xfe", b"line\nbreak", b"quote\"\\", b"*"];
    for name in odd {
        world.write(name, "x\n");
    }
    world.write("foreign", "x\n");
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "odd"]);
    let repository = world.repository();
    for name in odd {
        world.write(name, "changed\n");
    }
    world.write("foreign", "changed\n");
    let named: Vec<RepoPath> = odd.iter().map(path).collect();

    repository.restore(&named, Some(&Oid(world.head()))).unwrap();

    assert_eq!(world.short_status(), " M foreign\n");
}

#[test]
fn folders_that_a_step_made_read_only_are_no_obstacle() {
    let world = World::new();
    let repository = world.repository();
    world.write("dir/a", "changed\n");
    world.write("dir/new", "x\n");
    world.write("dir/deep/new", "x\n");
    world.remove("dir/b");
    for folder in ["dir/deep", "dir"] {
        std::fs::set_permissions(world.on_disk(folder), std::fs::Permissions::from_mode(0o555)).unwrap();
    }

    restore_all(&world, &repository);

    check_clean(&world);
    assert!(!world.on_disk("dir/deep").exists());
}

#[test]
fn a_foreign_file_in_the_way_is_named_and_nothing_is_changed() {
    let world = World::new();
    let repository = world.repository();
    world.remove("kept");
    world.write("kept/foreign", "x\n");
    world.write("dir/a", "changed\n");

    let error = repository.restore(&paths(&["kept", "dir/a"]), Some(&Oid(world.head()))).unwrap_err();

    assert!(matches!(&error, WorkspaceError::RestoreBlocked { by, .. } if *by == path("kept/foreign")), "{error}");
    assert_eq!(world.read("dir/a"), "changed\n");
    assert_eq!(world.read("kept/foreign"), "x\n");
}

#[test]
fn a_foreign_file_or_link_in_a_folders_place_is_named() {
    for link in [false, true] {
        let world = World::new();
        let repository = world.repository();
        std::fs::rename(world.on_disk("dir"), world.outside("moved")).unwrap();
        if link {
            symlink(world.outside("moved"), world.on_disk("dir")).unwrap();
        } else {
            world.write("dir", "x\n");
        }

        let error = repository.restore(&paths(&["dir/a", "dir/b"]), Some(&Oid(world.head()))).unwrap_err();

        assert!(matches!(&error, WorkspaceError::RestoreBlocked { by, .. } if *by == path("dir")), "{error}");
        assert!(world.outside("moved").join("a").exists());
    }
}

#[test]
fn nothing_is_removed_through_a_link() {
    let world = World::new();
    let repository = world.repository();
    std::fs::rename(world.on_disk("dir"), world.outside("moved")).unwrap();
    symlink(world.outside("moved"), world.on_disk("dir")).unwrap();

    repository.restore(&paths(&["dir", "dir/a", "dir/b", "dir/never"]), Some(&Oid(world.head()))).unwrap();

    check_clean(&world);
    assert!(world.outside("moved").join("a").exists());
    assert!(world.on_disk("dir").symlink_metadata().unwrap().is_dir());
}

#[test]
fn ignored_files_go_with_a_folder_that_was_a_file() {
    let world = World::new();
    world.write(".gitignore", "cache\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "--quiet", "--message", "ignore"]);
    let repository = world.repository();
    world.remove("kept");
    world.write("kept/x", "x\n");
    world.write("kept/cache/y", "x\n");

    restore_all(&world, &repository);

    check_clean(&world);
    assert_eq!(world.read("kept"), "kept\n");
}

#[test]
fn a_repository_that_a_step_made_is_not_deleted() {
    let world = World::new();
    let repository = world.repository();
    world.git(&["init", "--quiet", "inner"]);

    let error = repository.restore(&paths(&["inner/"]), Some(&Oid(world.head()))).unwrap_err();

    assert!(matches!(&error, WorkspaceError::RestoreBlocked { .. }), "{error}");
    assert!(world.on_disk("inner/.git").exists());
}

#[test]
fn a_conflict_goes_back() {
    let world = World::new();
    world.git(&["checkout", "--quiet", "-b", "side"]);
    world.write("kept", "side\n");
    world.git(&["commit", "--quiet", "--all", "--message", "side"]);
    world.git(&["checkout", "--quiet", "main"]);
    world.write("kept", "main\n");
    world.git(&["commit", "--quiet", "--all", "--message", "main"]);
    let _ = world.try_git(&world.top, &["merge", "side"]);
    let repository = world.repository();

    repository.restore(&paths(&["kept"]), Some(&Oid(world.head()))).unwrap();

    check_clean(&world);
    assert_eq!(world.read("kept"), "main\n");
}

#[test]
fn contents_come_back_through_the_users_filters() {
    let world = World::new();
    world.write(".gitattributes", "*.txt text eol=crlf\n*.up filter=upper\n");
    world.git(&["config", "filter.upper.smudge", "tr a-z A-Z"]);
    world.git(&["config", "filter.upper.clean", "tr A-Z a-z"]);
    world.write("x.txt", "a\r\n");
    world.write("x.up", "A\n");
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "filters"]);
    let repository = world.repository();
    world.write("x.txt", "changed\n");
    world.remove("x.up");

    restore_all(&world, &repository);

    assert_eq!((world.read("x.txt"), world.read("x.up")), ("a\r\n".to_owned(), "A\n".to_owned()));
    check_clean(&world);
}

#[test]
fn two_thousand_paths_go_back() {
    let world = World::new();
    let named: Vec<RepoPath> = (0..2_000).map(|number| path(format!("many/a rather long name of a file, {number:04}"))).collect();
    for one in &named[..1_000] {
        world.write(one.as_bytes(), "x\n");
    }
    world.git(&["add", "--all"]);
    world.git(&["-c", "core.fsync=none", "commit", "--quiet", "--message", "many"]);
    let repository = world.repository();
    for one in &named {
        world.write(one.as_bytes(), "changed\n");
    }

    repository.restore(&named, Some(&Oid(world.head()))).unwrap();

    check_clean(&world);
}

#[test]
fn a_moved_submodule_goes_back_to_its_commit() {
    let world = World::new();
    let library = World::new();
    world.git(&["submodule", "--quiet", "add", library.top.to_str().unwrap(), "sub"]);
    world.git(&["commit", "--quiet", "--message", "submodule"]);
    let repository = world.repository();
    let recorded = world.git_in(&world.on_disk("sub"), &["rev-parse", "HEAD"]);
    world.git_in(&world.on_disk("sub"), &["commit", "--quiet", "--allow-empty", "--message", "moved"]);
    world.git(&["add", "sub"]);

    restore_all(&world, &repository);

    check_clean(&world);
    assert_eq!(world.git_in(&world.on_disk("sub"), &["rev-parse", "HEAD"]), recorded);
}
