//! Steps with agents that ask a person first.

use proctor_domain::procedure::HaltReason;
use proctor_domain::session::Work;
use proctor_testkit::World;

use crate::agent_scene::{ends, made, run_of, world_of};
use crate::procedures::newest_run;
use crate::scene::uncommitted;

/// Asks after its precheck and before its agent.
const ASKS: &str = "records: RECORDS
steps:
  - id: publish
    approve: Publish it now?
    precheck:
      shells: ['echo looked >> ../prechecks']
    run:
      agents:
        - prompt: Publish it
";

const PUBLISHES: &str = "[[default.turn]]\ndo = [{ write = { path = 'published', content = 'x' } }]\n";

fn parked(records: &str) -> (World, String) {
    let world = world_of(&ASKS.replace("RECORDS", records), PUBLISHES)
        .with_card("other", "records: state\nsteps:\n  - id: touch\n    run:\n      shells: ['echo y > other']\n");
    let output = world.proctor(&["procedure", "run", "work"]).expect_code(5);
    assert!(output.stderr.contains("Publish it now?"), "{output}");
    let run = newest_run(&world);
    (world, run)
}

#[test]
fn a_parked_run_holds_nothing_and_without_an_answer_it_parks_again() {
    let (world, run) = parked("state");
    assert_eq!((ends(&run_of(&world).steps[0]), world.leftovers().len()), (vec![(Work::Shells, "completed")], 0));

    // Nobody has to wait for the answer: the tree is free.
    let _ = world.proctor(&["procedure", "run", "other", "--dry-run"]).expect_code(0);
    let again = world.proctor(&["procedure", "resume", &run]).expect_code(5);

    assert!(again.stderr.contains("Publish it now?"), "{again}");
    assert!(matches!(run_of(&world).halt, Some(HaltReason::Approval { .. })));
    assert_eq!((world.read("../prechecks").as_str(), world.has("published")), ("looked\n", false));
    let _ = world.proctor(&["procedure", "run", "other"]).expect_code(0);
}

#[test]
fn approved_the_agent_goes_to_work() {
    for records in ["state", "git"] {
        let (world, run) = parked(records);

        let _ = world.proctor(&["answer", &run, "approve", "-m", "Go ahead"]).expect_code(0);
        let _ = world.proctor(&["procedure", "resume", &run]).expect_code(0);

        let step = run_of(&world).steps.swap_remove(0);
        assert_eq!(step.approval.and_then(|approval| approval.message).as_deref(), Some("Go ahead"));
        assert!(made(&world).contains(&"[procedure] publish: update published".to_owned()));
        assert_eq!((world.read("../prechecks").as_str(), uncommitted(&world).len()), ("looked\n", 0));
    }
}

#[test]
fn rejected_the_step_fails_and_its_agent_is_not_asked() {
    for records in ["state", "git"] {
        let (world, run) = parked(records);

        let output = world.proctor(&["answer", &run, "reject", "-m", "Not on a Friday", "--resume"]).expect_code(1);

        assert!(output.stderr.contains("it was rejected: Not on a Friday"), "{output}");
        assert_eq!(ends(&run_of(&world).steps[0]), [(Work::Shells, "completed")]);
        assert_eq!((world.has("published"), uncommitted(&world).len()), (false, 0));
        // Who tries it again is asked again.
        let _ = world.proctor(&["procedure", "resume", &run]).expect_code(5);
    }
}

#[test]
fn a_run_goes_on_with_the_engine_it_was_started_with() {
    let (mut world, run) = parked("state");
    // A real agent must not be started, and paid for, because the words of the first command are not repeated.
    world.set_variable("PROCTOR_ENGINE", "claude");
    world.remove_variable("PROCTOR_SCRIPT");

    let _ = world.proctor(&["answer", &run, "approve", "--resume"]).expect_code(0);

    assert!(world.has("published"));
}
