//! What an error of OpenCode really means, and what its steps add up to.

use std::collections::BTreeMap;

use proctor_domain::session::{Spending, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};
use serde_json::Value;

use super::line::{ErrorDetails, NamedError, Part, Tokens};
use crate::agent::Stop;

/// Codes with which a provider says that the account's quota is used up until it resets.
const USED_UP: [&str; 4] = ["FreeUsageLimitError", "GoUsageLimitError", "usage_limit_exceeded", "usage_limit_reached"];
/// Codes of accounts that have no money left: no wait helps.
const UNPAID: [&str; 3] = ["billing_error", "billing_hard_limit_reached", "insufficient_quota"];
/// Words of providers that say it inside of an answer that began well, without a status.
const BUSY: [&str; 4] = ["overloaded", "rate limit", "rate_limit", "too many requests"];

/// How a session stopped that ended with this error, which was told then.
pub(super) fn stop(error: &NamedError, told: Timestamp) -> Stop {
    let message = message(error);
    match error.name.as_str() {
        "APIError" => refused_request(&error.data, message, told),
        "ContentFilterError" | "ProviderAuthError" | "ProviderModelNotFoundError" => Stop::Refused(message),
        "MessageAbortedError" => Stop::Interrupted,
        _ if is_busy(&message) => Stop::RateLimited { until: None },
        _ => Stop::Failed(message),
    }
}

fn refused_request(data: &ErrorDetails, message: String, told: Timestamp) -> Stop {
    let body = Body::of(data);
    if body.has_code(&USED_UP) {
        return Stop::UsageLimit { until: body.reset(told).or(wait(data, told)) };
    }
    match data.status_code {
        _ if body.has_code(&UNPAID) => Stop::Refused(message),
        // 529 is a provider that is overloaded: nothing is wrong with the work, and asking again at once makes it worse.
        Some(429 | 529) => Stop::RateLimited { until: wait(data, told) },
        Some(401..=404) => Stop::Refused(message),
        _ if is_busy(&message) => Stop::RateLimited { until: None },
        _ => Stop::Failed(message),
    }
}

fn is_busy(message: &str) -> bool {
    let message = message.to_lowercase();
    BUSY.iter().any(|words| message.contains(words))
}

fn message(error: &NamedError) -> String {
    let told = error.data.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    told.map_or_else(|| format!("the engine ended with `{}` and said no more", error.name), str::to_owned)
}

/// When the provider asks to be asked again.
fn wait(data: &ErrorDetails, told: Timestamp) -> Option<Timestamp> {
    let header = |name| data.response_headers.get(name).and_then(|value| value.trim().parse::<u32>().ok()).map(i64::from);
    let millis = header("retry-after-ms").or_else(|| header("retry-after")?.checked_mul(1_000))?;
    after(told, millis)
}

fn after(told: Timestamp, millis: i64) -> Option<Timestamp> {
    told.0.checked_add(millis).map(Timestamp)
}

/// What the provider answered, of which only the error is looked at.
struct Body(Value);

impl Body {
    fn of(data: &ErrorDetails) -> Self {
        let answered = data.response_body.as_deref().and_then(|body| serde_json::from_str::<Value>(body).ok());
        Self(answered.map_or(Value::Null, |body| body.get("error").cloned().unwrap_or(body)))
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        ["code", "type"].into_iter().filter_map(|field| self.0.get(field)?.as_str()).any(|code| codes.contains(&code))
    }

    fn reset(&self, told: Timestamp) -> Option<Timestamp> {
        let seconds = |field| self.0.get(field)?.as_i64()?.checked_mul(1_000);
        seconds("resets_at").map(Timestamp).or_else(|| after(told, seconds("resets_in_seconds")?))
    }
}

/// What this program has spent, by model.
#[derive(Debug, Default)]
pub(super) struct Totals {
    models: BTreeMap<String, Spending>,
}

impl Totals {
    /// Takes in what a step used.
    pub(super) fn add(&mut self, model: &str, step: &Part<'_>) {
        let Some(tokens) = &step.tokens else { return };
        let nothing = || Spending { model: model.to_owned(), usage: Usage::default(), cost: Cost::Known(MicroDollars(0)) };
        let spending = self.models.entry(model.to_owned()).or_insert_with(nothing);
        let total = &mut spending.usage;
        total.input = total.input.saturating_add(tokens.input);
        total.output = total.output.saturating_add(tokens.output).saturating_add(tokens.reasoning);
        total.cache_read = total.cache_read.saturating_add(tokens.cache.read);
        total.cache_write = total.cache_write.saturating_add(tokens.cache.write);
        spending.cost = [spending.cost, cost(step.cost, tokens)].into_iter().sum();
    }

    pub(super) fn spent(&self) -> Vec<Spending> {
        self.models.values().cloned().collect()
    }
}

/// A model that the client has no price for costs nothing by its account, which nobody knows to be true.
fn cost(told: Option<f64>, tokens: &Tokens) -> Cost {
    let was_used = [tokens.input, tokens.output, tokens.reasoning, tokens.cache.read, tokens.cache.write].iter().any(|used| *used > 0);
    match told.and_then(MicroDollars::from_float) {
        Some(cost) if cost > MicroDollars(0) || !was_used => Cost::Known(cost),
        Some(_) | None => Cost::Unknown,
    }
}
