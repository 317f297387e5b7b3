use proctor_process::identity::ticks_now;
use proctor_process::{ProcessIdentity, Signal, SignalEnd};

use crate::world::bash;

#[test]
fn a_recorded_pid_that_belongs_to_an_innocent_process_now_is_never_signalled() {
    let innocent = bash("exec sleep 1000").spawn().unwrap();
    let now = innocent.identity().unwrap();
    let before = ProcessIdentity { start_ticks: now.start_ticks - 1, ..now.clone() };
    let other_boot = ProcessIdentity { boot_id: "00000000-0000-0000-0000-000000000000".to_owned(), ..now.clone() };

    for recorded in [&before, &other_boot] {
        assert_eq!(recorded.signal(Signal::Kill).unwrap(), SignalEnd::Gone, "{recorded}");
        assert!(recorded.pidfd().unwrap().is_none());
        assert!(!recorded.is_alive());
    }

    assert!(now.is_alive());
    innocent.signal(Signal::Kill).unwrap();
}

#[test]
fn a_zombie_is_not_alive_and_gets_no_signal() {
    let mut child = bash("exit 0").spawn().unwrap();
    let identity = child.identity();
    assert!(crate::world::until(|| ProcessIdentity::of(child.pid()).is_none()));

    if let Some(identity) = identity {
        assert!(!identity.is_alive());
        assert_eq!(identity.signal(Signal::Terminate).unwrap(), SignalEnd::Gone);
    }
    assert_eq!(child.wait().unwrap().code, Some(0));
}

#[test]
fn what_is_started_now_has_at_least_as_many_ticks_as_now() {
    let before = ticks_now();
    let child = bash("exec sleep 1000").spawn().unwrap();
    let after = ticks_now();

    let started = child.identity().unwrap().start_ticks;
    child.signal(Signal::Kill).unwrap();

    assert!((before..=after).contains(&started), "{before} {started} {after}");
}

#[test]
fn an_identity_reads_back_as_itself() {
    let identity = ProcessIdentity::current().unwrap();

    assert_eq!(identity.to_string().parse(), Ok(identity.clone()));
    assert_eq!(identity.pid, std::process::id());
    assert!(identity.is_alive());
    for text in ["", "1", "1:2", "1:2:", "0:1:b", "x:1:b", "1:-1:b", "4294967296:1:b"] {
        assert!(text.parse::<ProcessIdentity>().is_err(), "{text}");
    }
}

#[test]
fn a_pid_out_of_range_is_nobody() {
    let identity = ProcessIdentity { pid: u32::MAX, ..ProcessIdentity::current().unwrap() };

    assert_eq!(identity.signal(Signal::Terminate).unwrap(), SignalEnd::Gone);
    assert_eq!(ProcessIdentity::of(u32::MAX), None);
}
