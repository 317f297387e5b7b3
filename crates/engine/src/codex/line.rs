//! The lines that `codex exec --json` prints, as far as they are read.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

/// One line; which fields are there depends on its kind.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    /// Of `thread.started`.
    pub(super) thread_id: Option<String>,
    /// Of `item.*`.
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    /// Of `turn.completed`.
    pub(super) usage: Option<Counted>,
    /// Of `turn.failed`.
    pub(super) error: Option<Complaint>,
    /// Of `error`.
    pub(super) message: Option<String>,
}

/// What kind of line it is, when nothing else of it can be read.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct Complaint {
    pub(super) message: String,
}

/// Tokens since the conversation began. What was read from the cache and written into it is among the input.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counted {
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: u64,
    pub(super) cache_write_input_tokens: u64,
    pub(super) output_tokens: u64,
}

/// What every item has. A search has its `id` twice: the first is the item's, the other the provider's.
pub(super) struct ItemHead {
    pub(super) id: String,
    pub(super) kind: String,
}

/// `agent_message`, `reasoning` and `plan`.
#[derive(Deserialize)]
pub(super) struct Said {
    pub(super) text: String,
}

/// `command_execution`.
#[derive(Deserialize)]
pub(super) struct Execution {
    pub(super) command: String,
    #[serde(default)]
    pub(super) aggregated_output: String,
    pub(super) exit_code: Option<i64>,
    pub(super) status: Option<String>,
}

/// `file_change`.
#[derive(Deserialize)]
pub(super) struct FileChange<'a> {
    #[serde(borrow)]
    pub(super) changes: &'a RawValue,
    pub(super) status: Option<String>,
}

/// `mcp_tool_call`.
#[derive(Deserialize)]
pub(super) struct ToolCall<'a> {
    pub(super) server: String,
    pub(super) tool: String,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) result: Option<ToolAnswer>,
    pub(super) error: Option<Complaint>,
    pub(super) status: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ToolAnswer {
    #[serde(default)]
    pub(super) content: Vec<ToolWords>,
}

/// A part of what a tool said; only texts have one.
#[derive(Deserialize)]
pub(super) struct ToolWords {
    pub(super) text: Option<String>,
}

/// `collab_tool_call`: an agent that it sets to work itself.
#[derive(Deserialize)]
pub(super) struct Collaboration {
    pub(super) tool: String,
    pub(super) prompt: Option<String>,
    pub(super) status: Option<String>,
}

/// `web_search`.
#[derive(Deserialize)]
pub(super) struct WebSearch {
    #[serde(default)]
    pub(super) query: String,
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
