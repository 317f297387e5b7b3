//! Who commits, and whose state this repository's is.

use std::path::Path;

use crate::{Repository, WorkspaceError};

impl Repository {
    /// Whether git knows who commits: refused here rather than at a run's first commit.
    pub fn identity_works(&self) -> Result<(), WorkspaceError> {
        unimplemented!()
    }

    /// Whether commits that are to be signed can be: tried once, before a run's first step.
    pub fn probe_signing(&self) -> Result<(), WorkspaceError> {
        unimplemented!()
    }

    /// The text in `<common dir>/proctor-id`, which says which state is this repository's; `None` where there is none yet.
    pub fn proctor_id(&self) -> Result<Option<String>, WorkspaceError> {
        unimplemented!()
    }

    /// Writes `candidate` as the id unless there is one already; the id that holds now.
    pub fn claim_proctor_id(&self, candidate: &str) -> Result<String, WorkspaceError> {
        let _ = candidate;
        unimplemented!()
    }

    /// Replaces the id: for a repository that was copied together with the original's id.
    pub fn replace_proctor_id(&self, id: &str) -> Result<(), WorkspaceError> {
        let _ = id;
        unimplemented!()
    }
}

/// A name for the lock of a work tree: 16 hex digits.
///
/// FNV-1a in 64 bits: the key must be the same in every version of Proctor and on every machine, which
/// the standard library's hasher does not promise; nothing hostile chooses the input, and two work trees
/// of one repository that collide would only wait for each other.
pub fn worktree_key(work_tree: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let hash = work_tree
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}
