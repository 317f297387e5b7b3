//! Commits that exist.

use proctor_domain::Oid;

use crate::{Repository, WorkspaceError};

/// What is known of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    /// Its name.
    pub oid: Oid,
    /// What it goes on top of.
    pub parents: Vec<Oid>,
    /// The tree it holds.
    pub tree: Oid,
    /// The first line of its message.
    pub subject: String,
    /// Its trailers, in order.
    pub trailers: Vec<(String, String)>,
}

impl CommitFacts {
    /// The value of the first trailer with this name.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Repository {
    /// The commits of HEAD that `base` does not reach, oldest first; all of HEAD's where `base` is `None`.
    pub fn commits_since(&self, base: Option<&Oid>) -> Result<Vec<CommitFacts>, WorkspaceError> {
        let _ = base;
        unimplemented!()
    }

    /// Whether `ancestor` is `descendant` or behind it.
    pub fn is_ancestor(&self, ancestor: &Oid, descendant: &Oid) -> Result<bool, WorkspaceError> {
        let _ = (ancestor, descendant);
        unimplemented!()
    }

    /// The tree that HEAD would hold after a commit of exactly these paths: how a commit is recognised whose trailers a hook stripped.
    pub fn tree_with(&self, paths: &[proctor_domain::RepoPath]) -> Result<Oid, WorkspaceError> {
        let _ = paths;
        unimplemented!()
    }
}
