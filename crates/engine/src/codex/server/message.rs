//! What the app-server says, as far as it is read.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::spending::Counted;
use crate::agent::rpc::{field, parsed};

/// To `thread/start` and `thread/resume`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Opened {
    #[serde(deserialize_with = "field")]
    pub(super) thread: Named,
    #[serde(deserialize_with = "field")]
    pub(super) model: Option<String>,
}

/// What becomes of a server of tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServerState {
    pub(super) name: String,
    #[serde(deserialize_with = "field")]
    pub(super) status: String,
    #[serde(deserialize_with = "field")]
    pub(super) error: Option<String>,
}

/// To `turn/start`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Begun {
    #[serde(deserialize_with = "field")]
    pub(super) turn: Named,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    #[serde(deserialize_with = "field")]
    pub(super) id: String,
}

/// What notices about a thread have, each of them some of it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Told<'a> {
    pub(super) thread_id: String,
    #[serde(deserialize_with = "field")]
    pub(super) turn_id: String,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(deserialize_with = "field")]
    pub(super) turn: Turn,
    #[serde(deserialize_with = "field")]
    pub(super) error: Option<Complaint>,
    #[serde(deserialize_with = "field")]
    pub(super) will_retry: bool,
    #[serde(deserialize_with = "field")]
    pub(super) token_usage: Option<TokenUsage>,
    #[serde(deserialize_with = "field")]
    pub(super) to_model: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Turn {
    #[serde(deserialize_with = "field")]
    pub(super) id: String,
    #[serde(deserialize_with = "field")]
    pub(super) status: String,
    #[serde(deserialize_with = "field")]
    pub(super) error: Option<Complaint>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct TokenUsage {
    pub(super) total: Counted,
}

/// Why something failed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Complaint {
    #[serde(deserialize_with = "field")]
    pub(super) message: String,
    #[serde(deserialize_with = "field")]
    pub(super) additional_details: Option<String>,
    #[serde(deserialize_with = "field")]
    codex_error_info: serde_json::Value,
}

impl Complaint {
    /// `usageLimitExceeded`, or the only key of an object.
    pub(super) fn code(&self) -> Option<&str> {
        let of_object = || self.codex_error_info.as_object()?.keys().next().map(String::as_str);
        self.codex_error_info.as_str().or_else(of_object)
    }

    /// The HTTP status that goes with it.
    pub(super) fn status(&self) -> Option<u16> {
        let inner = self.codex_error_info.as_object()?.values().next()?;
        inner.get("httpStatusCode")?.as_u64()?.try_into().ok()
    }
}

/// `account/rateLimits/updated`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limits {
    #[serde(deserialize_with = "field")]
    rate_limits: Windows,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Windows {
    #[serde(deserialize_with = "field")]
    primary: Option<Window>,
    #[serde(deserialize_with = "field")]
    secondary: Option<Window>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Window {
    used_percent: f64,
    /// Seconds since 1970.
    #[serde(deserialize_with = "field")]
    resets_at: Option<i64>,
}

/// When the limit that is used up resets, in milliseconds: the later one, where there are two. `None` where none is used up.
pub(super) fn used_up(params: &str) -> Option<Option<i64>> {
    let Windows { primary, secondary } = parsed::<Limits>(params)?.rate_limits;
    let full = [primary, secondary].into_iter().flatten().filter(|window| window.used_percent >= 100.0);
    full.map(|window| window.resets_at.and_then(|seconds| seconds.checked_mul(1_000))).max()
}
