//! What a run tells whoever watches it. Only talk: nothing depends on it.

use proctor_domain::procedure::{CommitPurpose, Failure, Isolated, Proposal, SkipReason, StepId, StepRecord, Task};
use proctor_domain::{CardDuration, Oid, RepoPath, RunId};
use proctor_engine::agent::AgentEvent;

use super::driver::Stop;

/// A step and the attempt at it.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The step.
    pub step: &'a StepId,
    /// Its number, from 1.
    pub number: usize,
    /// How many steps there are.
    pub of: usize,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// Why a run goes on within a step, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoingOn {
    /// The host of an earlier driver is alive and is followed now.
    Follows,
    /// The session ended while nobody followed it, and what it came to counts.
    TakesReport,
    /// The host of the session died.
    HostDied {
        /// Whether the agent's conversation goes on.
        conversation: Conversation,
    },
    /// Somebody killed the agent's program by this signal.
    Killed {
        /// Its number.
        signal: i32,
        /// Whether the agent's conversation goes on.
        conversation: Conversation,
    },
    /// The session was interrupted.
    Interrupted {
        /// Whether the agent's conversation goes on.
        conversation: Conversation,
    },
    /// The engine did not know the conversation any more, and a fresh one is begun.
    ForgotConversation,
    /// A provider wanted to be left alone.
    AfterLimit,
    /// A person has answered.
    Answered,
    /// The judge gave no answer, and is asked again about the same work.
    JudgesAgain,
    /// The run stopped, or its driver died, between two sessions.
    Continues,
}

/// What becomes of the conversation of a session that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversation {
    /// It goes on.
    GoesOn,
    /// A fresh one is begun, which is told what happened.
    Fresh,
}

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
        /// Where it comes from, when it works in a worktree of its own.
        isolated: Option<&'a Isolated>,
    },
    /// An earlier run goes on.
    Resumed {
        /// Its id.
        run: &'a RunId,
        /// Its procedure.
        procedure: &'a str,
    },
    /// The run goes on within a step: after a resume, or after a session was cut off.
    GoesOn {
        /// Where.
        at: Place<'a>,
        /// The session that it is about, or that comes next; `None` when no session is.
        task: Option<Task>,
        /// Why, and with what.
        how: GoingOn,
    },
    /// Processes that a session with a dead host had left were ended.
    EndedOrphans {
        /// How many.
        count: u32,
    },
    /// An earlier driver died while it made a commit; its git and its hooks may still be at work.
    LookingForCommit {
        /// How long they are waited for before they are ended.
        patience: std::time::Duration,
    },
    /// A step begins, or begins again.
    StepBegan {
        /// Which, and in which attempt.
        at: Place<'a>,
    },
    /// A session of the current step begins.
    TaskBegan(Task),
    /// The agents of the run are held in this kind of box.
    Confined {
        /// Its name; `none` when there is no box.
        kind: &'static str,
        /// What they reach of the network.
        net: &'static str,
    },
    /// Memory could not be asked; the run goes on without.
    NotKnown {
        /// Why.
        reason: &'a str,
    },
    /// Memory was told what the run taught.
    Proposed {
        /// What became of it.
        records: &'a [Proposal],
        /// Why not all of it was told.
        obstacle: Option<&'a str>,
    },
    /// Something happened in the current session of an agent.
    Agent(&'a AgentEvent),
    /// The branch of an isolated run is in the branch it came from.
    Merged {
        /// HEAD of that branch now.
        commit: &'a Oid,
    },
    /// The current shells printed these bytes.
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
