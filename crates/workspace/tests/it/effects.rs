//! Commits outlive the driver, and are found again.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use proctor_process::{ProcessIdentity, Program, Signal, Sink};
use proctor_workspace::{CommitEnd, EffectsEnd};

use crate::world::{World, wait_until, write};

/// A commit that stands in its hook, as a driver that was killed left it.
struct Abandoned {
    marker: String,
    hook: ProcessIdentity,
    go_on: PathBuf,
}

fn begin_and_abandon(world: &World, more: &str) -> Abandoned {
    let script = format!("{more}\necho $$ > .git/hook.tmp; mv .git/hook.tmp .git/in-hook; while ! test -e .git/go-on; do sleep 0.01; done");
    world.hook("pre-commit", &script);
    world.write("kept", "the step's\n");
    world.write("new", "the step's\n");
    world.git(&["add", "new"]);
    let marker = format!("{}/a/1/commit", world.top.display());
    let variables = world.variables().into_iter().chain([("PROCTOR_EFFECT".into(), marker.clone().into())]);
    let git = Program::new("git").args(["commit", "--quiet", "--only", "--message", "Subject\n\nRun: run_1", "kept", "new"]);
    let log = std::fs::File::create(world.outside("commit.log")).unwrap();
    let git = git.dir(&world.top).env(variables).own_session().stdout(Sink::Null).stderr(Sink::File(log)).spawn().unwrap();
    drop(git);
    let in_hook = world.top.join(".git/in-hook");
    wait_until("the hook", || in_hook.exists());
    let pid = std::fs::read_to_string(in_hook).unwrap().trim().parse().unwrap();
    Abandoned { marker, hook: ProcessIdentity::of(pid).unwrap(), go_on: world.top.join(".git/go-on") }
}

#[test]
fn without_effects_nothing_is_waited_for() {
    let world = World::new();

    let end = world.repository().wait_for_or_end_effects("no such run/", Duration::from_secs(60)).unwrap();

    assert_eq!(end, EffectsEnd::NoneAlive);
}

#[test]
fn a_commit_that_an_earlier_driver_began_is_waited_for_and_found() {
    let world = World::new();
    let repository = world.repository();
    let base = repository.head().unwrap().commit;
    let abandoned = begin_and_abandon(&world, "");

    let end = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| repository.wait_for_or_end_effects(&abandoned.marker, Duration::from_secs(60)));
        write(&abandoned.go_on, "");
        waiting.join().unwrap().unwrap()
    });

    assert!(matches!(end, EffectsEnd::Ended | EffectsEnd::NoneAlive), "{end:?}");
    let commits = repository.commits_since(base.as_ref()).unwrap();
    assert_eq!(commits.len(), 1);
    assert_eq!(commits[0].trailer("Run"), Some("run_1"));
    assert_eq!(world.short_status(), "");
}

#[test]
fn a_commit_that_does_not_end_is_ended_and_leaves_no_lock() {
    let world = World::new();
    let repository = world.repository();
    let head = world.head();
    let abandoned = begin_and_abandon(&world, "");

    let end = repository.wait_for_or_end_effects(&abandoned.marker, Duration::ZERO).unwrap();

    assert!(matches!(end, EffectsEnd::Killed { .. }), "{end:?}");
    assert!(!abandoned.hook.is_alive());
    assert_eq!(world.head(), head);
    assert!(!world.top.join(".git/index.lock").exists());
}

#[test]
fn the_lock_of_a_killed_commit_is_ours_to_remove() {
    let world = World::new();
    let repository = world.repository();
    let began = std::fs::metadata(world.top.join(".git/index")).unwrap().modified().unwrap();
    let abandoned = begin_and_abandon(&world, "");
    let marked = proctor_process::family::marked("PROCTOR_EFFECT", |value| value == abandoned.marker.as_bytes());
    assert!(repository.clear_own_stale_locks(&abandoned.marker, began).unwrap().is_empty(), "it lives");
    for process in &marked {
        let _ = process.signal(Signal::Kill);
    }
    // What the hook itself had started last is among those that are waited for.
    repository.wait_for_or_end_effects(&abandoned.marker, Duration::from_secs(60)).unwrap();
    assert!(world.top.join(".git/index.lock").exists());

    let cleared = repository.clear_own_stale_locks(&abandoned.marker, began).unwrap();

    assert!(cleared.contains(&world.top.join(".git/index.lock")), "{cleared:?}");
    world.remove(".git/hooks/pre-commit");
    let end = world.commit_all(&repository);
    assert!(matches!(end, CommitEnd::Committed(_)), "{end:?}");
}

#[test]
fn a_hook_whose_git_was_killed_is_an_effect_and_a_daemon_that_it_left_is_none() {
    let world = World::new();
    let repository = world.repository();
    let daemon = "setsid sleep 600 < /dev/null > /dev/null 2>&1 & echo $! > .git/daemon";
    let abandoned = begin_and_abandon(&world, daemon);
    let daemon = std::fs::read_to_string(world.top.join(".git/daemon")).unwrap().trim().parse().unwrap();
    let daemon = ProcessIdentity::of(daemon).unwrap();
    let marked = proctor_process::family::marked("PROCTOR_EFFECT", |value| value == abandoned.marker.as_bytes());
    for process in marked.iter().filter(|process| name_of(process) == "git") {
        process.signal(Signal::Kill).unwrap();
    }

    let end = repository.wait_for_or_end_effects(&abandoned.marker, Duration::ZERO).unwrap();
    let again = repository.wait_for_or_end_effects(&abandoned.marker, Duration::ZERO).unwrap();

    assert!(matches!(end, EffectsEnd::Killed { .. }), "{end:?}");
    assert!(!abandoned.hook.is_alive());
    assert_eq!(again, EffectsEnd::NoneAlive);
    assert!(daemon.is_alive());
    daemon.signal(Signal::Kill).unwrap();
}

fn name_of(process: &ProcessIdentity) -> String {
    std::fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default().trim().to_owned()
}

#[test]
fn an_effect_of_another_run_is_left_alone() {
    let world = World::new();
    let repository = world.repository();
    let abandoned = begin_and_abandon(&world, "");

    let end = repository.wait_for_or_end_effects("another run/", Duration::ZERO).unwrap();

    assert_eq!(end, EffectsEnd::NoneAlive);
    assert!(abandoned.hook.is_alive());
    write(&abandoned.go_on, "");
    wait_until("the commit", || repository.commits_since(None).unwrap().len() == 2);
}

#[test]
fn an_index_that_a_death_left_behind_follows_its_commit_and_later_staging_stays() {
    let world = World::new();
    let repository = world.repository();
    // As after a commit from an index of our own whose driver died at once.
    world.write("kept", "the step's\n");
    world.write("dir/a", "the step's\n");
    world.remove("dir/b");
    world.write("new", "the step's\n");
    let own = world.outside("own-index");
    std::fs::copy(world.top.join(".git/index"), &own).unwrap();
    let git = |arguments: &[&str]| {
        let variables = world.variables().into_iter().chain([("GIT_INDEX_FILE".into(), own.clone().into())]);
        let ended = Program::new("git").args(arguments.iter().copied()).dir(&world.top).env(variables).run(None).unwrap();
        assert!(ended.status.is_success());
    };
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "ours"]);
    world.write("dir/a", "the user's, later\n");
    world.git(&["add", "dir/a"]);
    assert_ne!(world.short_status(), "M  dir/a\n");

    repository.settle_index(&repository.head().unwrap().commit.unwrap()).unwrap();

    assert_eq!(world.short_status(), "M  dir/a\n");
}

#[test]
fn a_lock_of_a_reference_of_ours_that_nobody_holds_is_removed() {
    let world = World::new();
    let repository = world.repository();
    let lock = world.top.join(".git/refs/proctor/salvage/run_a/judged-one.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    write(&lock, "");

    let cleared = repository.clear_own_stale_locks("run_a/", SystemTime::UNIX_EPOCH).unwrap();

    assert_eq!(cleared, std::slice::from_ref(&lock));
    assert!(!lock.exists());
}

#[test]
fn marks_of_an_outer_commit_are_not_passed_on() {
    let world = World::new().with_variable("PROCTOR_EFFECT", "outer");

    assert_eq!(world.environment().get("PROCTOR_EFFECT"), None);
}
