//! What this crate declines to do for the sake of somebody's work.

use std::path::PathBuf;

use proctor_domain::RepoPath;
use proctor_process::lock::LockError;

/// Why something about worktrees or the git directory is not done. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A worktree would begin without the submodule's files, and its commits could not be merged back.
    #[error("work in a worktree of its own: {path} is a submodule, which worktrees don't share")]
    Submodule {
        /// Where it lies.
        path: RepoPath,
    },
    /// There is nothing that a worktree could start at.
    #[error("work in a worktree of its own: the repository has no commit yet")]
    NoCommit,
    /// Something else is where the worktree is to be.
    #[error("make a worktree at {}: what is there is not one of this repository's", path.display())]
    InTheWay {
        /// Where.
        path: PathBuf,
    },
    /// The worktree is on another branch.
    #[error("use the worktree {}: it is not on the branch {branch}", path.display())]
    OtherBranch {
        /// Where.
        path: PathBuf,
        /// The branch that was asked for.
        branch: String,
    },
    /// Somebody locked the worktree with `git worktree lock`.
    #[error("remove the worktree {}: it was locked with `git worktree lock`", path.display())]
    LockedWorktree {
        /// Where.
        path: PathBuf,
    },
    /// A repository inside a worktree can't be saved with it.
    #[error("remove the worktree {}: {repository} in it is a git repository of its own, or a submodule with changes", path.display())]
    NestedRepository {
        /// The worktree.
        path: PathBuf,
        /// Where in it.
        repository: RepoPath,
    },
    /// The lock around git's list of worktrees can't be taken.
    #[error("lock the list of worktrees")]
    WorktreesLock {
        /// Why not.
        #[source]
        source: LockError,
    },
    /// The git directory itself is gone, and with it what could be put back.
    #[error("put the git directory back: {} is gone", path.display())]
    GitDirectoryGone {
        /// Where it was.
        path: PathBuf,
    },
    /// A file was too large, or no plain file, when it was remembered.
    #[error("put {} back: its contents were not kept, because it was no plain file or over 4 MiB", path.display())]
    NotKept {
        /// Which.
        path: PathBuf,
    },
}

impl Refusal {
    /// The exact thing to do about it, where there is one.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Submodule { .. } => Some("leave `isolation: worktree` out".to_owned()),
            Self::NoCommit => Some("make a first commit".to_owned()),
            Self::InTheWay { path } | Self::OtherBranch { path, .. } => Some(format!("move {} away", path.display())),
            Self::LockedWorktree { path } => Some(format!("git worktree unlock {}", path.display())),
            Self::NestedRepository { repository, .. } => Some(format!("move {repository} out of the worktree")),
            Self::GitDirectoryGone { .. } => Some("if a step moved it, move it back".to_owned()),
            Self::WorktreesLock { .. } | Self::NotKept { .. } => None,
        }
    }
}
