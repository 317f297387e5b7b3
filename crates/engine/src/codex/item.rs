//! What stands in the items of a turn.

use serde::Serialize;
use serde_json::value::RawValue;

use super::line::{Collaboration, Execution, FileChange, Said, ToolCall, WebSearch};

/// A call of a tool, at whatever stage it is.
pub(super) struct Call {
    pub(super) name: String,
    /// What it is given, as JSON text.
    pub(super) input: String,
    pub(super) failed: bool,
    pub(super) output: String,
    /// Whether the client answers it, so that the model has to be asked again. What the provider does itself is a part of
    /// the answer in which it is called.
    pub(super) is_answered_here: bool,
}

/// The text of words, thoughts and plans.
pub(super) fn text(item: &str) -> Option<String> {
    serde_json::from_str::<Said>(item).ok().map(|said| said.text)
}

/// The call that an item of this kind is; `None` when it is of no kind that is known, or not what its kind promises.
pub(super) fn call(kind: &str, item: &str) -> Option<Call> {
    match kind {
        "command_execution" => serde_json::from_str(item).ok().and_then(execution),
        "file_change" => serde_json::from_str(item).ok().map(|change| file_change(&change)),
        "mcp_tool_call" => serde_json::from_str(item).ok().map(tool_call),
        "collab_tool_call" => serde_json::from_str(item).ok().and_then(collaboration),
        "web_search" => serde_json::from_str(item).ok().and_then(|search| web_search(&search)),
        _ => None,
    }
}

fn execution(item: Execution) -> Option<Call> {
    let failed = has_failed(item.status.as_deref()) || item.exit_code.is_some_and(|code| code != 0);
    let input = json(&Named { command: Some(&item.command), ..Named::default() })?;
    Some(Call { name: "shell".to_owned(), input, failed, output: item.aggregated_output, is_answered_here: true })
}

fn file_change(item: &FileChange<'_>) -> Call {
    let failed = has_failed(item.status.as_deref());
    Call { name: "apply_patch".to_owned(), input: item.changes.get().to_owned(), failed, output: String::new(), is_answered_here: true }
}

fn tool_call(item: ToolCall<'_>) -> Call {
    let failed = has_failed(item.status.as_deref()) || item.error.is_some();
    let said = item.result.into_iter().flat_map(|result| result.content).filter_map(|part| part.text);
    let output = item.error.map(|error| error.message).into_iter().chain(said).collect::<Vec<_>>().join("\n");
    let input = item.arguments.map_or("{}", RawValue::get).to_owned();
    Call { name: format!("mcp__{}__{}", item.server, item.tool), input, failed, output, is_answered_here: true }
}

fn collaboration(item: Collaboration) -> Option<Call> {
    let failed = has_failed(item.status.as_deref());
    let input = json(&Named { prompt: item.prompt.as_deref(), ..Named::default() })?;
    Some(Call { name: item.tool, input, failed, output: String::new(), is_answered_here: true })
}

fn web_search(item: &WebSearch) -> Option<Call> {
    let input = json(&Named { query: Some(&item.query), ..Named::default() })?;
    Some(Call { name: "web_search".to_owned(), input, failed: false, output: String::new(), is_answered_here: false })
}

fn has_failed(status: Option<&str>) -> bool {
    matches!(status, Some("failed" | "declined"))
}

/// What a call is given, where Codex does not print it as JSON.
#[derive(Default, Serialize)]
struct Named<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
}

fn json(input: &Named<'_>) -> Option<String> {
    serde_json::to_string(input).ok()
}
