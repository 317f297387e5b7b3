//! Why memory can't be read or changed.

use std::io;
use std::path::PathBuf;

use proctor_process::durable::DurableError;
use proctor_process::lock::LockError;

use super::Damage;
use crate::record::Incomplete;

/// Why memory can't be read or changed. Its files are as they were.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file is damaged.
    #[error("{} can't be used: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        damage: Damage,
    },
    /// A newer version of Proctor wrote a file; it can be read, but not written.
    #[error("{} was written by a newer version of Proctor, which alone can change it", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The folder is a way out of the place where it should be.
    #[error("{} leads to another place, {}", path.display(), target.display())]
    Elsewhere {
        /// Where the folder should be.
        path: PathBuf,
        /// Where it is.
        target: PathBuf,
    },
    /// A file or the folder can't be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// What can't be read.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The folder can't be made.
    #[error("make the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Somebody else holds the lock for long.
    #[error("{} is being changed by another process", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// Somebody edits faster than we can write.
    #[error("{} changes all the time", path.display())]
    Restless {
        /// The folder.
        path: PathBuf,
    },
    /// A file can't be written.
    #[error(transparent)]
    Write(#[from] DurableError),
    /// The lock can't be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// No record has this id.
    #[error("there is no record `{text}`")]
    NoRecord {
        /// What was asked for.
        text: String,
    },
    /// Several records have ids that begin so.
    #[error("`{text}` is the beginning of several ids: {}", ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// Those that it could be.
        ids: Vec<String>,
    },
    /// It does not say what a record has to say.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// A record was changed while somebody thought about it.
    #[error("record {id} was changed meanwhile")]
    ChangedMeanwhile {
        /// The record.
        id: String,
    },
}

impl StoreError {
    /// What helps, where something does.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Damaged { damage, .. } => Some(damage.remedy().to_owned()),
            Self::Newer { .. } => Some("use the newer version".to_owned()),
            Self::Elsewhere { .. } => Some("put an ordinary folder in its place".to_owned()),
            Self::NoRecord { .. } => Some("see `proctor memory list --all`".to_owned()),
            Self::Ambiguous { .. } => Some("give more of the id".to_owned()),
            Self::ChangedMeanwhile { .. } => Some("look at it again".to_owned()),
            Self::Busy { .. } | Self::Restless { .. } => Some("try again".to_owned()),
            Self::Unreadable { .. } | Self::Folder { .. } | Self::Write(_) | Self::Lock(_) | Self::Incomplete(_) => None,
        }
    }
}
