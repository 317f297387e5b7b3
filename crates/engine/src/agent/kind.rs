//! The engines there are.

use std::fmt;

use proctor_domain::session::EngineName;
use serde::{Deserialize, Serialize};

/// Which program drives an agent, or in which way one is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Any agent of the Agent Client Protocol; the settings name its program.
    Acp,
    /// Any program that takes a prompt and prints an answer; the settings name it.
    Command,
    /// Does what a script file says: for trying cards, for demonstrations and for tests.
    Scripted,
}

impl EngineKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Claude, Self::Codex, Self::OpenCode, Self::Acp, Self::Command, Self::Scripted];

    /// The kinds of which there is an engine without any settings.
    pub const BUILT_IN: [Self; 4] = [Self::Claude, Self::Codex, Self::OpenCode, Self::Scripted];

    /// The word used in settings, JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Acp => "acp",
            Self::Command => "command",
            Self::Scripted => "scripted",
        }
    }

    /// The kind of the engine that is there without any settings.
    pub fn built_in(name: &EngineName) -> Option<Self> {
        Self::BUILT_IN.into_iter().find(|kind| kind.name() == name.as_str())
    }

    /// What the engine of this kind is called, where the settings don't give it a name.
    pub fn engine_name(self) -> EngineName {
        self.name().parse().unwrap_or_else(|_| unreachable!("a test reads the names of all kinds"))
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_every_kind_is_one_of_an_engine() {
        for kind in EngineKind::ALL {
            let is_built_in = EngineKind::BUILT_IN.contains(&kind);
            assert_eq!(EngineKind::built_in(&kind.engine_name()), is_built_in.then_some(kind));
        }
    }
}
