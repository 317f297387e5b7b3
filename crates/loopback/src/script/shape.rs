//! The keys of a script file, as they are written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScriptShape {
    #[serde(default)]
    pub(super) models: Vec<String>,
    #[serde(default)]
    pub(super) scenario: Vec<ScenarioShape>,
    pub(super) default: Option<DefaultShape>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScenarioShape {
    pub(super) name: Option<String>,
    #[serde(rename = "match")]
    pub(super) prompt: Option<String>,
    #[serde(default)]
    pub(super) side: bool,
    #[serde(default)]
    pub(super) turn: Vec<TurnShape>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DefaultShape {
    #[serde(default)]
    pub(super) turn: Vec<TurnShape>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TurnShape {
    pub(super) thinking: Option<String>,
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) tools: Vec<ToolShape>,
    pub(super) structured: Option<Value>,
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) usage: UsageShape,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) delay_ms: u64,
    #[serde(default)]
    pub(super) chunk_delay_ms: u64,
    pub(super) fail: Option<FailShape>,
    pub(super) cut: Option<BreakShape>,
    pub(super) hang: Option<BreakShape>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ToolShape {
    pub(super) shell: Option<String>,
    pub(super) write: Option<WriteShape>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WriteShape {
    pub(super) path: String,
    pub(super) content: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct UsageShape {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CountShape {
    #[default]
    Session,
    Server,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FailShape {
    pub(super) status: u16,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) message: Option<String>,
    pub(super) retry_after: Option<u64>,
    #[serde(default)]
    pub(super) in_stream: bool,
    pub(super) usage_limit: Option<UsageLimitShape>,
    pub(super) times: Option<u32>,
    #[serde(default)]
    pub(super) count: CountShape,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct UsageLimitShape {
    pub(super) resets_in: Option<u64>,
    pub(super) resets_at: Option<u64>,
    #[serde(default)]
    pub(super) window: WindowShape,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WindowShape {
    #[default]
    FiveHours,
    SevenDays,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BreakShape {
    #[serde(default)]
    pub(super) after_events: usize,
    pub(super) times: Option<u32>,
    #[serde(default)]
    pub(super) count: CountShape,
}
