//! What both formats of OpenAI share: how an error is said.

use serde_json::{Value, json};

use crate::conversation::Form;
use crate::format::{ErrorAnswer, Limit, Refused};
use crate::script::Window;

/// How OpenAI calls a plan's limit that was reached.
const USAGE_LIMIT: &str = "usage_limit_reached";

pub(crate) fn refusal(refused: &Refused) -> ErrorAnswer {
    let (kind, code) = match (refused.kind, refused.limit) {
        (Some(kind), _) => (kind, Some(kind)),
        (None, Some(_)) => (USAGE_LIMIT, Some(USAGE_LIMIT)),
        (None, None) => error_type(refused.status),
    };
    let mut error = json!({"message": refused.message, "type": kind, "param": null, "code": code});
    if let Some(limit) = refused.limit {
        error["plan_type"] = json!("plus");
        error["resets_at"] = json!(limit.reset);
        error["resets_in_seconds"] = json!(limit.seconds);
    }
    ErrorAnswer { body: json!({"error": error}), headers: refused.limit.map(limit_headers).unwrap_or_default() }
}

/// The type of an error and its code.
fn error_type(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        503 | 529 => ("server_error", Some("server_is_overloaded")),
        400..=499 => ("invalid_request_error", None),
        _ => ("server_error", None),
    }
}

/// What OpenAI says about the limit of a plan, beside the body.
fn limit_headers(limit: Limit) -> Vec<(String, String)> {
    let (which, minutes) = match limit.window {
        Window::FiveHours => ("primary", 5 * 60),
        Window::SevenDays => ("secondary", 7 * 24 * 60),
    };
    let values = [("used-percent", 100), ("window-minutes", minutes), ("reset-at", limit.reset)];
    values.into_iter().map(|(name, value)| (format!("x-codex-{which}-{name}"), value.to_string())).collect()
}

/// The form that a request asks for by `format`; `schema` is where that puts its schema.
pub(crate) fn form(format: &Value, schema: &Value) -> Form {
    match format["type"].as_str() {
        Some("json_schema" | "json_object") => Form::Json(schema.clone()),
        _ => Form::Free,
    }
}
