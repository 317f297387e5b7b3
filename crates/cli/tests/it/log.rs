use insta::assert_snapshot;
use proctor_testkit::wait_for;

use crate::procedures::{COMPLETES, FAILS, LIMIT, WAITS, let_go, newest_run, plain, sessions_of, snapshot, start_waiting};
use crate::world;

#[test]
fn a_runs_sessions_are_printed_in_order_with_headings_on_stderr() {
    let world = world().with_card("fails", FAILS);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);

    assert_snapshot!(snapshot(&world.proctor(&["log", &newest_run(&world)])), @"
    exit 0
    --- stdout
    working
    looking
    checking the result
    the result is wrong
    --- stderr
    == [session 1] check, run, attempt 1: stdout
    == [session 2] check, validate, attempt 1: stdout
    == [session 2] check, validate, attempt 1: stderr
    ");
}

#[test]
fn one_stream_of_one_session_can_be_chosen() {
    let world = world().with_card("fails", FAILS);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);
    let sessions = sessions_of(&world, &newest_run(&world));

    let output = world.proctor(&["--quiet", "log", &sessions[2], "--stream", "stderr"]).expect_code(0);

    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("the result is wrong\n", ""));
}

#[test]
fn colours_are_left_out_and_control_characters_escaped_unless_raw_bytes_are_asked_for() {
    let card = "description: Paints\nsteps:\n  - id: paint\n    run:\n      shells: ['printf \"\\e[31mred\\r\\nbell\\a\\xff\"']\n";
    let world = world().with_card("paints", card);
    let _ = world.proctor(&["procedure", "run", "paints"]).expect_code(0);
    let run = newest_run(&world);

    let visible = world.proctor(&["--quiet", "log", &run]).expect_code(0);
    let raw = world.run("bash", &["-c", "\"$0\" --quiet log \"$1\" --raw | od -An -c", env!("CARGO_BIN_EXE_proctor"), &run]);

    assert_eq!(visible.stdout, "red\nbell\\u{7}\u{fffd}\n");
    assert_eq!(raw.stdout.split_whitespace().collect::<Vec<_>>().join(" "), "033 [ 3 1 m r e d \\r \\n b e l l \\a 377");
}

#[test]
fn a_session_whose_files_are_gone_is_printed_from_the_record() {
    let world = world().with_card("fails", FAILS);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);
    let sessions = sessions_of(&world, &newest_run(&world));
    std::fs::remove_dir_all(world.state().join("sessions").join(&sessions[2])).expect("removes");

    assert_snapshot!(snapshot(&world.proctor(&["log", &sessions[2], "--stream", "stderr"])), @"
    exit 0
    --- stdout
    the result is wrong
    --- stderr
    == [session 1] check, validate, attempt 1: stderr
    warning: [root]/home/.local/state/proctor/repos/repository-[id]/sessions/[session 1]/stderr.log is gone; this is what the record keeps of it
    ");
}

#[test]
fn following_prints_what_comes_and_ends_with_the_run() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let follower = world.start(&["log", &newest_run(&world), "--follow"]);
    // Which of two streams comes first is nobody's promise.
    let printed = |text: &str| follower.stdout_so_far().lines().any(|line| line == text);

    wait_for("what was printed so far", LIMIT, || ["hello", "waiting", "grumbling"].iter().all(|line| printed(line)));
    assert!(!follower.ends_within(std::time::Duration::from_millis(50)));
    let_go(&world);
    let _ = driver.wait(LIMIT).expect_code(0);
    let followed = follower.wait(LIMIT).expect_code(0);

    assert_eq!(followed.stdout.lines().count(), 4, "{followed}");
    assert!(followed.stdout.ends_with("done\n"), "{followed}");
    assert_eq!(plain(&world, &followed.stderr).lines().next(), Some("== [session 1] greet, run, attempt 1: stdout"), "{followed}");
}

#[test]
fn following_goes_on_into_sessions_that_open_later() {
    let world = world().with_card(
        "waits",
        &format!("{WAITS}  - id: later\n    run:\n      shells: ['echo later']\n    validate:\n      shells: ['echo checked']\n"),
    );
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let follower = world.start(&["log", &newest_run(&world), "--follow", "--stream", "stdout"]);
    wait_for("it follows", LIMIT, || follower.stdout_so_far() == "hello\nwaiting\n");

    let_go(&world);
    let _ = driver.wait(LIMIT).expect_code(0);

    assert_eq!(follower.wait(LIMIT).expect_code(0).stdout, "hello\nwaiting\ndone\nlater\nchecked\n");
}

#[test]
fn following_ends_when_the_reader_goes_away() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let script = "set +o pipefail; \"$0\" --quiet log \"$1\" --follow | head -n 1; echo \"${PIPESTATUS[0]}\"";

    let output = world.run("bash", &["-c", script, env!("CARGO_BIN_EXE_proctor"), &newest_run(&world)]);

    assert_eq!(output.stdout, "hello\n0\n", "{output}");
    let_go(&world);
    let _ = driver.wait(LIMIT).expect_code(0);
}

#[test]
fn following_a_run_that_is_over_prints_it_and_ends() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);

    let output = world.proctor(&["log", &newest_run(&world), "--follow"]).expect_code(0);

    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
}
