//! Codex.
//!
//! It is run as `codex app-server`, which is spoken to by lines: a thread is begun or gone on with, a turn is asked, and can be broken
//! off and heard into. What its notices really mean is read here: its totals go on from one session of a conversation to the
//! next, and a result is its last words. A version that is too old for that is run as `codex exec --json`, whose lines tell less: an
//! error is a sentence and nothing else, what was used is told at the end, and never which model it took. Nothing here starts
//! it or believes its exit code.

mod account;
mod answer;
mod command;
mod ending;
mod exec;
mod item;
mod line;
mod schema;
mod server;
mod spending;
mod talk;

use std::io;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use crate::agent::{
    AgentCommand, AgentEvent, AgentFiles, AgentTask, Capabilities, Engine, EngineSetup, Input, Login, Opening, Reader, Variable,
};
use exec::ExecReader;
use server::ServerReader;

/// How a line of the app-server begins. Those of `codex exec` begin with their type.
const OF_SERVER: [&str; 4] = [r#"{"id":"#, r#"{"method":"#, r#"{"result":"#, r#"{"error":"#];

/// Codex, driven by its app-server or by `codex exec`.
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
            cost: true,
            steering: true,
            effort: true,
            fallback_model: false,
            mcp_servers: true,
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
        let zone = TimeZone::system();
        match opening.input {
            Input::Spoken => Box::new(ServerReader::speaking(opening, zone)),
            Input::Prompt => {
                Box::new(LineReader { of_exec: ExecReader::new(opening, zone.clone()), of_server: ServerReader::listening(opening, zone) })
            }
        }
    }

    fn efforts(&self) -> &'static [&'static str] {
        &["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"]
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

/// Reads what nobody answers: `codex exec`, or a session that is over, of which nobody knows any more how it was run.
struct LineReader {
    of_exec: ExecReader,
    of_server: ServerReader,
}

impl Reader for LineReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if OF_SERVER.iter().any(|beginning| line.starts_with(beginning.as_bytes())) {
            self.of_server.read(line, events);
        } else {
            self.of_exec.read(line, events);
        }
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
