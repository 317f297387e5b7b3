//! Makes streams of events that a real run could leave, by answering what a [`Run`] owes.

use std::collections::BTreeMap;

use proctor_domain::procedure::{
    Answer, CommitPurpose, Evidence, Failure, HaltReason, Isolated, Outcome, Owed, Position, Records, RetrySpec, Run, RunEvent, RunStarted,
    Severity, SkipReason, StepId, StepPlan, Task, Verdict,
};
use proctor_domain::session::{AgentReport, Excerpt, Phase, SessionEnd, SessionReport, ShellEnd, Spending, Told, Usage, Work};
use proctor_domain::{Branch, CardDuration, Cost, Expiry, MicroDollars, Oid, RepoPath, SessionId, Timestamp};

pub(crate) type Stream = Vec<(Timestamp, RunEvent)>;

const MOST_EVENTS: usize = 200;

/// A run's stream in which every decision is taken from `choices`, in turn and around again.
pub(crate) fn stream(choices: &[u8], records: Records) -> Stream {
    let mut simulator = Simulator { choices: choices.to_vec(), next: 0, run: None, stream: Vec::new() };
    simulator.push(started("check", records));
    while simulator.stream.len() < MOST_EVENTS && simulator.go_on() {}
    simulator.stream
}

/// A run that begins and then only changes how long it is kept: valid after any number of events.
pub(crate) fn plain_stream(length: u64) -> Stream {
    (0..length).map(|number| (Timestamp(1_000), if number == 0 { started("plain", Records::State) } else { retained(number) })).collect()
}

pub(crate) fn retained(number: u64) -> RunEvent {
    RunEvent::Retained { expires: Some(Timestamp(i64::try_from(number).unwrap())) }
}

pub(crate) fn started(procedure: &str, records: Records) -> RunEvent {
    let step = |id: &str, phases: &[Phase], agents| StepPlan {
        id: step_id(id),
        phases: phases.to_vec(),
        agents,
        judged: agents > 0,
        approve: None,
        severity: Severity::Review,
        retry: None,
    };
    let retry = Some(RetrySpec { max: 1, backoff: CardDuration::from_millis(10) });
    let asks = Some("ship \"it\"?".to_owned());
    RunEvent::Started(Box::new(RunStarted {
        procedure: procedure.to_owned(),
        card: RepoPath::new(format!("proctor/procedures/{procedure}.procedure.card")),
        snapshot: "0".repeat(64),
        steps: vec![
            step("look", &[Phase::Precheck, Phase::Run], 0),
            StepPlan { retry, ..step("build", &[Phase::Run, Phase::Validate], 1) },
            StepPlan { approve: asks, ..step("check.all", &[Phase::Validate], 0) },
        ],
        records,
        directive: Some("carefully, with \"quotes\" and\nlines".to_owned()),
        inputs: BTreeMap::from([("version".to_owned(), "1.0".to_owned())]),
        only: None,
        worktree: RepoPath::new(&b"/repository/\xff of mine"[..]),
        card_root: RepoPath::new(""),
        branch: Branch::Named("main".to_owned()),
        head: Some(oid(0)),
        folder: (records == Records::Git).then(|| RepoPath::new("proctor/runs/check_2026-01-01T0000")),
        foreign: Vec::new(),
        foreign_snapshot: None,
        run_expiry: Expiry::Never,
        failed_run_expiry: Expiry::After(CardDuration::days(90)),
        isolated: Some(Isolated { origin: RepoPath::new(&b"/repository/\xff"[..]), into: Branch::Named("main".to_owned()) }),
        engine: None,
    }))
}

pub(crate) fn step_id(id: &str) -> StepId {
    StepId::try_from(id.to_owned()).unwrap()
}

fn oid(number: usize) -> Oid {
    Oid(format!("{number:040x}"))
}

struct Simulator {
    choices: Vec<u8>,
    next: usize,
    run: Option<Run>,
    stream: Stream,
}

impl Simulator {
    fn push(&mut self, event: RunEvent) {
        let at = Timestamp(1_700_000_000_000 + i64::try_from(self.stream.len()).unwrap());
        match (&mut self.run, &event) {
            (None, RunEvent::Started(started)) => self.run = Some(Run::start(at, (**started).clone())),
            (Some(run), event) => run.apply(at, event.clone()).unwrap(),
            (None, _) => unreachable!("a stream begins with Started"),
        }
        self.stream.push((at, event));
    }

    fn choose(&mut self, of: u8) -> u8 {
        let choice = self.choices.get(self.next % self.choices.len().max(1)).copied().unwrap_or(0);
        self.next += 1;
        choice % of
    }

    /// Answers what is owed with one event; false when nobody has to do anything any more.
    fn go_on(&mut self) -> bool {
        let run = self.run.clone().unwrap();
        if run.worktree_made && run.confined.is_none() {
            self.push(RunEvent::Confined { kind: "bwrap".to_owned(), net: None, open: Vec::new() });
            return true;
        }
        if run.halt.is_some() && run.left.is_none() && self.choose(3) == 0 {
            self.push(RunEvent::LeftInTree { paths: vec![RepoPath::new("a")], snapshot: oid(9) });
            return true;
        }
        let event = match run.owes() {
            Owed::Begin(index) => self.begin(run.steps[index].plan.id.clone()),
            Owed::MakeWorktree => RunEvent::WorktreeMade,
            Owed::OpenSession(_, Task { phase, work }) => {
                let evidence = matches!(work, Work::Judge(_)).then(|| Evidence { from: Some(oid(4)), to: oid(5) });
                RunEvent::SessionOpened { session: self.session(), phase, work, evidence, known: Vec::new() }
            }
            Owed::Drive(session) => self.drive(&run, session),
            Owed::Collect(_) => self.collect(),
            Owed::Park(reason) => RunEvent::Halted { reason },
            Owed::Propose => RunEvent::Proposed { records: Vec::new(), obstacle: None },
            Owed::Merge if self.choose(4) == 0 => {
                let branch = Branch::Named("proctor/check".to_owned());
                RunEvent::Halted { reason: HaltReason::NotMerged { branch, reason: "conflict in `a`".to_owned() } }
            }
            Owed::Merge => RunEvent::Merged { commit: oid(6) },
            Owed::Restore(_) => self.restore(),
            Owed::PlanRetry { failure, .. } => RunEvent::RetryPlanned { failure, until: Timestamp(1) },
            Owed::Wait(_) => RunEvent::RetryBegan,
            Owed::Survey(_) => self.survey(),
            Owed::Commit(purpose, _) => self.commit(&run, purpose),
            Owed::End(outcome) => RunEvent::Ended { outcome, expires: self.expiry(), with_warnings: run.has_warnings() },
            Owed::Nothing => match self.after_the_end(&run) {
                Some(event) => event,
                None => return false,
            },
        };
        self.push(event);
        true
    }

    fn begin(&mut self, step: StepId) -> RunEvent {
        match self.choose(8) {
            0 => RunEvent::StepSkipped { step, reason: SkipReason::Condition },
            1 => RunEvent::StepRejected { step, failure: Failure::Template { key: "when".to_owned(), reason: "no".to_owned() } },
            _ => RunEvent::StepBegan { step, baseline: Some(oid(1)) },
        }
    }

    fn session(&self) -> SessionId {
        SessionId::from_bits(u64::try_from(self.stream.len()).unwrap())
    }

    fn drive(&mut self, run: &Run, session: SessionId) -> RunEvent {
        let work = run.current_step().and_then(|step| step.sessions.last()).map(|session| session.work).unwrap();
        let choice = self.choose(10);
        match choice {
            0 => return RunEvent::SessionLost { session, ended_orphans: 0 },
            1 => return RunEvent::Halted { reason: HaltReason::Interrupted },
            _ => {}
        }
        let (report, verdict) = match work {
            Work::Shells => (of_shells(choice), None),
            Work::Agent(_) | Work::Repair => (of_agent(choice), None),
            Work::Judge(_) => {
                let verdict = Verdict { passed: choice > 6, reasoning: "it \"works\"\n\u{1b}[1mé".to_owned() };
                (of_agent(choice), (choice > 5).then_some(verdict))
            }
        };
        RunEvent::SessionEnded { session, report: Box::new(report), verdict }
    }

    fn collect(&mut self) -> RunEvent {
        let failure = (self.choose(9) == 0).then(|| Failure::ChangedGit { what: vec!["core.fsmonitor".to_owned()] });
        let changed = if self.choose(2) == 0 { Vec::new() } else { vec![RepoPath::new(&b"\xfe"[..])] };
        RunEvent::Collected { changed, commits: vec![oid(7)], failure }
    }

    fn restore(&mut self) -> RunEvent {
        match self.choose(2) {
            0 => RunEvent::RestorePlanned { salvage: Some("refs/proctor/salvage/x".to_owned()), paths: vec![RepoPath::new("a")] },
            _ => RunEvent::Restored,
        }
    }

    fn survey(&mut self) -> RunEvent {
        let changed = if self.choose(2) == 0 { Vec::new() } else { vec![RepoPath::new("out/file"), RepoPath::new(&b"\xfe"[..])] };
        RunEvent::Surveyed { changed, commits: Vec::new(), failure: None }
    }

    fn commit(&mut self, run: &Run, purpose: CommitPurpose) -> RunEvent {
        let commit = oid(self.stream.len());
        let made = RunEvent::Committed { purpose: purpose.clone(), commit };
        if run.clone().apply(Timestamp(0), made.clone()).is_err() {
            return RunEvent::CommitPlanned { purpose, parent: Some(oid(2)) };
        }
        let refused = RunEvent::CommitRefused { purpose, failure: Failure::HookRefused { output: "no\n".to_owned() } };
        if self.choose(6) == 0 && run.clone().apply(Timestamp(0), refused.clone()).is_ok() { refused } else { made }
    }

    fn expiry(&mut self) -> Option<Timestamp> {
        (self.choose(3) != 0).then_some(Timestamp(1_800_000_000_000))
    }

    fn after_the_end(&mut self, run: &Run) -> Option<RunEvent> {
        let resumed = RunEvent::Resumed { head: Some(oid(3)), accepted: Vec::new(), snapshot: None, directive: None, last_sign: None };
        if let Some(HaltReason::Approval { step, .. } | HaltReason::Question { step, .. }) = &run.halt
            && self.choose(2) == 0
        {
            let answered = |answer| RunEvent::Answered { step: step.clone(), answer, message: Some("as said".to_owned()) };
            let answer = answered(if self.choose(4) == 0 { Answer::Reject } else { Answer::Approve });
            // Who answered already only goes on.
            return Some(if run.clone().apply(Timestamp(0), answer.clone()).is_ok() { answer } else { resumed });
        }
        match (run.halt.is_some(), &run.position) {
            (true, _) => Some(resumed),
            (false, Position::Ended(Outcome::Inconclusive)) if run.awaits_merge() && self.choose(2) == 0 => {
                Some(RunEvent::Merged { commit: oid(8) })
            }
            (false, Position::Ended(Outcome::Inconclusive)) => (self.choose(3) != 0).then_some(RunEvent::RejudgeAsked),
            (false, Position::Ended(Outcome::Failed)) => (self.choose(4) != 0).then_some(resumed),
            (false, _) => (self.choose(2) == 0).then_some(RunEvent::Retained { expires: None }),
        }
    }
}

fn of_shells(choice: u8) -> SessionReport {
    match choice {
        2 => report(SessionEnd::Interrupted, 130),
        3 => report(SessionEnd::Timeout, 137),
        4 => report(SessionEnd::Completed, 1),
        5 => report(SessionEnd::Completed, 75),
        _ => report(SessionEnd::Completed, 0),
    }
}

fn of_agent(choice: u8) -> SessionReport {
    let end = match choice {
        2 => SessionEnd::Interrupted,
        3 => SessionEnd::UsageLimit { until: Some(Timestamp(1_800_000_000_000)) },
        4 => SessionEnd::Refused,
        5 => SessionEnd::TurnLimit,
        _ => SessionEnd::Completed,
    };
    let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4 };
    let spent = |cost| Spending { model: "m-1".to_owned(), usage, cost };
    let agent = AgentReport {
        engine: "claude".parse().unwrap(),
        conversation: Some("5d1e".to_owned()),
        model: Some("m-1".to_owned()),
        responded: choice != 4,
        turns: 3,
        spent: vec![spent(Cost::Known(MicroDollars(9_440))), spent(Cost::Unknown)],
        claim: Some("done \u{0}".to_owned()),
        result: Some("{\"passed\":true}".to_owned()),
        error: (choice == 4).then(|| "401".to_owned()),
        unknown_lines: 2,
        told: Told {
            notes: vec!["slow \u{0}".to_owned()],
            blocked: (choice == 6).then(|| "no network".to_owned()),
            question: (choice == 7).then(|| "which one?".to_owned()),
            learned: None,
        },
    };
    SessionReport { shells: Vec::new(), agent: Some(Box::new(agent)), ..report(end, 0) }
}

fn report(end: SessionEnd, exit_code: i32) -> SessionReport {
    SessionReport {
        end,
        shells: vec![ShellEnd { exit_code, duration_ms: 12 }],
        stdout: Excerpt { head: "line\n\u{1b}[1mbold é\u{0}".to_owned(), tail: String::new(), omitted: 0 },
        stderr: Excerpt { head: "x".repeat(300), tail: "end".to_owned(), omitted: 5 },
        outputs: BTreeMap::from([("name".to_owned(), "value".to_owned())]),
        output_error: None,
        ended_orphans: 0,
        lingering: Vec::new(),
        log_note: None,
        duration_ms: 15,
        agent: None,
        killed_by: None,
    }
}
