use insta::assert_snapshot;

use crate::procedures::{COMPLETES, FAILS, LIMIT, SKIPS, WAITS, kill_all, let_go, newest_run, plain, snapshot, start_waiting};
use crate::world;

#[test]
fn without_a_run_it_says_how_to_get_one_and_makes_nothing() {
    let world = world().with_card("completes", COMPLETES);

    assert_snapshot!(world.proctor(&["procedure", "status"]).snapshot(), @"
    exit 2
    --- stderr
    error: there is no run in this working tree yet

    hint: `proctor procedure list` names the procedures, `proctor procedure run NAME` runs one
    ");
    assert_snapshot!(world.proctor(&["procedure", "status", "run_abc", "--json"]).snapshot(), @r#"
    exit 2
    --- stdout
    {"version":1,"exit_code":2,"error":{"kind":"user","message":"there is no run or session whose id begins with `run_abc`","hints":["`proctor runs --all` lists every run"]}}
    --- stderr
    error: there is no run or session whose id begins with `run_abc`

    hint: `proctor runs --all` lists every run
    "#);
    assert!(!world.has(".git/proctor-id"));
}

#[test]
fn a_failed_step_is_shown_with_phase_exit_code_and_both_streams() {
    let world = world().with_card("fails", FAILS);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);

    assert_snapshot!(snapshot(&world.proctor(&["procedure", "status"])), @"
    exit 0
    --- stdout
    ✗ fails: failed  [run 1]
      started    [time]
      ended      [time], after [duration]
      records    state
      left       two.txt, not committed

    ✓ write  completed in [duration], commit [commit 1]
    ✗ check  failed in [duration]
        validate shell 2: exit 7
        stdout of [session 1]:
        | looking
        | checking the result
        stderr of [session 1]:
        | the result is wrong
    · last   pending
    --- stderr

    hint: `proctor procedure resume [run 1]` tries again from the failed step
    hint: `proctor log [run 1]` has everything it printed
    ");
}

#[test]
fn json_is_the_object_that_the_run_printed() {
    let world = world().with_card("fails", FAILS);
    let ran = world.proctor(&["procedure", "run", "fails", "--json"]).expect_code(1);

    let status = world.proctor(&["procedure", "status", "--json"]).expect_code(0);

    let (mut ran, mut status) = (ran.json(), status.json());
    for document in [&mut ran, &mut status] {
        for step in document["steps"].as_array_mut().expect("steps") {
            step["duration_ms"] = 0.into();
        }
    }
    assert_eq!(ran, status);
    assert_snapshot!(plain(&world, &serde_json::to_string(&status).expect("JSON")), @r#"{"branch_to_merge":null,"cost_complete":true,"cost_usd":0.0,"exit_code":1,"outcome":"failed","procedure":"fails","run":"[run 1]","standing":{"go_on":["proctor procedure resume [run 1]"],"reason":null,"state":"ended","until":null,"waits_for":null},"steps":[{"attempts":1,"commits":["[commit 1]"],"duration_ms":[ms],"error":null,"id":"write","outputs":{},"precheck":null,"reason":null,"run":{"sessions":[{"cost_usd":0.0,"end":"completed","exit_code":0,"id":"[session 1]","kind":"shell","turns":null}]},"state":"completed","validate":null},{"attempts":1,"commits":[],"duration_ms":[ms],"error":"validate shell 2: exit 7","id":"check","outputs":{},"precheck":null,"reason":null,"run":{"sessions":[{"cost_usd":0.0,"end":"completed","exit_code":0,"id":"[session 2]","kind":"shell","turns":null}]},"state":"failed","validate":{"reason":null,"reasoning":"validate shell 2: exit 7","result":"fail","sessions":[]}},{"attempts":0,"commits":[],"duration_ms":[ms],"error":null,"id":"last","outputs":{},"precheck":null,"reason":null,"run":null,"state":"pending","validate":null}],"version":1,"with_warnings":false}"#);
}

#[test]
fn a_completed_run_with_directive_is_shown_with_its_commits() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes", "--directive", "be\u{1b}[2J quick"]).expect_code(0);

    assert_snapshot!(snapshot(&world.proctor(&["procedure", "status"])), @r#"
    exit 0
    --- stdout
    ✓ completes: completed  [run 1]
      started    [time]
      ended      [time], after [duration]
      records    state
      directive  be\u{1b}[2J quick

    ✓ write    completed in [duration], commit [commit 1]
    ○ skipped  skipped (precheck) in [duration]
    ✓ look     completed in [duration]
    "#);
}

#[test]
fn only_the_last_lines_of_a_long_output_are_shown() {
    let card = "description: Talks\nsteps:\n  - id: talk\n    run:\n      shells: ['seq 1 5000; printf \"\\e[2Jlast\"; exit 3']\n";
    let world = world().with_card("talks", card);
    let _ = world.proctor(&["procedure", "run", "talks"]).expect_code(1);

    let status = world.proctor(&["procedure", "status"]).expect_code(0);

    let shown: Vec<&str> = status.stdout.lines().filter_map(|line| line.strip_prefix("    | ")).collect();
    assert_eq!(shown.len(), 21, "{status}");
    assert_eq!((shown[0], shown[1], shown[20]), ("…", "4982", "\\u{1b}[2Jlast"));
}

#[test]
fn the_newest_run_is_the_one_that_started_last_whatever_its_name() {
    let world = world().with_card("zebra", COMPLETES).with_card("ape", SKIPS);
    let _ = world.proctor(&["procedure", "run", "zebra"]).expect_code(0);
    let _ = world.proctor(&["procedure", "run", "ape"]).expect_code(75);

    let status = world.proctor(&["procedure", "status", "--json"]).expect_code(0).json();

    assert_eq!((&status["procedure"], &status["outcome"], &status["exit_code"]), (&"ape".into(), &"skipped".into(), &75.into()));
}

#[test]
fn a_run_is_found_by_the_start_of_its_id_and_by_its_folder() {
    let world = world().with_card("completes", &format!("records: git\n{COMPLETES}"));
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    let run = newest_run(&world);
    let folders = world.run("ls", &["proctor/runs"]).stdout;
    let folder = folders.trim();

    for text in [run.as_str(), &run[..8], folder, &format!("proctor/runs/{folder}/")] {
        let status = world.proctor(&["procedure", "status", text, "--json"]).expect_code(0).json();

        assert_eq!(status["run"], run.as_str(), "{text}");
    }
}

#[test]
fn a_living_run_is_running_and_a_dead_one_is_interrupted() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);

    let alive = world.proctor(&["procedure", "status", "--json"]).expect_code(0).json();
    assert_eq!((&alive["outcome"], &alive["steps"][1]["state"]), (&"running".into(), &"running".into()));
    assert_eq!(alive["steps"][1]["run"]["sessions"][0]["end"], "running");

    kill_all(&world, driver);
    let dead = world.proctor(&["procedure", "status", "--json"]).expect_code(0).json();
    assert_eq!((&dead["outcome"], &dead["exit_code"]), (&"interrupted".into(), &130.into()));
    assert_eq!((&dead["steps"][1]["state"], &dead["steps"][1]["run"]["sessions"][0]["end"]), (&"interrupted".into(), &"lost".into()));
    assert_snapshot!(snapshot(&world.proctor(&["procedure", "status"])), @"
    exit 0
    --- stdout
    ! waits: interrupted  [run 1]
      started    [time]
      last sign  [time], after [duration]
      records    state

    ✓ greet  completed in [duration]
    ! wait   interrupted after [duration]
    --- stderr

    hint: `proctor procedure resume [run 1]` goes on with it
    ");
}

#[test]
fn a_run_whose_driver_died_runs_on_as_long_as_its_host_lives() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let _ = driver.kill();

    let status = world.proctor(&["procedure", "status", "--json"]).expect_code(0).json();

    assert_eq!(status["outcome"], "running");
    let_go(&world);
    proctor_testkit::wait_for("the host ends", LIMIT, || world.leftovers().is_empty());
    let status = world.proctor(&["procedure", "status", "--json"]).expect_code(0).json();
    assert_eq!(status["outcome"], "interrupted");
}

#[test]
fn a_run_that_stands_still_says_why_and_how_to_go_on() {
    let card = "description: Wanders\nsteps:\n  - id: wander\n    run:\n      shells: ['git switch --quiet --create elsewhere']\n  \
                - id: next\n    run:\n      shells: ['true']\n";
    let world = world().with_card("wanders", card);
    let _ = world.proctor(&["procedure", "run", "wanders"]).expect_code(4);

    assert_snapshot!(snapshot(&world.proctor(&["procedure", "status"])), @"
    exit 0
    --- stdout
    ! wanders: interrupted  [run 1]
      started    [time]
      last sign  [time], after [duration]
      records    state
      stopped    it works on main, and HEAD is on elsewhere

    ! wander  interrupted after [duration]
    · next    pending
    --- stderr

    hint: `git switch main`, then `proctor procedure resume [run 1]`
    ");
}

#[test]
fn a_warning_is_visible_where_the_result_is() {
    let card = "description: Warns\nsteps:\n  - id: work\n    run:\n      shells: ['true']\n    validate:\n      shells: ['echo not so good; exit 2']\n";
    let world = world().with_card("warns", card);
    let _ = world.proctor(&["procedure", "run", "warns"]).expect_code(0);

    assert_snapshot!(snapshot(&world.proctor(&["procedure", "status"])), @"
    exit 0
    --- stdout
    ✓ warns: completed with warnings  [run 1]
      started    [time]
      ended      [time], after [duration]
      records    state

    ✓ work  completed in [duration]
        warning: validate shell 1: exit 2
        stdout of [session 1]:
        | not so good
    ");
}
