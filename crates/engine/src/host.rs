//! The session host, from both ends.
//!
//! The driver writes a session's folder, starts `proctor host` as a process of its own and hands it the session. The host
//! runs the shells, keeps what they print, holds them to their limits, ends whatever they leave behind, writes
//! `report.json`, says that it is done, and waits for the next session. Either may be killed at any moment:
//!
//! * Without its driver, a host finishes its session and exits. The next driver [`find`]s it and attaches.
//! * Without its host, a session is lost. The driver fences it, so that a host which was still on its way does
//!   nothing, and ends its processes: those that were handed to it as orphans, and those that carry the marker.
//!
//! A session runs at most once: a host that finds the lock held, a fence, or the traces of an earlier host, exits.
//!
//! An agent is another kind of child. What it shares with shells is everything but how it is started (`work`), what its
//! output means (`transcript`), and when it has been silent for too long (`watch`).

mod activity;
mod assignment;
mod attached;
mod calls;
mod control;
mod door;
mod driver;
mod excerpt;
mod files;
pub(crate) mod input;
mod kennel;
mod line;
mod orphans;
mod outputs;
mod passing;
mod peer;
mod serve;
mod streams;
mod supervise;
mod transcript;
mod watch;
mod word;
mod work;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proctor_domain::session::{EngineName, Usage};
use proctor_domain::{MicroDollars, SessionId};
use proctor_process::durable::DurableError;
use proctor_process::lock::LockError;

pub use attached::{Attached, Progress, Stream, Waited};
pub use driver::{Found, ended_orphans, fence, find, start};
pub use kennel::dismiss_hosts;
pub(crate) use orphans::MARKER;
use proctor_process::ProgramError;
pub use serve::run_host;
pub use transcript::replay_transcript;
pub use word::{LONGEST_WORD, Said, say};

use crate::agent::{AgentFiles, AgentTask, CONVERSATION, EngineKind, EngineSetup, Opening, Variable, demand, engine};
use files::SessionFolder;

/// The file of a session's folder that holds what its agent printed, line by line.
pub const TRANSCRIPT: &str = "transcript.jsonl";

/// What a session is to do, and within what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpec {
    /// Its id.
    pub session: SessionId,
    /// Its folder, `sessions/<id>`; made by [`start`], and its parent must exist.
    pub folder: PathBuf,
    /// What it does.
    pub work: SessionWork,
    /// Where they run.
    pub directory: PathBuf,
    /// Their whole environment but for `PROCTOR_OUTPUT`. Never written to disk.
    pub environment: Vec<(OsString, OsString)>,
    /// Values that are taken out of everything that is written. They reach the host by its leash alone.
    pub secrets: Vec<Vec<u8>>,
    /// How long all of them together may take.
    pub wall_limit: Duration,
    /// Names of programs that may outlive the session.
    pub linger: Vec<String>,
    /// The lock that its host holds while it lives, `sessions/<id>.lock`.
    pub lock: PathBuf,
}

/// What a session does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionWork {
    /// Runs these bash texts in order until one fails.
    Shells(Vec<String>),
    /// Runs one agent.
    Agent(Box<AgentRun>),
}

/// One agent to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRun {
    /// What its engine is called.
    pub name: EngineName,
    /// The engine whose lines it prints.
    pub engine: EngineKind,
    /// Program and arguments, complete, in their box where there is one.
    pub argv: Vec<OsString>,
    /// The same to go on with the conversation [`CONVERSATION`], should the answer not be the result that is owed.
    pub again: Vec<OsString>,
    /// Variables that its engine sets, beside those of the session.
    pub environment: Vec<(OsString, OsString)>,
    /// What it begins with; [`start`] writes the texts to [`AgentFiles::system`] and [`AgentFiles::prompt`].
    pub opening: Opening,
    /// Files of the engine's own; [`start`] writes them into [`AgentFiles::own`].
    pub files: Vec<(String, String)>,
    /// How long it may give no sign of life: nothing printed that counts, and no processor time used.
    pub silence_limit: Duration,
    /// Cap on its turns, which the host holds where the engine can't.
    pub max_turns: Option<u32>,
    /// Cap on what it may cost, which the host holds where the engine can't.
    pub max_cost: Option<MicroDollars>,
}

/// Where an agent works, and how long it may be silent there.
#[derive(Debug, Clone, Copy)]
pub struct AgentPlace<'a> {
    /// Its directory.
    pub directory: &'a Path,
    /// [`AgentRun::silence_limit`].
    pub silence_limit: Duration,
}

impl AgentRun {
    /// The agent that an engine starts for this task, in this directory and in no box. What the engine can't do by itself
    /// goes into the words: a system prompt, the schema of a result.
    pub fn new(setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, variable: &Variable<'_>, place: AgentPlace<'_>) -> Self {
        let driver = engine(setup.kind);
        let able = driver.capabilities();
        let command = driver.command(setup, task, files, variable);
        let again = AgentTask { resume: Some(CONVERSATION.to_owned()), ..task.clone() };
        let mut opening = Opening {
            system: task.system.clone(),
            prompt: task.prompt.clone(),
            resume: task.resume.clone(),
            model: task.model.clone(),
            schema: task.schema.clone(),
            access: task.access,
            permission: setup.permission,
            directory: place.directory.to_owned(),
            input: command.input,
            begun: None,
            used_before: Usage::default(),
            tools: files.tools.clone(),
            hears_lessons: false,
        };
        if let Some(schema) = task.schema.as_deref().filter(|_| !able.structured_result) {
            opening.prompt = format!("{}\n\n{}", opening.prompt, demand(schema));
        }
        if !able.system_prompt {
            opening.prompt = format!("{}\n\n{}", std::mem::take(&mut opening.system), opening.prompt);
        }
        Self {
            name: setup.name.clone(),
            engine: setup.kind,
            argv: command.argv,
            again: driver.command(setup, &again, files, variable).argv,
            environment: command.environment,
            files: command.files,
            opening,
            silence_limit: place.silence_limit,
            max_turns: task.max_turns,
            max_cost: task.max_cost,
        }
    }

    /// The same in a box that `wrap` puts a command into.
    #[must_use]
    pub fn within(self, wrap: impl Fn(Vec<OsString>) -> Vec<OsString>) -> Self {
        Self { argv: wrap(self.argv), again: wrap(self.again), ..self }
    }
}

/// The files of an agent's session that its command line may name; [`start`] writes them. It has no tools of the session
/// until [`AgentFiles::tools`] names their server.
pub fn agent_files(folder: &Path, conversations: &Path) -> AgentFiles {
    let folder = SessionFolder::new(folder);
    let (system, prompt, own) = (folder.system(), folder.prompt(), folder.own());
    AgentFiles { system, prompt, conversations: conversations.to_owned(), own, tools: None }
}

/// The socket by which the tools of the session with this folder are called.
pub(crate) fn tool_socket(folder: &Path) -> PathBuf {
    SessionFolder::new(folder).tools()
}

/// Why a session could not be started, found or watched.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The folder or a file in it can't be made or read.
    #[error("use the session's files: {}", path.display())]
    Files {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Durable(#[from] DurableError),
    /// The lock can't be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The host could not be started.
    #[error("start the session's host")]
    Start(#[source] ProgramError),
    /// The host did not take the session.
    #[error("hand session {session} to its host")]
    HandOver {
        /// The session.
        session: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A newer Proctor wrote it.
    #[error("read {}: it was written by a newer Proctor (version {version}); use that one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it names.
        version: u64,
    },
    /// It is not what Proctor writes.
    #[error("read {}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// One sentence.
        reason: String,
    },
    /// The session's host lives, so nothing may take its place.
    #[error("take over session {session}: its host lives ({holder})")]
    StillAlive {
        /// The session.
        session: String,
        /// What the host wrote into its lock.
        holder: String,
    },
    /// It was started before, so there may be a host under way.
    #[error("start session {session}: it was started before")]
    AlreadyStarted {
        /// The session.
        session: String,
    },
    /// Somebody holds its lock and is not to be reached.
    #[error("reach the host of session {session}: its lock is held ({holder}), and nobody answers")]
    Unreachable {
        /// The session.
        session: String,
        /// What the holder wrote into the lock.
        holder: String,
    },
    /// The host could not do its job, and said why.
    #[error("run session {session}: {reason}")]
    Failed {
        /// The session.
        session: String,
        /// One sentence.
        reason: String,
    },
    /// The session was given up; its id is never used again.
    #[error("start session {session}: it was given up before")]
    Fenced {
        /// The session.
        session: String,
    },
}

/// When a session's host, living or dead, last gave a sign of life. While a session runs, it does so every second.
pub fn last_sign_of_life(lock: &Path) -> Option<SystemTime> {
    proctor_process::lock::last_touched(lock)
}
