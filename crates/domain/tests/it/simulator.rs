//! Plays the world for a run: answers what it owes with any event that could come back.

use std::fmt;

use proctor_domain::procedure::{
    Answer, CommitPurpose, Evidence, Failure, HaltReason, Outcome, Owed, Position, Run, RunEvent, RunStarted, SkipReason, Task, Verdict,
};
use proctor_domain::session::{SessionEnd, SessionReport, Work};
use proctor_domain::{Branch, Oid, RepoPath, SessionId, Timestamp};

use crate::fixtures::{agent_report, limit, report};

/// A source of choices: each call answers below `among`, from the bytes of a test case. After those it answers the
/// highest number, which stands for a world in which all goes well.
pub(crate) struct Choices {
    bytes: Vec<u8>,
    next: usize,
}

impl Choices {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, next: 0 }
    }

    fn below(&mut self, among: u8) -> u8 {
        self.next += 1;
        self.bytes.get(self.next - 1).map_or(among - 1, |byte| byte % among)
    }

    /// One time in `among`, and never once the choices are used up.
    fn rarely(&mut self, among: u8) -> bool {
        self.below(among) == 0
    }
}

/// What a simulated run went through.
pub(crate) struct Played {
    pub(crate) events: Vec<(Timestamp, RunEvent)>,
    pub(crate) run: Run,
}

impl fmt::Debug for Played {
    /// The plans and the events: the rest follows from them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.run.started.steps.iter().try_for_each(|step| writeln!(formatter, "{step:?}"))?;
        self.events[1..].iter().try_for_each(|(_, event)| writeln!(formatter, "{event:?}"))
    }
}

impl Played {
    /// The run before each event after the first, that event, and the run after it.
    pub(crate) fn moves(&self) -> Vec<(Run, RunEvent, Run)> {
        let mut moves: Vec<(Run, RunEvent, Run)> = Vec::new();
        let mut before = Run::replay(self.events[..1].iter().cloned()).unwrap().unwrap();
        for (at, event) in &self.events[1..] {
            let mut after = before.clone();
            after.apply(*at, event.clone()).unwrap();
            moves.push((std::mem::replace(&mut before, after.clone()), event.clone(), after));
        }
        moves
    }
}

/// Plays a run until nobody goes on with it, with every choice of the world taken from `choices`.
pub(crate) fn play(started: RunStarted, choices: &mut Choices) -> Played {
    let mut events = vec![(Timestamp(0), RunEvent::Started(Box::new(started.clone())))];
    let mut run = Run::start(Timestamp(0), started);
    for tick in 1..2_000 {
        let answers = answer(&run, tick, choices);
        if answers.is_empty() {
            return Played { events, run };
        }
        for event in answers {
            run.apply(Timestamp(tick), event.clone()).unwrap_or_else(|error| panic!("{error}\n{event:?}"));
            events.push((Timestamp(tick), event));
        }
    }
    panic!("a run of a few steps did not end: {:?}", run.position);
}

fn answer(run: &Run, tick: i64, choices: &mut Choices) -> Vec<RunEvent> {
    match run.owes() {
        Owed::MakeWorktree => vec![RunEvent::WorktreeMade],
        Owed::Begin(index) => begin(run, index, choices),
        Owed::OpenSession(index, task) => {
            let session = SessionId::from_bits(u64::try_from(tick).unwrap());
            vec![RunEvent::SessionOpened {
                session,
                phase: task.phase,
                work: task.work,
                evidence: evidence(run, index, task, tick),
                known: Vec::new(),
            }]
        }
        Owed::Drive(session) => vec![drive(run, session, choices)],
        Owed::Restore(_) => vec![RunEvent::RestorePlanned { salvage: None, paths: Vec::new() }, RunEvent::Restored],
        Owed::PlanRetry { failure, .. } => vec![RunEvent::RetryPlanned { failure, until: Timestamp(tick) }],
        Owed::Wait(_) => vec![RunEvent::RetryBegan],
        Owed::Collect(_) => {
            let (changed, commits) = (changes(choices), own_commits(tick, choices));
            let failure = choices.rarely(9).then(|| Failure::ChangedGit { what: vec!["core.hooksPath".into()] });
            vec![RunEvent::Collected { changed, commits, failure }]
        }
        Owed::Survey(_) => {
            let (changed, commits) = (changes(choices), own_commits(tick, choices));
            let failure = choices.rarely(9).then(|| Failure::Uncommittable { reason: "a nested repository".into() });
            vec![RunEvent::Surveyed { changed, commits, failure }]
        }
        Owed::Park(reason) => vec![RunEvent::Halted { reason }],
        Owed::Propose => vec![RunEvent::Proposed { records: Vec::new(), obstacle: None }],
        Owed::Merge => merge(run, tick, choices),
        Owed::Commit(purpose, _) => commit(run, purpose, tick, choices),
        Owed::End(outcome) => vec![RunEvent::Ended { outcome, expires: None, with_warnings: false }],
        Owed::Nothing if run.halt.is_some() => go_on(run, tick, choices),
        Owed::Nothing => after_the_end(run, tick, choices),
    }
}

fn oid(number: i64) -> Oid {
    Oid(format!("{number:040x}"))
}

/// What a judge looks at: the step's work, or, when it is asked again, what it was then.
fn evidence(run: &Run, index: usize, task: Task, tick: i64) -> Option<Evidence> {
    let record = &run.steps[index];
    match task.work {
        Work::Judge(_) if record.rejudge => record.evidence.clone(),
        Work::Judge(_) => Some(Evidence { from: record.judged_from.clone().flatten(), to: oid(tick) }),
        Work::Shells | Work::Agent(_) | Work::Repair => None,
    }
}

fn begin(run: &Run, index: usize, choices: &mut Choices) -> Vec<RunEvent> {
    let step = run.steps[index].plan.id.clone();
    match choices.below(12) {
        0 => vec![RunEvent::StepSkipped { step, reason: SkipReason::Condition }],
        1 => vec![RunEvent::StepRejected { step, failure: Failure::Template { key: "when".into(), reason: "x".into() } }],
        2 => vec![RunEvent::Halted { reason: HaltReason::Interrupted }],
        _ => vec![RunEvent::StepBegan { step, baseline: run.head.clone() }],
    }
}

/// A person, or a reset, lets a halted run go on. An approval may come before that, be refused, or not come at all.
fn go_on(run: &Run, tick: i64, choices: &mut Choices) -> Vec<RunEvent> {
    let head = if choices.rarely(12) { Some(oid(tick)) } else { run.head.clone() };
    let resumed = RunEvent::Resumed { head, accepted: Vec::new(), snapshot: None, directive: None, last_sign: None };
    let Some(HaltReason::Approval { step, .. } | HaltReason::Question { step, .. }) = run.halt.clone() else { return vec![resumed] };
    match choices.below(6) {
        0 => vec![resumed],
        1 => vec![RunEvent::Answered { step, answer: Answer::Reject, message: Some("not today".into()) }, resumed],
        _ => vec![RunEvent::Answered { step, answer: Answer::Approve, message: None }, resumed],
    }
}

fn after_the_end(run: &Run, tick: i64, choices: &mut Choices) -> Vec<RunEvent> {
    let goes_on = choices.rarely(2);
    match run.position {
        Position::Ended(Outcome::Failed) if goes_on => {
            vec![RunEvent::Resumed { head: run.head.clone(), accepted: Vec::new(), snapshot: None, directive: None, last_sign: None }]
        }
        Position::Ended(Outcome::Inconclusive) if run.awaits_merge() && choices.rarely(3) => vec![RunEvent::Merged { commit: oid(tick) }],
        Position::Ended(Outcome::Inconclusive) if goes_on => vec![RunEvent::RejudgeAsked],
        Position::Ended(_) => Vec::new(),
        Position::Between | Position::InStep(..) | Position::Closing { .. } => panic!("stuck: {:?}", run.position),
    }
}

fn drive(run: &Run, session: SessionId, choices: &mut Choices) -> RunEvent {
    let work = run.current_step().unwrap().sessions.last().unwrap().work;
    if choices.rarely(10) {
        return RunEvent::SessionLost { session, ended_orphans: 0 };
    }
    if choices.rarely(12) {
        return RunEvent::Halted { reason: HaltReason::Interrupted };
    }
    let (report, verdict) = match work {
        Work::Shells => (shells(choices), None),
        Work::Agent(_) | Work::Repair => (agent(choices), None),
        Work::Judge(_) => judge(choices),
    };
    RunEvent::SessionEnded { session, report: Box::new(report), verdict }
}

fn shells(choices: &mut Choices) -> SessionReport {
    match choices.below(8) {
        0 => SessionReport { end: SessionEnd::Interrupted, ..report(130) },
        1 => SessionReport { end: SessionEnd::Timeout, ..report(0) },
        2 => report(75),
        3 => report(1),
        _ => report(0),
    }
}

fn agent(choices: &mut Choices) -> SessionReport {
    match choices.below(16) {
        0 => agent_report(SessionEnd::Interrupted, true),
        1 => limit(true),
        2 => limit(false),
        3 => agent_report(SessionEnd::Refused, false),
        4 => agent_report(SessionEnd::Crashed { reason: "no program".into() }, false),
        5 => agent_report(SessionEnd::TurnLimit, true),
        6 => agent_report(SessionEnd::Budget, true),
        7 => agent_report(SessionEnd::Timeout, true),
        8 => agent_report(SessionEnd::Silent, true),
        9 => agent_report(SessionEnd::NoResult, true),
        10 => SessionReport { output_error: Some("line 3 has no `=`".into()), ..agent_report(SessionEnd::Completed, true) },
        11 => asks(),
        12 => SessionReport { killed_by: Some(9), ..agent_report(SessionEnd::Crashed { reason: "it is gone".into() }, true) },
        _ => agent_report(SessionEnd::Completed, true),
    }
}

fn asks() -> SessionReport {
    let mut report = agent_report(SessionEnd::Completed, true);
    if let Some(agent) = &mut report.agent {
        agent.told.question = Some("which one?".into());
    }
    report
}

fn judge(choices: &mut Choices) -> (SessionReport, Option<Verdict>) {
    let said = |passed| Some(Verdict { passed, reasoning: if passed { "good" } else { "thin" }.into() });
    match choices.below(9) {
        0..=1 => (agent(choices), None),
        2..=3 => (agent_report(SessionEnd::TurnLimit, true), None),
        4 => (agent_report(SessionEnd::Completed, true), None),
        5..=6 => (agent_report(SessionEnd::Completed, true), said(false)),
        _ => (agent_report(SessionEnd::Completed, true), said(true)),
    }
}

fn changes(choices: &mut Choices) -> Vec<RepoPath> {
    if choices.rarely(2) { Vec::new() } else { vec![RepoPath::new("file")] }
}

fn own_commits(tick: i64, choices: &mut Choices) -> Vec<Oid> {
    if choices.rarely(4) { vec![oid(tick + 1_000_000)] } else { Vec::new() }
}

fn merge(run: &Run, tick: i64, choices: &mut Choices) -> Vec<RunEvent> {
    if choices.rarely(3) {
        let branch = Branch::Named("proctor/run".into());
        return vec![RunEvent::Halted { reason: HaltReason::NotMerged { branch, reason: "the checkout is dirty".into() } }];
    }
    assert!(matches!(run.position, Position::Closing { outcome: Outcome::Completed, .. }));
    vec![RunEvent::Merged { commit: oid(tick) }]
}

fn commit(run: &Run, purpose: CommitPurpose, tick: i64, choices: &mut Choices) -> Vec<RunEvent> {
    let planned = RunEvent::CommitPlanned { purpose: purpose.clone(), parent: run.head.clone() };
    let refused = matches!(purpose, CommitPurpose::Step(_) | CommitPurpose::Work(_)) && choices.rarely(8);
    let end = if refused {
        RunEvent::CommitRefused { purpose, failure: Failure::HookRefused { output: "no".into() } }
    } else {
        RunEvent::Committed { purpose, commit: oid(tick) }
    };
    vec![planned, end]
}
