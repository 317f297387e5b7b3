use proctor_process::killpoint::{HOST_VARIABLE, LOG_VARIABLE, VARIABLE};

use proctor_process::{ProcessIdentity, Signal};

use crate::world::{pid_in, run_scene, until};

const SIGKILL: Option<i32> = Some(9);

#[test]
fn the_driver_dies_at_its_point_and_not_before() {
    let folder = tempfile::tempdir().unwrap();

    let finished = run_scene("killpoints", folder.path(), &[(VARIABLE, "driver:3")]);

    assert_eq!(finished.status.signal, SIGKILL);
    assert!(folder.path().join("two").exists());
    assert!(!folder.path().join("three").exists());
    let host = ProcessIdentity::of(pid_in(&folder.path().join("host"))).unwrap();
    host.signal(Signal::Kill).unwrap();
}

#[test]
fn the_host_dies_and_the_driver_goes_on() {
    let folder = tempfile::tempdir().unwrap();

    let finished = run_scene("killpoints", folder.path(), &[(VARIABLE, "host:2")]);

    assert!(String::from_utf8_lossy(&finished.stdout).contains("host alive=false"));
    assert!(folder.path().join("six").exists());
}

#[test]
fn both_die() {
    let folder = tempfile::tempdir().unwrap();

    let finished = run_scene("killpoints", folder.path(), &[(VARIABLE, "both:1")]);

    assert_eq!(finished.status.signal, SIGKILL);
    let host = pid_in(&folder.path().join("host"));
    assert!(until(|| ProcessIdentity::of(host).is_none()));
}

#[test]
fn an_undisturbed_run_lists_its_points() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("points");

    let finished = run_scene("killpoints", folder.path(), &[(LOG_VARIABLE, log.to_str().unwrap())]);

    assert!(finished.status.is_success());
    assert_eq!(std::fs::read_to_string(log).unwrap(), "1 one\n2 two\n3 three\n4 four\n5 five\n6 six\n");
}

#[test]
fn a_host_dies_at_the_point_that_was_named_for_it() {
    let folder = tempfile::tempdir().unwrap();

    let finished = run_scene("host-killpoints", folder.path(), &[(HOST_VARIABLE, "1:after-lock")]);

    let printed = String::from_utf8_lossy(&finished.stdout).into_owned();
    assert_eq!(finished.status.signal, SIGKILL);
    assert!(printed.contains("passed before-lock") && !printed.contains("passed after-lock"), "{printed}");
}
