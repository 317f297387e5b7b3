//! Runs with agents and judges, led by hand: repair, questions, limits, losses, judging again, a branch of one's own.

use proctor_domain::procedure::{
    Answer, CheckResult, CommitPurpose, Failure, HaltReason, LastCommit, Outcome, Owed, Position, Records, Run, RunEvent, Severity,
    StepPlan, StepState, Task, Unjudged, Verdict,
};
use proctor_domain::session::{Phase, SessionEnd, SessionReport, Work};
use proctor_domain::{Branch, Oid, RepoPath, SessionId, Timestamp};

use crate::fixtures::{Led, agent_report, id, isolated, judged, limit, plan, report, retrying, started};

const AGENT: Task = Task { phase: Phase::Run, work: Work::Agent(1) };

fn work(name: &str) -> CommitPurpose {
    CommitPurpose::Work(id(name))
}

fn thin() -> Failure {
    Failure::Judged { reasoning: "thin".into() }
}

#[test]
fn what_agents_left_is_committed_before_the_shells_of_their_step() {
    let mut led = Led::new(Records::State, vec![StepPlan { agents: 2, ..plan("a", &[Phase::Run]) }]);

    led.begin("a").agent(1);
    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task { phase: Phase::Run, work: Work::Agent(2) }));
    led.agent(2).collect(&["f"]);
    assert_eq!(led.0.owes(), Owed::Commit(work("a"), vec![RepoPath::new("f")]));
    led.commit(work("a"), 1);

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::shells(Phase::Run)));
    assert_eq!(led.0.steps[0].commits, [Oid(format!("{:040x}", 1))]);
}

#[test]
fn a_repair_that_changes_nothing_for_the_better_fails_the_step() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Review, &[Phase::Run])]);
    led.begin("a").agent(1).collect(&[]).session(Phase::Run, 0).judge(1, Some(false));
    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::REPAIR));

    led.repair().collect(&["f"]).commit(work("a"), 1);
    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::judge(1)), "the shells of the run phase are not run again");
    led.judge(1, Some(false)).survey(&[]);

    assert_eq!(led.0.steps[0].state, StepState::Failed(thin()));
    assert_eq!(led.0.steps[0].attempts, 1);
}

#[test]
fn a_repaired_step_is_checked_as_a_whole_and_may_pass() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Review, &[Phase::Validate])]);
    led.begin("a").agent(1).collect(&[]).session(Phase::Validate, 1).repair().collect(&[]);

    led.session(Phase::Validate, 0).judge(1, Some(true)).survey(&[]);

    let step = &led.0.steps[0];
    assert_eq!((&step.state, step.validate, step.reasoning.as_deref()), (&StepState::Completed, Some(CheckResult::Pass), Some("good")));
    assert_eq!(step.repairing, Some(Failure::Exit { phase: Phase::Validate, shell: 1, code: 1 }));
}

#[test]
fn what_a_judge_said_before_a_repair_is_not_what_it_says_after_it() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Review, &[])]);

    led.begin("a").agent(1).collect(&[]).judge(1, Some(false)).repair().collect(&[]).judge(1, None).judge(2, None);

    let step = &led.0.steps[0];
    assert_eq!((step.validate, step.reasoning.as_deref()), (Some(CheckResult::Inconclusive), None));
    assert_eq!(step.repairing, Some(thin()));
}

#[test]
fn a_conversation_that_is_not_known_any_more_is_begun_afresh_once() {
    let mut led = Led::new(Records::State, vec![StepPlan { agents: 1, ..plan("a", &[]) }]);
    led.begin("a").lose(AGENT);

    led.end(AGENT, agent_report(SessionEnd::Refused, false), None);
    assert_eq!(led.0.owes(), Owed::OpenSession(0, AGENT));
    led.end(AGENT, agent_report(SessionEnd::Refused, false), None);

    assert_eq!(led.0.owes(), Owed::Collect(0));
    assert!(matches!(led.0.steps[0].state, StepState::Failing(Failure::NoResponse { .. })));
}

#[test]
fn an_agent_that_somebody_killed_goes_on_once_and_has_crashed_the_next_time() {
    let killed = |end: SessionEnd, responded| SessionReport { killed_by: Some(9), ..agent_report(end, responded) };
    let crashed = || SessionEnd::Crashed { reason: "it is gone".into() };
    let mut led = Led::new(Records::State, vec![judged(Severity::Review, &[])]);
    led.begin("a").end(AGENT, killed(crashed(), true), None);
    assert_eq!((led.0.owes(), led.0.steps[0].attempts), (Owed::OpenSession(0, AGENT), 2));
    led.end(AGENT, killed(crashed(), true), None);
    assert_eq!((led.0.owes(), led.0.steps[0].attempts), (Owed::Collect(0), 2));

    led.collect(&[]).judge(1, Some(false)).end(Task::REPAIR, killed(crashed(), true), None);
    assert_eq!((led.0.owes(), led.0.steps[0].attempts), (Owed::OpenSession(0, Task::REPAIR), 3));

    // One that had not answered has nothing to go on with.
    let mut led = Led::new(Records::State, vec![judged(Severity::Review, &[])]);
    led.begin("a").end(AGENT, killed(crashed(), false), None);
    assert_eq!(led.0.owes(), Owed::Collect(0));
}

fn mute() -> SessionReport {
    agent_report(SessionEnd::Refused, false)
}

#[test]
fn a_judge_that_gave_no_answer_fails_the_step_and_is_the_only_one_to_be_asked_again() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Warn, &[]), plan("b", &[])]);
    led.begin("a").agent(1).collect(&[]).end(Task::judge(1), mute(), None).survey(&[]).over();
    let step = &led.0.steps[0];
    assert_eq!((step.validate, step.unjudged), (Some(CheckResult::Inconclusive), Some(Unjudged::Unknown)));
    assert!(matches!(step.state, StepState::Failed(Failure::NoResponse { .. })));

    led.resume();
    assert_eq!((led.0.owes(), led.0.steps[0].attempts), (Owed::OpenSession(0, Task::judge(1)), 2));
    led.judge(1, Some(true)).survey(&[]);

    assert_eq!((&led.0.steps[0].state, led.0.owes()), (&StepState::Completed, Owed::Begin(1)));
    assert_eq!(led.0.steps[0].verdicts.len(), 1);
}

#[test]
fn work_that_somebody_touched_since_its_judge_gave_no_answer_is_begun_again() {
    let failed = || {
        let mut led = Led::new(Records::State, vec![judged(Severity::Warn, &[])]);
        led.begin("a").agent(1).collect(&[]).end(Task::judge(1), mute(), None).survey(&[]).over();
        led
    };
    let resumed = |head, accepted: Vec<RepoPath>| RunEvent::Resumed { head, accepted, snapshot: None, directive: None, last_sign: None };

    let (mut moved, mut changed) = (failed(), failed());
    moved.apply(resumed(Some(Oid("8".repeat(40))), Vec::new()));
    let head = changed.0.head.clone();
    changed.apply(resumed(head, vec![RepoPath::new("f")]));

    assert_eq!((moved.0.owes(), changed.0.owes()), (Owed::Begin(0), Owed::Begin(0)));
}

#[test]
fn the_time_of_a_step_is_that_between_its_begin_and_its_end_without_what_it_rested() {
    let mut run = Run::start(Timestamp(0), started(Records::State, vec![plan("a", &[Phase::Run])]));
    let session = SessionId::from_bits(1);
    let opened = |session: &SessionId| RunEvent::SessionOpened {
        session: session.clone(),
        phase: Phase::Run,
        work: Work::Shells,
        evidence: None,
        known: Vec::new(),
    };
    let resumed = |last_sign| RunEvent::Resumed { head: None, accepted: Vec::new(), snapshot: None, directive: None, last_sign };
    let again = SessionId::from_bits(2);
    for (at, event) in [
        (100, RunEvent::StepBegan { step: id("a"), baseline: None }),
        (100, opened(&session)),
        // Its driver dies at 150, which its host survives until 300; somebody goes on at 1,000.
        (1_000, resumed(Some(Timestamp(300)))),
        (1_010, RunEvent::SessionLost { session, ended_orphans: 2 }),
        (1_010, RunEvent::RestorePlanned { salvage: None, paths: Vec::new() }),
        (1_020, RunEvent::Restored),
        (1_020, opened(&again)),
        (1_030, RunEvent::Halted { reason: HaltReason::Interrupted }),
    ] {
        run.apply(Timestamp(at), event).unwrap();
    }
    assert_eq!(run.steps[0].worked_millis(run.last_event()), Some(230));
    assert_eq!((run.steps[0].sessions[0].orphans_of_lost, run.steps[0].attempts_made()), (2, 2));

    run.apply(Timestamp(5_000), resumed(None)).unwrap();
    run.apply(Timestamp(5_010), RunEvent::SessionEnded { session: again, report: Box::new(report(0)), verdict: None }).unwrap();
    run.apply(Timestamp(5_010), RunEvent::Surveyed { changed: Vec::new(), commits: Vec::new(), failure: None }).unwrap();

    assert_eq!(run.steps[0].worked_millis(Timestamp(9_999)), Some(240));
}

#[test]
fn a_step_without_an_answer_fails_although_its_shells_are_lost_on_the_way() {
    let mut led = Led::new(Records::State, vec![StepPlan { agents: 1, ..plan("a", &[Phase::Run, Phase::Validate]) }]);
    led.begin("a").end(AGENT, agent_report(SessionEnd::Refused, false), None).collect(&[]);

    led.lose(Task::shells(Phase::Run)).restore().session(Phase::Run, 0).survey(&[]);

    assert!(matches!(led.0.steps[0].state, StepState::Failed(Failure::NoResponse { .. })), "{:?}", led.0.steps[0].state);
}

#[test]
fn what_agents_wrote_as_outputs_outlives_the_repetition_of_the_shells() {
    let with = |name: &str, report: SessionReport| SessionReport { outputs: [(name.to_owned(), "1".to_owned())].into(), ..report };
    let mut led = Led::new(Records::State, vec![StepPlan { agents: 1, ..retrying("a", &[Phase::Run], 1) }]);
    led.begin("a").end(AGENT, with("of-agent", agent_report(SessionEnd::Completed, true)), None).collect(&[]);
    led.end(Task::shells(Phase::Run), with("of-shell", crate::fixtures::report(1)), None);
    let Owed::PlanRetry { failure, .. } = led.0.owes() else { panic!("{:?}", led.0.owes()) };

    led.apply(RunEvent::RetryPlanned { failure, until: Timestamp(9) }).apply(RunEvent::RetryBegan);

    assert_eq!(led.0.steps[0].outputs.keys().collect::<Vec<_>>(), ["of-agent"]);
    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::shells(Phase::Run)));
}

#[test]
fn a_limit_parks_the_same_try_and_counts_nothing() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Abort, &[])]);
    led.begin("a").agent(1).collect(&[]).judge(1, None).end(Task::judge(2), limit(false), None);

    let Owed::Park(reason) = led.0.owes() else { panic!("{:?}", led.0.owes()) };
    assert!(matches!(reason, HaltReason::Limited { until: Some(Timestamp(99)), .. }));
    led.apply(RunEvent::Halted { reason }).resume();

    assert_eq!(led.0.owes(), Owed::OpenSession(0, Task::judge(2)));
    assert_eq!(led.0.steps[0].attempts, 1);
}

#[test]
fn a_step_that_asks_does_so_after_its_precheck_and_before_the_first_commit() {
    let asks = StepPlan { approve: Some("ship it?".into()), ..plan("a", &[Phase::Precheck, Phase::Run]) };
    let mut led = Led::new(Records::Git, vec![asks]);
    led.begin("a").session(Phase::Precheck, 0);
    let question = HaltReason::Approval { step: id("a"), question: "ship it?".into() };
    assert_eq!(led.0.owes(), Owed::Park(question.clone()));
    led.apply(RunEvent::Halted { reason: question.clone() });

    led.resume();
    assert_eq!(led.0.owes(), Owed::Park(question), "going on is no answer");
    led.apply(RunEvent::Answered { step: id("a"), answer: Answer::Approve, message: None });

    assert_eq!(led.0.owes(), Owed::Commit(CommitPurpose::Start, Vec::new()));
    let again = RunEvent::Answered { step: id("a"), answer: Answer::Reject, message: None };
    assert!(led.0.apply(Timestamp(2), again).is_err(), "it was answered");
}

#[test]
fn a_skipping_precheck_asks_nobody() {
    let mut led = Led::new(Records::State, vec![StepPlan { approve: Some("?".into()), ..plan("a", &[Phase::Precheck, Phase::Run]) }]);

    led.begin("a").session(Phase::Precheck, 75);

    assert_eq!(led.0.owes(), Owed::Survey(0));
}

#[test]
fn a_rejected_step_fails_without_having_run() {
    let mut led = Led::new(Records::State, vec![StepPlan { approve: Some("?".into()), agents: 1, ..plan("a", &[Phase::Run]) }]);
    led.begin("a");

    led.apply(RunEvent::Answered { step: id("a"), answer: Answer::Reject, message: Some("no".into()) }).survey(&[]);

    assert_eq!(led.0.steps[0].state, StepState::Failed(Failure::Rejected { message: Some("no".into()) }));
    assert!(led.0.steps[0].sessions.is_empty());
    led.over().resume().begin("a");
    assert!(matches!(led.0.owes(), Owed::Park(HaltReason::Approval { .. })), "who resumes is asked again");
}

/// Two steps whose judges reached no verdict, and one that completed between them.
fn inconclusive(records: Records) -> Led {
    let judged = |name: &str| StepPlan { judged: true, ..plan(name, &[]) };
    let mut led = Led::new(records, vec![judged("a"), plan("b", &[]), judged("c")]);
    let git = records == Records::Git;
    led.begin("a");
    if git {
        led.commit(CommitPurpose::Start, 1);
    }
    for name in ["a", "b", "c"] {
        match name {
            "a" => led.judge(1, None).judge(2, None).survey(&[]),
            "b" => led.begin("b").survey(&[]),
            _ => led.begin("c").judge(1, None).judge(2, None).survey(&[]),
        };
        if git {
            led.commit(CommitPurpose::Step(id(name)), 2);
        }
    }
    if git {
        led.commit(CommitPurpose::End, 3);
    }
    led.over();
    led
}

#[test]
fn judging_again_asks_for_each_missing_verdict_and_records_the_new_end() {
    let mut led = inconclusive(Records::Git);
    assert_eq!(led.0.position, Position::Ended(Outcome::Inconclusive));

    led.apply(RunEvent::RejudgeAsked);
    assert_eq!((led.0.steps[0].unjudged, led.0.steps[0].validate), (None, None));
    led.judge(1, Some(true));
    assert_eq!(led.0.owes(), Owed::OpenSession(2, Task::judge(1)));
    led.judge(1, None).judge(2, Some(true));

    assert_eq!(led.0.position, Position::Closing { outcome: Outcome::Completed, commit: LastCommit::Due });
    led.commit(CommitPurpose::End, 4).over();
    assert!(led.0.apply(Timestamp(3), RunEvent::RejudgeAsked).is_err(), "there is nothing left to judge");
}

#[test]
fn judging_again_without_a_verdict_stays_inconclusive() {
    let mut led = inconclusive(Records::State);

    led.apply(RunEvent::RejudgeAsked).judge(1, Some(true)).judge(1, None).judge(2, None).over();

    assert_eq!(led.0.position, Position::Ended(Outcome::Inconclusive));
}

#[test]
fn every_step_that_judging_again_failed_is_begun_again_at_a_resume() {
    let mut led = inconclusive(Records::State);
    led.apply(RunEvent::RejudgeAsked).judge(1, Some(false)).judge(1, Some(false)).over();
    assert_eq!(led.0.position, Position::Ended(Outcome::Failed));

    led.resume().begin("a").judge(1, Some(true)).survey(&[]);

    assert_eq!(led.0.owes(), Owed::Begin(2));
}

#[test]
fn a_negative_verdict_of_judging_again_is_not_repaired() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Review, &[])]);
    led.begin("a").agent(1).collect(&[]).judge(1, None).judge(2, None).survey(&[]).over();

    led.apply(RunEvent::RejudgeAsked).judge(1, Some(false));

    assert_eq!(led.propose().0.owes(), Owed::End(Outcome::Failed));
}

#[test]
fn a_new_definition_has_its_agents_do_the_work_of_an_undecided_step_anew() {
    let asks = StepPlan { approve: Some("?".into()), ..judged(Severity::Abort, &[Phase::Run]) };
    let mut led = Led::new(Records::State, vec![asks.clone()]);
    led.begin("a").apply(RunEvent::Answered { step: id("a"), answer: Answer::Approve, message: None });
    led.agent(1).collect(&[]);

    led.apply(RunEvent::Redefined { snapshot: "1".into(), steps: vec![StepPlan { approve: None, ..asks }] }).begin("a");

    assert_eq!(led.0.owes(), Owed::OpenSession(0, AGENT));
    assert_eq!(led.0.steps[0].approval, None);
}

#[test]
fn a_new_definition_amid_judging_again_begins_what_had_no_verdict_anew() {
    let mut led = inconclusive(Records::State);
    let steps = led.0.started.steps.clone();
    led.apply(RunEvent::RejudgeAsked);

    led.apply(RunEvent::Redefined { snapshot: "1".into(), steps }).begin("a").judge(1, Some(true));

    assert_eq!(led.0.owes(), Owed::Survey(0), "it is a step like any other");
}

fn apart(steps: Vec<StepPlan>) -> Led {
    Led(Run::start(Timestamp(0), isolated(started(Records::State, steps))))
}

#[test]
fn nothing_of_an_isolated_run_begins_before_its_worktree_is_there() {
    let mut led = apart(vec![plan("a", &[])]);
    let begun = RunEvent::StepBegan { step: id("a"), baseline: None };
    assert_eq!(led.0.owes(), Owed::MakeWorktree);
    assert!(led.0.apply(Timestamp(1), begun).is_err());

    led.apply(RunEvent::WorktreeMade);

    assert_eq!(led.0.owes(), Owed::Begin(0));
    assert!(led.0.apply(Timestamp(1), RunEvent::WorktreeMade).is_err());
}

#[test]
fn a_completed_run_waits_until_it_can_be_merged() {
    let mut led = apart(vec![plan("a", &[])]);
    led.apply(RunEvent::WorktreeMade).begin("a").survey(&[]);
    let ended = RunEvent::Ended { outcome: Outcome::Completed, expires: None, with_warnings: false };
    let reason = HaltReason::NotMerged { branch: Branch::Named("proctor/run".into()), reason: "conflict in f".into() };
    assert_eq!(led.0.owes(), Owed::Merge);
    assert!(led.0.apply(Timestamp(1), ended).is_err());

    led.apply(RunEvent::Halted { reason }).resume();
    assert_eq!(led.0.owes(), Owed::Merge);
    led.apply(RunEvent::Merged { commit: Oid("9".repeat(40)) });

    assert_eq!(led.0.owes(), Owed::End(Outcome::Completed));
}

#[test]
fn a_failed_run_is_never_merged_and_an_inconclusive_one_only_when_it_is_wanted() {
    let merged = RunEvent::Merged { commit: Oid("9".repeat(40)) };
    let mut failed = apart(vec![plan("a", &[Phase::Run])]);
    failed.apply(RunEvent::WorktreeMade).begin("a").session(Phase::Run, 1).survey(&[]).over();
    assert!(failed.0.apply(Timestamp(1), merged.clone()).is_err());

    let mut open = apart(vec![StepPlan { judged: true, ..plan("a", &[]) }]);
    open.apply(RunEvent::WorktreeMade).begin("a").judge(1, None).judge(2, None).survey(&[]);
    assert_eq!(open.0.owes(), Owed::End(Outcome::Inconclusive));
    open.over().apply(merged.clone());

    assert!(open.0.apply(Timestamp(1), merged).is_err(), "once is enough");
    open.apply(RunEvent::RejudgeAsked).judge(1, Some(true));
    assert_eq!(open.0.owes(), Owed::End(Outcome::Completed), "it is merged already");
}

#[test]
fn a_verdict_of_a_replaced_judge_is_refused() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Abort, &[])]);
    led.begin("a").agent(1).collect(&[]);
    let old = led.open(Task::judge(1));
    led.apply(RunEvent::SessionLost { session: old.clone(), ended_orphans: 0 }).open(Task::judge(1));

    let verdict = Some(Verdict { passed: true, reasoning: "good".into() });
    let report = Box::new(agent_report(SessionEnd::Completed, true));
    let late = led.0.apply(Timestamp(5), RunEvent::SessionEnded { session: old, report, verdict });

    assert!(late.is_err());
}

#[test]
fn what_a_judge_looks_at_begins_before_the_first_attempt_whose_work_is_still_there() {
    let zero = Some(Oid("0".repeat(40)));
    let mut led = Led::new(Records::State, vec![judged(Severity::Abort, &[])]);
    led.begin("a").agent(1).collect(&["f"]).commit(work("a"), 1).judge(1, Some(false)).survey(&[]).over();
    led.resume().begin("a");
    assert_eq!((&led.0.steps[0].judged_from, &led.0.steps[0].baseline), (&Some(zero.clone()), &Some(Oid(format!("{:040x}", 1)))));

    led.agent(1).collect(&[]).judge(1, Some(false)).survey(&[]).over();
    let foreign = Some(Oid("6".repeat(40)));
    led.apply(RunEvent::Resumed { head: foreign, accepted: Vec::new(), snapshot: None, directive: None, last_sign: None }).begin("a");

    assert_eq!(led.0.steps[0].judged_from, Some(zero), "what a person took in does not hide what the step did before");
}

#[test]
fn work_that_can_not_be_judged_again_is_as_unjudged_as_it_was() {
    let mut led = Led::new(Records::State, vec![judged(Severity::Abort, &[])]);
    led.begin("a").agent(1).collect(&[]).judge(1, None).judge(2, None).survey(&[]).over();

    led.apply(RunEvent::RejudgeAsked);
    let Owed::OpenSession(0, task) = led.0.owes() else { panic!("{:?}", led.0.owes()) };
    let session = SessionId::from_bits(77);
    led.apply(RunEvent::SessionOpened { session: session.clone(), phase: task.phase, work: task.work, evidence: None, known: Vec::new() });
    let report = SessionReport { end: SessionEnd::Refused, ..report(0) };
    led.apply(RunEvent::SessionEnded { session, report: Box::new(report), verdict: None }).over();

    assert_eq!(led.0.position, Position::Ended(Outcome::Inconclusive));
    led.apply(RunEvent::RejudgeAsked);
}
