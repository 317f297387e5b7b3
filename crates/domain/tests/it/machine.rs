//! A run as a state machine: every path ends, every prefix replays, nothing is done twice.

use proctor_domain::Timestamp;
use proctor_domain::procedure::{
    CheckResult, CommitPurpose, Failure, Outcome, Owed, Position, PrecheckResult, Records, Run, RunEvent, SkipReason, Stage, StepPlan,
    StepState,
};
use proctor_domain::session::Phase;
use proctor_domain::{Oid, RepoPath, SessionId};
use proptest::prelude::*;

use crate::simulator::{Choices, outcome_by_events, plan, play, report, retrying, started};

const ALL: [Phase; 3] = [Phase::Precheck, Phase::Run, Phase::Validate];

fn three_steps() -> Vec<StepPlan> {
    vec![plan("a", &ALL), retrying("b", &[Phase::Run, Phase::Validate], 2), plan("c", &[])]
}

proptest! {
    #[test]
    fn every_run_ends_with_the_outcome_of_its_steps(bytes in prop::collection::vec(any::<u8>(), 0..80), git in any::<bool>()) {
        let records = if git { Records::Git } else { Records::State };

        let played = play(started(records, three_steps()), &mut Choices::new(bytes));

        let Position::Ended(outcome) = played.run.position else { panic!("not ended: {:?}", played.run.position) };
        prop_assert_eq!(outcome, outcome_by_events(&played.events, &played.run));
    }

    #[test]
    fn every_prefix_of_a_run_replays_to_what_it_was(bytes in prop::collection::vec(any::<u8>(), 0..80), git in any::<bool>()) {
        let records = if git { Records::Git } else { Records::State };
        let played = play(started(records, three_steps()), &mut Choices::new(bytes));

        let mut live: Option<Run> = None;
        for length in 1..=played.events.len() {
            let (at, event) = played.events[length - 1].clone();
            match (&mut live, event) {
                (Some(run), event) => run.apply(at, event).unwrap(),
                (none, RunEvent::Started(started)) => *none = Some(Run::start(at, *started)),
                (None, event) => panic!("{event:?} before the start"),
            }
            let replayed = Run::replay(played.events[..length].iter().cloned()).unwrap();
            prop_assert_eq!(&replayed, &live);
        }
    }

    #[test]
    fn each_step_is_committed_at_most_once(bytes in prop::collection::vec(any::<u8>(), 0..80), git in any::<bool>()) {
        let records = if git { Records::Git } else { Records::State };
        let played = play(started(records, three_steps()), &mut Choices::new(bytes));

        for purpose in [CommitPurpose::Start, CommitPurpose::End, CommitPurpose::Step(plan("a", &[]).id), CommitPurpose::Step(plan("b", &[]).id)] {
            let made = played.events.iter().filter(|(_, event)| matches!(event, RunEvent::Committed { purpose: p, .. } if *p == purpose)).count();
            prop_assert!(made <= 1, "{:?} was made {} times", purpose, made);
        }
    }

    #[test]
    fn an_event_out_of_place_is_refused_and_changes_nothing(bytes in prop::collection::vec(any::<u8>(), 0..80), cut in any::<prop::sample::Index>(), stray in any::<prop::sample::Index>()) {
        let played = play(started(Records::Git, three_steps()), &mut Choices::new(bytes));
        let mut run = Run::replay(played.events[..=cut.index(played.events.len())].iter().cloned()).unwrap().unwrap();
        let before = run.clone();

        let (at, event) = played.events[stray.index(played.events.len())].clone();

        if run.apply(at, event).is_err() {
            prop_assert_eq!(run, before);
        }
    }

    #[test]
    fn every_event_survives_its_json(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let played = play(started(Records::Git, three_steps()), &mut Choices::new(bytes));

        for (_, event) in played.events {
            let text = serde_json::to_string(&event).unwrap();
            prop_assert_eq!(serde_json::from_str::<RunEvent>(&text).unwrap(), event);
        }
    }
}

/// A run that a test leads by hand.
struct Led(Run);

impl Led {
    fn new(records: Records, steps: Vec<StepPlan>) -> Self {
        Self(Run::start(Timestamp(0), started(records, steps)))
    }

    fn apply(&mut self, event: RunEvent) -> &mut Self {
        self.0.apply(Timestamp(1), event).unwrap();
        self
    }

    fn begin(&mut self, id: &str) -> &mut Self {
        let step = plan(id, &[]).id;
        let baseline = self.0.head.clone();
        self.apply(RunEvent::StepBegan { step, baseline })
    }

    fn session(&mut self, phase: Phase, exit_code: i32) -> &mut Self {
        let session = SessionId::from_bits(7);
        self.apply(RunEvent::SessionOpened { session: session.clone(), phase });
        self.apply(RunEvent::SessionEnded { session, report: Box::new(report(exit_code)) })
    }

    fn survey(&mut self, changed: &[&str]) -> &mut Self {
        let changed = changed.iter().map(|path| RepoPath::new(*path)).collect();
        self.apply(RunEvent::Surveyed { changed, commits: Vec::new(), failure: None })
    }

    fn commit(&mut self, purpose: CommitPurpose, number: u8) -> &mut Self {
        let parent = self.0.head.clone();
        self.apply(RunEvent::CommitPlanned { purpose: purpose.clone(), parent });
        self.apply(RunEvent::Committed { purpose, commit: Oid(format!("{number:040x}")) })
    }
}

fn step(id: &str) -> CommitPurpose {
    CommitPurpose::Step(plan(id, &[]).id)
}

#[test]
fn a_skipping_precheck_skips_its_step_and_leaves_no_commit() {
    let mut led = Led::new(Records::Git, vec![plan("a", &ALL)]);

    led.begin("a").session(Phase::Precheck, 75).survey(&[]);

    assert_eq!(led.0.steps[0].state, StepState::Skipped(SkipReason::Precheck));
    assert_eq!(led.0.owes(), Owed::End(Outcome::Skipped));
}

#[test]
fn a_failing_precheck_fails_its_step_after_the_start_commit() {
    let mut led = Led::new(Records::Git, vec![plan("a", &ALL), plan("b", &ALL)]);

    led.begin("a").session(Phase::Precheck, 3);
    assert_eq!(led.0.owes(), Owed::Commit(CommitPurpose::Start, Vec::new()));
    led.commit(CommitPurpose::Start, 1).survey(&[]).commit(step("a"), 2);

    let failure = Failure::Exit { phase: Phase::Precheck, shell: 1, code: 3 };
    assert_eq!(led.0.steps[0].precheck, Some(PrecheckResult::Fail(failure.clone())));
    assert_eq!(led.0.steps[0].state, StepState::Failed(failure));
    assert_eq!(led.0.steps[1].state, StepState::Pending);
    assert_eq!(led.0.owes(), Owed::Commit(CommitPurpose::End, Vec::new()));
}

#[test]
fn exit_75_fails_in_run_and_validate() {
    for phase in [Phase::Run, Phase::Validate] {
        let mut led = Led::new(Records::State, vec![plan("a", &[phase])]);

        led.begin("a").session(phase, 75).survey(&[]);

        assert_eq!(led.0.steps[0].state, StepState::Failed(Failure::Exit { phase, shell: 1, code: 75 }));
    }
}

#[test]
fn validate_without_run_is_executed() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Validate])]);

    led.begin("a");

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Phase::Validate));
}

#[test]
fn a_warning_check_lets_the_step_complete_and_is_remembered() {
    let warn = StepPlan { severity: proctor_domain::procedure::Severity::Warn, ..plan("a", &[Phase::Validate]) };
    let mut led = Led::new(Records::State, vec![warn]);

    led.begin("a").session(Phase::Validate, 1).survey(&[]);

    assert_eq!(led.0.steps[0].state, StepState::Completed);
    assert_eq!(led.0.steps[0].validate, Some(CheckResult::Warn));
    assert!(led.0.steps[0].warning.is_some());
}

#[test]
fn where_records_are_in_state_a_step_is_committed_only_when_it_changed_something() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run]), plan("b", &[Phase::Run])]);

    led.begin("a").session(Phase::Run, 0).survey(&[]);
    assert_eq!(led.0.owes(), Owed::Begin(1));
    led.begin("b").session(Phase::Run, 0).survey(&["f"]);

    assert_eq!(led.0.owes(), Owed::Commit(step("b"), vec![RepoPath::new("f")]));
}

#[test]
fn where_records_are_in_state_a_failed_step_commits_nothing() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);

    led.begin("a").session(Phase::Run, 1).survey(&["f"]);

    assert_eq!(led.0.owes(), Owed::End(Outcome::Failed));
    assert!(led.0.commits.is_empty());
}

#[test]
fn a_refused_commit_fails_the_step_and_its_record_goes_in_without_the_files() {
    let mut led = Led::new(Records::Git, vec![plan("a", &[Phase::Run])]);
    led.begin("a").commit(CommitPurpose::Start, 1).session(Phase::Run, 0).survey(&["f"]);

    let parent = led.0.head.clone();
    let failure = Failure::HookRefused { output: "no".into() };
    led.apply(RunEvent::CommitPlanned { purpose: step("a"), parent });
    led.apply(RunEvent::CommitRefused { purpose: step("a"), failure: failure.clone() });

    assert_eq!(led.0.owes(), Owed::Commit(step("a"), Vec::new()));
    led.commit(step("a"), 2);
    assert_eq!(led.0.steps[0].state, StepState::Failed(failure));
}

#[test]
fn a_lost_session_makes_the_next_attempt_begin_at_the_first_phase() {
    let mut led = Led::new(Records::State, vec![plan("a", &ALL)]);
    led.begin("a").session(Phase::Precheck, 0);
    let session = SessionId::from_bits(9);

    led.apply(RunEvent::SessionOpened { session: session.clone(), phase: Phase::Run }).apply(RunEvent::SessionLost { session });
    assert_eq!(led.0.owes(), Owed::Restore(0));
    led.apply(RunEvent::RestorePlanned { salvage: None, paths: Vec::new() }).apply(RunEvent::Restored);

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Phase::Precheck));
    assert_eq!(led.0.steps[0].attempts, 2);
}

#[test]
fn a_report_of_a_replaced_session_is_refused() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    let (old, new) = (SessionId::from_bits(1), SessionId::from_bits(2));
    led.begin("a");
    led.apply(RunEvent::SessionOpened { session: old.clone(), phase: Phase::Run }).apply(RunEvent::SessionLost { session: old.clone() });
    led.apply(RunEvent::Restored).apply(RunEvent::SessionOpened { session: new, phase: Phase::Run });

    let late = led.0.apply(Timestamp(5), RunEvent::SessionEnded { session: old, report: Box::new(report(0)) });

    assert!(late.is_err());
}

#[test]
fn a_failed_shell_is_repeated_as_often_as_declared_and_no_more() {
    let mut led = Led::new(Records::State, vec![retrying("a", &[Phase::Precheck, Phase::Run], 2)]);
    led.begin("a").session(Phase::Precheck, 0);
    let failure = Failure::Exit { phase: Phase::Run, shell: 1, code: 1 };

    for pause in [1_000, 2_000] {
        led.session(Phase::Run, 1);
        let Owed::PlanRetry { pause: planned, .. } = led.0.owes() else { panic!("{:?}", led.0.owes()) };
        assert_eq!(planned.millis(), pause);
        led.apply(RunEvent::RetryPlanned { failure: failure.clone(), until: Timestamp(9) });
        assert_eq!(led.0.owes(), Owed::Wait(Timestamp(9)));
        led.apply(RunEvent::RetryBegan);
        assert_eq!(led.0.owes(), Owed::OpenSession(0, Phase::Run), "the precheck is not repeated");
    }
    led.session(Phase::Run, 1).survey(&[]);

    assert_eq!(led.0.steps[0].state, StepState::Failed(failure.clone()));
    assert_eq!(led.0.steps[0].attempts, 3);
    assert_eq!(led.0.steps[0].earlier_failures, [failure.clone(), failure]);
}

#[test]
fn a_resumed_failure_begins_its_step_again_with_the_next_attempt() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    led.begin("a").session(Phase::Run, 1).survey(&["f"]).apply(RunEvent::Ended { outcome: Outcome::Failed, expires: None });
    led.apply(RunEvent::LeftInTree { paths: vec![RepoPath::new("f")], snapshot: Oid("5".repeat(40)) });

    let head = led.0.head.clone();
    led.apply(RunEvent::Resumed { head, accepted: Vec::new(), snapshot: None, directive: None });

    assert_eq!(led.0.owes(), Owed::Begin(0));
    led.begin("a");
    assert_eq!(led.0.steps[0].attempts, 2);
    assert_eq!(led.0.carried.as_ref().unwrap().paths, [RepoPath::new("f")]);
}

#[test]
fn what_a_person_took_into_a_run_stays_its_own_until_a_step_is_committed() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Precheck]), plan("b", &[Phase::Run])]);
    let head = led.0.head.clone();

    led.apply(RunEvent::Resumed { head, accepted: vec![RepoPath::new("f")], snapshot: Some(Oid("5".repeat(40))), directive: None });
    led.begin("a").session(Phase::Precheck, 75).survey(&[]);
    assert_eq!(led.0.accepted.as_ref().unwrap().paths, [RepoPath::new("f")], "a skipped step takes nothing in");
    led.begin("b").session(Phase::Run, 0).survey(&["f"]).commit(CommitPurpose::Step("b".to_owned().try_into().unwrap()), 7);

    assert_eq!(led.0.accepted, None);
}

#[test]
fn accepted_commits_move_the_baseline_of_the_step_that_is_at_work() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    led.begin("a");
    let head = Some(Oid("6".repeat(40)));

    led.apply(RunEvent::Resumed { head: head.clone(), accepted: Vec::new(), snapshot: None, directive: None });

    assert_eq!((&led.0.head, &led.0.steps[0].baseline), (&head, &head));
}

#[test]
fn a_resume_that_was_recorded_before_contents_were_kept_reads_back() {
    let resumed = RunEvent::Resumed { head: None, accepted: vec![RepoPath::new("f")], snapshot: None, directive: None };
    let earlier = serde_json::to_string(&resumed).unwrap().replace("\"snapshot\":null,", "");

    assert!(!earlier.contains("snapshot"));
    assert_eq!(serde_json::from_str::<RunEvent>(&earlier).unwrap(), resumed);
}

#[test]
fn a_halted_run_owes_nothing_until_it_is_resumed() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    led.begin("a");

    led.apply(RunEvent::Halted { reason: proctor_domain::procedure::HaltReason::Interrupted });
    assert_eq!(led.0.owes(), Owed::Nothing);
    let head = led.0.head.clone();
    led.apply(RunEvent::Resumed { head, accepted: Vec::new(), snapshot: None, directive: None });

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Phase::Run));
}

#[test]
fn a_new_definition_keeps_decided_steps_by_their_id() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run]), plan("b", &[Phase::Run])]);
    led.begin("a").session(Phase::Run, 0).survey(&[]);

    led.apply(RunEvent::Redefined { snapshot: "1".into(), steps: vec![plan("x", &[Phase::Run]), plan("a", &[Phase::Run])] });

    assert_eq!(led.0.steps[1].state, StepState::Completed);
    assert_eq!(led.0.owes(), Owed::Begin(0));
}

#[test]
fn a_run_without_steps_has_nothing_to_do() {
    assert_eq!(Led::new(Records::Git, Vec::new()).0.owes(), Owed::End(Outcome::Skipped));
}

#[test]
fn a_step_with_nothing_to_run_completes() {
    let mut led = Led::new(Records::State, vec![plan("a", &[])]);

    led.begin("a");
    assert!(matches!(led.0.position, Position::InStep(0, Stage::Settling)));
    led.survey(&[]);

    assert_eq!(led.0.steps[0].state, StepState::Completed);
}
