//! What an agent tells while it works.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::{field, list, listed, parsed};
use crate::agent::{PlanEntry, PlanState};

/// The parameters of `session/update`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notice<'a> {
    pub(super) session_id: String,
    #[serde(borrow)]
    pub(super) update: &'a RawValue,
}

/// One update.
pub(super) enum Update {
    /// A part of what the model says.
    Says(Chunk),
    /// A part of what it thinks.
    Thinks(Chunk),
    /// A tool is to be used.
    Call(ToolChange),
    /// Something about a call is known now.
    CallChange(ToolChange),
    /// What was used and what that cost.
    Usage(UsageUpdate),
    /// What it means to do.
    Plan(Plan),
    /// It is at work: a conversation that is made shorter.
    Working,
    /// Of no weight: what was asked, commands, titles, settings.
    Nothing,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    session_update: String,
}

/// A part of a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk {
    #[serde(default, deserialize_with = "field")]
    pub(super) message_id: Option<String>,
    #[serde(deserialize_with = "field")]
    content: Block,
}

/// Text, or something that is shown by what it points at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block {
    #[serde(deserialize_with = "field")]
    text: String,
    #[serde(deserialize_with = "field")]
    uri: String,
}

/// A call of a tool, or what is new about one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolChange {
    pub(super) tool_call_id: String,
    #[serde(default, deserialize_with = "field")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "field")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "field")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "field")]
    pub(super) status: Option<String>,
    #[serde(default, deserialize_with = "field")]
    pub(super) raw_input: Option<Value>,
    #[serde(default, deserialize_with = "field")]
    pub(super) raw_output: Option<Value>,
    #[serde(default, deserialize_with = "listed")]
    content: Option<Vec<ToolContent>>,
    #[serde(default, rename = "_meta", deserialize_with = "field")]
    meta: ToolMeta,
}

/// What several agents tell beside the protocol of commands that they run themselves.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ToolMeta {
    #[serde(alias = "terminal_output_delta", deserialize_with = "field")]
    terminal_output: Option<Printed>,
}

/// A part of what a command printed.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Printed {
    #[serde(rename = "terminal_id")]
    pub(super) terminal: String,
    pub(super) data: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ToolContent {
    #[serde(deserialize_with = "field")]
    content: ToolBlock,
    /// Of a change to a file.
    #[serde(deserialize_with = "field")]
    path: Option<String>,
    /// Of a command that was run for the agent.
    #[serde(rename = "terminalId", deserialize_with = "field")]
    terminal: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ToolBlock {
    #[serde(deserialize_with = "field")]
    text: Option<String>,
}

/// What an agent means to do, one thing after the other.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Plan {
    #[serde(deserialize_with = "list")]
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    content: String,
    #[serde(default, deserialize_with = "field")]
    status: String,
}

/// A command that was run for the agent has ended; the relay says so.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandEnded {
    pub(super) terminal_id: String,
    pub(super) output: String,
}

/// What a session has cost so far.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageUpdate {
    #[serde(deserialize_with = "field")]
    pub(super) cost: Option<Price>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Price {
    pub(super) amount: f64,
    pub(super) currency: String,
}

impl Update {
    /// What this update says; the error is its kind, where that is not known or it is not built like that.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let kind = parsed::<Head>(text).map(|head| head.session_update).unwrap_or_default();
        let update = match kind.as_str() {
            "agent_message_chunk" => {
                parsed::<Chunk>(text).map(|chunk| if chunk.is_of_program() { Self::Nothing } else { Self::Says(chunk) })
            }
            "agent_thought_chunk" => parsed(text).map(Self::Thinks),
            "tool_call" => parsed(text).map(Self::Call),
            "tool_call_update" => parsed(text).map(Self::CallChange),
            "usage_update" => parsed(text).map(Self::Usage),
            "plan" => parsed(text).map(Self::Plan),
            "compaction_update" | "compaction_summary_chunk" => Some(Self::Working),
            "user_message_chunk" | "available_commands_update" | "current_mode_update" | "config_option_update" => Some(Self::Nothing),
            "session_info_update" | "notice" => Some(Self::Nothing),
            // What an agent has invented for itself.
            own if own.starts_with('_') => Some(Self::Nothing),
            _ => None,
        };
        update.ok_or(kind)
    }
}

impl Plan {
    pub(super) fn entries(self) -> Vec<PlanEntry> {
        let state = |status: &str| match status {
            "completed" => PlanState::Completed,
            "in_progress" => PlanState::InProgress,
            _ => PlanState::Pending,
        };
        self.entries.into_iter().map(|entry| PlanEntry { state: state(&entry.status), text: entry.content }).collect()
    }
}

/// What Gemini CLI has its model say when its mode is set.
const MODE_IS_SET: &str = "[MODE_UPDATE] ";

impl Chunk {
    /// Whether these are the words of the agent's program, which no model has said.
    fn is_of_program(&self) -> bool {
        self.content.text.strip_prefix(MODE_IS_SET).is_some_and(|mode| !mode.contains(char::is_whitespace))
    }

    pub(super) fn text(&self) -> &str {
        if self.content.text.is_empty() { &self.content.uri } else { &self.content.text }
    }
}

impl ToolChange {
    /// What is told here that a command printed.
    pub(super) fn printed(&self) -> Option<&Printed> {
        self.meta.terminal_output.as_ref()
    }

    /// The command whose output is shown for what the tool said.
    pub(super) fn terminal(&self) -> Option<&str> {
        self.content.iter().flatten().find_map(|part| part.terminal.as_deref())
    }

    /// What the tool said, where this says it: its output as a text, or else what is shown of it.
    pub(super) fn output(&self) -> Option<String> {
        let text = |part: &ToolContent| part.content.text.clone().or_else(|| part.path.clone());
        let shown = || self.content.as_ref().map(|parts| parts.iter().filter_map(text).collect::<Vec<_>>().join("\n"));
        match &self.raw_output {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Null) | None => shown(),
            Some(value) => shown().filter(|text| !text.is_empty()).or_else(|| Some(value.to_string())),
        }
    }
}
