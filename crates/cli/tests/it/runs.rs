use insta::assert_snapshot;

use crate::procedures::{COMPLETES, FAILS, SKIPS, WAITS, kill_all, plain, snapshot, start_waiting};
use crate::world;

#[test]
fn where_nothing_ever_ran_the_list_is_empty_and_nothing_is_made() {
    let world = world();

    assert_snapshot!(world.proctor(&["runs"]).snapshot(), @"
    exit 0
    --- stderr
    nothing has run here yet; `proctor procedure run NAME` runs a procedure
    ");
    assert_snapshot!(world.proctor(&["runs", "--json"]).snapshot(), @r#"
    exit 0
    --- stdout
    {"version":1,"runs":[]}
    "#);
    assert!(!world.has(".git/proctor-id"));
}

#[test]
fn runs_are_listed_newest_first_and_those_without_work_only_when_asked_for() {
    let world = world().with_card("completes", COMPLETES).with_card("fails", FAILS).with_card("skips", SKIPS);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    let _ = world.proctor(&["procedure", "run", "skips"]).expect_code(75);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);

    assert_snapshot!(snapshot(&world.proctor(&["runs"])), @"
    exit 0
    --- stdout
    [run 1]  ✗ failed        [time]  fails      3 steps, at check in [duration]
    [run 2]  ✓ completed     [time]  completes  3 steps in [duration]
    ");
    assert_snapshot!(snapshot(&world.proctor(&["runs", "--all", "--limit", "2"])), @"
    exit 0
    --- stdout
    [run 1]  ✗ failed        [time]  fails  3 steps, at check in [duration]
    [run 2]  ○ skipped       [time]  skips  1 step in [duration]
    ");
    assert_snapshot!(plain(&world, &world.proctor(&["runs", "--json", "--limit", "1"]).stdout), @r#"{"version":1,"runs":[{"run":"[run 1]","procedure":"fails","outcome":"failed","with_warnings":false,"waits_for":null,"started_at":"[time]","ended_at":"[time]","duration_ms":[ms],"steps":3,"latest_step":"check","records":"state","folder":null,"worktree":"[root]/repository","expires":"[time]"}]}"#);
}

#[test]
fn unended_runs_are_running_while_they_live_and_interrupted_afterwards() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);

    let alive = world.proctor(&["runs", "--json"]).json();
    kill_all(&world, driver);
    let dead = world.proctor(&["runs", "--json"]).json();

    assert_eq!((&alive["runs"][0]["outcome"], &alive["runs"][0]["latest_step"]), (&"running".into(), &"wait".into()));
    assert!(alive["runs"][0]["duration_ms"].is_u64());
    assert_eq!((&dead["runs"][0]["outcome"], &dead["runs"][0]["duration_ms"]), (&"interrupted".into(), &serde_json::Value::Null));
    assert_snapshot!(snapshot(&world.proctor(&["runs"])), @"
    exit 0
    --- stdout
    [run 1]  ! interrupted   [time]  waits  2 steps, at wait
    ");
}

#[test]
fn a_reader_that_goes_away_ends_the_list() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    let script = "set +o pipefail; \"$0\" runs | true; echo \"${PIPESTATUS[0]}\"";

    let output = world.run("bash", &["-c", script, env!("CARGO_BIN_EXE_proctor")]);

    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("0\n", ""));
}
