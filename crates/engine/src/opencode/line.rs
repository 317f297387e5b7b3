//! The lines that `opencode run --format json` prints, and those of the witness beside them, as far as they are read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What every line has.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

/// `step_start`, `text`, `reasoning`, `tool_use` and `step_finish`; of the witness `proctor_call`.
#[derive(Deserialize)]
pub(super) struct PartLine<'a> {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    #[serde(borrow)]
    pub(super) part: Part<'a>,
}

/// A part of a message; which fields are there depends on its kind.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(rename = "messageID")]
    pub(super) message: String,
    pub(super) text: Option<String>,
    pub(super) tool: Option<String>,
    #[serde(rename = "callID")]
    pub(super) call: Option<String>,
    #[serde(borrow)]
    pub(super) state: Option<ToolState<'a>>,
    /// Why the model stopped.
    pub(super) reason: Option<String>,
    pub(super) tokens: Option<Tokens>,
    /// In dollars.
    pub(super) cost: Option<f64>,
}

/// How far a tool is.
#[derive(Deserialize)]
pub(super) struct ToolState<'a> {
    pub(super) status: String,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    pub(super) metadata: Option<Metadata>,
}

/// What tools say beside their output; what it is differs from tool to tool.
#[derive(Deserialize)]
pub(super) struct Metadata {
    /// The exit code of a command.
    pub(super) exit: Option<Value>,
}

/// What one step used. Thoughts are not in `output`, nor is the cache in `input`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) reasoning: u64,
    pub(super) cache: CacheTokens,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CacheTokens {
    pub(super) read: u64,
    pub(super) write: u64,
}

/// `error`.
#[derive(Deserialize)]
pub(super) struct ErrorLine {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    /// Milliseconds since the epoch.
    pub(super) timestamp: i64,
    pub(super) error: NamedError,
}

#[derive(Deserialize)]
pub(super) struct NamedError {
    pub(super) name: String,
    #[serde(default)]
    pub(super) data: ErrorDetails,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ErrorDetails {
    pub(super) message: Option<String>,
    pub(super) status_code: Option<u16>,
    pub(super) response_headers: BTreeMap<String, String>,
    pub(super) response_body: Option<String>,
}

/// `proctor_message`: an answer begins.
#[derive(Deserialize)]
pub(super) struct MessageLine {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    #[serde(rename = "messageID")]
    pub(super) message: String,
    pub(super) model: String,
    /// It sums up what was said, to make room.
    pub(super) summary: bool,
    /// It is the answer of an agent that ours set to work.
    pub(super) delegate: bool,
}

/// `proctor_delegate_step`: what a step of such an agent used.
#[derive(Deserialize)]
pub(super) struct DelegateLine<'a> {
    pub(super) model: Option<String>,
    #[serde(borrow)]
    pub(super) part: Part<'a>,
}

/// `proctor_retry`.
#[derive(Deserialize)]
pub(super) struct RetryLine {
    pub(super) attempt: u32,
    pub(super) wait_ms: u64,
    pub(super) error: NamedError,
}

/// `proctor_exit`: the program ends.
#[derive(Deserialize)]
pub(super) struct ExitLine {
    pub(super) code: i32,
}
