//! The session host: both ends of it.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use proctor_domain::SessionId;
use proctor_domain::session::SessionReport;
use proctor_process::durable::DurableError;
use proctor_process::family::EndedProcesses;
use proctor_process::lock::LockError;
use proctor_process::{ProcessIdentity, ProgramError};

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
    /// The session was given up; its id is never used again.
    #[error("start session {session}: it was given up before")]
    Fenced {
        /// The session.
        session: String,
    },
}

/// Where a session stands that was opened before.
#[derive(Debug)]
pub enum Found {
    /// Its host lives.
    Live(Attached),
    /// Its host reported.
    Ended(SessionReport),
    /// Its host is gone and left no report. [`fence`] it before anything takes its place.
    Lost,
    /// No host was ever started for it, and none can be under way: it may be started.
    NeverStarted,
}

/// What ended a wait.
#[derive(Debug)]
pub enum Waited {
    /// The host reported.
    Ended(SessionReport),
    /// The host died without a report. It is fenced, and what it left behind was ended.
    Lost,
    /// The caller's descriptor became readable; the session goes on.
    Woken,
}

/// One of a session's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// New output of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Which stream.
    pub stream: Stream,
    /// The new bytes, not cut at lines or characters.
    pub bytes: &'a [u8],
}

/// A driver's connection to a session. Dropping it leaves the session running.
#[derive(Debug)]
pub struct Attached {}

impl Attached {
    /// The host, where it is known.
    pub fn host(&self) -> Option<&ProcessIdentity> {
        todo!()
    }

    /// Asks for [`Progress`] from here on, starting with what the session printed so far.
    pub fn follow(&mut self) {
        todo!()
    }

    /// Asks the host to end the session; it does so within ten seconds.
    pub fn interrupt(&mut self) {
        todo!()
    }

    /// Waits until the session is over or `wake` becomes readable.
    ///
    /// # Errors
    /// The report can't be read, or the host can't be told to be dead.
    pub fn wait(&mut self, wake: BorrowedFd<'_>, on_output: &mut dyn FnMut(Progress<'_>)) -> Result<Waited, HostError> {
        let _ = (wake, on_output);
        todo!()
    }
}

/// Starts a session's host, detached, with `program host <folder>`.
///
/// # Errors
/// Nothing runs when this fails.
pub fn start(spec: &SessionSpec, program: &Path) -> Result<Attached, HostError> {
    let _ = (spec, program);
    todo!()
}

/// Looks where a session stands.
///
/// # Errors
/// Its files can't be read, or a newer Proctor wrote them.
pub fn find(folder: &Path, lock: &Path) -> Result<Found, HostError> {
    let _ = (folder, lock);
    todo!()
}

/// Takes over from a host that is dead or never came: a late one will find the fence and do nothing, and
/// processes of the session that still run are ended.
///
/// # Errors
/// The host lives, or the fence can't be written.
pub fn fence(folder: &Path, lock: &Path) -> Result<EndedProcesses, HostError> {
    let _ = (folder, lock);
    todo!()
}

/// When a session's host, living or dead, last gave a sign of life.
pub fn last_sign_of_life(lock: &Path) -> Option<SystemTime> {
    proctor_process::lock::last_touched(lock)
}

/// The hidden command `proctor host <folder>`: runs the session whose spec lies in `folder`.
///
/// It must be called before anything else of the process's own: from a single thread, with the control
/// socket at standard input.
pub fn run_host(folder: &Path) -> ExitCode {
    let _ = folder;
    todo!()
}
