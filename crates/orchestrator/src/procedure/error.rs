//! Why a run could not be started, driven or resumed.

use std::path::PathBuf;

use proctor_cards::Finding;
use proctor_domain::procedure::{HaltReason, InvalidInput, StepId, UnexpectedEvent};
use proctor_domain::session::EngineName;
use proctor_domain::{Branch, RepoPath, RunId};
use proctor_engine::agent::EngineKind;

/// A failure of ours, or a refusal. What a run's own steps do is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum ProcedureError {
    /// The command is refused as things stand; a person can change that.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// We failed while a run was at work; it can be resumed.
    #[error("go on with {run}")]
    Stopped {
        /// The run.
        run: RunId,
        /// What failed.
        #[source]
        source: Box<ProcedureError>,
    },
    /// Git or a hook refused the commit of a change to run records.
    #[error("commit a change to run records, which is in the working tree now: {output}")]
    NotCommitted {
        /// What was printed.
        output: String,
    },
    /// The card has errors.
    #[error("read the card: it has errors")]
    Card(Vec<Finding>),
    /// An input has the wrong type.
    #[error(transparent)]
    InvalidInput(#[from] InvalidInput),
    /// An input that the card doesn't declare.
    #[error("start the run: the procedure has no input `{name}`")]
    UnknownInput {
        /// What was given.
        name: String,
        /// The closest declared name.
        nearest: Option<String>,
    },
    /// A required input that was not given.
    #[error("start the run: the input `{0}` is required")]
    MissingInput(String),
    /// An input over the limit.
    #[error("start the run: the input `{name}` has {bytes} bytes; the limit is {}", super::inputs::LONGEST_INPUT)]
    InputTooLong {
        /// Its name.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// A step that the card doesn't declare.
    #[error("start the run: the procedure has no step `{step}`")]
    UnknownStep {
        /// What was asked for.
        step: String,
        /// What there is.
        known: Vec<StepId>,
    },
    /// There is no unfinished run to resume.
    #[error("find an unfinished run in this working tree")]
    NothingToResume,
    /// A stored run can't be followed any further.
    #[error("follow the run {run}")]
    DamagedRun {
        /// Which.
        run: RunId,
        /// Why.
        #[source]
        source: UnexpectedEvent,
    },
    /// The stored card of a run is gone or can't be read any more.
    #[error("read the card that the run {run} was started with")]
    LostDefinition {
        /// Which.
        run: RunId,
        /// Why, where the journal says so.
        #[source]
        source: Option<proctor_journal::SnapshotError>,
    },
    /// A file of ours can't be read.
    #[error("read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A folder of ours can't be made.
    #[error("write in {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The folder for run records is a link that leads out of the work tree.
    #[error("write in {}: it leads out of the working tree", path.display())]
    OutsideWorkTree {
        /// Which.
        path: PathBuf,
    },
    /// The operating system gives no random numbers.
    #[error("draw an id")]
    Chance(#[from] getrandom::Error),
    /// Signals can't be listened to.
    #[error(transparent)]
    Signals(#[from] proctor_process::SignalsError),
    /// A process can't be named or signalled.
    #[error(transparent)]
    Identity(#[from] proctor_process::IdentityError),
    /// A run without a first event.
    #[error("read the run {run}: it has no events")]
    EmptyRun {
        /// Which.
        run: RunId,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] proctor_journal::JournalError),
    /// The journal, while events were added.
    #[error(transparent)]
    Append(#[from] proctor_journal::AppendError),
    /// The journal, while a run was read.
    #[error(transparent)]
    ReadRun(#[from] proctor_journal::ReadError),
    /// The journal, while an id was looked up.
    #[error(transparent)]
    Resolve(#[from] proctor_journal::ResolveError),
    /// Git.
    #[error(transparent)]
    Workspace(#[from] proctor_workspace::WorkspaceError),
    /// What is kept beside a session can't be read or written as JSON.
    #[error("read or write what is kept beside a session")]
    Encode {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The box for agents can't be made.
    #[error(transparent)]
    Confine(#[from] proctor_process::confine::ConfineError),
    /// A session host.
    #[error(transparent)]
    Host(#[from] proctor_engine::HostError),
    /// A kernel lock.
    #[error(transparent)]
    Lock(#[from] proctor_process::lock::LockError),
    /// A file that was to be written.
    #[error(transparent)]
    Durable(#[from] proctor_process::durable::DurableError),
}

/// Why a command is refused although nothing is broken (exit 4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another run works in this tree.
    #[error("start a run here: {holder} works in this working tree")]
    Busy {
        /// Who: a run, or whatever the lock's holder wrote.
        holder: String,
    },
    /// The command was given inside a run that works in this tree.
    #[error("start a run here: this command runs inside {outer}, which works in the same working tree")]
    Nested {
        /// The outer run.
        outer: String,
    },
    /// The run is alive.
    #[error("change {run}: it is running")]
    Live {
        /// Which.
        run: RunId,
    },
    /// The tree has changes that are not the run's.
    #[error("start a run here: the working tree has changes")]
    Dirty {
        /// The changed paths.
        paths: Vec<RepoPath>,
        /// An interrupted run that left some of them.
        left_by: Option<RunId>,
    },
    /// A changed path that no run can work around.
    #[error("start a run here: {path} can't stay as it is: {reason}")]
    Unusable {
        /// Which.
        path: RepoPath,
        /// Why.
        reason: &'static str,
    },
    /// A merge, rebase, cherry-pick or bisect is in progress.
    #[error("work here: a {operation} is in progress")]
    Operation {
        /// Its name.
        operation: String,
    },
    /// The run halted, or can't go on, because of what others did to the tree.
    #[error("go on with {run}")]
    Halted {
        /// The run.
        run: RunId,
        /// What stands in the way.
        reason: HaltReason,
        /// Paths that are somebody else's, beside commits that are: whoever takes in the ones takes in the others.
        foreign: Vec<RepoPath>,
    },
    /// The run was started in another working tree.
    #[error("resume {run} here: it works in {worktree}")]
    OtherWorktree {
        /// The run.
        run: RunId,
        /// Its working tree.
        worktree: RepoPath,
    },
    /// The card needs an engine whose program is not there.
    #[error("run step `{step}`: it needs the engine {engine}, and {reason}")]
    NoEngine {
        /// The first step that needs it.
        step: StepId,
        /// The engine.
        engine: EngineName,
        /// Its kind.
        kind: EngineKind,
        /// One clause about what is missing.
        reason: String,
    },
    /// An isolated run has to be merged into a branch in the end.
    #[error("run this procedure in a worktree of its own: HEAD is on no branch that it could be merged into")]
    NoBranchToMerge,
    /// The run does not wait for an answer.
    #[error("answer {run}: it asks nothing")]
    NotAsking {
        /// The run.
        run: RunId,
    },
    /// An agent of the run asks a person, who has said nothing.
    #[error("answer {run}: its agent asks something, and the answer has no words")]
    WantsWords {
        /// The run.
        run: RunId,
    },
    /// The run asks whether it may go on.
    #[error("answer {run}: it asks whether it may go on, and the answer is neither yes nor no")]
    WantsDecision {
        /// The run.
        run: RunId,
    },
    /// The run has no check without a verdict.
    #[error("judge {run} again: it has ended with a verdict on everything, or has not ended")]
    NothingToJudge {
        /// The run.
        run: RunId,
    },
    /// The run has no branch that waits for its merge.
    #[error("merge {run}: it has no branch that waits to be merged")]
    NothingToMerge {
        /// The run.
        run: RunId,
    },
    /// The branch of a run can't be merged as things are.
    #[error("merge {run}: {reason}")]
    NotMerged {
        /// The run.
        run: RunId,
        /// Its branch.
        branch: Branch,
        /// One sentence.
        reason: String,
    },
    /// A new definition was asked for in the middle of a step.
    #[error("change the definition of {run} now: it stopped in the middle of step `{step}`")]
    MidStep {
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
    },
}
