//! OpenCode.
//!
//! It is called as `opencode run --format json`, and ends with exit code 0 whatever became of the work. What that command
//! keeps to itself is told by a witness, a plug-in of ours that the program loads: which model answers, that a request is
//! sent again, which tool is at work, what the agents cost that ours set to work. Without it less is known, and nothing
//! else is different.

mod account;
mod command;
mod config;
mod ending;
mod line;
mod reader;

use std::path::{Path, PathBuf};

use crate::agent::{AgentCommand, AgentFiles, AgentTask, Capabilities, Engine, EngineSetup, Login, Opening, Reader, Variable};
use reader::OpenCodeReader;

/// OpenCode, driven by `opencode run`.
pub(crate) struct OpenCode;

impl Engine for OpenCode {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            structured_result: false,
            turn_cap: false,
            money_cap: false,
            tool_list: true,
            system_prompt: true,
            cost: true,
            steering: false,
            effort: false,
            fallback_model: false,
            mcp_servers: false,
        }
    }

    fn command(&self, setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, variable: &Variable<'_>) -> AgentCommand {
        command::command(setup, task, files, variable(command::CONFIG_HOME).as_deref())
    }

    /// What lets it in. Where its configuration is said to be would take that in, and keys of other providers are for
    /// `pass-env`, since the agent's commands see them too.
    fn passed_variables(&self) -> &'static [&'static str] {
        const KEYS: [&str; 6] = account::KEYS;
        const PASSED: [&str; 7] = [KEYS[0], KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], "NODE_EXTRA_CA_CERTS"];
        &PASSED
    }

    fn writable(&self, variable: &Variable<'_>) -> Vec<PathBuf> {
        account::folders(variable)
    }

    fn folders(&self, variable: &Variable<'_>) -> Vec<PathBuf> {
        account::folders(variable)
    }

    fn reader(&self, opening: &Opening) -> Box<dyn Reader> {
        Box::new(OpenCodeReader::new(opening))
    }

    fn tested(&self) -> Option<(&'static str, &'static str)> {
        Some(("1.18.33", "1.18.33"))
    }

    /// From `1.18.33`, and nothing else.
    fn version(&self, printed: &str) -> Option<String> {
        let version = printed.trim();
        let is_one = version.starts_with(|first: char| first.is_ascii_digit()) && !version.contains(char::is_whitespace);
        is_one.then(|| version.to_owned())
    }

    fn login(&self, home: &Path, variable: &Variable<'_>) -> Login {
        account::login(home, variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_its_own_words_only() {
        assert_eq!(OpenCode.version("1.18.33\n"), Some("1.18.33".to_owned()));
        assert_eq!(OpenCode.version("1.18.33 is not here"), None);
        assert_eq!(OpenCode.version("opencode: not found"), None);
        assert_eq!(OpenCode.version(""), None);
    }
}
