//! What signals do to a driver, its session and its run.

use std::time::{Duration, Instant};

use proctor_testkit::{Background, World, wait_for};
use rustix::process::Signal;

use crate::git_matrix::{WAIT, hook};
use crate::procedures::{LIMIT, let_go, newest_run, start_waiting};
use crate::scene::{
    HOLD, living_host, open_gate, process_in, record, start_and_hold, status, step, steps, uncommitted, wait_for_nothing_left, world_with,
};

/// A step that waits at the gate in its first attempt, and one after it.
fn held_then_next() -> String {
    let held = format!("echo mine > work.txt\nif [ \"$PROCTOR_ATTEMPT\" = 1 ]; then {HOLD}; fi\necho done >> work.txt");
    steps(&[step("work", &[], &held), step("next", &[], "echo next > next.txt")])
}

/// Sends a signal and waits until the driver says that it has it.
fn send(driver: &Background, signal: Signal, heeded: &str) {
    driver.signal(signal);
    wait_for("the signal is heeded", LIMIT, || driver.stderr_so_far().contains(heeded));
}

fn states(world: &World) -> Vec<String> {
    let status = status(world);
    let steps = status["steps"].as_array().expect("steps").iter();
    std::iter::once(status["outcome"].to_string())
        .chain(steps.map(|step| step["state"].to_string()))
        .map(|text| text.replace('"', ""))
        .collect()
}

/// Goes on with a run whose first attempt was interrupted, and looks that nothing of it was lost.
fn assert_resumes_with_a_second_attempt(world: &World) {
    assert_eq!(world.read("work.txt"), "mine\n", "the tree stays as the interrupted session left it");
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    let step = record(world)["steps"][0].clone();
    assert_eq!(step["attempts"], 2);
    let salvaged = step["salvaged"][0].as_str().expect("a salvage ref");
    assert_eq!(world.git(&["show", &format!("{salvaged}:work.txt")]), "mine");
    assert_eq!(world.git(&["show", "HEAD:work.txt"]), "mine\ndone");
    assert_eq!(world.commits()[2..], ["[procedure] Complete step: work", "[procedure] Complete step: next"]);
    assert_eq!(uncommitted(world), Vec::<String>::new());
}

#[test]
fn one_interrupt_ends_the_run_after_its_step() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    send(&driver, Signal::INT, "stopping after this step");
    open_gate(&world);
    let _ = driver.wait(LIMIT).expect_code(130);

    assert_eq!(states(&world), ["interrupted", "completed", "pending"]);
    assert_eq!(world.commits()[2..], ["[procedure] Complete step: work"]);
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!(states(&world), ["completed", "completed", "completed"]);
    assert_eq!(status(&world)["steps"][0]["attempts"], 1);
}

#[test]
fn one_interrupt_in_the_last_step_lets_the_run_complete() {
    let world = world_with(&steps(&[step("work", &[], &format!("{HOLD}\necho done > work.txt"))]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    send(&driver, Signal::INT, "stopping after this step");
    open_gate(&world);
    let _ = driver.wait(LIMIT).expect_code(0);

    assert_eq!(states(&world), ["completed", "completed"]);
}

#[test]
fn two_interrupts_end_the_session_and_keep_what_it_did() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    send(&driver, Signal::INT, "stopping after this step");
    driver.signal(Signal::INT);
    let _ = driver.wait(LIMIT).expect_code(130);

    assert_eq!(states(&world), ["interrupted", "interrupted", "pending"]);
    wait_for_nothing_left(&world);
    assert_resumes_with_a_second_attempt(&world);
}

#[test]
fn three_interrupts_leave_the_session_to_its_host() {
    let deaf = "trap '' TERM\n".to_owned()
        + &format!("echo mine > work.txt\nif [ \"$PROCTOR_ATTEMPT\" = 1 ]; then {HOLD}; fi\necho done >> work.txt");
    let world = world_with(&steps(&[step("work", &[], &deaf), step("next", &[], "echo next > next.txt")]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let host = living_host(&world);

    send(&driver, Signal::INT, "stopping after this step");
    send(&driver, Signal::INT, "ending the session");
    driver.signal(Signal::INT);
    let _ = driver.wait(LIMIT).expect_code(130);

    assert!(host.is_alive());
    assert_eq!(states(&world), ["running", "running", "pending"]);
    wait_for("the host ends its session", LIMIT, || !host.is_alive());
    wait_for_nothing_left(&world);
    assert_resumes_with_a_second_attempt(&world);
}

#[test]
fn termination_ends_even_a_deaf_session_within_ten_seconds() {
    let world =
        world_with(&steps(&[step("work", &[], "trap '' TERM\necho mine > work.txt\ntouch ../at-work\nwhile :; do sleep 1000; done")]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let begun = Instant::now();

    driver.signal(Signal::TERM);
    let _ = driver.wait(LIMIT).expect_code(130);

    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    wait_for_nothing_left(&world);
    assert_eq!(states(&world), ["interrupted", "interrupted"]);
    assert_eq!(world.read("work.txt"), "mine\n");
}

#[test]
fn i2_a_terminated_run_goes_on_with_another_attempt_and_saves_what_the_first_one_did() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work", "--json"]);

    driver.signal(Signal::TERM);
    let output = driver.wait(LIMIT).expect_code(130);

    assert_eq!(output.json()["outcome"], "interrupted");
    assert_eq!(output.json()["steps"][0]["run"]["sessions"][0]["end"], "interrupted");
    assert_resumes_with_a_second_attempt(&world);
}

#[test]
fn i2_a_driver_killed_while_it_ends_a_session_leaves_a_run_that_one_resume_completes() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let host = living_host(&world);
    let _ = driver.kill();

    // As if the driver had asked for the end and died.
    let _ = host.signal(proctor_process::Signal::Terminate).expect("a signal");
    wait_for_nothing_left(&world);

    assert_resumes_with_a_second_attempt(&world);
}

#[test]
fn a_hangup_detaches_and_a_resume_attaches_again() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let host = living_host(&world);

    driver.signal(Signal::HUP);
    let _ = driver.wait(LIMIT).expect_code(130);

    assert!(host.is_alive());
    assert_eq!(states(&world), ["running", "running", "pending"]);
    let second = world.start(&["procedure", "resume"]);
    wait_for("it is attached", LIMIT, || second.stderr_so_far().contains("following it"));
    open_gate(&world);
    let _ = second.wait(LIMIT).expect_code(0);
    assert_eq!(status(&world)["steps"][0]["attempts"], 1);
}

#[test]
fn a_run_that_pauses_before_a_retry_can_be_interrupted_at_once() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let world = world_with(&steps(&[step("work", &["retry: {max: 1, backoff: 1h}"], "exit 3")]));
        let driver = world.start(&["procedure", "run", "work"]);
        wait_for("it pauses", LIMIT, || driver.stderr_so_far().contains("trying again in"));

        driver.signal(signal);
        let output = driver.wait(LIMIT).expect_code(130);

        assert!(output.stderr.contains("was interrupted"), "nothing goes on by itself: {output}");
        assert_eq!(states(&world), ["interrupted", "interrupted"]);
        wait_for_nothing_left(&world);
    }
}

#[test]
fn an_interrupt_from_the_terminal_reaches_the_driver_alone() {
    let world = world_with(&held_then_next());
    let start = format!("setsid {} procedure run work > ../printed.txt 2>&1 & echo $! > ../driver", env!("CARGO_BIN_EXE_proctor"));
    let _ = world.run("bash", &["-c", &start]).expect_code(0);
    let driver = process_in(&world, "../driver");
    wait_for("the step is at work", LIMIT, || world.has("../at-work"));

    // Its whole process group gets it, as from a terminal.
    let _ = world.run("bash", &["-c", &format!("kill -INT -- -{}", driver.pid)]).expect_code(0);
    wait_for("the signal is heeded", LIMIT, || world.read("../printed.txt").contains("stopping after this step"));
    open_gate(&world);
    wait_for("the driver ends", LIMIT, || !driver.is_alive());

    assert_eq!(states(&world), ["interrupted", "completed", "pending"]);
    assert_eq!(world.git(&["show", "HEAD:work.txt"]), "mine\ndone");
}

#[test]
fn a_command_that_waits_for_the_tree_can_be_ended() {
    let world = world_with(&held_then_next());
    let first = start_and_hold(&world, &["procedure", "run", "work"]);
    let run = newest_run(&world);
    let second = world.start(&["procedure", "run", "work", "--wait"]);
    wait_for("it waits", LIMIT, || second.stderr_so_far().contains(&format!("waiting: {run}")));

    second.signal(Signal::INT);
    let ended = second.wait(LIMIT);

    assert_ne!(ended.code, Some(0), "{ended}");
    open_gate(&world);
    let _ = first.wait(LIMIT).expect_code(0);
    assert_eq!(newest_run(&world), run, "the second one never became a run");
}

#[test]
fn a_terminated_driver_leaves_a_slow_hook_to_end_its_commit_which_a_resume_finds() {
    let world = world_with(&steps(&[step("work", &[], "echo mine > work.txt"), step("next", &[], "echo next > next.txt")]));
    hook(&world, "pre-commit", WAIT);
    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    let begun = Instant::now();

    driver.signal(Signal::TERM);
    let _ = driver.wait(LIMIT).expect_code(130);

    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(states(&world)[0], "interrupted");
    let resumed = world.start(&["procedure", "resume"]);
    wait_for("the resume is at work", LIMIT, || resumed.stderr_so_far().contains("looking for the commit"));
    let_go(&world);
    let _ = resumed.wait(LIMIT).expect_code(0);
    assert_eq!(world.commits()[2..], ["[procedure] Complete step: work", "[procedure] Complete step: next"]);
    assert_eq!(uncommitted(&world), Vec::<String>::new());
}
