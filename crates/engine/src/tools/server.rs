//! How an agent's client is told of the session's tools.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::host::tool_socket;

/// The server that an agent's client starts for the session's tools. Nothing in it is secret: the host knows by itself whom
/// it lets in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolServer {
    /// Its program.
    pub program: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
}

impl ToolServer {
    /// What clients call it, so that a tool is `mcp__proctor__note` to those that put the server's name first.
    pub const NAME: &'static str = "proctor";
    /// The hidden command of our own program.
    const COMMAND: &'static str = "tools";

    /// The server of the session with this folder; `program` is ours. `None` where a path is no text, which the settings of
    /// clients can't hold: such a session has no tools.
    pub fn of(program: &Path, folder: &Path) -> Option<Self> {
        let socket = tool_socket(folder).into_os_string().into_string().ok()?;
        Some(Self { program: program.to_str()?.to_owned(), arguments: vec![Self::COMMAND.to_owned(), socket] })
    }

    /// Whether a tool that a client calls so is one of this server.
    pub(crate) fn has(name: &str) -> bool {
        name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(Self::NAME)).is_some_and(|rest| rest.starts_with("__"))
    }

    /// The socket that it connects to.
    pub(crate) fn socket(&self) -> &str {
        self.arguments.last().map_or("", String::as_str)
    }
}
