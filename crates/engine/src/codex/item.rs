//! What stands in the items of a turn. Both ways of running Codex tell the same items, and differ in how they spell names:
//! `command_execution` and `commandExecution`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, de};
use serde_json::value::RawValue;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Words of the agent.
    Words,
    /// A thought, or a summary of one.
    Thought,
    /// What it is going to do.
    Plan,
    /// It works on something that is neither said nor called.
    Work,
    /// What it was told, or a warning of its program.
    Note,
    Command,
    FileChange,
    ToolCall,
    Collaboration,
    Search,
}

impl Kind {
    /// `None` where this version does not know it.
    pub(super) fn of(spelling: &str) -> Option<Self> {
        Some(match spelling {
            "agent_message" | "agentMessage" | "plan" => Self::Words,
            "reasoning" => Self::Thought,
            "todo_list" => Self::Plan,
            "contextCompaction" | "dynamicToolCall" | "enteredReviewMode" | "exitedReviewMode" | "functionCallOutput"
            | "imageGeneration" | "imageView" | "sleep" | "subAgentActivity" => Self::Work,
            "error" | "userMessage" | "hookPrompt" => Self::Note,
            "command_execution" | "commandExecution" => Self::Command,
            "file_change" | "fileChange" => Self::FileChange,
            "mcp_tool_call" | "mcpToolCall" => Self::ToolCall,
            "collab_tool_call" | "collabAgentToolCall" => Self::Collaboration,
            "web_search" | "webSearch" => Self::Search,
            _ => return None,
        })
    }
}

/// What every item has. A search may have its `id` twice: the first is the item's, the other the provider's.
pub(super) struct ItemHead {
    pub(super) id: String,
    pub(super) kind: String,
}

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

/// Words, thoughts and plans. Thoughts are told as a text, or as parts of a summary and of what was thought.
#[derive(Deserialize)]
struct Said {
    text: Option<String>,
    summary: Option<Vec<String>>,
    content: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Execution {
    command: String,
    #[serde(alias = "aggregatedOutput")]
    aggregated_output: Option<String>,
    #[serde(alias = "exitCode")]
    exit_code: Option<i64>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct FileChange<'a> {
    #[serde(borrow)]
    changes: &'a RawValue,
    status: Option<String>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    server: String,
    tool: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    result: Option<ToolAnswer>,
    error: Option<Complaint>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct ToolAnswer {
    #[serde(default)]
    content: Vec<ToolWords>,
}

/// A part of what a tool said; only texts have one.
#[derive(Deserialize)]
struct ToolWords {
    text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Complaint {
    pub(super) message: String,
}

/// An agent that it sets to work itself.
#[derive(Deserialize)]
struct Collaboration {
    tool: String,
    prompt: Option<String>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct WebSearch {
    #[serde(default)]
    query: String,
}

/// The text of words and thoughts.
pub(super) fn text(item: &str) -> Option<String> {
    let said: Said = serde_json::from_str(item).ok()?;
    let parts = || Some([said.summary?, said.content.unwrap_or_default()].concat().join("\n\n"));
    said.text.or_else(parts)
}

/// The call that an item of this kind is; `None` when it is none, or not what its kind promises.
pub(super) fn call(kind: Kind, item: &str) -> Option<Call> {
    match kind {
        Kind::Command => serde_json::from_str(item).ok().and_then(execution),
        Kind::FileChange => serde_json::from_str(item).ok().map(|change| file_change(&change)),
        Kind::ToolCall => serde_json::from_str(item).ok().map(tool_call),
        Kind::Collaboration => serde_json::from_str(item).ok().and_then(collaboration),
        Kind::Search => serde_json::from_str(item).ok().and_then(|search| web_search(&search)),
        Kind::Words | Kind::Thought | Kind::Plan | Kind::Work | Kind::Note => None,
    }
}

fn execution(item: Execution) -> Option<Call> {
    let failed = has_failed(item.status.as_deref()) || item.exit_code.is_some_and(|code| code != 0);
    let input = json(&Named { command: Some(&item.command), ..Named::default() })?;
    Some(Call { name: "shell".to_owned(), input, failed, output: item.aggregated_output.unwrap_or_default(), is_answered_here: true })
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
    matches!(status, Some("failed" | "declined" | "interrupted"))
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

impl<'de> Deserialize<'de> for ItemHead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = ItemHead;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an item with a type")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<ItemHead, A::Error> {
                let (mut id, mut kind) = (None, None);
                while let Some(name) = fields.next_key::<Cow<'_, str>>()? {
                    match name.as_ref() {
                        "id" if id.is_none() => id = Some(fields.next_value()?),
                        "type" => kind = Some(fields.next_value()?),
                        _ => _ = fields.next_value::<IgnoredAny>()?,
                    }
                }
                let kind = kind.ok_or_else(|| de::Error::missing_field("type"))?;
                Ok(ItemHead { id: id.unwrap_or_default(), kind })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
