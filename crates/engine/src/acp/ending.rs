//! How a prompt really ended: by its reason to stop, or by what the agent says about its failure.
//!
//! The protocol knows one error that matters, that somebody has to log in. Whether the provider asks to wait or the account is
//! used up stands in the message alone, or in data that each agent builds its own way; so both are searched for the words.

use jiff::tz::TimeZone;
use proctor_domain::Timestamp;
use serde_json::Value;

use super::answer::AuthMethod;
use super::wire::RpcError;
use crate::agent::{Stop, reset};

/// What is said of accounts that have no money left: no wait helps.
const UNPAID: [&str; 4] = ["insufficient_quota", "exceeded your current quota", "billing", "credit balance"];
/// The protocol's word for a login that is needed.
const AUTH_REQUIRED: i64 = -32000;

const USED_UP: [&str; 7] = ["usage limit", "usage_limit", "usagelimit", "hit your limit", "-hour limit", "weekly limit", "limit reached"];
const ASKED_TO_WAIT: [&str; 10] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "overloaded",
    "at capacity",
    "resource_exhausted",
    "resource exhausted",
    "429",
    "529",
];
const SHUT_OUT: [&str; 11] = [
    "authentication",
    "unauthorized",
    "unauthorised",
    "not logged in",
    "/login",
    "api key",
    "api_key",
    "permission_error",
    "model_not_found",
    "401",
    "403",
];
/// Names of a moment, in seconds since 1970.
const RESETS: [&str; 4] = ["resets_at", "resetsAt", "reset_at", "resetAt"];

/// What the reason to stop comes to.
pub(super) fn stop(reason: &str) -> Stop {
    match reason {
        "end_turn" => Stop::Done,
        "max_turn_requests" => Stop::TurnLimit,
        "cancelled" => Stop::Interrupted,
        "refusal" => Stop::Refused("the model refused to go on".to_owned()),
        "max_tokens" => Stop::Failed("the model's answer reached the most tokens that it may have".to_owned()),
        other => Stop::Failed(format!("the agent stopped for a reason that is not known: `{other}`")),
    }
}

/// What this failure comes to, which came some time after `since`.
pub(super) fn failure(error: &RpcError, since: Option<Timestamp>) -> Stop {
    let told = told(error);
    if error.code == AUTH_REQUIRED {
        return Stop::Refused(told);
    }
    let text = format!("{} {}", error.message, error.data).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| has(&text, word));
    if says(&UNPAID) {
        Stop::Refused(told)
    } else if says(&USED_UP) {
        Stop::UsageLimit { until: until(error, since) }
    } else if says(&ASKED_TO_WAIT) {
        Stop::RateLimited { until: until(error, since) }
    } else if says(&SHUT_OUT) {
        Stop::Refused(told)
    } else {
        Stop::Failed(told)
    }
}

/// The agent's message, and the details that its data hold.
pub(super) fn told(error: &RpcError) -> String {
    let details = match &error.data {
        Value::String(text) => Some(text.as_str()),
        Value::Object(fields) => ["details", "message", "errorMessage"].into_iter().find_map(|name| fields.get(name)?.as_str()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    match (error.message.trim(), details.map(str::trim).filter(|details| !details.is_empty())) {
        ("", None) => format!("the agent failed with code {} and said no more", error.code),
        ("", Some(details)) => details.to_owned(),
        (message, Some(details)) if !message.contains(details) => format!("{message}: {details}"),
        (message, _) => message.to_owned(),
    }
}

/// What to do about a login that is missing, where that is what this error says: `methods` are the ways that the agent offers.
pub(super) fn ways_to_log_in(error: &RpcError, methods: &[AuthMethod]) -> Option<String> {
    if error.code != AUTH_REQUIRED {
        return None;
    }
    let ways: Vec<String> = methods.iter().map(way).collect();
    if ways.is_empty() {
        return Some("log in with the agent's own program first".to_owned());
    }
    Some(format!("the agent offers these ways to log in, by its own program: {}", ways.join(", ")))
}

fn way(method: &AuthMethod) -> String {
    let name = if method.name.is_empty() { method.id.clone() } else { format!("{} (`{}`)", method.name, method.id) };
    method.description.as_ref().map_or(name.clone(), |description| format!("{name}: {description}"))
}

/// Whether a word stands in a text: a number only by itself.
fn has(text: &str, word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !is_number || ![before, after].into_iter().flatten().any(|around| around.is_ascii_alphanumeric())
    })
}

/// Until when, where that is told as a moment.
fn until(error: &RpcError, since: Option<Timestamp>) -> Option<Timestamp> {
    let by_data = RESETS.iter().find_map(|name| found(&error.data, name, 0));
    // As Claude Code once said it: `usage limit reached|1796060000`.
    let by_text = || error.message.rsplit_once("limit reached|").and_then(|(_, seconds)| seconds.trim().parse().ok());
    let seconds: Option<i64> = by_data.or_else(by_text);
    let by_number = seconds.and_then(|seconds| seconds.checked_mul(1_000)).filter(|millis| *millis > 0).map(Timestamp);
    by_number.or_else(|| reset::moment(&error.message, since, &TimeZone::system()))
}

/// The number of this name, wherever it is in the data.
fn found(data: &Value, name: &str, depth: usize) -> Option<i64> {
    if depth > 8 {
        return None;
    }
    match data {
        Value::Object(fields) => {
            fields.get(name).and_then(Value::as_i64).or_else(|| fields.values().find_map(|value| found(value, name, depth + 1)))
        }
        Value::Array(items) => items.iter().find_map(|item| found(item, name, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::parsed;
    use super::*;

    fn failed(error: &str) -> Stop {
        failure(&parsed(error).unwrap(), None)
    }

    #[test]
    fn a_reason_to_stop_is_what_it_says() {
        assert_eq!([stop("end_turn"), stop("max_turn_requests"), stop("cancelled")], [Stop::Done, Stop::TurnLimit, Stop::Interrupted]);
        assert!(matches!(stop("refusal"), Stop::Refused(_)));
        assert!(matches!(stop("max_tokens"), Stop::Failed(_)));
        assert!(matches!(stop("bored"), Stop::Failed(reason) if reason.contains("bored")));
    }

    #[test]
    fn a_failure_is_told_apart_by_its_code_its_message_and_its_data() {
        let until = Some(Timestamp(1_796_060_000_000));

        assert!(matches!(failed(r#"{"code":-32000,"message":"Authentication required"}"#), Stop::Refused(_)));
        assert!(matches!(failed(r#"{"code":-32603,"message":"API Error: 401 invalid x-api-key"}"#), Stop::Refused(_)));
        assert!(matches!(failed(r#"{"code":-32603,"message":"x","data":{"code":"insufficient_quota","status":429}}"#), Stop::Refused(_)));
        assert!(matches!(
            failed(r#"{"code":1,"message":"You've hit your 5-hour limit","data":{"errorKind":"rate_limit"}}"#),
            Stop::UsageLimit { .. }
        ));
        assert_eq!(failed(r#"{"code":-32603,"message":"x","data":{"errorKind":"rate_limit"}}"#), Stop::RateLimited { until: None });
        assert_eq!(failed(r#"{"code":-32603,"message":"API Error: 529 Overloaded"}"#), Stop::RateLimited { until: None });
        assert_eq!(failed(r#"{"code":1,"message":"usage limit reached|1796060000"}"#), Stop::UsageLimit { until });
        assert_eq!(
            failed(r#"{"code":1,"message":"m","data":{"a":[{"resets_at":1796060000,"type":"usage_limit_reached"}]}}"#),
            Stop::UsageLimit { until }
        );
        assert_eq!(failed(r#"{"code":-32603,"message":"it took 4290 ms"}"#), Stop::Failed("it took 4290 ms".to_owned()));
        assert_eq!(
            failed(r#"{"code":-32603,"message":"Internal error","data":{"details":"no disk"}}"#),
            Stop::Failed("Internal error: no disk".to_owned())
        );
        assert!(matches!(failed(r#"{"code":7}"#), Stop::Failed(reason) if reason.contains('7')));
    }

    #[test]
    fn one_that_wants_a_login_says_which_ways_there_are() {
        let methods = [
            AuthMethod { id: "api-key".to_owned(), name: "API Key".to_owned(), description: Some("Use a key".to_owned()) },
            AuthMethod { id: "web".to_owned(), ..AuthMethod::default() },
        ];
        let error = RpcError { code: AUTH_REQUIRED, message: "Authentication required".to_owned(), data: Value::Null };

        let ways = ways_to_log_in(&error, &methods).unwrap();

        assert!(ways.ends_with("API Key (`api-key`): Use a key, web"), "{ways}");
        assert!(ways_to_log_in(&error, &[]).is_some_and(|ways| ways.starts_with("log in")));
        assert_eq!(ways_to_log_in(&RpcError::default(), &methods), None);
    }
}
