//! What a run teaches, and when memory is told.

use proctor_domain::procedure::{LessonKind, Outcome, Owed, Position, Proposal, Reception, Records, RunEvent, Severity, StepPlan};
use proctor_domain::session::{Learned, Phase, SessionEnd, SessionReport};
use proctor_domain::{RecordId, Timestamp};

use crate::fixtures::{Led, agent_report, id, plan};

/// A step with an agent, whose work a shell checks.
fn checked(severity: Severity) -> StepPlan {
    StepPlan { agents: 1, severity, ..plan("a", &[Phase::Validate]) }
}

fn learned() -> Option<Learned> {
    Some(Learned { route: "run the formatter first".into(), trap: "the check reads what it writes".into() })
}

/// The report of a repair whose agent says what it learnt.
fn with_lesson() -> SessionReport {
    let mut report = agent_report(SessionEnd::Completed, true);
    if let Some(agent) = &mut report.agent {
        agent.told.learned = learned();
    }
    report
}

/// The run whose repair said what it learnt, after which the check exits with `exit_code`.
fn repaired(report: SessionReport, exit_code: i32) -> Led {
    let mut led = Led::new(Records::State, vec![checked(Severity::Review)]);
    led.begin("a").agent(1).collect(&[]).session(Phase::Validate, 1);
    led.end(proctor_domain::procedure::Task::REPAIR, report, None).collect(&[]).session(Phase::Validate, exit_code).survey(&[]);
    led
}

fn kinds(led: &Led) -> Vec<&'static str> {
    led.0.lessons().iter().map(|lesson| lesson.kind.name()).collect()
}

#[test]
fn a_repair_teaches_only_when_its_checks_passed_and_a_trap_was_stated() {
    let passed = repaired(with_lesson(), 0);

    assert!(matches!(passed.0.lessons()[0].kind, LessonKind::Repaired(said) if Some(said) == learned().as_ref()));
    assert_eq!(passed.0.owes(), Owed::Propose);
    assert_eq!(kinds(&repaired(with_lesson(), 1)), ["refuted"], "a claim is no lesson by itself");
    assert_eq!(kinds(&repaired(agent_report(SessionEnd::Completed, true), 0)), [""; 0]);
}

#[test]
fn work_that_passed_without_a_repair_teaches_nothing_whatever_its_agent_says() {
    let mut led = Led::new(Records::State, vec![checked(Severity::Abort)]);
    led.begin("a").end(
        proctor_domain::procedure::Task { phase: Phase::Run, work: proctor_domain::session::Work::Agent(1) },
        with_lesson(),
        None,
    );
    led.collect(&[]).session(Phase::Validate, 0).survey(&[]);

    assert_eq!((kinds(&led), led.0.owes()), (Vec::new(), Owed::End(Outcome::Completed)));
}

#[test]
fn a_check_that_only_warns_and_a_step_without_an_agent_teach_nothing() {
    let mut warned = Led::new(Records::State, vec![checked(Severity::Warn)]);
    warned.begin("a").agent(1).collect(&[]).session(Phase::Validate, 1).survey(&[]);
    let mut shells = Led::new(Records::State, vec![StepPlan { agents: 0, ..checked(Severity::Abort) }]);
    shells.begin("a").session(Phase::Validate, 1).survey(&[]);

    assert_eq!((kinds(&warned), kinds(&shells)), (Vec::new(), Vec::new()));
}

#[test]
fn memory_is_told_once_and_again_when_the_run_went_on_and_failed_again() {
    let mut led = Led::new(Records::State, vec![checked(Severity::Abort)]);
    led.begin("a").agent(1).collect(&[]).session(Phase::Validate, 1).survey(&[]);
    let proposal = Proposal { step: id("a"), record: RecordId::from_bits(1), reception: Reception::Proposed };
    let told = RunEvent::Proposed { records: vec![proposal.clone()], obstacle: None };

    led.apply(told.clone());

    assert_eq!(led.0.owes(), Owed::End(Outcome::Failed));
    assert!(led.0.clone().apply(Timestamp(1), told.clone()).is_err());
    led.over().resume().begin("a").agent(1).collect(&[]).session(Phase::Validate, 1).survey(&[]).apply(told);
    assert_eq!(led.0.proposals, [proposal]);
}

#[test]
fn a_run_of_before_that_ended_without_telling_memory_is_read_as_it_ended() {
    let mut led = Led::new(Records::State, vec![checked(Severity::Abort)]);
    led.begin("a").agent(1).collect(&[]).session(Phase::Validate, 1).survey(&[]);

    led.apply(RunEvent::Ended { outcome: Outcome::Failed, expires: None, with_warnings: false });

    assert_eq!(led.0.position, Position::Ended(Outcome::Failed));
}
