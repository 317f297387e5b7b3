//! What can go wrong, each with what a person can do about it.

use std::path::{Path, PathBuf};

use proctor_domain::RunId;
use rusqlite::ErrorCode;

/// The journal as a whole can't be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system has no room.
    #[error("write the journal {}: the disk is full", path.display())]
    Full {
        /// The journal's file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// The file or its folder can't be written by this user.
    #[error("write the journal {}: it is read-only here", path.display())]
    ReadOnly {
        /// The journal's file.
        path: PathBuf,
        /// What SQLite said; `None` where this program opened it for reading only.
        #[source]
        source: Option<rusqlite::Error>,
    },
    /// Another process held it for longer than we wait.
    #[error("use the journal {}: another process has kept it locked for too long", path.display())]
    Busy {
        /// The journal's file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// Its bytes are not what SQLite wrote.
    #[error("read the journal {}: it is damaged", path.display())]
    Corrupt {
        /// The journal's file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// A later version of Proctor made it; it may be read but not written.
    #[error("write the journal {}: a newer proctor made it (format {found}, this one knows {known})", path.display())]
    Newer {
        /// The journal's file.
        path: PathBuf,
        /// The format it has.
        found: i64,
        /// The newest format this program knows.
        known: i64,
    },
    /// There is a database of that name that is none of ours.
    #[error("use {} as the journal: it is another program's database", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It has no content, though it is never stored without.
    #[error("read the journal {}: it is empty, so it was cut off", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// Somebody moved or removed it while it was in use; what is written now would be lost.
    #[error("write the journal {}: it was moved or removed while proctor was using it", path.display())]
    Moved {
        /// Where it was.
        path: PathBuf,
    },
    /// The file does not exist, and this was not the time to make it.
    #[error("open the journal {}: there is none", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused something around the journal.
    #[error("{doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// SQLite could not read or write the file.
    #[error("use the journal {}: reading or writing it failed", path.display())]
    Storage {
        /// The journal's file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// SQLite refused a statement of ours: a mistake in this program, or a journal somebody changed by hand.
    #[error("use the journal {}", path.display())]
    Statement {
        /// The journal's file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
}

impl JournalError {
    /// Sorts what SQLite said by what a person can do about it.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let Some(failure) = source.sqlite_error() else { return Self::Statement { path, source } };
        let is = |codes: &[ErrorCode]| codes.contains(&failure.code);
        // A full file system shows up as a failed growth of the shared-memory file, not only as "full".
        if is(&[ErrorCode::DiskFull]) || failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE {
            Self::Full { path, source }
        } else if is(&[ErrorCode::ReadOnly]) {
            Self::ReadOnly { path, source: Some(source) }
        } else if is(&[ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked, ErrorCode::FileLockingProtocolFailed]) {
            Self::Busy { path, source }
        } else if is(&[ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase]) {
            Self::Corrupt { path, source }
        } else if is(&[ErrorCode::SystemIoFailure, ErrorCode::CannotOpen, ErrorCode::PermissionDenied]) {
            Self::Storage { path, source }
        } else {
            Self::Statement { path, source }
        }
    }

    /// What a person can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Full { .. } => Some("make room on that file system, then `proctor procedure resume`".to_owned()),
            Self::ReadOnly { .. } => Some("`proctor where` names the folder; it must be writable by you".to_owned()),
            Self::Busy { .. } => Some("see what `proctor runs` and `proctor doctor` say is running, then try again".to_owned()),
            Self::Corrupt { .. } | Self::Truncated { .. } => Some(
                "`proctor doctor` says what can still be read; `proctor doctor --repair` moves that to a new file and keeps the damaged one"
                    .to_owned(),
            ),
            Self::Newer { .. } => Some("use the newer proctor for this repository".to_owned()),
            Self::Foreign { .. } => Some("move that file away; `proctor where` names its folder".to_owned()),
            Self::Moved { .. } => Some("put the folder back if you still have it, then `proctor procedure resume`".to_owned()),
            Self::Missing { .. } => Some("nothing has run in this repository yet".to_owned()),
            Self::Io { .. } | Self::Storage { .. } => {
                Some("check the disk and the folder's permissions; `proctor where` names it".to_owned())
            }
            Self::Statement { .. } => None,
        }
    }

    /// Whether the same call may succeed later without anybody doing anything.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Busy { .. } => true,
            Self::Full { .. }
            | Self::ReadOnly { .. }
            | Self::Corrupt { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Truncated { .. }
            | Self::Moved { .. }
            | Self::Missing { .. }
            | Self::Io { .. }
            | Self::Storage { .. }
            | Self::Statement { .. } => false,
        }
    }
}

/// Events could not be added. Nothing of them was kept.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Somebody else appended to the same run.
    #[error("record an event of {run}: its record is at version {found}, not {expected}, so another proctor is driving it")]
    Conflict {
        /// The run.
        run: RunId,
        /// The version the caller knew.
        expected: u64,
        /// The version the stream has.
        found: u64,
    },
    /// A stream begins with `Started`, and only there.
    #[error("record an event of {run}: a run is started exactly once, by its first event")]
    OutOfPlace {
        /// The run.
        run: RunId,
    },
    /// An event can't be written as JSON.
    #[error("write an event of {run} as JSON")]
    Unwritable {
        /// The run.
        run: RunId,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The journal can't be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A stream could not be read whole.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A record is not readable, or missing.
    #[error("read the record of {run}: event {version} is damaged ({reason})")]
    Damaged {
        /// The run.
        run: RunId,
        /// The event's place in the stream, from 1.
        version: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A record was written by a later version of Proctor.
    #[error("read the record of {run}: event {version} was written by a newer proctor (form {found}, this one knows {known})")]
    Newer {
        /// The run.
        run: RunId,
        /// The event's place in the stream, from 1.
        version: u64,
        /// The form it has.
        found: u64,
        /// The newest form this program knows.
        known: u64,
    },
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A short id does not name exactly one thing.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing begins like that.
    #[error("find `{prefix}`: no {kind} has an id that begins like that")]
    NotFound {
        /// What was given.
        prefix: String,
        /// `run` or `session`.
        kind: &'static str,
    },
    /// Several begin like that.
    #[error("find `{prefix}`: it begins the ids of several {kind}s: {}", candidates.join(", "))]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// `run` or `session`.
        kind: &'static str,
        /// Ids that begin like that, at most ten.
        candidates: Vec<String>,
    },
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A kept text can't be given back.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There is none of that name.
    #[error("read the kept card {hash}: there is none of that name")]
    Missing {
        /// The name.
        hash: String,
    },
    /// It is not the text that was kept.
    #[error("read the kept card {hash}: its text is damaged")]
    Damaged {
        /// The name.
        hash: String,
    },
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
