//! What a `result` really means. Its `subtype` alone says little: a run that the provider refused ends as a `success`
//! whose `is_error` is true.

use std::collections::BTreeMap;

use proctor_domain::session::{Spending, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};

use super::line::{MessageLine, ModelUsage, ResultLine};
use super::reader::{from_seconds, is_used_up};
use crate::agent::{Finish, Stop};

/// Kinds of error with which the provider does not let anybody in, or not to this model, however often it is asked.
const SHUT_OUT: [&str; 7] = [
    "account_on_hold",
    "authentication_failed",
    "billing_error",
    "cloud_credential_error",
    "model_not_found",
    "oauth_org_not_allowed",
    "verification_required",
];

/// Why the provider refused the last request, as the client told it before the `result`.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    kind: Option<String>,
    status: Option<u16>,
    /// The quota is used up, until then.
    pub(super) quota: Option<Option<Timestamp>>,
    /// The status with which the provider refused the login again, so that the client was told to give up.
    pub(super) shut_out: Option<u16>,
}

impl Refusal {
    /// Takes in a message that the client wrote itself.
    pub(super) fn learn(&mut self, line: &MessageLine<'_>) {
        self.kind.clone_from(&line.error);
        self.status = line.api_error_status;
        let quota = line.api_error_params.as_ref().and_then(|parameters| parameters.rate_limit_info.as_ref());
        let until = quota.and_then(|quota| quota.resets_at).and_then(from_seconds);
        if quota.is_some_and(is_used_up) || line.api_error.as_deref() == Some(USED_UP) {
            self.quota = Some(until.or(self.quota.flatten()));
        }
    }
}

const USED_UP: &str = "usage_limit_reached";

/// What a `result` comes to.
pub(super) fn finish(line: &ResultLine<'_>, refusal: &Refusal, spent: Vec<Spending>) -> Finish {
    let stop = stop(line, refusal);
    // The text of a failure is the client's own, not the agent's.
    let text = if stop == Stop::Done { line.result.clone() } else { None };
    let result = line.structured_output.map(|output| output.get().to_owned());
    // `num_turns` counts what is sent to the model, a turn that its cap forbade included. Ours are counted by message.
    Finish { stop, turns: None, spent, text, result }
}

fn stop(line: &ResultLine<'_>, refusal: &Refusal) -> Stop {
    let reason = line.terminal_reason.as_deref().unwrap_or_default();
    if let Some(status) = refusal.shut_out {
        return Stop::Refused(format!("the provider refuses the login (API Error: {status})"));
    }
    match (line.subtype.as_ref(), reason) {
        ("error_max_turns", _) | (_, "max_turns") => Stop::TurnLimit,
        ("error_max_budget_usd", _) | (_, "budget_exhausted") => Stop::Budget,
        ("error_max_structured_output_retries", _) | (_, "structured_output_retry_exhausted") => Stop::NoResult(message(line)),
        (_, "aborted_streaming" | "aborted_tools") => Stop::Interrupted,
        _ if line.interrupted_by_shutdown == Some(true) => Stop::Interrupted,
        _ if line.stop_reason.as_deref() == Some("refusal") => Stop::Refused(message(line)),
        ("success", _) if line.is_error != Some(true) => Stop::Done,
        _ => failure(line, refusal),
    }
}

fn failure(line: &ResultLine<'_>, refusal: &Refusal) -> Stop {
    let message = message(line);
    let status = line.api_error_status.or(refusal.status);
    let kind = refusal.kind.as_deref().unwrap_or_default();
    if let Some(until) = used_up(line, &message, refusal) {
        return Stop::UsageLimit { until };
    }
    match status {
        // 529 is a provider that is overloaded: nothing is wrong with the work, and asking again at once makes it worse.
        // How long to wait is in neither: the client keeps `retry-after` to itself.
        Some(429 | 529) => Stop::RateLimited { until: None },
        Some(401..=404) => Stop::Refused(message),
        _ if matches!(kind, "rate_limit" | "overloaded") => Stop::RateLimited { until: None },
        _ if SHUT_OUT.contains(&kind) || message.contains("/login") => Stop::Refused(message),
        _ => Stop::Failed(message),
    }
}

/// Whether the account's quota is used up, and until when.
fn used_up(line: &ResultLine<'_>, message: &str, refusal: &Refusal) -> Option<Option<Timestamp>> {
    // Versions before 2.1 said it in the text alone: `Claude AI usage limit reached|1796060000`.
    let (_, told) = message.rsplit_once("limit reached|").unzip();
    let told = told.and_then(|seconds| seconds.trim().parse().ok()).and_then(from_seconds);
    match (told, refusal.quota) {
        (Some(until), _) => Some(Some(until)),
        (None, Some(until)) => Some(until),
        (None, None) => (line.api_error.as_deref() == Some(USED_UP)).then_some(None),
    }
}

/// What the client says about its end.
fn message(line: &ResultLine<'_>) -> String {
    let told = line.errors.iter().flatten().chain(&line.result).find(|text| !text.trim().is_empty());
    told.cloned().unwrap_or_else(|| format!("the engine ended with `{}` and said no more", line.subtype))
}

/// What this program has spent, by model.
#[derive(Debug, Default)]
pub(super) struct Totals {
    models: BTreeMap<String, Spending>,
}

impl Totals {
    /// Takes in a `result`.
    ///
    /// Its totals go on from those of the conversation that was resumed, so that they would count twice what an earlier
    /// session reported. The differences between results are right whatever came before; a version that does not print
    /// them is believed at its last word.
    pub(super) fn add(&mut self, line: &ResultLine<'_>) {
        if let Some(since) = &line.model_usage_since_last_result {
            for (model, usage) in since {
                self.put(model, usage);
            }
        } else if let Some(totals) = line.model_usage.as_ref().filter(|totals| !totals.is_empty()) {
            self.models.clear();
            for (model, usage) in totals {
                self.put(model, usage);
            }
        }
    }

    fn put(&mut self, model: &str, usage: &ModelUsage) {
        let nothing = || Spending { model: model.to_owned(), usage: Usage::default(), cost: Cost::Known(MicroDollars(0)) };
        let spending = self.models.entry(model.to_owned()).or_insert_with(nothing);
        let total = &mut spending.usage;
        total.input = total.input.saturating_add(usage.input_tokens);
        total.output = total.output.saturating_add(usage.output_tokens);
        total.cache_read = total.cache_read.saturating_add(usage.cache_read_input_tokens);
        total.cache_write = total.cache_write.saturating_add(usage.cache_creation_input_tokens);
        spending.cost = [spending.cost, cost(usage)].into_iter().sum();
    }

    pub(super) fn spent(&self) -> Vec<Spending> {
        self.models.values().cloned().collect()
    }
}

/// A model that the client has no price for is priced as another one, which is a guess.
fn cost(usage: &ModelUsage) -> Cost {
    if usage.cost_basis.as_deref() == Some("unknown") {
        return Cost::Unknown;
    }
    usage.cost_usd.and_then(MicroDollars::from_float).map_or(Cost::Unknown, Cost::Known)
}
