//! What a run tells whoever watches it. Only talk: nothing depends on it.

use proctor_domain::procedure::{CommitPurpose, Failure, SkipReason, StepId, StepRecord};
use proctor_domain::session::Phase;
use proctor_domain::{CardDuration, Oid, RepoPath, RunId};

use super::driver::Stop;

/// One thing worth telling while a run goes on.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The working tree is busy and the caller asked to wait.
    Waiting {
        /// Who holds it.
        holder: String,
    },
    /// The run exists.
    Started {
        /// Its id.
        run: &'a RunId,
        /// Its procedure.
        procedure: &'a str,
        /// How many steps it has.
        steps: usize,
    },
    /// An earlier run goes on.
    Resumed {
        /// Its id.
        run: &'a RunId,
        /// Its procedure.
        procedure: &'a str,
    },
    /// The host of an earlier driver is alive and is followed now.
    Attached,
    /// An earlier driver died while it made a commit; its git and its hooks may still be at work.
    LookingForCommit {
        /// How long they are waited for before they are ended.
        patience: std::time::Duration,
    },
    /// A step begins, or begins again.
    StepBegan {
        /// Which.
        step: &'a StepId,
        /// Its number, from 1.
        number: usize,
        /// How many steps there are.
        of: usize,
        /// The attempt, from 1.
        attempt: u32,
    },
    /// A phase of the current step begins.
    PhaseBegan(Phase),
    /// The current phase printed these bytes.
    Output(&'a [u8]),
    /// A step was not run.
    StepSkipped {
        /// Which.
        step: &'a StepId,
        /// Why.
        reason: SkipReason,
    },
    /// A step is decided.
    StepDecided(&'a StepRecord),
    /// A failed attempt will be repeated.
    Retrying {
        /// What failed.
        failure: &'a Failure,
        /// The pause before.
        pause: CardDuration,
    },
    /// A host died; what its session had changed was saved and put back.
    Restored {
        /// The saved state's ref, when there was anything to save.
        salvage: Option<&'a str>,
        /// The paths that were put back.
        paths: &'a [RepoPath],
    },
    /// Proctor made a commit.
    Committed {
        /// What for.
        purpose: &'a CommitPurpose,
        /// Its name.
        commit: &'a Oid,
    },
    /// A signal was heeded: how far the driver stops.
    Heeded(Stop),
}
