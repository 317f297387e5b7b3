//! Finding the repository, and refusing what is none.

use std::os::unix::ffi::OsStrExt;

use proctor_domain::Branch;
use proctor_workspace::{GitEnvironment, ObjectFormat, Repository, WorkspaceError};

use crate::world::World;

#[test]
fn a_folder_outside_any_repository_is_refused_with_what_to_do() {
    let world = World::without_repository();

    let error = Repository::discover(&world.top, &world.environment()).unwrap_err();

    assert!(matches!(error, WorkspaceError::NotARepository { .. }), "{error}");
    assert_eq!(error.hint().as_deref(), Some("git init"));
}

#[test]
fn a_bare_repository_is_refused() {
    let world = World::without_repository();
    world.git(&["init", "--quiet", "--bare"]);

    let error = Repository::discover(&world.top, &world.environment()).unwrap_err();

    assert!(matches!(error, WorkspaceError::Bare { .. }), "{error}");
}

#[test]
fn gits_own_folder_is_refused() {
    let world = World::new();

    let error = Repository::discover(&world.top.join(".git"), &world.environment()).unwrap_err();

    assert!(matches!(error, WorkspaceError::InsideGitDirectory { .. }), "{error}");
}

#[test]
fn a_repository_of_another_user_is_refused_with_the_command_that_trusts_it() {
    let world = World::new();
    // Git's own switch for its tests: the tests run as root and as nobody in particular.
    let environment = world.environment().with("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");

    let error = Repository::discover(&world.top, &environment).unwrap_err();

    assert!(matches!(error, WorkspaceError::DubiousOwnership { .. }), "{error}");
    let hint = format!("git config --global --add safe.directory '{}'", world.top.display());
    assert_eq!(error.hint(), Some(hint));
}

#[test]
fn without_git_the_refusal_says_so() {
    let world = World::new();
    let environment = GitEnvironment::from_user([("PATH".into(), "/nonexistent".into())]);

    let error = Repository::discover(&world.top, &environment).unwrap_err();

    assert!(matches!(error, WorkspaceError::GitMissing), "{error}");
}

#[test]
fn a_subfolder_finds_the_top_and_both_git_directories() {
    let world = World::new();

    let repository = Repository::discover(&world.top.join("dir"), &world.environment()).unwrap();

    assert_eq!(repository.work_tree, world.top);
    assert_eq!(repository.git_dir, world.top.join(".git"));
    assert_eq!(repository.common_dir, world.top.join(".git"));
    assert_eq!(repository.object_format, ObjectFormat::Sha1);
}

#[test]
fn a_linked_work_tree_has_its_own_git_directory_and_shares_the_other() {
    let world = World::new();
    let linked = world.outside("linked");
    world.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);

    let repository = Repository::discover(&linked, &world.environment()).unwrap();

    assert_eq!(repository.work_tree, linked);
    assert_eq!(repository.git_dir, world.top.join(".git/worktrees/linked"));
    assert_eq!(repository.common_dir, world.top.join(".git"));
    assert_eq!(repository.status().unwrap().branch, Branch::Named("linked".to_owned()));
}

#[test]
fn variables_that_point_elsewhere_do_not_lead_astray() {
    let world = World::new();
    let other = World::new();
    let world = world.with_variable("GIT_DIR", other.top.join(".git")).with_variable("GIT_INDEX_FILE", "/nonexistent/index");

    let repository = Repository::discover(&world.top, &world.environment()).unwrap();

    assert_eq!(repository.git_dir, world.top.join(".git"));
    assert!(repository.status().unwrap().changes.is_empty());
}

#[test]
fn paths_with_line_breaks_and_of_great_length_are_found() {
    let world = World::without_repository();
    for name in [&b"line\nbreak \xff"[..], &[b'x'; 200]] {
        let top = world.on_disk(name);
        std::fs::create_dir(&top).unwrap();
        world.git_in(&top, &["init", "--quiet", "--template="]);
        std::fs::File::create(top.join("new")).unwrap();

        let repository = Repository::discover(&top, &world.environment()).unwrap();

        assert_eq!(repository.work_tree.as_os_str().as_bytes(), top.as_os_str().as_bytes());
        assert_eq!(repository.git_dir, top.join(".git"));
        assert_eq!(repository.status().unwrap().changes.len(), 1);
    }
}
