use insta::assert_snapshot;
use proctor_testkit::wait_for;

use crate::procedures::{COMPLETES, LIMIT, WAITS, let_go, newest_run, sessions_of, snapshot, start_waiting};
use crate::world;

#[test]
fn a_run_that_is_over_has_nothing_to_stop() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);

    assert_snapshot!(snapshot(&world.proctor(&["stop", &newest_run(&world)])), @"
    exit 75
    --- stderr
    nothing to stop: [run 1] is over (completed)
    ");
}

#[test]
fn a_session_may_not_stop_runs() {
    let mut world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let run = newest_run(&world);

    world.set_variable("PROCTOR_SESSION", "ses_0000000000");
    let refused = world.proctor(&["stop", &run]);
    world.remove_variable("PROCTOR_SESSION");

    assert_snapshot!(snapshot(&refused), @"
    exit 4
    --- stderr
    error: this command speaks for a person, and it was started by a session of Proctor

    hint: run it yourself, outside of the session
    ");
    let_go(&world);
    let _ = driver.wait(LIMIT).expect_code(0);
}

#[test]
fn a_running_run_is_stopped_and_can_be_resumed() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let run = newest_run(&world);

    assert_snapshot!(snapshot(&world.proctor(&["stop", &run])), @"
    exit 0
    --- stderr
    [run 1] was stopped; `proctor procedure resume [run 1]` goes on with it
    ");

    let _ = driver.wait(LIMIT).expect_code(130);
    wait_for("nothing of it is alive", LIMIT, || world.leftovers().is_empty());
    assert_eq!(world.proctor(&["procedure", "status", "--json"]).json()["outcome"], "interrupted");
    assert_snapshot!(snapshot(&world.proctor(&["stop", &run])), @"
    exit 75
    --- stderr
    nothing to stop: [run 1] is not running; `proctor procedure resume [run 1]` goes on with it
    ");
    let_go(&world);
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
}

#[test]
fn a_run_whose_driver_is_dead_is_stopped_through_its_host_by_the_sessions_id() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let run = newest_run(&world);
    let session = sessions_of(&world, &run).pop().expect("a session");
    let _ = driver.kill();

    let _ = world.proctor(&["stop", &session]).expect_code(0);

    wait_for("nothing of it is alive", LIMIT, || world.leftovers().is_empty());
    assert_eq!(world.proctor(&["procedure", "status", "--json"]).json()["outcome"], "interrupted");
}
