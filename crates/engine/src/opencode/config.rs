//! The configuration of one session, which stands over every other.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::{Access, AgentFiles, EngineSetup, Permission};
use crate::tools::ToolServer;

/// The agent that may do nothing but look. It is one of ours, since a configuration that is taken in may let its own do more.
pub(super) const LOOKING: &str = "proctor-looking";
/// The name of the file that tells what the program itself does not.
pub(super) const WITNESS: &str = "witness.js";

/// Whether the session is held to tools that only look: where it may do no more, and where nobody can be asked whether it
/// may.
pub(super) fn only_looks(setup: &EngineSetup, access: Access) -> bool {
    access == Access::ReadOnly || setup.permission == Permission::Ask
}

/// The configuration, as JSON text.
pub(super) fn config(setup: &EngineSetup, access: Access, files: &AgentFiles) -> String {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut config = json!({
        "autoupdate": false,
        "share": "disabled",
        // Copies of the working tree at each step, so that a person could go back: nobody does.
        "snapshot": false,
        // Added to the client's own instructions about its tools; as a file, since a variable has a limit.
        "instructions": [path(&files.system)],
        "plugin": [path(&files.own.join(WITNESS))],
    });
    let mut looking = looking();
    if let Some(tools) = &files.tools {
        let command: Vec<&String> = std::iter::once(&tools.program).chain(&tools.arguments).collect();
        config["mcp"] = json!({ ToolServer::NAME: { "type": "local", "command": command, "enabled": true } });
        looking[format!("{}_*", ToolServer::NAME)] = "allow".into();
    }
    if only_looks(setup, access) {
        config["agent"] = json!({ LOOKING: { "mode": "primary", "permission": looking } });
    }
    config.to_string()
}

/// The last rule that fits decides. What is not allowed here does not exist in the session: tools that are still to be
/// invented, and those of servers.
fn looking() -> Value {
    json!({
        "*": "deny",
        "read": { "*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow" },
        "glob": "allow",
        "grep": "allow",
        "list": "allow",
        "todowrite": "allow",
        // Where it may look is for its box to say.
        "external_directory": "allow",
        // A call that is repeated is for the caps to end.
        "doom_loop": "allow",
    })
}
