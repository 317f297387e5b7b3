//! Codex.
//!
//! It is called as `codex exec --json`, and what its lines really mean is read here: an error is a sentence and nothing
//! else, its totals go on from one session of a conversation to the next, a result is its last words, and it never says
//! which model it took. Nothing here starts it or believes its exit code.

mod account;
mod answer;
mod command;
mod ending;
mod item;
mod line;
mod reader;
mod schema;

use std::io;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use crate::agent::{AgentCommand, AgentFiles, AgentTask, Capabilities, Engine, EngineSetup, Login, Opening, Reader, Variable};
use reader::CodexReader;

/// Codex, driven by `codex exec`.
pub(crate) struct Codex;

impl Engine for Codex {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            // It passes a schema on and looks at nothing: a result is looked at here, and asked for again.
            structured_result: false,
            turn_cap: false,
            money_cap: false,
            tool_list: false,
            system_prompt: true,
            cost: false,
            steering: false,
            effort: false,
            fallback_model: false,
            mcp_servers: false,
        }
    }

    fn command(&self, setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, variable: &Variable<'_>) -> AgentCommand {
        command::command(setup, task, files, variable)
    }

    fn prepare(&self, files: &AgentFiles, variable: &Variable<'_>) -> io::Result<()> {
        account::make_home(files, variable)
    }

    /// What lets it in and where that leads.
    fn passed_variables(&self) -> &'static [&'static str] {
        &["CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_HOME", "OPENAI_ORGANIZATION", "OPENAI_PROJECT"]
    }

    fn writable(&self, variable: &Variable<'_>) -> Vec<PathBuf> {
        account::folder(variable).into_iter().collect()
    }

    fn folders(&self, variable: &Variable<'_>) -> Vec<PathBuf> {
        account::folder(variable).into_iter().collect()
    }

    fn reader(&self, opening: &Opening) -> Box<dyn Reader> {
        Box::new(CodexReader::new(opening, TimeZone::system()))
    }

    fn tested(&self) -> Option<(&'static str, &'static str)> {
        Some(("0.171.0", "0.171.0"))
    }

    /// From `codex-cli 0.171.0`.
    fn version(&self, printed: &str) -> Option<String> {
        let version = printed.trim().strip_prefix("codex-cli ")?;
        (version.starts_with(|first: char| first.is_ascii_digit()) && !version.contains(char::is_whitespace)).then(|| version.to_owned())
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
        assert_eq!(Codex.version("codex-cli 0.171.0\n"), Some("0.171.0".to_owned()));
        assert_eq!(["codex: not found", "codex-cli ", "codex-cli 0.1 beta", ""].map(|printed| Codex.version(printed)), [const { None }; 4]);
    }
}
