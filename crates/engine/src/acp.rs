//! Any agent of the [Agent Client Protocol](https://agentclientprotocol.com), version 1: JSON-RPC 2.0, one message a line, over
//! the standard input and output of its program.
//!
//! Proctor is the client: it begins a session or goes on with one, sets its mode and its model, sends the prompt, answers what
//! the agent asks for, and reads what it tells. All of that is a state machine that is fed lines; nothing here writes, reads or
//! waits. The messages are few, so they are built and read here rather than by the protocol's own crate, which would bring
//! more packages than messages; the tests hold each of them against the protocol's schema.

mod answer;
mod choice;
mod ending;
mod permission;
mod reader;
mod relay;
mod speech;
mod spending;
mod tools;
mod update;
mod words;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::agent::rpc as wire;
use crate::agent::{
    AgentCommand, AgentFiles, AgentTask, Capabilities, Engine, EngineSetup, Input, Login, Opening, Permission, Reader, Variable,
};
use reader::AcpReader;
use relay::Rights;
pub use relay::run_acp_relay;

/// An agent of the Agent Client Protocol.
pub(crate) struct Acp;

/// Where agents that are known keep their state and their login, below the home, and the variable that names another place.
const FOLDERS: [(&str, Option<&str>); 7] = [
    (".claude", Some("CLAUDE_CONFIG_DIR")),
    (".claude.json", None),
    (".codex", Some("CODEX_HOME")),
    (".gemini", None),
    (".cache/opencode", None),
    (".local/share/opencode", None),
    (".local/state/opencode", None),
];

impl Engine for Acp {
    /// What the protocol has. What one agent lacks of that is known when it has been asked, before anything is prompted.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            structured_result: false,
            turn_cap: false,
            money_cap: false,
            tool_list: false,
            system_prompt: false,
            cost: true,
            steering: true,
            effort: false,
            fallback_model: false,
            mcp_servers: false,
        }
    }

    /// Where the session has tools of ours, our program is at hand, and serves files and terminals too.
    fn command(&self, setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, _variable: &Variable<'_>) -> AgentCommand {
        let program = OsString::from(setup.program.clone());
        let relay = files.tools.iter().flat_map(|tools| {
            let rights = Rights::of(task.access, setup.permission);
            [tools.program.as_str(), relay::COMMAND, rights.name()].map(OsString::from)
        });
        let argv = relay.chain([program]).chain(setup.arguments.iter().map(OsString::from)).collect();
        // Without it some agents refuse to let root act without asking.
        let is_boxed = setup.permission == Permission::Bypass && rustix::process::geteuid().is_root();
        let environment = is_boxed.then(|| ("IS_SANDBOX".into(), "1".into())).into_iter().collect();
        AgentCommand { argv, environment, files: Vec::new(), input: Input::Spoken }
    }

    /// The keys of the providers that most agents speak with. Others are for `pass-env`.
    fn passed_variables(&self) -> &'static [&'static str] {
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
            "CODEX_API_KEY",
            "CODEX_HOME",
            "GEMINI_API_KEY",
            "NODE_EXTRA_CA_CERTS",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
        ]
    }

    fn writable(&self, variable: &Variable<'_>) -> Vec<PathBuf> {
        let home = variable("HOME").map(PathBuf::from);
        let place = |(folder, moved): (&str, Option<&str>)| {
            let elsewhere = moved.and_then(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
            elsewhere.or_else(|| home.as_ref().map(|home| home.join(folder)))
        };
        FOLDERS.into_iter().filter_map(place).filter(|path| path.is_absolute()).collect()
    }

    /// Which agent it is, nobody knows: what is not there is not made.
    fn folders(&self, _variable: &Variable<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn reader(&self, opening: &Opening) -> Box<dyn Reader> {
        Box::new(AcpReader::new(opening))
    }

    fn tested(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The first word that is built like one.
    fn version(&self, printed: &str) -> Option<String> {
        let numbers = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
        printed.split_whitespace().map(|word| word.trim_start_matches('v')).find(numbers).map(str::to_owned)
    }

    /// Each agent has its own way, and says so when it is asked.
    fn login(&self, _home: &Path, _variable: &Variable<'_>) -> Login {
        Login::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_first_word_that_looks_like_one() {
        assert_eq!(Acp.version("@agentclientprotocol/codex-acp 2.6.0\n"), Some("2.6.0".to_owned()));
        assert_eq!(Acp.version("v0.61.0"), Some("0.61.0".to_owned()));
        assert_eq!(Acp.version("no such option"), None);
    }

    #[test]
    fn what_known_agents_write_may_be_elsewhere() {
        let variable = |name: &str| match name {
            "HOME" => Some(OsString::from("/home/a")),
            "CODEX_HOME" => Some(OsString::from("/codex")),
            _ => None,
        };

        let writable = Acp.writable(&variable);

        assert!(writable.contains(&PathBuf::from("/codex")) && writable.contains(&PathBuf::from("/home/a/.claude")));
        assert!(!writable.contains(&PathBuf::from("/home/a/.codex")));
        assert!(Acp.writable(&|_| None).is_empty());
    }
}
