//! What the loopback model says to OpenCode, for each case, and the configuration that leads there.

use std::path::Path;

use super::stage::Case;
use super::{claude, codex};

/// The cases are those of Claude Code; only the tools have other names.
pub(super) fn script(case: Case, work: &Path) -> String {
    // What is asked again is a further prompt, as with Codex.
    let again = if case == Case::GivesWrongResultFirst { codex::AGAIN } else { "" };
    if case == Case::Writes { writes(&work.join("written")) } else { format!("{again}{}", claude::script(case, work)) }
}

/// Asks for tools whether they are offered or not.
fn writes(file: &Path) -> String {
    let path = file.display();
    format!(
        r#"
[[default.turn]]
tools = [
    {{ name = "write", input = {{ filePath = "{path}", content = "x" }} }},
    {{ name = "bash", input = {{ command = "echo x > '{path}'", description = "write" }} }},
    {{ name = "task", input = {{ description = "write", prompt = "write", subagent_type = "general" }} }}
]
[[default.turn]]
text = "It is done."
"#
    )
}

/// A provider whose models are played by the loopback model at this address. One of them has no price.
pub(super) fn config(url: &str) -> String {
    format!(
        r#"{{
    "enabled_providers": ["loopback"],
    "model": "loopback/model",
    "small_model": "loopback/model",
    "provider": {{
        "loopback": {{
            "npm": "@ai-sdk/openai-compatible",
            "name": "The loopback model",
            "options": {{ "baseURL": "{url}/v1", "apiKey": "dummy" }},
            "models": {{
                "model": {{ "name": "Priced", "cost": {{ "input": 3, "output": 30 }}, "limit": {{ "context": 200000, "output": 8000 }} }},
                "model-of-nobody": {{ "name": "Without a price", "limit": {{ "context": 200000, "output": 8000 }} }}
            }}
        }}
    }}
}}"#
    )
}
