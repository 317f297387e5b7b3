//! One run: where it is, and what is known of its steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::apply::{UnexpectedEvent, kind};
use super::{
    Answer, CheckResult, Evidence, Failure, HaltReason, PrecheckResult, Proposal, Records, RunEvent, RunStarted, SkipReason, StepId,
    StepPlan, Task, Unjudged, Verdict,
};
use crate::session::{Phase, SessionEnd, SessionRecord, SessionReport, Work};
use crate::{Oid, RepoPath, SessionId, Timestamp};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every step is completed or skipped, at least one completed.
    Completed,
    /// A step failed.
    Failed,
    /// No step failed, and at least one check reached no verdict.
    Inconclusive,
    /// Every step was skipped.
    Skipped,
}

impl Outcome {
    /// The word used in JSON, run cards and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
        }
    }
}

/// A run, folded from its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How it was started.
    pub started: RunStarted,
    /// When it was started.
    pub started_at: Timestamp,
    /// Its steps, in order.
    pub steps: Vec<StepRecord>,
    /// Where it is.
    pub position: Position,
    /// Why it stands still, when it does.
    pub halt: Option<HaltReason>,
    /// Whether the `Start procedure` commit exists (only where records are in git).
    pub materialised: bool,
    /// The newest commit that the run knows: its start, its own commits, its steps' commits.
    pub head: Option<Oid>,
    /// Proctor's own commits, oldest first.
    pub commits: Vec<Oid>,
    /// What was uncommitted when the run last stopped: tells its own changes from what others did since.
    pub left: Option<Leftovers>,
    /// What a failed attempt left and the following attempts start from.
    pub carried: Option<Leftovers>,
    /// Foreign changes that a person took into the run; the step that is committed next takes them in.
    pub accepted: Option<Leftovers>,
    /// When its newest event was recorded.
    pub newest_at: Timestamp,
    /// When it came to stand still, if it does.
    pub halted_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When `gc` may remove it; `None` for never (or not yet known).
    pub expires: Option<Timestamp>,
    /// The box that its agents are held in, once that was chosen.
    pub confined: Option<Confinement>,
    /// Whether the worktree of an isolated run was made.
    pub worktree_made: bool,
    /// Where an isolated run was merged: HEAD of the branch it came from, then.
    pub merged: Option<Oid>,
    /// What became in memory of what it taught, oldest first.
    pub proposals: Vec<Proposal>,
    /// Why memory could not be told the last time.
    pub proposal_obstacle: Option<String>,
    /// Whether memory was told since the run last went on.
    pub has_proposed: bool,
}

/// The box of a run's agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Its kind; `none` when there is no box.
    pub kind: String,
    /// What they reach of the network, where that was recorded.
    pub net: Option<String>,
    /// What such a box is to keep them from and this one does not, by name.
    pub open: Vec<String>,
}

/// Uncommitted paths of a run, and a tree object that holds their contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// The paths.
    pub paths: Vec<RepoPath>,
    /// HEAD's tree with these paths as they were.
    pub snapshot: Oid,
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// Between steps.
    Between,
    /// Inside the step with this index.
    InStep(usize, Stage),
    /// All steps are decided; the last commit may be due.
    Closing {
        /// How it will end.
        outcome: Outcome,
        /// Where its last commit stands.
        commit: LastCommit,
    },
    /// Over.
    Ended(Outcome),
}

/// Where the last commit of a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastCommit {
    /// There is none to make.
    NotDue,
    /// It is to be made.
    Due,
    /// It was recorded as planned and may exist.
    Planned,
}

/// Where a run is inside a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The `Start procedure` commit comes next, then the phase, or the settling when there is none.
    Materialising {
        /// Whether the commit was recorded as planned.
        planned: bool,
        /// The phase that follows; `None` when the step is already decided.
        then: Option<Task>,
    },
    /// A person is asked before the step does its work.
    Asking {
        /// What follows; `None` when the step has nothing to do.
        then: Option<Task>,
    },
    /// An agent has asked a person; then a session for the same is opened again.
    Questioned {
        /// What is to be gone on with.
        task: Task,
        /// What it asks.
        question: String,
    },
    /// A session for this is to be opened.
    Opening(Task),
    /// This session was opened for this.
    InSession(SessionId, Task),
    /// The provider wants to be left alone; then a session for this is opened again.
    Limited {
        /// What is to be done again.
        task: Task,
        /// Why it waits.
        reason: HaltReason,
    },
    /// The agents are done; what they left in the tree is to be looked at.
    Collecting {
        /// What follows; `None` when the step is already decided.
        then: Option<Task>,
    },
    /// What the agents left uncommitted is to be committed.
    CommittingWork {
        /// The paths.
        paths: Vec<RepoPath>,
        /// Whether it was recorded as planned.
        planned: bool,
        /// What follows.
        then: Option<Task>,
    },
    /// A session was lost or interrupted; the tree goes back to the baseline before the next attempt.
    Restoring {
        /// Whether what is put back was recorded as planned.
        planned: Option<Vec<RepoPath>>,
    },
    /// A failed attempt waits for its repetition.
    Pausing(Timestamp),
    /// The phases are over; what they left in the tree is to be looked at.
    Settling,
    /// The step's commit is due.
    Committing {
        /// The paths it takes.
        paths: Vec<RepoPath>,
        /// Whether it was recorded as planned.
        planned: bool,
    },
}

/// What is known of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// What the state machine knows of its definition.
    pub plan: StepPlan,
    /// Where it stands.
    pub state: StepState,
    /// Attempts begun.
    pub attempts: u32,
    /// HEAD before its first attempt.
    pub baseline: Option<Oid>,
    /// HEAD before the first attempt whose work is still in the tree: what a judge's evidence begins with. The inner
    /// `None` stands for a repository without a commit.
    pub judged_from: Option<Option<Oid>>,
    /// How many sessions there were when the step was last begun.
    pub earlier_sessions: usize,
    /// What a person said to it.
    pub approval: Option<Approval>,
    /// What its agents asked a person and were told since it was last begun, oldest first.
    pub answers: Vec<QuestionAnswer>,
    /// Whether its agents are done, and what they did is committed.
    pub collected: bool,
    /// What was found wanting and is being repaired, or was.
    pub repairing: Option<Failure>,
    /// What its judge looked at last.
    pub evidence: Option<Evidence>,
    /// Why its judge reached no verdict.
    pub unjudged: Option<Unjudged>,
    /// What its judge said.
    pub reasoning: Option<String>,
    /// Whether a person wants it judged again.
    pub rejudge: bool,
    /// Every session, oldest first.
    pub sessions: Vec<SessionRecord>,
    /// What judges said, oldest first.
    pub verdicts: Vec<(SessionId, Verdict)>,
    /// What its precheck decided in the last attempt that ran it.
    pub precheck: Option<PrecheckResult>,
    /// What its checks said in the last attempt that ran them.
    pub validate: Option<CheckResult>,
    /// A failed check that did not fail the step.
    pub warning: Option<Failure>,
    /// What it wrote to `$PROCTOR_OUTPUT`.
    pub outputs: BTreeMap<String, String>,
    /// Commits made by it and for it, oldest first.
    pub commits: Vec<Oid>,
    /// The paths it changed, as last surveyed.
    pub changed: Vec<RepoPath>,
    /// Failures of attempts that were repeated.
    pub earlier_failures: Vec<Failure>,
    /// Salvage refs of lost attempts.
    pub salvaged: Vec<String>,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// How long nobody worked on it since: the run stood still, or its driver was dead.
    pub rested_millis: u64,
    /// When it was decided.
    pub ended_at: Option<Timestamp>,
}

/// What a person said to a step that asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Yes or no.
    pub answer: Answer,
    /// In their words.
    pub message: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// What an agent asked and a person told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionAnswer {
    /// In the agent's words.
    pub question: String,
    /// In the person's.
    pub answer: String,
    /// When.
    pub at: Timestamp,
}

/// Where a step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepState {
    /// Its turn has not come.
    Pending,
    /// Begun and not decided.
    Running,
    /// Failed, and what it left is not settled yet.
    Failing(Failure),
    /// Skipped by its precheck, and what it left is not settled yet.
    Skipping,
    /// Done.
    Completed,
    /// Not run.
    Skipped(SkipReason),
    /// Not done.
    Failed(Failure),
}

impl StepRecord {
    pub(super) fn new(plan: StepPlan) -> Self {
        Self {
            plan,
            state: StepState::Pending,
            attempts: 0,
            baseline: None,
            judged_from: None,
            earlier_sessions: 0,
            approval: None,
            answers: Vec::new(),
            collected: false,
            repairing: None,
            evidence: None,
            unjudged: None,
            reasoning: None,
            rejudge: false,
            sessions: Vec::new(),
            verdicts: Vec::new(),
            precheck: None,
            validate: None,
            warning: None,
            outputs: BTreeMap::new(),
            commits: Vec::new(),
            changed: Vec::new(),
            earlier_failures: Vec::new(),
            salvaged: Vec::new(),
            started_at: None,
            rested_millis: 0,
            ended_at: None,
        }
    }

    /// The last session of a phase's shells that has a report.
    pub fn last_report(&self, phase: Phase) -> Option<&SessionReport> {
        self.sessions
            .iter()
            .rev()
            .filter(|session| session.phase == phase && session.work == Work::Shells)
            .find_map(|session| session.report.as_ref())
    }

    /// How long it has been worked on until its end, or until `last_sign` of it, in milliseconds; `None` before its first
    /// session. A weekend in which nobody resumed it is not in it.
    pub fn worked_millis(&self, last_sign: Timestamp) -> Option<u64> {
        let started = self.started_at.filter(|_| !self.sessions.is_empty())?;
        Some(self.ended_at.unwrap_or(last_sign).millis_since(started).saturating_sub(self.rested_millis))
    }

    /// Its agents whose last session did not end by itself, and how it ended. Checks may have passed all the same.
    pub fn cut_off(&self) -> Vec<(u32, &SessionEnd)> {
        let mut last: BTreeMap<u32, &SessionEnd> = BTreeMap::new();
        for session in self.present_sessions() {
            if let (Work::Agent(number), Some(report)) = (session.work, &session.report) {
                last.insert(number, &report.end);
            }
        }
        last.into_iter().filter(|(_, end)| **end != SessionEnd::Completed).collect()
    }

    /// The attempts in which anything was started.
    pub fn attempts_made(&self) -> u32 {
        self.sessions.iter().map(|session| session.attempt).max().unwrap_or(0)
    }

    /// Whether it is completed, skipped or failed.
    pub fn is_decided(&self) -> bool {
        matches!(self.state, StepState::Completed | StepState::Skipped(_) | StepState::Failed(_))
    }

    /// The sessions since the step was last begun.
    pub fn present_sessions(&self) -> &[SessionRecord] {
        self.sessions.get(self.earlier_sessions..).unwrap_or_default()
    }

    /// The task that follows this one when it went well.
    pub(super) fn task_after(&self, task: Task) -> Option<Task> {
        let tasks = self.plan.tasks();
        // A repair goes before the first check again.
        let place = if task == Task::REPAIR {
            tasks.iter().rposition(|earlier| earlier.phase != Phase::Validate)
        } else {
            tasks.iter().position(|earlier| *earlier == task)
        };
        tasks.get(place.map_or(0, |place| place + 1)).copied()
    }

    /// The first task of an attempt after `phase`. What agents did stays done: only what follows them is done again.
    pub(super) fn first_task_after(&self, phase: Option<Phase>) -> Option<Task> {
        let is_next = |task: &Task| {
            phase.is_none_or(|phase| task.phase > phase) && !(self.collected && (task.is_of_an_agent() || task.phase == Phase::Precheck))
        };
        self.plan.tasks().into_iter().find(is_next)
    }
}

impl Run {
    /// The run that a [`RunEvent::Started`] at `at` begins.
    pub fn start(at: Timestamp, started: RunStarted) -> Self {
        Self {
            steps: started.steps.iter().cloned().map(StepRecord::new).collect(),
            head: started.head.clone(),
            started,
            started_at: at,
            position: Position::Between,
            halt: None,
            materialised: false,
            commits: Vec::new(),
            left: None,
            carried: None,
            accepted: None,
            newest_at: at,
            halted_at: None,
            ended_at: None,
            expires: None,
            confined: None,
            worktree_made: false,
            merged: None,
            proposals: Vec::new(),
            proposal_obstacle: None,
            has_proposed: false,
        }
    }

    /// Folds a whole stream; `None` when it is empty.
    pub fn replay(events: impl IntoIterator<Item = (Timestamp, RunEvent)>) -> Result<Option<Self>, UnexpectedEvent> {
        let mut run: Option<Self> = None;
        for (at, event) in events {
            match (&mut run, event) {
                (None, RunEvent::Started(started)) => run = Some(Self::start(at, *started)),
                (Some(run), event) => run.apply(at, event)?,
                (None, event) => {
                    return Err(UnexpectedEvent { event: kind(&event), position: "before the run's start".to_owned() });
                }
            }
        }
        Ok(run)
    }

    /// The step it is in.
    pub fn current_step(&self) -> Option<&StepRecord> {
        match self.position {
            Position::InStep(index, _) => self.steps.get(index),
            Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// The session it is in: opened, and neither ended nor lost as far as the run knows.
    pub fn open_session(&self) -> Option<&SessionId> {
        match &self.position {
            Position::InStep(_, Stage::InSession(session, _)) => Some(session),
            Position::InStep(..) | Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// The step that asks a person, before it does its work or in the middle of it, while it waits for the answer.
    pub fn asks(&self) -> Option<StepId> {
        match &self.position {
            Position::InStep(index, Stage::Asking { .. } | Stage::Questioned { .. }) => Some(self.steps[*index].plan.id.clone()),
            Position::InStep(..) | Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// What an agent asks, while the run waits for the answer.
    pub fn question(&self) -> Option<&str> {
        match &self.position {
            Position::InStep(_, Stage::Questioned { question, .. }) => Some(question),
            Position::InStep(..) | Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// Whether the commit that it owes was recorded as planned, and so may exist already.
    pub fn commit_was_planned(&self) -> bool {
        match &self.position {
            Position::InStep(
                _,
                Stage::Materialising { planned, .. } | Stage::CommittingWork { planned, .. } | Stage::Committing { planned, .. },
            ) => *planned,
            Position::Closing { commit, .. } => *commit == LastCommit::Planned,
            Position::InStep(..) | Position::Between | Position::Ended(_) => false,
        }
    }

    /// Whether a step counts as done although a check of it said no.
    pub fn has_warnings(&self) -> bool {
        self.steps.iter().any(|step| step.state == StepState::Completed && step.warning.is_some())
    }

    /// The last moment that is known to belong to it, from its events alone: of one that stands still, when it came to that.
    pub fn last_event(&self) -> Timestamp {
        self.ended_at.or(self.halted_at).unwrap_or(self.newest_at)
    }

    pub(super) fn keeps_cards(&self) -> bool {
        self.started.records == Records::Git
    }

    /// The outcome that the decided steps add up to.
    pub(super) fn outcome_so_far(&self) -> Outcome {
        let any = |wanted: fn(&StepRecord) -> bool| self.steps.iter().any(wanted);
        if any(|step| matches!(step.state, StepState::Failed(_))) {
            Outcome::Failed
        } else if any(|step| step.validate == Some(CheckResult::Inconclusive)) {
            Outcome::Inconclusive
        } else if any(|step| step.state == StepState::Completed) {
            Outcome::Completed
        } else {
            Outcome::Skipped
        }
    }
}
