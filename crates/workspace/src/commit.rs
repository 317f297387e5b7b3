//! Commits of exactly the named paths.

use std::path::PathBuf;
use std::time::Duration;

use proctor_domain::{Oid, RepoPath};

use crate::{Repository, WorkspaceError};

/// Whether a commit runs the repository's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    /// As the user's own commit would.
    Run,
    /// `--no-verify`: for commits that hold bookkeeping only.
    Skip,
}

/// A commit to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRequest {
    /// The paths it takes, with their present contents (absent ones as deletions).
    pub paths: Vec<RepoPath>,
    /// Those of `paths` that the index does not know (see [`crate::Status::untracked`]). One that is missing here costs a process, not the commit.
    pub untracked: Vec<RepoPath>,
    /// The whole message, trailers included.
    pub message: String,
    /// Whether hooks run.
    pub hooks: Hooks,
    /// The value of `PROCTOR_EFFECT` for git and its hooks, by which a resume finds them.
    pub marker: String,
    /// Gets what git and the hooks print. A file, so that git outlives us.
    pub log: PathBuf,
    /// How long git and the hooks may take.
    pub limit: Option<Duration>,
}

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitEnd {
    /// It exists.
    Committed(Oid),
    /// A hook refused it.
    HookRefused {
        /// What it printed.
        output: String,
    },
    /// It could not be signed.
    SigningFailed {
        /// What git printed.
        output: String,
    },
    /// The paths are as they are in HEAD.
    NothingToCommit,
    /// Git refused it for another reason.
    Refused {
        /// What git printed.
        output: String,
    },
}

impl Repository {
    /// Commits exactly these paths. What else is staged stays staged.
    pub fn commit(&self, request: &CommitRequest) -> Result<CommitEnd, WorkspaceError> {
        let _ = request;
        unimplemented!()
    }
}
