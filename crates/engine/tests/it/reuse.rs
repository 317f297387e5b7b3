//! One host runs the sessions of its driver one after the other, and nobody can tell.

use std::ffi::OsString;

use proctor_domain::session::SessionEnd;
use proctor_engine::{Found, Waited};
use proctor_process::{ProcessIdentity, Signal};

use crate::scene;
use crate::world::{LIMIT, World, assert_printed, bash, ended, is_gone, until, wait, world};

/// Runs the present session to its end; the host that did it.
fn run(world: &World, printed: &str) -> ProcessIdentity {
    let mut attached = world.start_with_own_host();
    let host = attached.host().cloned().unwrap();
    assert_printed(&ended(wait(&mut attached)), printed);
    host
}

#[test]
fn the_next_session_has_the_same_host_and_nothing_else_of_the_one_before() {
    let mut world = world(&["echo $SECRET; echo a=1 >> $PROCTOR_OUTPUT; cd /; umask 077; export LEFT=over"]);
    world.spec.environment.push(("SECRET".into(), "first".into()));
    let first = run(&world, "first\n");

    world.next(&["pwd; echo ${SECRET-no secret} ${LEFT-nothing left} $(umask); wc -c < $PROCTOR_OUTPUT"]);
    world.spec.environment.pop();
    let second = run(&world, &format!("{}\nno secret nothing left 0022\n0\n", world.spec.directory.display()));

    assert_eq!(first, second);
}

#[test]
fn a_host_that_waits_goes_when_its_driver_does() {
    let world = world(&["echo $$ > pid; echo $PPID > host"]);

    let finished = scene::driver(&world, &[]).run(Some(LIMIT)).unwrap();

    assert!(finished.status.is_success());
    let host: u32 = std::fs::read_to_string(world.work("host")).unwrap().trim().parse().unwrap();
    assert!(until(|| ProcessIdentity::of(host).is_none()));
}

#[test]
fn a_host_that_dies_while_it_waits_is_replaced() {
    for signal in [Signal::Kill, Signal::Terminate] {
        let mut world = world(&["true"]);
        let first = run(&world, "");
        first.signal(signal).unwrap();
        assert!(is_gone(&first));

        world.next(&["echo again"]);
        let second = run(&world, "again\n");

        assert_ne!(first, second);
        // A zombie has an entry in /proc; one that was reaped has none.
        assert!(!std::fs::exists(format!("/proc/{}", first.pid)).unwrap());
    }
}

#[test]
fn a_hangup_does_not_end_a_host_that_waits() {
    let mut world = world(&["true"]);
    let first = run(&world, "");
    first.signal(Signal::Hangup).unwrap();

    world.next(&["echo again"]);

    assert_eq!(run(&world, "again\n"), first);
}

#[test]
fn an_interrupt_that_comes_too_late_does_not_meet_the_next_session() {
    let mut world = world(&["true"]);
    let mut attached = world.start_with_own_host();
    let host = attached.host().cloned();
    assert!(until(|| world.file("report.json").exists()));
    attached.interrupt();
    ended(wait(&mut attached));

    world.next(&["sleep 0.1; echo untouched"]);

    assert_eq!(Some(run(&world, "untouched\n")), host);
}

#[test]
fn a_session_that_was_interrupted_or_ran_out_of_time_spoils_nothing() {
    let mut world = world(&["echo $$ > pid; setsid sleep 1000 & sleep 1000"]);
    let mut attached = world.start_with_own_host();
    let host = attached.host().cloned().unwrap();
    world.process("pid");
    attached.interrupt();
    assert_eq!(ended(wait(&mut attached)).end, SessionEnd::Interrupted);

    world.next(&["sleep 1000"]);
    world.spec.wall_limit = std::time::Duration::from_millis(100);
    let mut attached = world.start_with_own_host();
    assert_eq!(ended(wait(&mut attached)).end, SessionEnd::Timeout);

    world.next(&["echo fine"]);
    world.spec.wall_limit = LIMIT;
    assert_eq!(run(&world, "fine\n"), host);
}

#[test]
fn a_build_server_of_one_session_lingers_through_the_next() {
    let mut world = world(&["cp $(command -v sleep) build-server
        setsid ./build-server 1000 & until [[ $(readlink /proc/$!/exe) = */build-server ]]; do :; done; echo $! > server"])
    .with_linger("build-server");
    let host = run(&world, "");
    let server = world.process("server");

    world.next(&["setsid sleep 1000 & echo next"]);
    let mut attached = world.start_with_own_host();
    assert_eq!(attached.host(), Some(&host));
    let report = ended(wait(&mut attached));

    assert_printed(&report, "next\n");
    assert_eq!((report.ended_orphans, report.lingering.len()), (1, 1));
    assert!(server.is_alive());
    server.signal(Signal::Kill).unwrap();
}

#[test]
fn i3_what_a_later_session_leaves_behind_is_found_after_its_host_was_killed() {
    let mut world = world(&["true"]);
    let host = run(&world, "");
    world.next(&["setsid bash -c 'echo $$ > marked; trap \"\" TERM; while :; do sleep 1000; done' &
        env -i setsid /bin/bash -c 'echo $$ > bare; PATH=/usr/bin:/bin; while :; do sleep 1000; done' &
        wait"]);
    let mut attached = world.start_with_own_host();
    let (marked, bare) = (world.process("marked"), world.process("bare"));

    host.signal(Signal::Kill).unwrap();
    let waited = wait(&mut attached);

    assert!(matches!(waited, Waited::Lost), "{waited:?}");
    assert!(!marked.is_alive() && !bare.is_alive());
}

#[test]
fn a_session_that_was_handed_to_a_waiting_host_is_found_when_its_driver_is_gone() {
    for _ in 0..20 {
        let mut world = world(&["true"]);
        run(&world, "");
        world.next(&["echo done"]);
        drop(world.start_with_own_host());

        match world.find().unwrap() {
            Found::Live(mut attached) => assert_printed(&ended(wait(&mut attached)), "done\n"),
            Found::Ended(report) => assert_printed(&report, "done\n"),
            found @ (Found::Lost | Found::NeverStarted) => panic!("{found:?}"),
        }
    }
}

#[test]
fn an_environment_of_the_largest_size_is_handed_over() {
    let mut world = world(&["echo ${#V1} ${#V9}; env -i bash -c 'echo fine'"]);
    for number in 0..10 {
        world.spec.environment.push((format!("V{number}").into(), OsString::from("\u{1}é".repeat(40_000))));
    }

    run(&world, "120000 120000\nfine\n");
}

#[test]
fn sessions_at_the_same_time_have_hosts_of_their_own() {
    let mut world = world(&["read -r _ < go; echo one"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut first = world.start_with_own_host();
    world.next(&["echo two"]);
    let second = run(&world, "two\n");

    assert_ne!(first.host(), Some(&second));
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    assert_printed(&ended(wait(&mut first)), "one\n");
}
