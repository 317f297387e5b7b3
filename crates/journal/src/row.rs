//! What can be known about a run without replaying it: a projection of its events, never the only copy.

use proctor_domain::procedure::{HaltReason, Outcome, Records, RunEvent, StepId};
use proctor_domain::retention::Expires;
use proctor_domain::{RepoPath, RunId, Timestamp};

/// One run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// The procedure's name.
    pub procedure: String,
    /// Top of the working tree it runs in.
    pub worktree: RepoPath,
    /// Where it is recorded.
    pub records: Records,
    /// Its folder in the repository, where records are in git.
    pub folder: Option<RepoPath>,
    /// When it started.
    pub started_at: Timestamp,
    /// How it stands.
    pub standing: Standing,
    /// What its record says about its removal.
    pub expires: Expires,
    /// How many steps it has.
    pub steps: usize,
    /// The step that was begun last.
    pub latest_step: Option<StepId>,
}

/// How a run stands, as far as its record says. Whether its driver is alive, only its lock can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Not ended and not halted: it runs, or its driver died.
    Open,
    /// It stopped and can be resumed. The reason is boxed, since few rows have one and it would make every row larger.
    Halted(Box<HaltReason>),
    /// It is over.
    Ended {
        /// How.
        outcome: Outcome,
        /// When.
        at: Timestamp,
        /// Whether a completed one is so with a warning.
        with_warnings: bool,
    },
}

impl RunRow {
    /// How it ended, if it did.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.standing {
            Standing::Ended { outcome, .. } => Some(outcome),
            Standing::Open | Standing::Halted(_) => None,
        }
    }

    /// When it ended, if it did.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self.standing {
            Standing::Ended { at, .. } => Some(at),
            Standing::Open | Standing::Halted(_) => None,
        }
    }

    /// Whether it is completed, with a warning.
    pub fn has_warnings(&self) -> bool {
        matches!(self.standing, Standing::Ended { with_warnings: true, .. })
    }

    /// Why it stands still, if it was halted.
    pub fn halted(&self) -> Option<&HaltReason> {
        match &self.standing {
            Standing::Halted(reason) => Some(reason),
            Standing::Open | Standing::Ended { .. } => None,
        }
    }
}

/// Whether an event can change a run's row. Most don't, and then an append needs not touch it.
pub(crate) fn concerns(event: &RunEvent) -> bool {
    match event {
        RunEvent::Started(_)
        | RunEvent::StepBegan { .. }
        | RunEvent::Halted { .. }
        | RunEvent::Resumed { .. }
        | RunEvent::RejudgeAsked
        | RunEvent::Redefined { .. }
        | RunEvent::Ended { .. }
        | RunEvent::Retained { .. } => true,
        RunEvent::StepSkipped { .. }
        | RunEvent::StepRejected { .. }
        | RunEvent::SessionOpened { .. }
        | RunEvent::SessionEnded { .. }
        | RunEvent::SessionLost { .. }
        | RunEvent::RestorePlanned { .. }
        | RunEvent::Restored
        | RunEvent::RetryPlanned { .. }
        | RunEvent::RetryBegan
        | RunEvent::Surveyed { .. }
        | RunEvent::CommitPlanned { .. }
        | RunEvent::Committed { .. }
        | RunEvent::CommitRefused { .. }
        | RunEvent::Answered { .. }
        | RunEvent::Collected { .. }
        | RunEvent::Confined { .. }
        | RunEvent::WorktreeMade
        | RunEvent::Merged { .. }
        | RunEvent::Proposed { .. }
        | RunEvent::LeftInTree { .. } => false,
    }
}

/// Folds one event into a run's row; the row appears with `Started`.
pub(crate) fn project(row: &mut Option<RunRow>, run: &RunId, at: Timestamp, event: &RunEvent) {
    if let RunEvent::Started(started) = event {
        *row = Some(RunRow {
            run: run.clone(),
            procedure: started.procedure.clone(),
            worktree: started.worktree.clone(),
            records: started.records,
            folder: started.folder.clone(),
            started_at: at,
            standing: Standing::Open,
            expires: Expires::Unset,
            steps: started.steps.len(),
            latest_step: None,
        });
    } else if let Some(row) = row {
        row.follow(at, event);
    }
}

impl RunRow {
    fn follow(&mut self, at: Timestamp, event: &RunEvent) {
        match event {
            RunEvent::StepBegan { step, .. } => self.latest_step = Some(step.clone()),
            RunEvent::Halted { reason } => self.standing = Standing::Halted(Box::new(reason.clone())),
            RunEvent::Resumed { .. } => self.resume(),
            RunEvent::RejudgeAsked => {
                self.standing = Standing::Open;
                self.expires = Expires::Unset;
            }
            RunEvent::Redefined { steps, .. } => {
                self.steps = steps.len();
                // Steps may have been added, so an ended run is open again.
                if matches!(self.standing, Standing::Ended { .. }) {
                    self.standing = Standing::Open;
                }
            }
            RunEvent::Ended { outcome, expires, with_warnings } => {
                let with_warnings = *with_warnings && *outcome == Outcome::Completed;
                self.standing = Standing::Ended { outcome: *outcome, at, with_warnings };
                self.expires = expires.map_or(Expires::Never, Expires::At);
            }
            RunEvent::Retained { expires } => self.expires = expires.map_or(Expires::Never, Expires::At),
            RunEvent::Started(_)
            | RunEvent::StepSkipped { .. }
            | RunEvent::StepRejected { .. }
            | RunEvent::SessionOpened { .. }
            | RunEvent::SessionEnded { .. }
            | RunEvent::SessionLost { .. }
            | RunEvent::RestorePlanned { .. }
            | RunEvent::Restored
            | RunEvent::RetryPlanned { .. }
            | RunEvent::RetryBegan
            | RunEvent::Surveyed { .. }
            | RunEvent::CommitPlanned { .. }
            | RunEvent::Committed { .. }
            | RunEvent::CommitRefused { .. }
            | RunEvent::Answered { .. }
            | RunEvent::Collected { .. }
            | RunEvent::Confined { .. }
            | RunEvent::WorktreeMade
            | RunEvent::Merged { .. }
            | RunEvent::Proposed { .. }
            | RunEvent::LeftInTree { .. } => {}
        }
    }

    /// A halted run goes on; a failed one goes back to its failed step; any other end stays one.
    fn resume(&mut self) {
        match self.standing {
            Standing::Halted(_) => self.standing = Standing::Open,
            Standing::Ended { outcome: Outcome::Failed, .. } => {
                self.standing = Standing::Open;
                self.expires = Expires::Unset;
            }
            Standing::Open | Standing::Ended { .. } => {}
        }
    }
}
