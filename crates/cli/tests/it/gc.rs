use insta::assert_snapshot;

use crate::procedures::{COMPLETES, WAITS, let_go, newest_run, plain, snapshot, start_waiting};
use crate::world;

/// Its runs may be removed at once.
const EXPIRES: &str =
    "description: Is soon forgotten\nrun-expiry: 0s\nsteps:\n  - id: write\n    run:\n      shells: ['date +%N > now.txt']\n";

#[test]
fn without_state_there_is_nothing_to_remove() {
    let world = world();

    assert_snapshot!(world.proctor(&["procedure", "gc"]).snapshot(), @"
    exit 0
    --- stderr
    removed 0 runs, kept 0 runs
    ");
    assert_snapshot!(world.proctor(&["procedure", "gc", "--json"]).snapshot(), @r#"
    exit 0
    --- stdout
    {"version":1,"dry_run":false,"removed":[],"kept":[],"warnings":[]}
    "#);
    assert!(!world.has(".git/proctor-id"));
}

#[test]
fn expired_runs_go_and_the_newest_and_the_pinned_stay() {
    let world = world().with_card("expires", EXPIRES);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let _ = world.proctor(&["procedure", "run", "expires"]).expect_code(0);
        runs.push(newest_run(&world));
    }
    let _ = world.proctor(&["procedure", "pin", &runs[0]]).expect_code(0);

    assert_snapshot!(snapshot(&world.proctor(&["procedure", "gc", "--dry-run"])), @"
    exit 0
    --- stdout
    would remove [run 1] expires (expired)
    --- stderr
    would remove 1 run, would keep 2 runs (1 newest, 1 pinned)
    ");
    assert_eq!(world.proctor(&["runs", "--json"]).json()["runs"].as_array().map(Vec::len), Some(3));
    assert_snapshot!(plain(&world, &world.proctor(&["procedure", "gc", "--json"]).stdout), @r#"{"version":1,"dry_run":false,"removed":[{"run":"[run 1]","procedure":"expires","reason":"expired"}],"kept":[{"run":"[run 2]","procedure":"expires","reason":"newest"},{"run":"[run 3]","procedure":"expires","reason":"pinned"}],"warnings":[]}"#);

    let left: Vec<_> =
        world.proctor(&["runs", "--json"]).json()["runs"].as_array().expect("runs").iter().map(|run| run["run"].clone()).collect();
    assert_eq!(left, [runs[2].as_str(), runs[0].as_str()]);
    let _ = world.proctor(&["show", &runs[1]]).expect_code(2);
    let _ = world.proctor(&["procedure", "unpin", &runs[0]]).expect_code(0);
    assert_snapshot!(snapshot(&world.proctor(&["procedure", "gc"])), @"
    exit 0
    --- stdout
    removed [run 1] expires (expired)
    --- stderr
    removed 1 run, kept 1 run (1 newest)
    ");
}

#[test]
fn pinning_says_what_holds_now() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    let run = newest_run(&world);

    assert_snapshot!(world.proctor(&["procedure", "pin", &run]).snapshot(), @"
    exit 0
    --- stderr
    [run 1] is kept until `proctor procedure unpin [run 1]`
    ");
    assert_eq!(world.proctor(&["show", &run, "--json"]).json()["expires"], "never");
    assert_snapshot!(world.proctor(&["procedure", "unpin", &run]).snapshot(), @"
    exit 0
    --- stderr
    [run 1] may be removed by `proctor procedure gc` from [time]
    ");
    assert_snapshot!(world.proctor(&["procedure", "pin", "run_zzzzzzzzzzz"]).snapshot(), @"
    exit 2
    --- stderr
    error: failed to find `[run 1]z`: no run has an id that begins like that

    hint: `proctor runs --all` lists every run
    ");
}

#[test]
fn a_living_run_is_neither_pinned_nor_removed() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);

    assert_snapshot!(world.proctor(&["procedure", "pin", &newest_run(&world)]).snapshot(), @"
    exit 4
    --- stderr
    error: refused to change [run 1]: it is running

    hint: `proctor log [run 1] --follow` watches it, `proctor stop [run 1]` ends it
    ");
    assert_eq!(world.proctor(&["procedure", "gc", "--json"]).json()["kept"][0]["reason"], "running");

    let_go(&world);
    let _ = driver.wait(crate::procedures::LIMIT).expect_code(0);
}
