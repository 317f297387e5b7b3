//! I3: while its host lives no descendant outlives a session; after a killed host none that can be found.

use std::time::{Duration, Instant};

use proctor_domain::session::{Lingering, SessionEnd};
use proctor_engine::{Found, Waited, fence};
use proctor_process::{ProcessIdentity, Signal};

use crate::world::{DEAF, assert_printed, bash, ended, is_gone, live, process_in, until, wait, world};

#[test]
fn i3_a_deaf_grandchild_in_a_session_of_its_own_does_not_outlive_its_shell() {
    let world = world(&[&format!("setsid bash -c \"echo \\$\\$ > pid; {DEAF}\" & until [ -s pid ]; do sleep 0.01; done"), "echo next"]);

    let mut attached = world.start();
    let orphan = world.process("pid");
    let report = ended(wait(&mut attached));

    assert_printed(&report, "next\n");
    assert!(!orphan.is_alive());
    assert_eq!(report.ended_orphans, 2);
}

#[test]
fn i3_an_empty_environment_hides_nobody() {
    let world = world(&[&format!(
        "env -i setsid /bin/bash -c \"echo \\$\\$ > pid; PATH=/usr/bin:/bin; {DEAF}\" & until [ -s pid ]; do sleep 0.01; done"
    )]);

    let mut attached = world.start();
    let orphan = world.process("pid");
    let report = ended(wait(&mut attached));

    assert_eq!((report.end, report.ended_orphans), (SessionEnd::Completed, 2));
    assert!(!orphan.is_alive());
}

#[test]
fn i3_a_double_fork_is_ended_without_waiting_for_it() {
    let world = world(&["( (setsid sleep 1000 & echo $! > pid) & ); until [ -s pid ]; do sleep 0.01; done"]);
    let begun = Instant::now();

    let report = world.run();

    assert_eq!((report.end, report.ended_orphans), (SessionEnd::Completed, 1));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn i3_a_killed_shell_takes_its_children_along() {
    for script in ["kill -9 $$", "trap '' USR1; kill -9 -$$"] {
        let world = world(&[&format!("setsid sleep 1000 & echo $! > far; sleep 1001 & echo $! > near; {script}")]);

        let report = world.run();

        assert_eq!(report.exit_code(), Some(137));
        for name in ["far", "near"] {
            let pid: u32 = std::fs::read_to_string(world.work(name)).unwrap().trim().parse().unwrap();
            assert!(ProcessIdentity::of(pid).is_none(), "{name}");
        }
    }
}

#[test]
fn i3_a_grandchild_that_floods_the_pipes_keeps_nobody_waiting() {
    let report = world(&["yes flood & disown; trap '' TERM; (trap '' TERM; while echo more; do :; done) & disown; echo done >&2"]).run();

    assert_eq!((report.end, report.stderr.text().as_str()), (SessionEnd::Completed, "done\n"));
    assert!(report.ended_orphans >= 1);
}

#[test]
fn i3_a_chain_of_processes_comes_to_its_end() {
    let report = world(&["hydra() { trap '' TERM; sleep 0.01; hydra & }; hydra & sleep 0.1", "echo next"]).run();

    assert_printed(&report, "next\n");
    assert_eq!(report.log_note, None);
}

#[test]
fn a_build_server_may_linger_with_its_workers_and_is_listed() {
    let world = world(&[
        "cp $(command -v sleep) build-server; setsid ./build-server 1000 & until [[ $(readlink /proc/$!/exe) = */build-server ]]; do :; done; echo $! > server; sleep 1001 & echo $! > stray",
        "echo next",
    ])
    .with_linger("build-server");

    let report = world.run();

    let server = world.process("server");
    let stray: u32 = std::fs::read_to_string(world.work("stray")).unwrap().trim().parse().unwrap();
    server.signal(Signal::Kill).unwrap();
    assert_printed(&report, "next\n");
    assert_eq!(report.lingering, [Lingering { program: "build-server".to_owned(), pid: server.pid }]);
    assert_eq!((ProcessIdentity::of(stray), report.ended_orphans), (None, 1));
}

/// What sessions leave behind when their host is killed: a marked one and one with an empty environment.
const LEAVES_TWO: &str = "setsid bash -c 'echo $$ > marked; trap \"\" TERM; while :; do sleep 1000; done' &
    env -i setsid /bin/bash -c 'echo $$ > bare; PATH=/usr/bin:/bin; trap \"\" TERM; while :; do sleep 1000; done' &
    wait";

#[test]
fn i3_after_a_killed_host_its_driver_ends_what_it_left_even_what_hides() {
    let world = world(&[LEAVES_TWO]);
    let mut attached = world.start();
    let (marked, bare) = (world.process("marked"), world.process("bare"));

    attached.host().unwrap().signal(Signal::Kill).unwrap();
    let waited = wait(&mut attached);

    assert!(matches!(waited, Waited::Lost), "{waited:?}");
    assert!(!marked.is_alive() && !bare.is_alive());
    assert!(matches!(world.find().unwrap(), Found::Lost));
}

#[test]
fn i3_after_a_killed_host_another_driver_ends_what_carries_the_marker() {
    let world = world(&["setsid bash -c 'echo $$ > marked; trap \"\" TERM; while :; do sleep 1000; done' & wait"]);
    // A driver in a process of its own, so that the orphans are not handed to this one.
    let mut driver = crate::scene::driver(&world, &[]).spawn().unwrap();
    let marked = world.process("marked");
    let host: ProcessIdentity = std::fs::read_to_string(&world.spec.lock).unwrap().parse().unwrap();
    driver.signal(Signal::Kill).unwrap();
    driver.wait().unwrap();
    host.signal(Signal::Kill).unwrap();
    assert!(is_gone(&host));

    let found = world.find().unwrap();

    assert!(matches!(found, Found::Lost), "{found:?}");
    assert!(!marked.is_alive());
}

#[test]
fn after_a_killed_host_a_build_server_lingers() {
    let world =
        world(&["cp $(command -v sleep) build-server; setsid ./build-server 1000 & until [[ $(readlink /proc/$!/exe) = */build-server ]]; do :; done; echo $! > server; sleep 1001 & echo $! > stray; wait"])
            .with_linger("build-server");
    let mut attached = world.start();
    let stray = world.process("stray");

    attached.host().unwrap().signal(Signal::Kill).unwrap();
    let waited = wait(&mut attached);

    let server = world.process("server");
    assert!(matches!(waited, Waited::Lost), "{waited:?}");
    assert!(!stray.is_alive());
    server.signal(Signal::Kill).unwrap();
}

#[test]
fn i4_a_recorded_pid_that_is_an_innocents_now_is_left_alone() {
    let world = world(&["true"]);
    let innocent = bash("exec sleep 1000").spawn().unwrap();
    let now = innocent.identity().unwrap();
    std::fs::create_dir(&world.spec.folder).unwrap();
    let recorded = ProcessIdentity { start_ticks: now.start_ticks - 1, ..now.clone() };
    let write = |name: &str, text: String| {
        proctor_process::durable::write(&world.file(name), text.as_bytes(), proctor_process::durable::Durability::Renamed).unwrap()
    };
    write("spec.json", "{\"version\":1}".to_owned());
    write("host.json", format!("{{\"version\":1,\"identity\":\"{recorded}\",\"started\":0}}"));

    let found = world.find().unwrap();
    fence(&world.spec.folder, &world.spec.lock).unwrap();

    assert!(matches!(found, Found::Lost), "{found:?}");
    assert!(now.is_alive());
    innocent.signal(Signal::Kill).unwrap();
}

#[test]
fn i4_processes_of_other_sessions_and_of_nobody_are_left_alone() {
    let world = world(&["sleep 1000 & echo $! > pid; wait"]);
    let id = world.spec.session.as_str();
    let of = |marker: &str| bash("exec sleep 1000").env([("PROCTOR_SESSION", marker)]).spawn().unwrap();
    let (other, longer, inner) = (of("ses_0000000000"), of(&format!("{id}x")), of(&format!("ses_0000000000:{id}:ses_0000000001")));
    let mut attached = world.start();
    let ours = process_in(&world.work("pid"));

    attached.host().unwrap().signal(Signal::Kill).unwrap();
    wait(&mut attached);

    assert!(!ours.is_alive() && inner.identity().is_none());
    for child in [&other, &longer] {
        assert!(child.identity().is_some());
        child.signal(Signal::Kill).unwrap();
    }
}

#[test]
fn i4_the_host_of_another_driver_that_died_is_left_alone() {
    let ours = world(&["echo $$ > pid; sleep 1000"]);
    let mut attached = ours.start();
    let shell = ours.process("pid");
    let theirs = world(&["touch begun; read -r _ < go; echo done"]);
    bash("mkfifo go").dir(&theirs.spec.directory).run(None).unwrap();
    let mut driver = crate::scene::driver(&theirs, &[]).spawn().unwrap();
    assert!(until(|| theirs.work("begun").exists()));
    // Its host is a child of ours from here on, for we adopt orphans.
    driver.signal(Signal::Kill).unwrap();
    driver.wait().unwrap();

    attached.host().unwrap().signal(Signal::Kill).unwrap();
    let waited = wait(&mut attached);

    assert!(matches!(waited, Waited::Lost), "{waited:?}");
    assert!(!shell.is_alive());
    let mut attached = live(theirs.find().unwrap());
    bash("echo > go").dir(&theirs.spec.directory).run(None).unwrap();
    assert_printed(&ended(wait(&mut attached)), "done\n");
}
