//! The engine that does what a script says: for trying cards without a bill, for demonstrations and for tests.
//!
//! It is driven as the real ones are. [`run_scripted_agent`] is the program, a process of its own, that reads a prompt, does
//! what the script file says about it, keeps its conversation and prints lines; [`Scripted`] only starts it and reads them.
//! The format of scripts and lines is in `docs/scripted-engine.md`.

mod actions;
mod agent;
mod arguments;
mod conversation;
mod ear;
mod line;
mod script;

use std::path::{Path, PathBuf};

use crate::agent::{AgentCommand, AgentFiles, AgentTask, Capabilities, Engine, EngineSetup, Input, Login, Opening, Reader, Variable};

pub use agent::run_scripted_agent;
pub use script::{ScriptError, check_script};

/// Does what a script file says.
pub(crate) struct Scripted;

impl Engine for Scripted {
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
            effort: false,
            fallback_model: false,
            mcp_servers: false,
        }
    }

    fn command(&self, setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, _variable: &Variable<'_>) -> AgentCommand {
        AgentCommand { argv: arguments::write(setup, task, files), environment: Vec::new(), files: Vec::new(), input: Input::Spoken }
    }

    fn passed_variables(&self) -> &'static [&'static str] {
        &[]
    }

    fn writable(&self, _variable: &Variable<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn folders(&self, _variable: &Variable<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn reader(&self, opening: &Opening) -> Box<dyn Reader> {
        Box::new(line::ScriptedReader::new(opening))
    }

    fn tested(&self) -> Option<(&'static str, &'static str)> {
        Some((env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_VERSION")))
    }

    fn version(&self, printed: &str) -> Option<String> {
        // Its program is ours: `proctor 0.1.0`.
        printed.split_whitespace().nth(1).map(str::to_owned)
    }

    fn login(&self, _home: &Path, _variable: &Variable<'_>) -> Login {
        Login::NotNeeded
    }
}
