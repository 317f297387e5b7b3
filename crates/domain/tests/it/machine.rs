//! A run as a state machine, led by hand through what happens to shells, commits and resumes.

use proctor_domain::procedure::{
    CheckResult, CommitPurpose, Failure, HaltReason, Outcome, Owed, Position, PrecheckResult, Records, RunEvent, Severity, SkipReason,
    Stage, StepPlan, StepState, Task,
};
use proctor_domain::session::Phase;
use proctor_domain::{Oid, RepoPath, Timestamp};

use crate::fixtures::{ALL, Led, id, plan, report, retrying};

fn step(name: &str) -> CommitPurpose {
    CommitPurpose::Step(id(name))
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

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::shells(Phase::Validate)));
}

#[test]
fn a_warning_check_lets_the_step_complete_and_is_remembered() {
    let warn = StepPlan { severity: Severity::Warn, ..plan("a", &[Phase::Validate]) };
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

    led.lose(Task::shells(Phase::Run));
    assert_eq!(led.0.owes(), Owed::Restore(0));
    led.restore();

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::shells(Phase::Precheck)));
    assert_eq!(led.0.steps[0].attempts, 2);
}

#[test]
fn a_report_of_a_replaced_session_is_refused() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    led.begin("a");
    let old = led.open(Task::shells(Phase::Run));
    led.apply(RunEvent::SessionLost { session: old.clone(), ended_orphans: 0 }).restore().open(Task::shells(Phase::Run));

    let late = led.0.apply(Timestamp(5), RunEvent::SessionEnded { session: old, report: Box::new(report(0)), verdict: None });

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
        assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::shells(Phase::Run)), "the precheck is not repeated");
    }
    led.session(Phase::Run, 1).survey(&[]);

    assert_eq!(led.0.steps[0].state, StepState::Failed(failure.clone()));
    assert_eq!(led.0.steps[0].attempts, 3);
    assert_eq!(led.0.steps[0].earlier_failures, [failure.clone(), failure]);
}

#[test]
fn a_resumed_failure_begins_its_step_again_with_the_next_attempt() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    led.begin("a").session(Phase::Run, 1).survey(&["f"]).apply(RunEvent::Ended {
        outcome: Outcome::Failed,
        expires: None,
        with_warnings: false,
    });
    led.apply(RunEvent::LeftInTree { paths: vec![RepoPath::new("f")], snapshot: Oid("5".repeat(40)) });

    led.resume();

    assert_eq!(led.0.owes(), Owed::Begin(0));
    led.begin("a");
    assert_eq!(led.0.steps[0].attempts, 2);
    assert_eq!(led.0.carried.as_ref().unwrap().paths, [RepoPath::new("f")]);
}

#[test]
fn what_a_person_took_into_a_run_stays_its_own_until_a_step_is_committed() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Precheck]), plan("b", &[Phase::Run])]);
    let head = led.0.head.clone();

    led.apply(RunEvent::Resumed {
        head,
        accepted: vec![RepoPath::new("f")],
        snapshot: Some(Oid("5".repeat(40))),
        directive: None,
        last_sign: None,
    });
    led.begin("a").session(Phase::Precheck, 75).survey(&[]);
    assert_eq!(led.0.accepted.as_ref().unwrap().paths, [RepoPath::new("f")], "a skipped step takes nothing in");
    led.begin("b").session(Phase::Run, 0).survey(&["f"]).commit(step("b"), 7);

    assert_eq!(led.0.accepted, None);
}

#[test]
fn accepted_commits_move_the_baseline_of_the_step_that_is_at_work() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    led.begin("a");
    let head = Some(Oid("6".repeat(40)));

    led.apply(RunEvent::Resumed { head: head.clone(), accepted: Vec::new(), snapshot: None, directive: None, last_sign: None });

    assert_eq!((&led.0.head, &led.0.steps[0].baseline), (&head, &head));
}

#[test]
fn a_resume_that_was_recorded_before_contents_were_kept_reads_back() {
    let resumed = RunEvent::Resumed { head: None, accepted: vec![RepoPath::new("f")], snapshot: None, directive: None, last_sign: None };
    let earlier = serde_json::to_string(&resumed).unwrap().replace("\"snapshot\":null,", "");

    assert!(!earlier.contains("snapshot"));
    assert_eq!(serde_json::from_str::<RunEvent>(&earlier).unwrap(), resumed);
}

#[test]
fn a_halted_run_owes_nothing_until_it_is_resumed() {
    let mut led = Led::new(Records::State, vec![plan("a", &[Phase::Run])]);
    led.begin("a");

    led.apply(RunEvent::Halted { reason: HaltReason::Interrupted });
    assert_eq!(led.0.owes(), Owed::Nothing);
    led.resume();

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::shells(Phase::Run)));
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
