//! What can go wrong between Proctor and git.

use std::io;
use std::path::{Path, PathBuf};

use proctor_domain::RepoPath;
use proctor_process::ProgramError;
use proctor_process::durable::DurableError;

use crate::refusal::Refusal;

/// Why a repository can't be used or git could not do what it was asked. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is no git program on PATH.
    #[error("find git on PATH")]
    GitMissing,
    /// The folder is in no repository.
    #[error("find a git repository at or above {}", directory.display())]
    NotARepository {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// The folder is part of git's own files.
    #[error("work in {}: it belongs to git's own files, not to a work tree", directory.display())]
    InsideGitDirectory {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// The repository has no work tree.
    #[error("work in {}: it is a bare repository, which has no files", directory.display())]
    Bare {
        /// Where it was found.
        directory: PathBuf,
    },
    /// The repository belongs to somebody else and git does not trust it.
    #[error("use {}: it belongs to another user, so git does not trust it", directory.display())]
    DubiousOwnership {
        /// The folder that git names.
        directory: PathBuf,
    },
    /// Git knows no name and address for commits.
    #[error("commit: git knows no name and e-mail address")]
    NoIdentity,
    /// Another process holds a lock of the repository, or a dead one left it.
    #[error("change the repository: {} exists, and {}", path.display(), whose(*live))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Whether a process that can hold it lives.
        live: bool,
    },
    /// A path can't be put back without deleting something that was not named.
    #[error("put {path} back: {by} is in the way, and it is not known to be the run's")]
    RestoreBlocked {
        /// The path that was to be put back.
        path: RepoPath,
        /// What is in its place.
        by: RepoPath,
    },
    /// Git can't keep what is under this name.
    #[error("save {path}: git does not take a file of that name")]
    Unkeepable {
        /// Which.
        path: RepoPath,
    },
    /// Signing a commit does not work.
    #[error("sign a commit: {output}")]
    Signing {
        /// What git printed.
        output: String,
    },
    /// A reference that is not Proctor's was to be changed.
    #[error("change {reference}: only references under refs/proctor/ are Proctor's")]
    ForeignReference {
        /// Which.
        reference: String,
    },
    /// It would cost somebody's work, or can't be done in such a repository.
    #[error(transparent)]
    Refused(Refusal),
    /// Git did not end within its limit and was ended.
    #[error("run git {command}: it did not end within {seconds} s")]
    TimedOut {
        /// The git command.
        command: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// Git refused.
    #[error("run git {command} ({ending}): {output}")]
    Git {
        /// The git command.
        command: &'static str,
        /// Its exit code or signal, as text.
        ending: String,
        /// What it printed to stderr.
        output: String,
    },
    /// Git printed something that we can't read.
    #[error("read what git {command} printed: {output}")]
    Unreadable {
        /// The git command.
        command: &'static str,
        /// The start of what it printed.
        output: String,
    },
    /// Git could not be started.
    #[error("run git {command}")]
    Start {
        /// The git command.
        command: &'static str,
        /// Why not.
        #[source]
        source: ProgramError,
    },
    /// What is to outlive this process could not be written.
    #[error("keep {} for a resume", path.display())]
    Keep {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: DurableError,
    },
    /// A file could not be read, written or removed.
    #[error("{action} {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What was tried: `read`, `write`, `remove`.
        action: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

fn whose(live: bool) -> &'static str {
    if live { "another git process is at work there" } else { "the git process that made it is gone" }
}

impl WorkspaceError {
    /// The exact thing to do about it, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::GitMissing => Some("install git 2.31 or later".to_owned()),
            Self::NotARepository { .. } => Some("git init".to_owned()),
            Self::InsideGitDirectory { .. } => Some("go to the top of the work tree".to_owned()),
            Self::Bare { .. } => Some("make a work tree with `git worktree add ../work` and go there".to_owned()),
            Self::DubiousOwnership { directory } => Some(format!("git config --global --add safe.directory {}", shell_quoted(directory))),
            Self::NoIdentity => {
                Some("git config --global user.name 'Your Name' && git config --global user.email you@example.com".to_owned())
            }
            Self::Locked { path, live: false } => Some(format!("rm {}", shell_quoted(path))),
            Self::Locked { live: true, .. } => Some("wait until that git command has ended, then resume".to_owned()),
            Self::Unkeepable { path } => Some(format!("move {path} out of the working tree")),
            Self::RestoreBlocked { by, .. } => Some(format!("move {by} out of the work tree, then resume")),
            Self::Signing { .. } => Some("unlock the signing key, or git config commit.gpgsign false".to_owned()),
            Self::Refused(refusal) => refusal.hint(),
            Self::ForeignReference { .. }
            | Self::TimedOut { .. }
            | Self::Git { .. }
            | Self::Unreadable { .. }
            | Self::Start { .. }
            | Self::Keep { .. }
            | Self::File { .. } => None,
        }
    }
}

/// A path as a shell takes it for one word.
fn shell_quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// What git's complaint means. `output` is what it printed to stderr; git was told to speak English.
pub(crate) fn complaint(command: &'static str, ending: String, output: &str) -> WorkspaceError {
    if let Some(path) = locked_path(output) {
        return WorkspaceError::Locked { path, live: true };
    }
    if lacks_identity(output) {
        return WorkspaceError::NoIdentity;
    }
    if let Some(directory) = distrusted(output) {
        return WorkspaceError::DubiousOwnership { directory };
    }
    if let Some(directory) = vanished(output) {
        return WorkspaceError::NotARepository { directory };
    }
    WorkspaceError::Git { command, ending, output: output.trim().to_owned() }
}

/// The lock that is in git's way. Whether its maker lives is not known here.
pub(crate) fn locked_path(output: &str) -> Option<PathBuf> {
    let line = output.lines().find(|line| line.contains("Unable to create '") && line.contains(": File exists"))?;
    let (_, rest) = line.split_once("Unable to create '")?;
    let (path, _) = rest.rsplit_once("': File exists")?;
    Some(PathBuf::from(path))
}

pub(crate) fn lacks_identity(output: &str) -> bool {
    ["Please tell me who you are", "empty ident name", "unable to auto-detect email address", "auto-detection is disabled"]
        .iter()
        .any(|words| output.contains(words))
}

fn distrusted(output: &str) -> Option<PathBuf> {
    let (_, rest) = output.split_once("detected dubious ownership in repository at '")?;
    let (path, _) = rest.split_once("'\n").or_else(|| rest.rsplit_once('\''))?;
    Some(PathBuf::from(path))
}

/// The recorded git directory, where somebody removed it.
fn vanished(output: &str) -> Option<PathBuf> {
    let (_, rest) = output.split_once("fatal: not a git repository: '")?;
    let (path, _) = rest.rsplit_once('\'')?;
    Some(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_in_the_way_is_named_with_the_command_that_removes_it() {
        let output = "fatal: Unable to create '/a b/it's/.git/index.lock': File exists.\n\nAnother git process seems to be running";

        let path = locked_path(output).unwrap();

        assert_eq!(path, PathBuf::from("/a b/it's/.git/index.lock"));
        assert_eq!(WorkspaceError::Locked { path, live: false }.hint().as_deref(), Some(r"rm '/a b/it'\''s/.git/index.lock'"));
    }

    #[test]
    fn a_locked_reference_is_a_lock_too() {
        let output = "fatal: cannot lock ref 'HEAD': Unable to create '/r/.git/HEAD.lock': File exists.";

        assert!(matches!(complaint("commit", String::new(), output), WorkspaceError::Locked { path, .. } if path.ends_with("HEAD.lock")));
    }

    #[test]
    fn distrust_names_the_folder_to_trust() {
        let output = "fatal: detected dubious ownership in repository at '/srv/x'\nTo add an exception for this directory, call:\n";

        let error = complaint("rev-parse", String::new(), output);

        assert_eq!(error.hint().as_deref(), Some("git config --global --add safe.directory '/srv/x'"));
    }
}
