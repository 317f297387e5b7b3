//! What an agent may ask of files and terminals.

use super::desk::Refusal;
use crate::agent::{Access, Permission};

/// The requests that are served.
const SERVED: [&str; 7] =
    [READ, "fs/write_text_file", "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"];
const READ: &str = "fs/read_text_file";

/// What is served in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::acp) enum Rights {
    /// Files can be read.
    Read,
    /// And written, and commands run.
    Change,
}

impl Rights {
    const ALL: [Self; 2] = [Self::Read, Self::Change];

    /// Those of a session. Outside of a box, nothing is changed that nobody was asked about.
    pub(in crate::acp) fn of(access: Access, permission: Permission) -> Self {
        match (access, permission) {
            (Access::Full, Permission::Bypass) => Self::Change,
            (Access::Full, Permission::Ask) | (Access::ReadOnly, _) => Self::Read,
        }
    }

    /// As the command line has it.
    pub(in crate::acp) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Change => "change",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rights| rights.name() == name)
    }

    /// Whether files may be written and commands run.
    pub(in crate::acp) fn may_change(self) -> bool {
        self == Self::Change
    }

    /// Whether this request is answered by who serves files and terminals, if only by a refusal.
    pub(in crate::acp) fn concern(method: &str) -> bool {
        SERVED.contains(&method)
    }

    pub(super) fn allow(self, method: &str) -> Result<(), Refusal> {
        if method == READ || self.may_change() {
            Ok(())
        } else if method.starts_with("fs/") {
            Err(Refusal::not_served("this session may only look: it writes no files"))
        } else {
            Err(Refusal::not_served("this session may only look: it runs no commands"))
        }
    }
}
