//! Drivers and hosts that die, at every point.

use std::fs::File;
use std::path::PathBuf;

use proctor_engine::{Found, HostError, Waited, fence, start};
use proctor_process::lock::{Attempt, try_acquire};
use proctor_process::{ProcessIdentity, Signal, Stdin};

use crate::scene;
use crate::world::{World, assert_printed, bash, ended, host_program, is_gone, live, until, wait, world};

/// A host program that takes its time: it begins when there is a file `late` in the world.
fn late_host(world: &World) -> PathBuf {
    let path = world.path().join("late-host");
    let late = world.path().join("late");
    let script =
        format!("#!/bin/bash\nuntil [ -e '{}' ]; do sleep 0.01; done\nexec '{}' \"$@\"\n", late.display(), host_program().display());
    bash("cat > late-host; chmod +x late-host").dir(world.path()).stdin(Stdin::Bytes(script.into_bytes())).run(None).unwrap();
    path
}

fn let_it_begin(world: &World) {
    File::create(world.path().join("late")).unwrap();
}

#[test]
fn a_session_without_a_folder_was_never_started() {
    let found = world(&["true"]).find().unwrap();

    assert!(matches!(found, Found::NeverStarted), "{found:?}");
}

#[test]
fn a_host_that_comes_after_the_fence_does_nothing() {
    let world = world(&["touch ran"]);
    let attached = start(&world.spec, &late_host(&world)).unwrap();
    let host = attached.host().cloned().unwrap();
    drop(attached);
    fence(&world.spec.folder, &world.spec.lock).unwrap();

    let_it_begin(&world);

    assert!(is_gone(&host));
    assert!(!world.work("ran").exists() && !world.file("host.json").exists() && !world.file("report.json").exists());
    assert!(matches!(world.find().unwrap(), Found::Lost));
    let error = start(&world.spec, &host_program()).unwrap_err();
    assert!(matches!(error, HostError::Fenced { .. }), "{error:?}");
}

#[test]
fn a_program_that_is_no_host_loses_the_session() {
    let world = world(&["touch ran"]);
    let program = world.path().join("no-host");
    let script = "#!/bin/bash\nread -r _\n";
    bash("cat > no-host; chmod +x no-host").dir(world.path()).stdin(Stdin::Bytes(script.into())).run(None).unwrap();
    let mut attached = start(&world.spec, &program).unwrap();

    let waited = wait(&mut attached);

    assert!(matches!(waited, Waited::Lost), "{waited:?}");
    assert!(world.file("fence").exists());
}

#[test]
fn a_host_that_is_still_late_is_waited_for_when_its_driver_is_gone() {
    let world = world(&["echo done"]);
    drop(start(&world.spec, &late_host(&world)).unwrap());

    let found = std::thread::scope(|scope| {
        let finding = scope.spawn(|| world.find().unwrap());
        until({
            let begun = std::time::Instant::now();
            move || begun.elapsed().as_millis() > 100
        });
        let_it_begin(&world);
        finding.join().unwrap()
    });

    match found {
        Found::Live(mut attached) => assert_printed(&ended(wait(&mut attached)), "done\n"),
        Found::Ended(report) => assert_printed(&report, "done\n"),
        found @ (Found::Lost | Found::NeverStarted) => panic!("{found:?}"),
    }
}

#[test]
fn a_fence_can_be_left_before_there_is_anything() {
    let world = world(&["touch ran"]);

    let ended = fence(&world.spec.folder, &world.spec.lock).unwrap();

    assert!(ended.ended.is_empty() && ended.survivors.is_empty());
    assert!(matches!(world.find().unwrap(), Found::Lost));
}

#[test]
fn a_second_host_of_a_living_session_does_nothing() {
    let world = world(&["echo x >> ran; read -r _ < go"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut attached = world.start();
    assert!(until(|| world.work("ran").exists()));

    std::fs::remove_file(world.file("host.json")).unwrap();
    let second = world.start();
    let host = second.host().cloned().unwrap();
    drop(second);
    assert!(is_gone(&host));

    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    assert_printed(&ended(wait(&mut attached)), "");
    assert_eq!(std::fs::read_to_string(world.work("ran")).unwrap(), "x\n");
}

#[test]
fn a_host_of_a_session_that_is_over_does_nothing() {
    let world = world(&["echo x >> ran"]);
    let first = world.run();

    std::fs::remove_file(world.file("host.json")).unwrap();
    let second = world.run();

    assert_eq!(first, second);
    assert_eq!(std::fs::read_to_string(world.work("ran")).unwrap(), "x\n");
}

#[test]
fn a_living_session_can_not_be_fenced() {
    let world = world(&["read -r _ < go"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut attached = world.start();
    assert!(until(|| world.file("host.json").exists()));

    let error = fence(&world.spec.folder, &world.spec.lock).unwrap_err();

    assert!(matches!(error, HostError::StillAlive { .. }), "{error:?}");
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    assert_printed(&ended(wait(&mut attached)), "");
}

#[test]
fn a_session_goes_on_without_its_driver_and_the_next_one_attaches() {
    let world = world(&["echo one; touch begun; read -r _ < go; echo two", "echo three"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut driver = scene::driver(&world, &[]).spawn().unwrap();
    assert!(until(|| world.work("begun").exists()));
    driver.signal(Signal::Kill).unwrap();
    driver.wait().unwrap();

    let mut attached = live(world.find().unwrap());
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();

    assert_printed(&ended(wait(&mut attached)), "one\ntwo\nthree\n");
}

#[test]
fn a_session_ends_without_its_driver_and_the_next_one_reads_its_report() {
    let world = world(&["touch begun; read -r _ < go; echo two"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut driver = scene::driver(&world, &[]).spawn().unwrap();
    assert!(until(|| world.work("begun").exists()));
    driver.signal(Signal::Kill).unwrap();
    driver.wait().unwrap();
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    assert!(until(|| world.file("report.json").exists()));

    let Found::Ended(report) = world.find().unwrap() else { panic!("not ended") };

    assert_printed(&report, "two\n");
}

#[test]
fn a_host_that_is_on_its_way_is_waited_for() {
    for _ in 0..20 {
        let world = world(&["echo done"]);
        drop(world.start());

        match world.find().unwrap() {
            Found::Live(mut attached) => assert_printed(&ended(wait(&mut attached)), "done\n"),
            Found::Ended(report) => assert_printed(&report, "done\n"),
            found @ (Found::Lost | Found::NeverStarted) => panic!("{found:?}"),
        }
    }
}

#[test]
fn two_drivers_can_wait_for_one_session() {
    let world = world(&["read -r _ < go; echo done"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut first = world.start();
    let mut second = live(world.find().unwrap());

    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();

    assert_printed(&ended(wait(&mut second)), "done\n");
    assert_printed(&ended(wait(&mut first)), "done\n");
}

#[test]
fn a_session_whose_host_is_out_of_reach_is_still_seen_to_end() {
    let world = world(&["read -r _ < go; echo done"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut first = world.start_with_own_host();
    let host = first.host().cloned().unwrap();
    assert!(until(|| world.file("control.sock").exists()));
    std::fs::remove_file(world.file("control.sock")).unwrap();
    let mut second = live(world.find().unwrap());

    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();

    assert_printed(&ended(wait(&mut first)), "done\n");
    assert_printed(&ended(wait(&mut second)), "done\n");
    // It waits for the next session of its own driver.
    assert!(host.is_alive());
}

/// At each of its own points the host dies. Before the shell ran, nothing has happened; after the report, everything has;
/// in between the session is lost, once.
#[test]
fn a_host_may_die_at_any_point() {
    for (point, ran, outcome) in [
        ("before-lock", false, "lost"),
        ("after-lock", false, "lost"),
        ("before-spawn", false, "lost"),
        ("after-spawn", true, "lost"),
        ("after-child-exit", true, "lost"),
        ("before-report", true, "lost"),
        ("after-report", true, "ended"),
        ("no such point", true, "ended"),
    ] {
        let world = world(&["setsid sleep 1000 & echo $! > orphan; echo x >> ran; echo printed"]);

        let finished = scene::driver(&world, &[("PROCTOR_HOST_KILLPOINT", &format!("1:{point}"))]).run(Some(crate::world::LIMIT)).unwrap();

        let said = String::from_utf8_lossy(&finished.stdout).into_owned();
        assert!(said.contains(&format!("waited={outcome}")), "{point}: {said}");
        let times = std::fs::read_to_string(world.work("ran")).unwrap_or_default();
        // A host that dies right after it started bash may be quicker than bash's first command.
        assert!(if point == "after-spawn" { times.len() <= 2 } else { times.is_empty() != ran && times.len() <= 2 }, "{point}: {times}");
        if let Ok(pid) = std::fs::read_to_string(world.work("orphan")) {
            assert!(pid.trim().parse().ok().and_then(ProcessIdentity::of).is_none(), "{point}");
        }
        let found = world.find().unwrap();
        assert!(if outcome == "lost" { matches!(found, Found::Lost) } else { matches!(found, Found::Ended(_)) }, "{point}: {found:?}");
    }
}

#[test]
fn a_host_that_dies_while_nobody_looks_is_found_lost() {
    let world = world(&["echo $$ > pid; sleep 1000"]);
    let attached = world.start();
    let shell = world.process("pid");
    let host = attached.host().cloned().unwrap();
    drop(attached);
    host.signal(Signal::Kill).unwrap();
    assert!(is_gone(&host));

    let found = world.find().unwrap();

    assert!(matches!(found, Found::Lost), "{found:?}");
    assert!(!shell.is_alive());
}

#[test]
fn a_host_that_can_not_do_its_job_says_why() {
    let mut world = world(&["true"]);
    world.spec.lock = world.path().join("no-such-folder/lock");

    let mut attached = world.start();
    let (silent, _writer) = std::io::pipe().unwrap();
    let error = attached.wait(std::os::fd::AsFd::as_fd(&silent), &mut |_| {});

    // Nobody can take over without the lock either.
    assert!(matches!(error, Err(HostError::Lock(_))), "{error:?}");
    assert!(world.read("host.log").contains("the session's host failed to use the lock file"), "{}", world.read("host.log"));
}

#[test]
fn a_report_of_a_newer_version_is_refused_and_stays() {
    let world = world(&["true"]);
    world.run();
    let newer = b"{\"version\":2,\"end\":{\"end\":\"completed\"}}";
    proctor_process::durable::write(&world.file("report.json"), newer, proctor_process::durable::Durability::Renamed).unwrap();

    let error = world.find().unwrap_err();

    assert!(matches!(error, HostError::Newer { version: 2, .. }), "{error:?}");
    assert_eq!(std::fs::read(world.file("report.json")).unwrap(), newer);
}

#[test]
fn a_report_that_is_no_report_is_refused_with_its_path() {
    let world = world(&["true"]);
    world.run();
    File::create(world.file("report.json")).unwrap();

    let error = world.find().unwrap_err();

    assert!(matches!(error, HostError::Damaged { .. }) && error.to_string().contains("report.json"), "{error}");
}

#[test]
fn a_lock_that_somebody_else_holds_for_a_moment_is_waited_for() {
    let world = world(&["echo $$ > pid; sleep 1000"]);
    let mut attached = world.start();
    let host = attached.host().cloned().unwrap();
    world.process("pid");
    host.signal(Signal::Kill).unwrap();
    assert!(is_gone(&host));
    let Attempt::Acquired(held) = try_acquire(&world.spec.lock, "").unwrap() else { panic!("held") };

    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&mut attached));
        // Long enough for the driver to have met the lock in most runs; either order must work.
        until({
            let begun = std::time::Instant::now();
            move || begun.elapsed().as_millis() > 100
        });
        drop(held);
        waiting.join().unwrap()
    });

    assert!(matches!(waited, Waited::Lost), "{waited:?}");
}
