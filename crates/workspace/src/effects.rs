//! Git processes that an earlier driver started and that may still be at work.

use std::time::Duration;

use crate::{Repository, WorkspaceError};

/// What became of an earlier driver's effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectsEnd {
    /// There were none.
    NoneAlive,
    /// They ended by themselves.
    Ended,
    /// They were still alive at the limit and were ended.
    Killed {
        /// How many processes.
        count: usize,
    },
}

impl Repository {
    /// Waits until no process carries a `PROCTOR_EFFECT` that begins with `marker_prefix`, and ends those that are left at the limit.
    pub fn wait_for_or_end_effects(&self, marker_prefix: &str, limit: Duration) -> Result<EffectsEnd, WorkspaceError> {
        let _ = (marker_prefix, limit);
        unimplemented!()
    }
}
