//! What an agent answers to us, as far as it matters here.

use serde::Deserialize;

use super::wire::{field, list};

/// To `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialized {
    #[serde(deserialize_with = "field")]
    pub(super) protocol_version: Option<u64>,
    #[serde(deserialize_with = "field")]
    pub(super) agent_capabilities: AgentCapabilities,
    #[serde(deserialize_with = "list")]
    pub(super) auth_methods: Vec<AuthMethod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AgentCapabilities {
    #[serde(deserialize_with = "field")]
    pub(super) load_session: bool,
    #[serde(deserialize_with = "field")]
    pub(super) session_capabilities: SessionCapabilities,
}

/// Each is there as an object, and not there or `null` otherwise.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SessionCapabilities {
    #[serde(deserialize_with = "field")]
    pub(super) resume: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A way to log in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AuthMethod {
    pub(super) id: String,
    #[serde(deserialize_with = "field")]
    pub(super) name: String,
    #[serde(deserialize_with = "field")]
    pub(super) description: Option<String>,
}

/// To `session/new`, `session/load` and `session/resume`; of a session that is gone on with nobody repeats the id.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Session {
    #[serde(deserialize_with = "field")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "field")]
    pub(super) modes: Option<Modes>,
    /// Not in the protocol any more, but the only way that some agents have.
    #[serde(deserialize_with = "field")]
    pub(super) models: Option<Models>,
    #[serde(deserialize_with = "list")]
    pub(super) config_options: Vec<ConfigOption>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Modes {
    #[serde(deserialize_with = "field")]
    pub(super) current_mode_id: String,
    #[serde(deserialize_with = "list")]
    pub(super) available_modes: Vec<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Models {
    #[serde(deserialize_with = "field")]
    pub(super) current_model_id: String,
    #[serde(deserialize_with = "list")]
    pub(super) available_models: Vec<Named>,
}

/// One thing of several to choose from.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Named {
    #[serde(alias = "modelId", alias = "value")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "field")]
    pub(super) name: String,
}

/// Something that can be set for a session.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfigOption {
    pub(super) id: String,
    #[serde(deserialize_with = "field")]
    pub(super) category: Option<String>,
    #[serde(deserialize_with = "field")]
    pub(super) current_value: String,
    #[serde(deserialize_with = "list")]
    options: Vec<Entry>,
}

/// A value, or a group of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(deserialize_with = "field")]
    value: Option<String>,
    #[serde(deserialize_with = "field")]
    name: String,
    #[serde(deserialize_with = "list")]
    options: Vec<Named>,
}

impl ConfigOption {
    /// What it can be set to.
    pub(super) fn values(&self) -> Vec<Named> {
        let alone = |entry: &Entry| entry.value.clone().map(|id| Named { id, name: entry.name.clone() });
        self.options.iter().flat_map(|entry| alone(entry).into_iter().chain(entry.options.iter().cloned())).collect()
    }
}

/// To `session/prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Prompted {
    #[serde(deserialize_with = "field")]
    pub(super) stop_reason: String,
    /// In no version of the protocol yet, but told by most agents.
    #[serde(deserialize_with = "field")]
    pub(super) usage: Option<TokenCount>,
    #[serde(rename = "_meta", deserialize_with = "field")]
    pub(super) meta: PromptedMeta,
}

/// What several agents tell beside the protocol, in the same way.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptedMeta {
    #[serde(deserialize_with = "field")]
    pub(super) quota: Quota,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Quota {
    #[serde(deserialize_with = "list")]
    pub(super) model_usage: Vec<ModelUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelUsage {
    pub(super) model: String,
    #[serde(deserialize_with = "field")]
    pub(super) token_count: TokenCount,
}

/// How many tokens were used, by the names that are in use.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenCount {
    #[serde(deserialize_with = "field")]
    pub(super) total_tokens: u64,
    #[serde(alias = "input_tokens", deserialize_with = "field")]
    pub(super) input_tokens: u64,
    #[serde(alias = "output_tokens", deserialize_with = "field")]
    pub(super) output_tokens: u64,
    #[serde(alias = "cachedInputTokens", deserialize_with = "field")]
    pub(super) cached_read_tokens: u64,
    #[serde(alias = "cacheWriteInputTokens", deserialize_with = "field")]
    pub(super) cached_write_tokens: u64,
}
