//! One work tree and the git directory that was recorded for it.

use std::path::{Path, PathBuf};

use proctor_domain::{Branch, Oid};

use crate::{GitEnvironment, WorkspaceError};

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 40 hex digits.
    Sha1,
    /// 64 hex digits.
    Sha256,
}

/// Where HEAD is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What it points at.
    pub branch: Branch,
    /// The commit; `None` on a branch that has none yet.
    pub commit: Option<Oid>,
}

/// One work tree of one repository.
#[derive(Debug)]
pub struct Repository {
    /// The git directory of this work tree, absolute.
    pub git_dir: PathBuf,
    /// The git directory that all work trees of the repository share, absolute.
    pub common_dir: PathBuf,
    /// The top of the work tree, absolute.
    pub work_tree: PathBuf,
    /// How objects are named.
    pub object_format: ObjectFormat,
    pub(crate) environment: GitEnvironment,
}

impl Repository {
    /// Finds the repository that `directory` is in.
    pub fn discover(directory: &Path, environment: &GitEnvironment) -> Result<Self, WorkspaceError> {
        let _ = environment;
        Err(WorkspaceError::NotARepository { directory: directory.to_owned() })
    }

    /// Where HEAD is. Needs no process where references are plain files.
    pub fn head(&self) -> Result<Head, WorkspaceError> {
        unimplemented!()
    }

    /// The merge, rebase, cherry-pick, revert, bisect or am in progress, by its name. Needs no process.
    pub fn operation_in_progress(&self) -> Option<String> {
        unimplemented!()
    }

    /// Whether a commit would run a hook: pre-commit, prepare-commit-msg, commit-msg or post-commit. Needs no process.
    pub fn has_commit_hooks(&self) -> Result<bool, WorkspaceError> {
        unimplemented!()
    }

    /// Refreshes the stat cache in the index once, so that the statuses that follow need not read files again.
    pub fn refresh_index(&self) -> Result<(), WorkspaceError> {
        unimplemented!()
    }

    /// Git's own housekeeping, which Proctor's commits leave out: called once at the end of a run; does not wait for it.
    pub fn maintenance(&self) -> Result<(), WorkspaceError> {
        unimplemented!()
    }
}
