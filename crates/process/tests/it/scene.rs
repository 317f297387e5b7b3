//! Roles that need a process of their own, because what they do concerns a whole process.
//!
//! The tests start this binary again with `SCENE` set; in an ordinary test run the one test here does nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_process::family::{self, Ending};
use proctor_process::killpoint;
use proctor_process::lock::{self, Attempt};
use proctor_process::{ProcessIdentity, Signal, Signals};

use crate::world::{bash, pid_in, until};

#[test]
fn role() {
    let (Ok(role), Some(folder)) = (std::env::var("SCENE"), std::env::var_os("SCENE_FOLDER").map(PathBuf::from)) else {
        return;
    };
    match role.as_str() {
        "subreaper" => subreaper(&folder),
        "signals" => signals(&folder),
        "killpoints" => killpoints(&folder),
        "host-killpoints" => host_killpoints(),
        "lock-holder" => hold_lock(&folder),
        other => panic!("no such role: {other}"),
    }
}

/// Runs the script `script`, then ends what it left behind and says what is left of that.
fn subreaper(folder: &Path) {
    family::become_subreaper().unwrap();
    let script = std::fs::read_to_string(folder.join("script")).unwrap();
    let grace = std::env::var("SCENE_GRACE_MS").map_or(5_000, |text| text.parse().unwrap());
    let mut shell = bash(&script).dir(folder).own_group().spawn().unwrap();
    shell.wait().unwrap();
    drop(shell);
    let own = std::process::id();
    let left = family::descendants(own).len();

    let ended = family::end(
        &mut || family::descendants(own),
        Ending { grace: Duration::from_millis(grace), first: None, wait: &mut family::wait_for_end },
    );

    family::reap_orphans();
    println!("left={left} ended={} survivors={} children={}", ended.ended.len(), ended.survivors.len(), family::has_children());
}

/// Says which signals arrived, once the test has sent the last one.
fn signals(folder: &Path) {
    let signals = Signals::listen(&[Signal::Terminate, Signal::Interrupt, Signal::Hangup]).unwrap();
    std::fs::File::create(folder.join("listening")).unwrap();
    let mut seen = Vec::new();
    assert!(until(|| {
        seen.extend(signals.pending());
        seen.contains(&Signal::Hangup)
    }));
    println!("seen={seen:?}");
}

/// A driver with a host and six points.
fn killpoints(folder: &Path) {
    let host = bash("echo $$ > host; exec sleep 1000").dir(folder).spawn().unwrap();
    killpoint::set_host(ProcessIdentity::of(pid_in(&folder.join("host"))));
    for point in ["one", "two", "three", "four", "five", "six"] {
        killpoint::reach(point);
        std::fs::File::create(folder.join(point)).unwrap();
    }
    let alive = host.identity().is_some();
    host.signal(Signal::Kill).unwrap();
    println!("host alive={alive}");
}

fn host_killpoints() {
    killpoint::arm_host(killpoint::for_next_session());
    killpoint::reach_in_host("before-lock");
    println!("passed before-lock");
    killpoint::reach_in_host("after-lock");
    println!("passed after-lock");
}

fn hold_lock(folder: &Path) {
    let Attempt::Acquired(_held) = lock::try_acquire(&folder.join("lock"), "the scene").unwrap() else {
        panic!("the lock was held");
    };
    std::fs::File::create(folder.join("held")).unwrap();
    until(|| false);
}
