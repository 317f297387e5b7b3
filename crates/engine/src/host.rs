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
//! Agents come as another kind of child; what they share with shells is everything but the module `supervise`.

mod assignment;
mod attached;
mod control;
mod driver;
mod excerpt;
mod files;
mod kennel;
mod line;
mod orphans;
mod outputs;
mod serve;
mod streams;
mod supervise;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proctor_domain::SessionId;
use proctor_process::durable::DurableError;
use proctor_process::lock::LockError;

pub use attached::{Attached, Progress, Stream, Waited};
pub use driver::{Found, fence, find, start};
pub use kennel::dismiss_hosts;
use proctor_process::ProgramError;
pub use serve::run_host;

/// What a session is to do, and within what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpec {
    /// Its id.
    pub session: SessionId,
    /// Its folder, `sessions/<id>`; made by [`start`], and its parent must exist.
    pub folder: PathBuf,
    /// The bash texts, run in order until one fails.
    pub shells: Vec<String>,
    /// Where they run.
    pub directory: PathBuf,
    /// Their whole environment but for `PROCTOR_OUTPUT`. Never written to disk.
    pub environment: Vec<(OsString, OsString)>,
    /// How long all of them together may take.
    pub wall_limit: Duration,
    /// Names of programs that may outlive the session.
    pub linger: Vec<String>,
    /// The lock that its host holds while it lives, `sessions/<id>.lock`.
    pub lock: PathBuf,
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
