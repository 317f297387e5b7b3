//! What the configuration named as programs when the run began.

use std::path::Path;

use crate::{Repository, WorkspaceError};

/// The program-naming settings of a repository as they were at a run's start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigGuard {
    settings: Vec<(String, String)>,
}

impl Repository {
    /// Remembers the configuration as the user's own. Where `kept` exists, what it holds is taken instead (a resume), else it is written.
    /// Without a call of this, the first reading command remembers.
    pub fn guard_config(&self, kept: Option<&Path>) -> Result<(), WorkspaceError> {
        let _ = kept;
        unimplemented!()
    }

    /// The program-naming settings that appeared or changed since: reading commands run without them.
    pub fn planted_settings(&self) -> Result<Vec<String>, WorkspaceError> {
        unimplemented!()
    }
}
