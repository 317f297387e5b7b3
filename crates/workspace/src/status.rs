//! What is changed in a work tree.

use proctor_domain::{Branch, Oid, RepoPath};

use crate::{Repository, WorkspaceError};

/// A work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The commit HEAD is at; `None` on a branch that has none yet.
    pub head: Option<Oid>,
    /// What HEAD points at.
    pub branch: Branch,
    /// What differs from HEAD, in git's order.
    pub changes: Vec<Change>,
    /// The merge, rebase, cherry-pick, revert, bisect or am in progress.
    pub operation: Option<String>,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub path: RepoPath,
    /// How it differs from HEAD.
    pub kind: ChangeKind,
    /// Whether the index differs from HEAD here: somebody ran `git add` (or `git rm`).
    pub staged: bool,
}

/// How a path differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// Contents, mode or type.
    Modified,
    /// In the index, not in HEAD.
    Added,
    /// In HEAD, not in the work tree or not in the index.
    Deleted,
    /// Known to neither.
    Untracked,
    /// In a conflict.
    Unmerged,
    /// A submodule whose checked-out or staged commit differs; its own files are clean.
    SubmoduleMoved,
    /// A submodule with changes of its own that are not committed in it.
    SubmoduleDirty,
    /// An untracked folder that is a repository of its own; the path ends in `/`.
    NestedRepository,
}

impl Status {
    /// The paths that the index does not know yet.
    pub fn untracked(&self) -> Vec<RepoPath> {
        self.changes.iter().filter(|change| change.kind == ChangeKind::Untracked).map(|change| change.path.clone()).collect()
    }

    /// All changed paths.
    pub fn paths(&self) -> Vec<RepoPath> {
        self.changes.iter().map(|change| change.path.clone()).collect()
    }
}

/// Why changes are too much to be committed unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TooMuch {
    /// A repository of its own would become a dangling pointer.
    NestedRepository {
        /// Where it lies.
        path: RepoPath,
    },
    /// More than 2,000 new files.
    Files {
        /// How many.
        count: usize,
        /// The folder that holds most of them.
        mostly: RepoPath,
    },
    /// More than 50 MiB in new files.
    Bytes {
        /// How many.
        bytes: u64,
        /// The largest file.
        largest: RepoPath,
    },
}

/// Whether these changes hold something that Proctor does not commit unasked.
pub fn too_much(repository: &Repository, changes: &[Change]) -> Result<(), TooMuch> {
    let _ = (repository, changes);
    unimplemented!()
}

impl Repository {
    /// What is changed, in one git process that runs nothing of the repository's.
    pub fn status(&self) -> Result<Status, WorkspaceError> {
        unimplemented!()
    }
}
