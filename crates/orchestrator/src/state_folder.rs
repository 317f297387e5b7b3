//! Where the state of one repository lies.

use std::path::{Path, PathBuf};

use proctor_domain::{RunId, SessionId};

/// The state folder of one repository, shared by all its worktrees. Only names; nothing here touches the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder {
    root: PathBuf,
}

impl StateFolder {
    /// The folder at this absolute path.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every folder that has to exist before a run can start.
    pub fn folders(&self) -> [PathBuf; 5] {
        ["runs", "sessions", "worktrees", "log", "conversations"].map(|name| self.root.join(name))
    }

    /// Held by the driver of a run while it lives.
    pub fn run_lock(&self, run: &RunId) -> PathBuf {
        self.root.join("runs").join(format!("{run}.lock"))
    }

    /// What git and its hooks printed during the commits of a run.
    pub fn git_log(&self, run: &RunId) -> PathBuf {
        self.root.join("log").join(format!("{run}.git.log"))
    }

    /// What git's settings named as programs when a run began.
    pub fn git_settings(&self, run: &RunId) -> PathBuf {
        self.root.join("log").join(format!("{run}.git-settings"))
    }

    /// The files of one session.
    pub fn session(&self, session: &SessionId) -> PathBuf {
        self.root.join("sessions").join(session.as_str())
    }

    /// Where engines of ours keep their conversations.
    pub fn conversations(&self) -> PathBuf {
        self.root.join("conversations")
    }

    /// What git would run, as it was before a session.
    pub fn git_programs(&self, session: &SessionId) -> PathBuf {
        self.session(session).join("git-programs.json")
    }

    /// What an agent changed of that, one line each; there when it did.
    pub fn changed_programs(&self, session: &SessionId) -> PathBuf {
        self.session(session).join("git-changed.txt")
    }

    /// What it had planted, for a person to look at.
    pub fn planted(&self, session: &SessionId) -> PathBuf {
        self.session(session).join("planted")
    }

    /// The working tree of an isolated run.
    pub fn worktree(&self, run: &RunId) -> PathBuf {
        self.root.join("worktrees").join(run.as_str())
    }

    /// Held while the branch of an isolated run is merged.
    pub fn merge_lock(&self) -> PathBuf {
        self.root.join("worktrees").join("merge.lock")
    }

    /// Held while the metadata of a worktree is made.
    pub fn worktrees_lock(&self) -> PathBuf {
        self.root.join("worktrees").join("metadata.lock")
    }

    /// Held by the host of a session while it lives.
    pub fn session_lock(&self, session: &SessionId) -> PathBuf {
        self.root.join("sessions").join(format!("{session}.lock"))
    }

    /// Held by the driver that works in the working tree with this key.
    pub fn worktree_lock(&self, key: &str) -> PathBuf {
        self.root.join("worktrees").join(format!("{key}.lock"))
    }
}
