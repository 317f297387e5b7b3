//! Plays the world for a run: answers what it owes with any event that could come back.

use std::collections::BTreeMap;

use proctor_domain::procedure::{
    CommitPurpose, Failure, HaltReason, Outcome, Owed, Records, RetrySpec, Run, RunEvent, RunStarted, Severity, SkipReason, StepId,
    StepPlan,
};
use proctor_domain::session::{Excerpt, Phase, SessionEnd, SessionReport, ShellEnd};
use proctor_domain::{Branch, CardDuration, Expiry, Oid, RepoPath, SessionId, Timestamp};

/// A source of choices: each call answers below `among`, from the bytes of a test case. After those, all goes well.
pub(crate) struct Choices {
    bytes: Vec<u8>,
    next: usize,
}

impl Choices {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, next: 0 }
    }

    pub(crate) fn below(&mut self, among: u8) -> u8 {
        let byte = self.bytes.get(self.next).copied().unwrap_or(7);
        self.next += 1;
        byte % among
    }
}

pub(crate) fn report(exit_code: i32) -> SessionReport {
    SessionReport {
        end: SessionEnd::Completed,
        shells: vec![ShellEnd { exit_code, duration_ms: 1 }],
        stdout: Excerpt::default(),
        stderr: Excerpt::default(),
        outputs: BTreeMap::new(),
        output_error: None,
        ended_orphans: 0,
        lingering: Vec::new(),
        log_note: None,
        duration_ms: 1,
    }
}

pub(crate) fn plan(id: &str, phases: &[Phase]) -> StepPlan {
    StepPlan { id: StepId::try_from(id.to_owned()).unwrap(), phases: phases.to_vec(), severity: Severity::Abort, retry: None }
}

pub(crate) fn retrying(id: &str, phases: &[Phase], max: u32) -> StepPlan {
    StepPlan { retry: Some(RetrySpec { max, backoff: CardDuration::from_millis(1_000) }), ..plan(id, phases) }
}

pub(crate) fn started(records: Records, steps: Vec<StepPlan>) -> RunStarted {
    RunStarted {
        procedure: "p".into(),
        card: RepoPath::new("proctor/procedures/p.procedure.card"),
        snapshot: "0".into(),
        steps,
        records,
        directive: None,
        inputs: BTreeMap::new(),
        only: None,
        worktree: RepoPath::new("/r"),
        card_root: RepoPath::new(""),
        branch: Branch::Named("main".into()),
        head: Some(Oid("0".repeat(40))),
        folder: (records == Records::Git).then(|| RepoPath::new("proctor/runs/p")),
        foreign: Vec::new(),
        foreign_snapshot: None,
        run_expiry: Expiry::Never,
        failed_run_expiry: Expiry::Never,
    }
}

/// What a simulated run went through.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) events: Vec<(Timestamp, RunEvent)>,
    pub(crate) run: Run,
}

/// Plays a run until it owes nothing, with every choice of the world taken from `choices`.
pub(crate) fn play(started: RunStarted, choices: &mut Choices) -> Played {
    let mut events = vec![(Timestamp(0), RunEvent::Started(Box::new(started.clone())))];
    let mut run = Run::start(Timestamp(0), started);
    for tick in 1..400 {
        let answers = answer(&run, tick, choices);
        if answers.is_empty() {
            return Played { events, run };
        }
        for event in answers {
            run.apply(Timestamp(tick), event.clone()).unwrap();
            events.push((Timestamp(tick), event));
        }
    }
    panic!("a run of a few steps did not end within 400 events: {:?}", run.position);
}

fn answer(run: &Run, tick: i64, choices: &mut Choices) -> Vec<RunEvent> {
    let session = SessionId::from_bits(u64::try_from(tick).unwrap());
    match run.owes() {
        Owed::Begin(index) => begin(run, index, choices),
        Owed::OpenSession(_, phase) => vec![RunEvent::SessionOpened { session, phase }],
        Owed::Drive(session) => vec![drive(session, choices)],
        Owed::Restore(_) => vec![RunEvent::RestorePlanned { salvage: None, paths: Vec::new() }, RunEvent::Restored],
        Owed::PlanRetry { failure, .. } => vec![RunEvent::RetryPlanned { failure, until: Timestamp(tick) }],
        Owed::Wait(_) => vec![RunEvent::RetryBegan],
        Owed::Survey(_) => vec![survey(choices)],
        Owed::Commit(purpose, _) => commit(run, purpose, tick, choices),
        Owed::End(outcome) => vec![RunEvent::Ended { outcome, expires: None }],
        Owed::Nothing => Vec::new(),
    }
}

fn begin(run: &Run, index: usize, choices: &mut Choices) -> Vec<RunEvent> {
    let step = run.steps[index].plan.id.clone();
    match choices.below(8) {
        0 => vec![RunEvent::StepSkipped { step, reason: SkipReason::Condition }],
        1 => vec![RunEvent::StepRejected { step, failure: Failure::Template { key: "when".into(), reason: "x".into() } }],
        2 => vec![
            RunEvent::Halted { reason: HaltReason::Interrupted },
            RunEvent::Resumed { head: run.head.clone(), accepted: Vec::new(), snapshot: None, directive: None },
        ],
        _ => vec![RunEvent::StepBegan { step, baseline: run.head.clone() }],
    }
}

fn drive(session: SessionId, choices: &mut Choices) -> RunEvent {
    let end = match choices.below(8) {
        0 => return RunEvent::SessionLost { session },
        1 => SessionReport { end: SessionEnd::Timeout, ..report(0) },
        2 => report(75),
        3 => report(1),
        _ => report(0),
    };
    RunEvent::SessionEnded { session, report: Box::new(end) }
}

fn survey(choices: &mut Choices) -> RunEvent {
    let changed = if choices.below(2) == 0 { Vec::new() } else { vec![RepoPath::new("file")] };
    RunEvent::Surveyed { changed, commits: Vec::new(), failure: None }
}

fn commit(run: &Run, purpose: CommitPurpose, tick: i64, choices: &mut Choices) -> Vec<RunEvent> {
    let planned = RunEvent::CommitPlanned { purpose: purpose.clone(), parent: run.head.clone() };
    let refused = matches!(purpose, CommitPurpose::Step(_)) && choices.below(8) == 0;
    let end = if refused {
        RunEvent::CommitRefused { purpose, failure: Failure::HookRefused { output: "no".into() } }
    } else {
        RunEvent::Committed { purpose, commit: Oid(format!("{tick:040x}")) }
    };
    vec![planned, end]
}

/// The outcome that a run's end must have, worked out from its events alone, another way than [`Run`] does.
pub(crate) fn outcome_by_events(events: &[(Timestamp, RunEvent)], run: &Run) -> Outcome {
    let committed_or_surveyed = events.iter().any(|(_, event)| matches!(event, RunEvent::StepBegan { .. }));
    let failed = run.steps.iter().any(|step| matches!(step.state, proctor_domain::procedure::StepState::Failed(_)));
    let completed = run.steps.iter().any(|step| matches!(step.state, proctor_domain::procedure::StepState::Completed));
    match (failed, completed && committed_or_surveyed) {
        (true, _) => Outcome::Failed,
        (false, true) => Outcome::Completed,
        (false, false) => Outcome::Skipped,
    }
}
