//! What a run waits for, asked after every event and after every restart.

use super::run::{LastCommit, Position, Run, Stage, StepState};
use super::{CommitPurpose, Failure, HaltReason, Outcome, Task};
use crate::{CardDuration, RepoPath, SessionId, Timestamp};

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owed {
    /// Make the worktree and branch of an isolated run.
    MakeWorktree,
    /// Decide whether and how to begin the step with this index.
    Begin(usize),
    /// Open a session for this task of the step with this index.
    OpenSession(usize, Task),
    /// Drive this session to its end: start its host, or attach to it, or read its report.
    Drive(SessionId),
    /// Save and put back what a lost session changed.
    Restore(usize),
    /// Record that the failed attempt is repeated after a pause.
    PlanRetry {
        /// What failed.
        failure: Failure,
        /// How long to wait first.
        pause: CardDuration,
    },
    /// Wait until then, then begin the next attempt.
    Wait(Timestamp),
    /// Look at what the agents of the step left in the tree.
    Collect(usize),
    /// Look at what the step left in the tree.
    Survey(usize),
    /// Stop here until a person or a reset lets the run go on.
    Park(HaltReason),
    /// Propose to memory what the run taught.
    Propose,
    /// Bring the branch of an isolated run to where it came from.
    Merge,
    /// Make this commit with these paths (and the record, where records are in git).
    Commit(CommitPurpose, Vec<RepoPath>),
    /// Record the end.
    End(Outcome),
    /// Nothing: it is over, or halted until somebody resumes it.
    Nothing,
}

impl Run {
    /// What it waits for. Asked after every event and again after a restart.
    pub fn owes(&self) -> Owed {
        if self.halt.is_some() {
            return Owed::Nothing;
        }
        match &self.position {
            Position::Between if self.started.isolated.is_some() && !self.worktree_made => Owed::MakeWorktree,
            Position::Between => {
                self.steps.iter().position(|step| step.state == StepState::Pending).map_or(Owed::End(self.outcome_so_far()), Owed::Begin)
            }
            Position::InStep(index, stage) => self.owes_in_step(*index, stage),
            Position::Closing { commit: LastCommit::Due | LastCommit::Planned, .. } => Owed::Commit(CommitPurpose::End, Vec::new()),
            Position::Closing { commit: LastCommit::NotDue, .. } if !self.has_proposed && !self.lessons().is_empty() => Owed::Propose,
            Position::Closing { outcome, commit: LastCommit::NotDue } => self.owes_at_last(*outcome),
            Position::Ended(_) => Owed::Nothing,
        }
    }

    /// What is left of a run that is to end like this, once memory was told.
    pub(super) fn owes_at_last(&self, outcome: Outcome) -> Owed {
        if outcome == Outcome::Completed && self.awaits_merge() { Owed::Merge } else { Owed::End(outcome) }
    }

    /// Whether the branch of an isolated run is not where it came from yet.
    pub fn awaits_merge(&self) -> bool {
        self.started.isolated.is_some() && self.merged.is_none()
    }

    fn owes_in_step(&self, index: usize, stage: &Stage) -> Owed {
        match stage {
            Stage::Materialising { .. } => Owed::Commit(CommitPurpose::Start, Vec::new()),
            Stage::Asking { .. } => {
                let plan = &self.steps[index].plan;
                Owed::Park(HaltReason::Approval { step: plan.id.clone(), question: plan.approve.clone().unwrap_or_default() })
            }
            Stage::Questioned { question, .. } => {
                Owed::Park(HaltReason::Question { step: self.steps[index].plan.id.clone(), question: question.clone() })
            }
            Stage::Limited { reason, .. } => Owed::Park(reason.clone()),
            Stage::Collecting { .. } => Owed::Collect(index),
            Stage::CommittingWork { paths, .. } => Owed::Commit(CommitPurpose::Work(self.steps[index].plan.id.clone()), paths.clone()),
            Stage::Opening(task) => Owed::OpenSession(index, *task),
            Stage::InSession(session, _) => Owed::Drive(session.clone()),
            Stage::Restoring { .. } => Owed::Restore(index),
            Stage::Pausing(until) => Owed::Wait(*until),
            Stage::Settling => self.retry_due(index).unwrap_or(Owed::Survey(index)),
            Stage::Committing { paths, .. } => Owed::Commit(CommitPurpose::Step(self.steps[index].plan.id.clone()), paths.clone()),
        }
    }

    /// The repetition of a failed attempt, where `retry` covers the failure and has attempts left.
    fn retry_due(&self, index: usize) -> Option<Owed> {
        let record = &self.steps[index];
        let (StepState::Failing(failure), Some(retry)) = (&record.state, record.plan.retry) else { return None };
        let repeated = u32::try_from(record.earlier_failures.len()).unwrap_or(u32::MAX);
        let due = failure.is_of_a_shell() && repeated < retry.max;
        due.then(|| Owed::PlanRetry { failure: failure.clone(), pause: retry.pause_after(repeated + 1) })
    }
}
