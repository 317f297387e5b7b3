//! Conversations of scripted agents: one file each, held by one process at a time.

use std::path::{Path, PathBuf};

use proctor_process::durable::{self, Durability, DurableError};
use proctor_process::lock::{self, Attempt, HeldLock, LockError};
use serde::{Deserialize, Serialize};

/// The version of the files.
const VERSION: u32 = 1;

/// Why a conversation can't be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConversationError {
    #[error("no conversation found with id {id}")]
    Unknown { id: String },
    #[error("the conversation {id} is in use")]
    InUse { id: String },
    #[error("read the conversation {}: it is damaged or of another version", path.display())]
    Damaged { path: PathBuf },
    #[error("draw an id")]
    Chance(#[from] getrandom::Error),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Write(#[from] DurableError),
}

/// Where a conversation is in the script: everything before this is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) scenario: usize,
    pub(super) turn: usize,
    pub(super) action: usize,
}

/// A conversation that this process holds.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) place: Place,
    path: PathBuf,
    _held: HeldLock,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    version: u32,
    place: Place,
}

impl Conversation {
    /// A new one.
    pub(super) fn begin(folder: &Path) -> Result<Self, ConversationError> {
        let id = format!("scripted-{:016x}", getrandom::u64()?);
        let held = hold(folder, &id)?;
        Ok(Self { path: file(folder, &id), id, place: Place::default(), _held: held })
    }

    /// The one with this id, as it was left.
    pub(super) fn resume(folder: &Path, id: &str) -> Result<Self, ConversationError> {
        let unknown = || ConversationError::Unknown { id: id.to_owned() };
        // The id becomes a file name.
        let is_name = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let path = file(folder, id);
        if !is_name || !path.exists() {
            return Err(unknown());
        }
        let held = hold(folder, id)?;
        let damaged = || ConversationError::Damaged { path: path.clone() };
        let kept: Kept = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(damaged)?;
        if kept.version != VERSION {
            return Err(damaged());
        }
        Ok(Self { id: id.to_owned(), place: kept.place, path, _held: held })
    }

    /// Says on the disk that everything before `place` is done.
    pub(super) fn mark(&mut self, place: Place) -> Result<(), ConversationError> {
        self.place = place;
        let kept = serde_json::to_vec(&Kept { version: VERSION, place }).unwrap_or_default();
        // Not synced: after a power cut the agent is gone as well, and repeats what it finds unmarked.
        Ok(durable::write(&self.path, &kept, Durability::Renamed)?)
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

fn hold(folder: &Path, id: &str) -> Result<HeldLock, ConversationError> {
    match lock::try_acquire(&folder.join(format!("{id}.lock")), "")? {
        Attempt::Acquired(held) => Ok(held),
        Attempt::Held { .. } => Err(ConversationError::InUse { id: id.to_owned() }),
    }
}
