//! I3: while its host lives no descendant outlives a session; after a killed host none that can be found does.
//! I4: nothing foreign is signalled.

use std::fs;

use proctor_process::ProcessIdentity;
use proctor_testkit::wait_for;
use rustix::process::Signal;
use serde_json::Value;

use crate::procedures::{LIMIT, newest_run, sessions_of};
use crate::scene::{
    HOLD, Innocent, kill, living_host, open_gate, process_in, record, start_and_hold, status, step, steps, uncommitted,
    wait_for_nothing_left, world_with,
};

/// What an orphan does that wants to be left alone: it ignores signals, holds no pipe and leaves the tree.
const DEAF: &str = "trap \"\" TERM HUP INT; cd /; exec < /dev/null > /dev/null 2>&1; while :; do sleep 1000; done";

/// Starts a deaf orphan with the session's marker and one that has nothing left of it.
fn start_deaf_orphans() -> String {
    format!(
        "setsid bash -c 'echo $$ > ../marked; {DEAF}' &\n\
         env -i PATH=\"$PATH\" setsid bash -c 'echo $$ > ../unmarked; {DEAF}' &\n\
         until [ -s ../marked ] && [ -s ../unmarked ]; do sleep 0.01; done"
    )
}

/// The same, but they end when they are asked to.
const START_ORPHANS: &str = "setsid sleep 1000 > /dev/null 2>&1 & echo $! > ../marked\n\
                             env -i PATH=\"$PATH\" setsid sleep 1000 > /dev/null 2>&1 & echo $! > ../unmarked";

/// Starts a build server and waits until it is one, as a client of it would.
const START_SERVER: &str = "setsid ../buildd 1000 > /dev/null 2>&1 & echo $! > ../server\n\
                            until [ \"$(cat /proc/$!/comm)\" = buildd ]; do sleep 0.01; done";

/// A step whose first attempt leaves half a work and waits, and whose second one does all of it.
fn half_then_whole(before: &str) -> String {
    let shell = format!(
        "if [ \"$PROCTOR_ATTEMPT\" = 1 ]; then\necho half > work.txt\n{before}\n{HOLD}\nfi\ntest ! -e work.txt\necho whole > work.txt"
    );
    steps(&[step("work", &[], &shell)])
}

fn assert_done_in_second_attempt(world: &proctor_testkit::World) {
    let record = record(world);
    let step = &record["steps"][0];
    assert_eq!((&step["attempts"], &step["state"]), (&2.into(), &"completed".into()), "{record}");
    let salvaged = step["salvaged"][0].as_str().expect("a salvage ref");
    assert_eq!(world.git(&["show", &format!("{salvaged}:work.txt")]), "half");
    assert_eq!(world.git(&["show", "HEAD:work.txt"]), "whole");
    assert_eq!(uncommitted(world), Vec::<String>::new());
    wait_for_nothing_left(world);
}

#[test]
fn i3_deaf_orphans_are_ended_with_their_shell_whatever_their_environment() {
    let world = world_with(&steps(&[step("work", &[], &start_deaf_orphans())]));

    let driver = world.start(&["procedure", "run", "work"]);
    let orphans = [process_in(&world, "../marked"), process_in(&world, "../unmarked")];
    let _ = driver.wait(LIMIT).expect_code(0);

    assert!(orphans.iter().all(|orphan| !orphan.is_alive()));
    wait_for_nothing_left(&world);
    assert_eq!(record(&world)["steps"][0]["sessions"][0]["ended_orphans"], 4);
}

#[test]
fn i3_a_shell_that_is_killed_or_kills_its_group_takes_its_orphans_along() {
    for suicide in ["kill -9 $$", "kill -9 -$$"] {
        let world = world_with(&steps(&[step("work", &[], &format!("{START_ORPHANS}\ncp ../unmarked ../seen\n{suicide}"))]));

        let _ = world.proctor(&["procedure", "run", "work"]).expect_code(1);

        for file in ["../marked", "../unmarked"] {
            let pid: u32 = world.read(file).trim().parse().expect("a pid");
            assert!(ProcessIdentity::of(pid).is_none(), "{file} outlived `{suicide}`");
        }
        wait_for_nothing_left(&world);
        assert_eq!(status(&world)["steps"][0]["error"], "run shell 1: exit 137");
    }
}

#[test]
fn i3_after_a_killed_host_its_driver_ends_all_orphans_and_begins_a_new_attempt() {
    let world = world_with(&half_then_whole(&start_deaf_orphans()));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let orphans = [process_in(&world, "../marked"), process_in(&world, "../unmarked")];

    kill(&living_host(&world));
    let _ = driver.wait(LIMIT).expect_code(0);

    assert!(orphans.iter().all(|orphan| !orphan.is_alive()));
    assert_done_in_second_attempt(&world);
}

#[test]
fn i2_a_host_without_a_driver_finishes_and_the_next_driver_takes_its_report() {
    let world =
        world_with(&steps(&[step("work", &[], &format!("{HOLD}\necho done > work.txt")), step("next", &[], "echo next > next.txt")]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let _ = driver.kill();

    open_gate(&world);
    wait_for_nothing_left(&world);
    assert!(!world.has("next.txt"), "a host without a driver starts nothing");
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert_eq!(world.commits()[2..], ["[procedure] Complete step: work", "[procedure] Complete step: next"]);
    assert_eq!(status(&world)["steps"][0]["attempts"], 1);
    wait_for_nothing_left(&world);
}

#[test]
fn i2_a_resume_attaches_to_the_host_of_a_killed_driver() {
    let world = world_with(&steps(&[step("work", &[], &format!("{HOLD}\necho done > work.txt"))]));
    let _ = start_and_hold(&world, &["procedure", "run", "work"]).kill();

    let second = world.start(&["procedure", "resume"]);
    wait_for("it is attached", LIMIT, || second.stderr_so_far().contains("following it"));
    open_gate(&world);
    let _ = second.wait(LIMIT).expect_code(0);

    assert_eq!(status(&world)["steps"][0]["attempts"], 1);
    assert_eq!(world.commits()[2..], ["[procedure] Complete step: work"]);
    wait_for_nothing_left(&world);
}

#[test]
fn i3_after_the_death_of_driver_and_host_a_resume_ends_what_carries_the_mark() {
    let world = world_with(&half_then_whole("setsid sleep 1000 > /dev/null 2>&1 & echo $! > ../marked"));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let host = living_host(&world);
    let orphan = process_in(&world, "../marked");
    let _ = driver.kill();
    kill(&host);
    assert!(orphan.is_alive());

    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert!(!orphan.is_alive());
    assert_done_in_second_attempt(&world);
}

#[test]
fn i3_sessions_inside_a_session_end_with_it() {
    let program = env!("CARGO_BIN_EXE_proctor");
    let world = world_with(&steps(&[step("outer", &["timeout: 1s"], &format!("cd ../other && exec {program} procedure run inner"))]));
    let _ = world.run("git", &["init", "--quiet", "../other"]).expect_code(0);
    let inner = steps(&[step("inner", &[], "echo $$ > ../inner; sleep 1000")]);
    world.write("../other/proctor/procedures/inner.procedure.card", format!("---\nname: inner\n{inner}---\n"));
    let _ = world.run_in("../other", "bash", &["-c", "git add -A && git commit -qm Begin"]).expect_code(0);

    let driver = world.start(&["procedure", "run", "work"]);
    let shell = process_in(&world, "../inner");
    let _ = driver.wait(LIMIT).expect_code(1);

    assert!(!shell.is_alive());
    wait_for_nothing_left(&world);
    assert_eq!(status(&world)["steps"][0]["error"], "run reached its time limit");
    let inner = world.proctor_in("../other", &["procedure", "status", "--json"]).expect_code(0).json();
    assert_eq!(inner["outcome"], "interrupted");
}

#[test]
fn a_build_server_that_may_linger_is_left_and_named() {
    let world = world_with(&steps(&[step("build", &[], START_SERVER), step("next", &[], "true")]));
    let _ = world.run("bash", &["-c", "cp \"$(command -v sleep)\" ../buildd"]).expect_code(0);
    world.write(world.user_settings(), "linger = [\"buildd\"]\n");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    let server = process_in(&world, "../server");
    wait_for("the server alone is left", LIMIT, || matches!(&world.leftovers()[..], [left] if left.pid == server.pid));
    let lingering = &record(&world)["steps"][0]["sessions"][0]["lingering"];
    assert_eq!(*lingering, serde_json::json!([{"program": "buildd", "pid": server.pid}]));
    let shown = world.proctor(&["show", &newest_run(&world)]).expect_code(0);
    assert!(shown.stdout.contains(&format!("buildd (pid {})", server.pid)), "{shown}");
}

#[test]
fn a_build_server_that_may_linger_outlives_a_killed_host_too() {
    let world = world_with(&half_then_whole(START_SERVER));
    let _ = world.run("bash", &["-c", "cp \"$(command -v sleep)\" ../buildd"]).expect_code(0);
    world.write(world.user_settings(), "linger = [\"buildd\"]\n");
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let server = process_in(&world, "../server");

    kill(&living_host(&world));
    let _ = driver.wait(LIMIT).expect_code(0);

    wait_for("the server alone is left", LIMIT, || matches!(&world.leftovers()[..], [left] if left.pid == server.pid));
}

/// Writes `identity` wherever Proctor has recorded a process, as if the pids had been given to somebody else.
fn blame(world: &proctor_testkit::World, run: &str, identity: &str) {
    let sessions = sessions_of(world, run);
    let session = sessions.last().expect("a session");
    let host = world.state().join(format!("sessions/{session}/host.json"));
    let mut stored: Value = serde_json::from_str(&world.read(&host)).expect("JSON");
    stored["identity"] = identity.into();
    world.write(&host, stored.to_string());
    world.write(world.state().join(format!("sessions/{session}.lock")), identity);
    for folder in ["runs", "worktrees"] {
        for lock in fs::read_dir(world.state().join(folder)).expect("locks").flatten().filter(|entry| entry.path().is_file()) {
            world.write(lock.path(), format!("{run} {identity}"));
        }
    }
}

#[test]
fn i4_a_recorded_pid_that_belongs_to_somebody_else_now_is_not_signalled() {
    for whose_start in ["the dead host's", "the innocent's"] {
        let world = world_with(&half_then_whole(""));
        let driver = start_and_hold(&world, &["procedure", "run", "work"]);
        let host = living_host(&world);
        let _ = driver.kill();
        kill(&host);
        let innocent = Innocent::new(&world);
        let recycled = match whose_start {
            "the dead host's" => ProcessIdentity { pid: innocent.0.pid, ..host },
            _ => innocent.0.clone(),
        };
        let run = newest_run(&world);
        blame(&world, &run, &recycled.to_string());

        let _ = world.proctor(&["stop", &run]).expect_code(75);
        let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

        assert!(innocent.0.is_alive(), "with {whose_start} start time");
        assert_done_in_second_attempt(&world);
    }
}

#[test]
fn i4_stop_does_not_signal_a_stranger_that_has_the_pid_in_the_lock_of_a_living_driver() {
    let world = world_with(&steps(&[step("work", &[], HOLD)]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let run = newest_run(&world);
    let innocent = Innocent::new(&world);
    let recycled = ProcessIdentity { pid: innocent.0.pid, ..living_host(&world) };
    world.write(world.state().join(format!("runs/{run}.lock")), format!("{run} {recycled}"));

    let stopped = world.proctor(&["stop", &run]);

    assert!(innocent.0.is_alive());
    assert!(!driver.ends_within(std::time::Duration::ZERO), "{stopped}");
    assert!(!stopped.stderr.contains("was stopped"), "it still runs: {stopped}");
    driver.signal(Signal::TERM);
    let _ = driver.wait(LIMIT).expect_code(130);
    wait_for_nothing_left(&world);
}
