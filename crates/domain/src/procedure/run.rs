//! One run: where it is, and what is known of its steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::apply::{UnexpectedEvent, kind};
use super::{CheckResult, Failure, HaltReason, PrecheckResult, Records, RunEvent, RunStarted, SkipReason, StepPlan};
use crate::session::{Phase, SessionRecord, SessionReport};
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
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When `gc` may remove it; `None` for never (or not yet known).
    pub expires: Option<Timestamp>,
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
        then: Option<Phase>,
    },
    /// A session for this phase is to be opened.
    Opening(Phase),
    /// This session was opened for this phase.
    InSession(SessionId, Phase),
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
    /// Every session, oldest first.
    pub sessions: Vec<SessionRecord>,
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
    /// When it was decided.
    pub ended_at: Option<Timestamp>,
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
            sessions: Vec::new(),
            precheck: None,
            validate: None,
            warning: None,
            outputs: BTreeMap::new(),
            commits: Vec::new(),
            changed: Vec::new(),
            earlier_failures: Vec::new(),
            salvaged: Vec::new(),
            started_at: None,
            ended_at: None,
        }
    }

    /// The last session of a phase that has a report.
    pub fn last_report(&self, phase: Phase) -> Option<&SessionReport> {
        self.sessions.iter().rev().filter(|session| session.phase == phase).find_map(|session| session.report.as_ref())
    }

    /// How long it has worked, in milliseconds; `None` before its first attempt.
    ///
    /// Of a decided step it is the time of its sessions: a weekend in which nobody resumed it is not in it.
    pub fn worked_millis(&self, now: Timestamp) -> Option<u64> {
        let started = self.started_at?;
        let of_sessions = || self.sessions.iter().filter_map(|session| session.report.as_ref()).map(|report| report.duration_ms).sum();
        Some(if self.is_decided() { of_sessions() } else { now.millis_since(started) })
    }

    /// Whether it is completed, skipped or failed.
    pub fn is_decided(&self) -> bool {
        matches!(self.state, StepState::Completed | StepState::Skipped(_) | StepState::Failed(_))
    }

    pub(super) fn phase_after(&self, phase: Option<Phase>) -> Option<Phase> {
        self.plan.phases.iter().copied().find(|candidate| phase.is_none_or(|phase| *candidate > phase))
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
            ended_at: None,
            expires: None,
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

    /// Whether the commit that it owes was recorded as planned, and so may exist already.
    pub fn commit_was_planned(&self) -> bool {
        match &self.position {
            Position::InStep(_, Stage::Materialising { planned, .. } | Stage::Committing { planned, .. }) => *planned,
            Position::Closing { commit, .. } => *commit == LastCommit::Planned,
            Position::InStep(..) | Position::Between | Position::Ended(_) => false,
        }
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
