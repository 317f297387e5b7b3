use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use proctor_process::Signal;
use proctor_process::lock::{Attempt, HeldLock, LockError, holder_if_held, last_touched, locks_work, try_acquire, try_acquire_folder};

use crate::world::{scene, until};

fn acquired(attempt: Attempt) -> HeldLock {
    match attempt {
        Attempt::Acquired(held) => held,
        Attempt::Held { holder } => panic!("held by {holder}"),
    }
}

#[test]
fn a_lock_in_a_folder_that_is_not_there_is_an_error_that_names_it() {
    let error = try_acquire("/nonexistent/lock".as_ref(), "me").unwrap_err();

    assert!(matches!(&error, LockError::File { path, .. } if path.ends_with("lock")), "{error:?}");
}

#[test]
fn a_second_attempt_learns_who_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    std::fs::File::create(&path).unwrap();
    let held = acquired(try_acquire(&path, "run_1 of pid 7").unwrap());

    let second = try_acquire(&path, "somebody else").unwrap();

    assert!(matches!(second, Attempt::Held { holder } if holder == "run_1 of pid 7"));
    assert_eq!(holder_if_held(&path).unwrap().as_deref(), Some("run_1 of pid 7"));
    drop(held);
    assert_eq!(holder_if_held(&path).unwrap(), None);
    acquired(try_acquire(&path, "short").unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "short");
}

#[test]
fn asking_makes_no_file_and_keeps_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");

    assert_eq!(holder_if_held(&path).unwrap(), None);
    assert!(!path.exists());
    drop(acquired(try_acquire(&path, "").unwrap()));
    assert_eq!(holder_if_held(&path).unwrap(), None);
    acquired(try_acquire(&path, "").unwrap());
}

#[test]
fn those_who_ask_never_make_an_attempt_fail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    std::fs::File::create(&path).unwrap();
    let done = AtomicBool::new(false);

    let failed = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    holder_if_held(&path).unwrap();
                }
            });
        }
        let failed = (0..300).filter(|_| matches!(try_acquire(&path, "me").unwrap(), Attempt::Held { .. })).count();
        done.store(true, Ordering::Relaxed);
        failed
    });

    assert_eq!(failed, 0);
}

#[test]
fn of_many_attempts_at_once_exactly_one_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let path = folder.path().join(format!("lock-{round}"));
        let start = std::sync::Barrier::new(4);

        let held: Vec<HeldLock> = std::thread::scope(|scope| {
            let attempts: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        match try_acquire(&path, "one of four").unwrap() {
                            Attempt::Acquired(held) => Some(held),
                            Attempt::Held { .. } => None,
                        }
                    })
                })
                .collect();
            attempts.into_iter().filter_map(|attempt| attempt.join().unwrap()).collect()
        });

        assert_eq!(held.len(), 1, "round {round}");
    }
}

#[test]
fn a_killed_holder_frees_it_and_leaves_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let mut holder = scene("lock-holder", folder.path(), &[]).spawn().unwrap();
    assert!(until(|| folder.path().join("held").exists()));
    assert_eq!(holder_if_held(&path).unwrap().as_deref(), Some("the scene"));

    holder.signal(Signal::Kill).unwrap();
    holder.wait().unwrap();

    assert_eq!(holder_if_held(&path).unwrap(), None);
    acquired(try_acquire(&path, "next").unwrap());
}

#[test]
fn locks_work_on_an_ordinary_file_system() {
    let folder = tempfile::tempdir().unwrap();

    assert!(locks_work(folder.path()).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(locks_work(&folder.path().join("gone")).is_err());
}

#[test]
fn a_touch_is_seen_after_the_holder_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    assert_eq!(last_touched(&path), None);
    let held = acquired(try_acquire(&path, "me").unwrap());
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    std::fs::File::open(&path).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(last_touched(&path), Some(long_ago));

    held.touch().unwrap();
    drop(held);

    assert!(last_touched(&path).unwrap() > long_ago);
}

#[test]
fn a_folder_is_locked_without_a_file_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let held = acquired(try_acquire_folder(folder.path()).unwrap());

    assert!(matches!(try_acquire_folder(folder.path()).unwrap(), Attempt::Held { .. }));
    drop(held);
    acquired(try_acquire_folder(folder.path()).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let error = try_acquire_folder(&folder.path().join("gone")).unwrap_err();
    assert!(matches!(&error, LockError::File { path, .. } if path.ends_with("gone")), "{error:?}");
}
