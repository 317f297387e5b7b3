//! `index.lock`: whose it is, and when it may be removed.

use std::time::{Duration, SystemTime};

use crate::{Repository, WorkspaceError};

impl Repository {
    /// `Ok` where no lock is held; else waits up to `limit` for a live holder and then says whose it is.
    pub fn wait_for_index(&self, limit: Duration) -> Result<(), WorkspaceError> {
        let _ = limit;
        unimplemented!()
    }

    /// Removes an `index.lock` that our own killed effect left: no process carries a `PROCTOR_EFFECT` that begins with
    /// `marker_prefix`, none has the lock open, and it was created after the effect began at `started`. Whether it removed one.
    pub fn clear_own_stale_lock(&self, marker_prefix: &str, started: SystemTime) -> Result<bool, WorkspaceError> {
        let _ = (marker_prefix, started);
        unimplemented!()
    }
}
