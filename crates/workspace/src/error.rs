//! What can go wrong between Proctor and git.

use std::io;
use std::path::PathBuf;

use proctor_domain::RepoPath;

/// Why a repository can't be used or git could not do what it was asked. Reads after "failed to …: ".
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is no git program on PATH.
    #[error("git is not installed (not found on PATH)")]
    GitMissing,
    /// The folder is in no work tree.
    #[error("{} is not inside a git repository", directory.display())]
    NotARepository {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// The repository has no work tree.
    #[error("{} is a bare repository, which has no files to work on", directory.display())]
    Bare {
        /// Where it was found.
        directory: PathBuf,
    },
    /// The repository belongs to somebody else and git does not trust it.
    #[error("git does not trust {}, because it belongs to another user", directory.display())]
    DubiousOwnership {
        /// The folder that git names.
        directory: PathBuf,
    },
    /// Git knows no name and address for commits.
    #[error("git knows no name and e-mail address for commits")]
    NoIdentity,
    /// Another process holds the index, or a dead one left its lock.
    #[error("{} exists: {}", path.display(), if *live { "another git process is at work in this repository" } else { "a git process that is gone left it behind" })]
    IndexLocked {
        /// The lock file.
        path: PathBuf,
        /// Whether a process that can hold it lives.
        live: bool,
    },
    /// A path can't be put back without deleting something that was not named.
    #[error("{path} can't be put back: {by} is in the way and is not the run's")]
    RestoreBlocked {
        /// The path that was to be put back.
        path: RepoPath,
        /// What is in its place.
        by: RepoPath,
    },
    /// Signing a commit does not work.
    #[error("git can't sign commits: {output}")]
    Signing {
        /// What git printed.
        output: String,
    },
    /// Git did not end within its limit.
    #[error("git {command} did not end within {seconds} s")]
    TimedOut {
        /// The git command.
        command: String,
        /// The limit.
        seconds: u64,
    },
    /// Git refused.
    #[error("git {command} failed ({ending}): {output}")]
    Git {
        /// The git command.
        command: String,
        /// Its exit code or signal, as text.
        ending: String,
        /// What it printed to stderr.
        output: String,
    },
    /// Git printed something that we can't read.
    #[error("git {command} printed something unexpected: {output}")]
    Unreadable {
        /// The git command.
        command: String,
        /// The start of what it printed.
        output: String,
    },
    /// A file could not be read, written or removed.
    #[error("{} {action}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What was tried, as in "could not be read".
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// The exact thing to do about it, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::GitMissing => Some("install git 2.30 or later".to_owned()),
            Self::NotARepository { .. } => Some("git init".to_owned()),
            Self::Bare { .. } => Some("git worktree add ../work, then run it there".to_owned()),
            Self::DubiousOwnership { directory } => Some(format!("git config --global --add safe.directory '{}'", directory.display())),
            Self::NoIdentity => {
                Some("git config --global user.name 'Your Name' && git config --global user.email you@example.com".to_owned())
            }
            Self::IndexLocked { path, live: false } => Some(format!("rm '{}'", path.display())),
            Self::IndexLocked { live: true, .. } => Some("wait until that git command has ended".to_owned()),
            Self::RestoreBlocked { by, .. } => Some(format!("move {by} out of the way")),
            Self::Signing { .. } => Some("git config commit.gpgsign false, or unlock the signing key".to_owned()),
            Self::TimedOut { .. } | Self::Git { .. } | Self::Unreadable { .. } | Self::File { .. } => None,
        }
    }
}
