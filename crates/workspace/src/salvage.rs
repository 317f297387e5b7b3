//! Keeping and putting back the contents of paths.

use proctor_domain::{Oid, RepoPath};

use crate::{Repository, WorkspaceError};

impl Repository {
    /// A tree object that holds HEAD's tree with the present contents of these paths, byte for byte (no filters). The index is not touched.
    pub fn snapshot(&self, paths: &[RepoPath]) -> Result<Oid, WorkspaceError> {
        let _ = paths;
        unimplemented!()
    }

    /// Keeps a tree under a reference (`refs/proctor/…`), as a commit of Proctor's own identity.
    pub fn save(&self, reference: &str, tree: &Oid, parent: Option<&Oid>, message: &str) -> Result<Oid, WorkspaceError> {
        let _ = (reference, tree, parent, message);
        unimplemented!()
    }

    /// Points a reference (`refs/proctor/…`) at an object.
    pub fn set_ref(&self, reference: &str, oid: &Oid) -> Result<(), WorkspaceError> {
        let _ = (reference, oid);
        unimplemented!()
    }

    /// The paths that differ between two trees or commits.
    pub fn differing(&self, before: &Oid, after: &Oid) -> Result<Vec<RepoPath>, WorkspaceError> {
        let _ = (before, after);
        unimplemented!()
    }

    /// Puts the work tree and the index entries of exactly these paths back to `baseline` (a commit or tree; absent there means removed).
    pub fn restore(&self, paths: &[RepoPath], baseline: Option<&Oid>) -> Result<(), WorkspaceError> {
        let _ = (paths, baseline);
        unimplemented!()
    }

    /// Deletes all references that begin with `prefix`; how many there were.
    pub fn delete_refs(&self, prefix: &str) -> Result<usize, WorkspaceError> {
        let _ = prefix;
        unimplemented!()
    }
}
