//! What we say to an agent. Every message here is held against the protocol's schema by the tests.

use std::path::Path;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::choice::Choice;
use super::relay::Rights;
use crate::tools::ToolServer;

/// The version of the protocol that is spoken.
pub(super) const VERSION: u64 = 1;
/// JSON-RPC's word for a method that nobody serves.
pub(super) const NO_SUCH_METHOD: i64 = -32601;
/// JSON-RPC's word for parameters that can't be read.
pub(super) const WRONG_PARAMETERS: i64 = -32602;
/// JSON-RPC's word for whatever else went wrong.
pub(super) const FAILED: i64 = -32603;
/// The protocol's word for a file that is not there.
pub(super) const NOT_FOUND: i64 = -32002;

/// A word of our own, from the relay to the host.
pub(super) const COMMAND_ENDED: &str = "_proctor/command_ended";

/// What we ask for. Each has an id of its own that never changes, so that the answers of a session that is over can be read
/// from its lines alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Initialize,
    Session,
    Mode,
    Model,
    /// The prompt, and whatever is asked after it.
    Prompt(u64),
}

impl Asked {
    const FIRST_PROMPT: u64 = 5;

    pub(super) fn id(self) -> u64 {
        match self {
            Self::Initialize => 1,
            Self::Session => 2,
            Self::Mode => 3,
            Self::Model => 4,
            Self::Prompt(number) => Self::FIRST_PROMPT.saturating_add(number),
        }
    }

    pub(super) fn of(id: u64) -> Option<Self> {
        match id {
            0 => None,
            1 => Some(Self::Initialize),
            2 => Some(Self::Session),
            3 => Some(Self::Mode),
            4 => Some(Self::Model),
            id => Some(Self::Prompt(id - Self::FIRST_PROMPT)),
        }
    }
}

/// How a session is come by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    New,
    /// What was said before is repeated to us first.
    Load(String),
    /// It is not.
    Resume(String),
}

/// Files and terminals are served where there is somebody in the session's box who does that. Notices are taken, so that a
/// warning of the agent's program is no word of its model.
pub(super) fn initialize(served: Option<Rights>) -> Value {
    let may_change = served.is_some_and(Rights::may_change);
    let params = json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {
            "fs": { "readTextFile": served.is_some(), "writeTextFile": may_change },
            "terminal": may_change,
            "session": { "notices": {} },
        },
        "clientInfo": { "name": "proctor", "title": "Proctor", "version": env!("CARGO_PKG_VERSION") },
    });
    request(Asked::Initialize, "initialize", params)
}

/// Opens a session, to which the server of its tools belongs where it has some.
pub(super) fn session(way: &Way, directory: &Path, tools: Option<&ToolServer>) -> Value {
    let cwd = directory.to_string_lossy();
    let server = |tools: &ToolServer| json!({ "name": ToolServer::NAME, "command": tools.program, "args": tools.arguments, "env": [] });
    let servers: Vec<Value> = tools.map(server).into_iter().collect();
    let (method, params) = match way {
        Way::New => ("session/new", json!({ "cwd": cwd, "mcpServers": servers })),
        Way::Load(id) => ("session/load", json!({ "sessionId": id, "cwd": cwd, "mcpServers": servers })),
        Way::Resume(id) => ("session/resume", json!({ "sessionId": id, "cwd": cwd, "mcpServers": servers })),
    };
    request(Asked::Session, method, params)
}

pub(super) fn choose(asked: Asked, session: &str, choice: &Choice) -> Value {
    let (method, params) = match choice {
        Choice::Setting { option, value } => {
            ("session/set_config_option", json!({ "sessionId": session, "configId": option, "value": value }))
        }
        Choice::Mode(id) => ("session/set_mode", json!({ "sessionId": session, "modeId": id })),
        Choice::Model(id) => ("session/set_model", json!({ "sessionId": session, "modelId": id })),
    };
    request(asked, method, params)
}

/// The protocol has no system prompt, so that it comes first and is named for what it is.
pub(super) fn prompt(number: u64, session: &str, system: &str, text: &str) -> Value {
    let first = if !system.trim().is_empty() {
        Some(format!("These are your instructions. They hold for all that you do in this session.\n\n{system}\n\nWhat you are asked:\n\n"))
    } else if text.starts_with(['/', '@', '!', '#']) {
        // Agents take a prompt that begins so for a command of theirs.
        Some("What you are asked:\n\n".to_owned())
    } else {
        None
    };
    let blocks: Vec<Value> = first.iter().map(String::as_str).chain([text]).map(|text| json!({ "type": "text", "text": text })).collect();
    request(Asked::Prompt(number), "session/prompt", json!({ "sessionId": session, "prompt": blocks }))
}

pub(super) fn cancel(session: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
}

/// To a request for permission: this option, or that the turn was broken off.
pub(super) fn permission(id: &RawValue, option: Option<&str>) -> Value {
    let outcome = match option {
        Some(option) => json!({ "outcome": "selected", "optionId": option }),
        None => json!({ "outcome": "cancelled" }),
    };
    json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } })
}

pub(super) fn refuse(id: &RawValue, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Instead of the agent's own answer to this.
pub(super) fn refuse_ours(asked: Asked, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.id(), "error": { "code": code, "message": message } })
}

/// What the relay tells the host of a command that has ended.
pub(super) fn command_ended(terminal: &str, output: &str, status: &Value) -> Value {
    let params = json!({ "terminalId": terminal, "output": output, "exitStatus": status });
    json!({ "jsonrpc": "2.0", "method": COMMAND_ENDED, "params": params })
}

fn request(asked: Asked, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.id(), "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_known_again_by_its_id() {
        for asked in [Asked::Initialize, Asked::Session, Asked::Mode, Asked::Model, Asked::Prompt(0), Asked::Prompt(7)] {
            assert_eq!(Asked::of(asked.id()), Some(asked));
        }
        assert_eq!(Asked::of(0), None);
    }

    #[test]
    fn a_prompt_that_looks_like_a_command_does_not_come_first() {
        let first = |system, text| prompt(0, "s", system, text)["params"]["prompt"][0]["text"].as_str().unwrap().to_owned();

        assert_eq!(first("", "Do it."), "Do it.");
        assert!(["/help", "@file", "!ls", "#note"].into_iter().all(|text| !first("", text).starts_with(text)));
        assert!(first("Be exact.", "/help").contains("Be exact."));
    }

    #[test]
    fn an_id_is_given_back_as_it_came() {
        let id: Box<RawValue> = serde_json::from_str(r#""a\u0062""#).unwrap();

        assert!(permission(&id, None).to_string().contains(r#""id":"ab""#));
    }
}
