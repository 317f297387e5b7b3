//! Snapshots hold what is there, byte for byte, and touch nothing of the user's.

use std::os::unix::fs::{PermissionsExt, symlink};

use proctor_domain::{Oid, RepoPath};
use proctor_workspace::WorkspaceError;

use crate::world::{World, make_executable, path, paths};

#[test]
fn a_snapshot_holds_heads_tree_with_the_present_contents_of_the_paths() {
    let world = World::new();
    let repository = world.repository();
    world.write("kept", "changed\n");
    world.remove("dir/a");
    world.write("new", "x\n");
    world.write("program", "x\n");
    make_executable(&world.on_disk("program"));
    symlink("kept", world.on_disk("link")).unwrap();
    world.write("not named", "x\n");
    world.write("dir/b", "staged\n");
    world.git(&["add", "dir/b"]);
    let before = (world.short_status(), std::fs::read(world.top.join(".git/index")).unwrap());

    let tree = repository.snapshot(&paths(&["kept", "dir/a", "new", "program", "link", "never there"])).unwrap();

    let listed = world.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", &tree.0]);
    assert_eq!(listed, "100644 dir/b\n100644 kept\n120000 link\n100644 new\n100755 program\n");
    assert_eq!(world.git(&["cat-file", "blob", &format!("{tree}:kept")]), "changed\n");
    assert_eq!(world.git(&["cat-file", "blob", &format!("{tree}:dir/b")]), "dir/b\n");
    assert_eq!((world.short_status(), std::fs::read(world.top.join(".git/index")).unwrap()), before);
    assert_eq!(left_beside_the_index(&world), Vec::<String>::new());
}

fn left_beside_the_index(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.top.join(".git")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("proctor-") || name.ends_with(".lock")).collect()
}

#[test]
fn odd_paths_and_bytes_are_kept_as_they_are() {
    let world = World::new();
    world.write(".gitattributes", "* text eol=crlf filter=upper\n");
    world.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    let repository = world.repository();
    let odd: [&[u8]; 8] =
        [b" lead and trail ", b"-n", b":(top)x", b"bytes \xff\xfe", b"line\nbreak", b"return\r", b"quote\"\\", b"\xc3\xa9"];
    for name in odd {
        world.write(name, "a\r\nb\n");
    }
    let named: Vec<RepoPath> = odd.iter().map(path).collect();
    let head = Oid(world.head());

    let tree = repository.snapshot(&named).unwrap();

    let mut expected = named.clone();
    expected.sort();
    assert_eq!(repository.differing(&head, &tree).unwrap(), expected);
    let blobs = world.git(&["ls-tree", "-r", "--format=%(objectname) %(objectmode)", &tree.0]);
    let raw = world.git(&["hash-object", "--no-filters", "--", "-n"]);
    assert_eq!(blobs.lines().filter(|line| line.starts_with(raw.trim())).count(), odd.len());
}

#[test]
fn a_snapshot_before_the_first_commit_holds_the_paths_alone() {
    let world = World::unborn();
    let repository = world.repository();
    world.write("a", "x\n");
    world.write("b", "x\n");

    let tree = repository.snapshot(&paths(&["a"])).unwrap();
    let empty = repository.snapshot(&[]).unwrap();

    assert_eq!(world.git(&["ls-tree", "--name-only", &tree.0]), "a\n");
    assert_eq!(world.git(&["ls-tree", "--name-only", &empty.0]), "");
}

#[test]
fn files_and_folders_that_change_places_are_in_the_snapshot_as_they_are() {
    let world = World::new();
    let repository = world.repository();
    world.remove("kept");
    world.write("kept/x", "x\n");
    std::fs::remove_dir_all(world.on_disk("dir")).unwrap();
    world.write("dir", "x\n");

    let tree = repository.snapshot(&repository.status().unwrap().paths()).unwrap();

    assert_eq!(world.git(&["ls-tree", "-r", "--name-only", &tree.0]), "dir\nkept/x\n");
}

#[test]
fn what_lies_beyond_a_link_is_not_in_the_snapshot() {
    let world = World::new();
    let repository = world.repository();
    std::fs::rename(world.on_disk("dir"), world.outside("moved")).unwrap();
    symlink(world.outside("moved"), world.on_disk("dir")).unwrap();

    let tree = repository.snapshot(&repository.status().unwrap().paths()).unwrap();

    assert_eq!(world.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", &tree.0]), "120000 dir\n100644 kept\n");
}

#[test]
fn thousands_of_files_are_kept_and_a_repository_inside_is_left_out() {
    let world = World::new();
    let repository = world.repository();
    world.git(&["init", "--quiet", "inner"]);
    let mut named: Vec<RepoPath> = (0..1_000).map(|number| path(format!("many/{number:04}"))).collect();
    for one in &named {
        world.write(one.as_bytes(), &format!("{one}\n"));
    }
    named.push(path("inner/"));

    let tree = repository.snapshot(&named).unwrap();

    named.pop();
    assert_eq!(repository.differing(&Oid(world.head()), &tree).unwrap(), named);
}

#[test]
fn what_is_saved_lasts_until_its_references_are_deleted() {
    let world = World::new();
    // Saving needs no identity and no key of the user's.
    world.git(&["config", "--global", "--remove-section", "user"]);
    world.git(&["config", "user.useConfigOnly", "true"]);
    world.git(&["config", "commit.gpgSign", "true"]);
    world.git(&["config", "gpg.program", "/nonexistent/gpg"]);
    let repository = world.repository();
    let head = Oid(world.head());
    world.write("new", "x\n");
    let tree = repository.snapshot(&paths(&["new"])).unwrap();

    let saved = repository.save("refs/proctor/salvage/run_1/a-1", &tree, Some(&head), "Salvage\n\nfrom a\n").unwrap();
    repository.save("refs/proctor/salvage/run_10/a-1", &tree, None, "other").unwrap();

    assert_eq!(world.git(&["rev-parse", "refs/proctor/salvage/run_1/a-1"]).trim(), saved.0);
    assert_eq!(world.git(&["show", "--no-patch", "--format=%an|%P|%B", &saved.0]).trim(), format!("Proctor|{head}|Salvage\n\nfrom a"));
    assert_eq!(world.git(&["cat-file", "blob", "refs/proctor/salvage/run_1/a-1:new"]), "x\n");
    assert_eq!(repository.delete_refs("refs/proctor/salvage/run_1").unwrap(), 1);
    assert_eq!(repository.delete_refs("refs/proctor/salvage/run_1").unwrap(), 0);
    assert_eq!(world.git(&["for-each-ref", "--format=%(refname)", "refs/proctor"]), "refs/proctor/salvage/run_10/a-1\n");
}

#[test]
fn references_of_the_user_are_never_touched() {
    let world = World::new();
    let repository = world.repository();
    let head = Oid(world.head());
    let tree = repository.snapshot(&[]).unwrap();

    assert!(matches!(repository.save("refs/heads/main", &tree, None, "x"), Err(WorkspaceError::ForeignReference { .. })));
    assert!(matches!(repository.set_ref("refs/tags/x", &head), Err(WorkspaceError::ForeignReference { .. })));
    assert!(matches!(repository.delete_refs("refs/heads"), Err(WorkspaceError::ForeignReference { .. })));
    repository.set_ref("refs/proctor/runs/run_1", &head).unwrap();
    assert_eq!(world.git(&["rev-parse", "refs/proctor/runs/run_1"]).trim(), head.0);
}

#[test]
fn an_unreadable_file_is_named() {
    let world = World::new();
    let repository = world.repository();
    world.write("secret", "x\n");
    std::fs::set_permissions(world.on_disk("secret"), std::fs::Permissions::from_mode(0o000)).unwrap();

    let kept = repository.snapshot(&paths(&["secret"]));

    // Root reads it all the same.
    match std::fs::File::open(world.on_disk("secret")) {
        Ok(_) => assert!(kept.is_ok()),
        Err(_) => assert!(kept.unwrap_err().to_string().contains("secret")),
    }
}
