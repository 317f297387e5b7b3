//! Plans, reports and runs to begin tests with.

use std::collections::BTreeMap;

use proctor_domain::procedure::{
    CommitPurpose, Isolated, Records, RetrySpec, Run, RunEvent, RunStarted, Severity, StepId, StepPlan, Task, Verdict,
};
use proctor_domain::session::{AgentReport, Excerpt, Phase, SessionEnd, SessionReport, ShellEnd, Told, Work};
use proctor_domain::{Branch, CardDuration, Expiry, Oid, RepoPath, SessionId, Timestamp};

pub(crate) const ALL: [Phase; 3] = [Phase::Precheck, Phase::Run, Phase::Validate];

/// Of a session of shells whose last one exited with this code.
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
        agent: None,
        killed_by: None,
    }
}

/// Of a session of an agent, judge or repair.
pub(crate) fn agent_report(end: SessionEnd, responded: bool) -> SessionReport {
    let agent = AgentReport {
        engine: "scripted".parse().unwrap(),
        conversation: Some("c".into()),
        model: None,
        responded,
        turns: u32::from(responded),
        spent: Vec::new(),
        claim: None,
        result: None,
        error: None,
        unknown_lines: 0,
        told: Told::default(),
    };
    SessionReport { end, shells: Vec::new(), agent: Some(Box::new(agent)), ..report(0) }
}

/// Of a session that its provider cut off until later.
pub(crate) fn limit(responded: bool) -> SessionReport {
    agent_report(SessionEnd::UsageLimit { until: Some(Timestamp(99)) }, responded)
}

pub(crate) fn id(name: &str) -> StepId {
    StepId::try_from(name.to_owned()).unwrap()
}

pub(crate) fn plan(name: &str, phases: &[Phase]) -> StepPlan {
    StepPlan { id: id(name), phases: phases.to_vec(), agents: 0, judged: false, approve: None, severity: Severity::Abort, retry: None }
}

pub(crate) fn retrying(name: &str, phases: &[Phase], max: u32) -> StepPlan {
    StepPlan { retry: Some(RetrySpec { max, backoff: CardDuration::from_millis(1_000) }), ..plan(name, phases) }
}

/// A step `a` with one agent whose work a judge looks at.
pub(crate) fn judged(severity: Severity, phases: &[Phase]) -> StepPlan {
    StepPlan { agents: 1, judged: true, severity, ..plan("a", phases) }
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
        isolated: None,
        engine: None,
    }
}

pub(crate) fn isolated(started: RunStarted) -> RunStarted {
    RunStarted { isolated: Some(Isolated { origin: RepoPath::new("/o"), into: Branch::Named("main".into()) }), ..started }
}

/// A run that a test leads by hand.
pub(crate) struct Led(pub(crate) Run);

impl Led {
    pub(crate) fn new(records: Records, steps: Vec<StepPlan>) -> Self {
        Self(Run::start(Timestamp(0), started(records, steps)))
    }

    pub(crate) fn apply(&mut self, event: RunEvent) -> &mut Self {
        self.0.apply(Timestamp(1), event).unwrap();
        self
    }

    pub(crate) fn begin(&mut self, name: &str) -> &mut Self {
        let baseline = self.0.head.clone();
        self.apply(RunEvent::StepBegan { step: id(name), baseline })
    }

    pub(crate) fn open(&mut self, task: Task) -> SessionId {
        let session = SessionId::from_bits(u64::try_from(self.0.steps.iter().map(|step| step.sessions.len()).sum::<usize>()).unwrap());
        self.apply(RunEvent::SessionOpened {
            session: session.clone(),
            phase: task.phase,
            work: task.work,
            evidence: None,
            known: Vec::new(),
        });
        session
    }

    pub(crate) fn end(&mut self, task: Task, report: SessionReport, verdict: Option<Verdict>) -> &mut Self {
        let session = self.open(task);
        self.apply(RunEvent::SessionEnded { session, report: Box::new(report), verdict })
    }

    /// The shells of a phase, which exit with this code.
    pub(crate) fn session(&mut self, phase: Phase, exit_code: i32) -> &mut Self {
        self.end(Task::shells(phase), report(exit_code), None)
    }

    /// The agent with this number, which goes well.
    pub(crate) fn agent(&mut self, number: u32) -> &mut Self {
        self.end(Task { phase: Phase::Run, work: Work::Agent(number) }, agent_report(SessionEnd::Completed, true), None)
    }

    pub(crate) fn judge(&mut self, number: u32, passed: Option<bool>) -> &mut Self {
        let verdict = passed.map(|passed| Verdict { passed, reasoning: if passed { "good" } else { "thin" }.into() });
        let end = if verdict.is_some() { SessionEnd::Completed } else { SessionEnd::TurnLimit };
        self.end(Task::judge(number), agent_report(end, true), verdict)
    }

    pub(crate) fn repair(&mut self) -> &mut Self {
        self.end(Task::REPAIR, agent_report(SessionEnd::Completed, true), None)
    }

    pub(crate) fn lose(&mut self, task: Task) -> &mut Self {
        let session = self.open(task);
        self.apply(RunEvent::SessionLost { session, ended_orphans: 0 })
    }

    pub(crate) fn restore(&mut self) -> &mut Self {
        self.apply(RunEvent::RestorePlanned { salvage: None, paths: Vec::new() }).apply(RunEvent::Restored)
    }

    pub(crate) fn collect(&mut self, changed: &[&str]) -> &mut Self {
        let changed = changed.iter().map(|path| RepoPath::new(*path)).collect();
        self.apply(RunEvent::Collected { changed, commits: Vec::new(), failure: None })
    }

    pub(crate) fn survey(&mut self, changed: &[&str]) -> &mut Self {
        let changed = changed.iter().map(|path| RepoPath::new(*path)).collect();
        self.apply(RunEvent::Surveyed { changed, commits: Vec::new(), failure: None })
    }

    pub(crate) fn commit(&mut self, purpose: CommitPurpose, number: u8) -> &mut Self {
        let parent = self.0.head.clone();
        self.apply(RunEvent::CommitPlanned { purpose: purpose.clone(), parent });
        self.apply(RunEvent::Committed { purpose, commit: Oid(format!("{number:040x}")) })
    }

    pub(crate) fn resume(&mut self) -> &mut Self {
        let head = self.0.head.clone();
        self.apply(RunEvent::Resumed { head, accepted: Vec::new(), snapshot: None, directive: None, last_sign: None })
    }

    /// Memory takes what the run taught, if it taught anything.
    pub(crate) fn propose(&mut self) -> &mut Self {
        if self.0.owes() == proctor_domain::procedure::Owed::Propose {
            self.apply(RunEvent::Proposed { records: Vec::new(), obstacle: None });
        }
        self
    }

    /// Records the end that is owed.
    pub(crate) fn over(&mut self) -> &mut Self {
        self.propose();
        let proctor_domain::procedure::Owed::End(outcome) = self.0.owes() else { panic!("{:?}", self.0.owes()) };
        self.apply(RunEvent::Ended { outcome, expires: None, with_warnings: false })
    }
}
