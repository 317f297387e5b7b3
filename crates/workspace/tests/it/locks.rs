//! Locks of the living are waited for, locks of the dead are named, and only our own are removed.

use std::fs::File;
use std::time::{Duration, SystemTime};

use proctor_domain::Oid;
use proctor_workspace::{CommitEnd, WorkspaceError};

use crate::world::{World, paths, wait_until, write};

/// A git of the user's that holds the index lock in a hook until it may go on.
fn user_commits_slowly(world: &World) -> std::thread::JoinHandle<bool> {
    let (top, variables) = (world.top.clone(), world.variables());
    world.hook("pre-commit", "touch .git/in-hook; while ! test -e .git/go-on; do sleep 0.01; done");
    world.write("dir/a", "the user's\n");
    let thread = std::thread::spawn(move || {
        let git = proctor_process::Program::new("git").args(["commit", "--quiet", "--all", "--message", "the user's"]);
        git.dir(top).env(variables).run(Some(Duration::from_secs(60))).unwrap().status.is_success()
    });
    let (in_hook, lock) = (world.top.join(".git/in-hook"), world.top.join(".git/index.lock"));
    wait_until("the user's commit", || in_hook.exists() && lock.exists());
    thread
}

#[test]
fn a_lock_of_a_living_git_is_told_and_never_removed() {
    let world = World::new();
    let repository = world.repository();
    let user = user_commits_slowly(&world);
    world.write("kept", "the step's\n");
    let request = world.request(&paths(&["kept"]), &repository.status().unwrap());

    let committed = repository.commit(&request).unwrap_err();
    let restored = repository.restore(&paths(&["kept"]), Some(&Oid(world.head()))).unwrap_err();
    let cleared = repository.clear_own_stale_locks("", SystemTime::UNIX_EPOCH).unwrap();

    for error in [committed, restored] {
        assert!(matches!(&error, WorkspaceError::Locked { live: true, path } if path.ends_with(".git/index.lock")), "{error}");
    }
    assert_eq!(cleared, Vec::<std::path::PathBuf>::new());
    write(&world.top.join(".git/go-on"), "");
    assert!(user.join().unwrap(), "the user's commit was disturbed");
}

#[test]
fn a_living_holder_is_waited_for() {
    let world = World::new();
    let mut repository = world.repository();
    repository.lock_patience = Duration::from_secs(30);
    let user = user_commits_slowly(&world);
    world.write("kept", "the step's\n");
    let status = repository.status().unwrap();
    let request = world.request(&paths(&["kept"]), &status);
    let go_on = world.top.join(".git/go-on");

    let ended = std::thread::scope(|scope| {
        let log = request.log.clone();
        let ours = scope.spawn(|| repository.commit(&request));
        // Our git has been refused once.
        wait_until("the refusal", || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("index.lock")));
        write(&go_on, "");
        ours.join().unwrap()
    });

    assert!(matches!(ended, Ok(CommitEnd::Committed(_))), "{ended:?}");
    assert!(user.join().unwrap());
    assert_eq!(world.committed(), "M\tkept\n");
    assert_eq!(repository.commits_since(None).unwrap().len(), 3);
}

#[test]
fn a_lock_of_a_dead_git_is_named_with_the_command_that_removes_it() {
    let world = World::new();
    let mut repository = world.repository();
    repository.lock_patience = Duration::from_secs(30);
    world.write("kept", "changed\n");
    let lock = world.top.join(".git/index.lock");
    write(&lock, "");
    let request = world.request(&paths(&["kept"]), &repository.status().unwrap());

    let error = repository.commit(&request).unwrap_err();

    assert!(matches!(error, WorkspaceError::Locked { live: false, .. }), "{error}");
    assert_eq!(error.hint(), Some(format!("rm '{}'", lock.display())));
    assert!(lock.exists());
    assert!(repository.wait_for_index(Duration::ZERO).is_err());
    std::fs::remove_file(&lock).unwrap();
    repository.wait_for_index(Duration::ZERO).unwrap();
}

#[test]
fn a_lock_that_somebody_has_open_has_a_living_holder() {
    let world = World::new();
    let repository = world.repository();
    let lock = world.top.join(".git/index.lock");
    write(&lock, "");
    // An editor's library, say, which is no git and works from anywhere.
    let holder = proctor_process::Program::new("sleep").arg("60").stdout(proctor_process::Sink::File(File::open(&lock).unwrap()));
    let holder = holder.own_group().spawn().unwrap();

    let error = repository.wait_for_index(Duration::ZERO).unwrap_err();

    assert!(matches!(error, WorkspaceError::Locked { live: true, .. }), "{error}");
    let identity = proctor_process::ProcessIdentity::of(holder.pid()).unwrap();
    identity.signal(proctor_process::Signal::Kill).unwrap();
    wait_until("its end", || !identity.is_alive());
    let error = repository.wait_for_index(Duration::ZERO).unwrap_err();
    assert!(matches!(error, WorkspaceError::Locked { live: false, .. }), "{error}");
}

#[test]
fn only_locks_made_after_our_effect_began_are_ours() {
    let world = World::new();
    let repository = world.repository();
    let locks = ["index.lock", "HEAD.lock", "refs/heads/main.lock", "next-index-1.lock", "proctor-index-4000000000-0"];
    for lock in locks {
        write(&world.top.join(".git").join(lock), "");
    }
    // The file system's own time, since the test's clock may be ahead of it.
    let now = std::fs::metadata(world.top.join(".git/index.lock")).unwrap().modified().unwrap();

    let foreign = repository.clear_own_stale_locks("none/", now + Duration::from_secs(60)).unwrap();
    let ours = repository.clear_own_stale_locks("none/", now).unwrap();

    assert_eq!(foreign, Vec::<std::path::PathBuf>::new());
    assert_eq!(ours.len(), 4, "{ours:?}");
    for lock in locks {
        assert!(!world.top.join(".git").join(lock).exists(), "{lock}");
    }
    assert_eq!(world.short_status(), "");
}
