//! Claude Code.
//!
//! It is called as `claude -p` with stream-json both ways, and what its lines really mean is read here: what it calls a
//! success may be a refused login, and its totals go on from one session of a conversation to the next. Nothing here
//! starts it or believes its exit code.

mod account;
mod command;
mod ending;
mod kind;
mod line;
mod reader;
mod speech;

use std::path::{Path, PathBuf};

use crate::agent::{AgentCommand, AgentFiles, AgentTask, Capabilities, Engine, EngineSetup, Login, Opening, Reader, Variable};
use reader::ClaudeReader;

/// Claude Code, driven by `claude -p`.
pub(crate) struct Claude;

impl Engine for Claude {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            structured_result: true,
            turn_cap: true,
            money_cap: true,
            tool_list: true,
            system_prompt: true,
            cost: true,
            steering: true,
            effort: true,
            fallback_model: true,
            mcp_servers: true,
        }
    }

    fn command(&self, setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, _variable: &Variable<'_>) -> AgentCommand {
        command::command(setup, task, files, rustix::process::geteuid().is_root())
    }

    /// What lets it in and where that leads. A session around ours is not to be seen, so nothing is passed by a prefix;
    /// the keys of cloud providers are for `pass-env`, since the agent's commands see them too.
    fn passed_variables(&self) -> &'static [&'static str] {
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_CUSTOM_HEADERS",
            "ANTHROPIC_MODEL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
            "NODE_EXTRA_CA_CERTS",
        ]
    }

    fn writable(&self, variable: &Variable<'_>) -> Vec<PathBuf> {
        account::writable(variable)
    }

    fn folders(&self, variable: &Variable<'_>) -> Vec<PathBuf> {
        account::folder(variable).into_iter().collect()
    }

    fn reader(&self, opening: &Opening) -> Box<dyn Reader> {
        Box::new(ClaudeReader::new(opening))
    }

    fn tested(&self) -> Option<(&'static str, &'static str)> {
        Some(("2.1.197", "2.1.332"))
    }

    /// One that it does not know it would pass over, with a warning that nobody sees.
    fn efforts(&self) -> &'static [&'static str] {
        &["low", "medium", "high", "xhigh", "max"]
    }

    fn wanted_options(&self, setup: &EngineSetup) -> Vec<&'static str> {
        let wanted = [("--effort", setup.effort.is_some()), ("--fallback-model", setup.fallback_model.is_some())];
        wanted.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(option, _)| option).collect()
    }

    /// From `2.1.332 (Claude Code)`.
    fn version(&self, printed: &str) -> Option<String> {
        let (version, rest) = printed.trim().split_once(' ')?;
        (rest == "(Claude Code)" && version.starts_with(|first: char| first.is_ascii_digit())).then(|| version.to_owned())
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
        assert_eq!(Claude.version("2.1.332 (Claude Code)\n"), Some("2.1.332".to_owned()));
        assert_eq!(Claude.version("claude: not logged in"), None);
        assert_eq!(Claude.version(""), None);
    }
}
