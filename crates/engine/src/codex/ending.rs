//! What a failed turn really means. `codex exec` says that in words only; the app-server has words of its own for some of it,
//! and the same sentences.

use jiff::tz::TimeZone;
use proctor_domain::Timestamp;

use crate::agent::Stop;
use crate::agent::reset::moment;

/// Words of a limit that time lifts.
const USED_UP: [&str; 3] = ["hit your usage limit", "usage limit has been reached", "usage limit reached"];

/// Words of what a person has to do something about, or of what this model won't do: asking again is of no use.
const SHUT_OUT: [&str; 16] = [
    "quota exceeded",
    "exceeded your current quota",
    "out of credits",
    "hit your spend cap",
    "with your chatgpt plan",
    "access token could not be refreshed",
    "refresh token",
    "missing environment variable",
    "not logged in",
    "log in again",
    "sign in again",
    "incorrect api key",
    "access blocked",
    "does not exist or you do not have access",
    "violating our usage policy",
    "content_filter",
];

/// Words of a provider that asks to wait, or is overloaded.
const SLOWED_DOWN: [&str; 7] =
    ["rate limit", "too many requests", "at capacity", "capacity is unavailable", "capacity unavailable", "high demand", "overloaded"];

/// Codes of a provider that asks to wait, or is overloaded.
const SLOWED_DOWN_CODES: [&str; 5] =
    ["rateLimitExceeded", "serverOverloaded", "policyCapacityUnavailable", "flexUnavailable", "internalServerError"];
/// Codes of what a person has to do something about, or of what this model won't do.
const SHUT_OUT_CODES: [&str; 5] = ["unauthorized", "modelNotFound", "cyberPolicy", "bioPolicy", "misalignmentPolicyViolation"];

/// What is said about a failed turn.
#[derive(Debug, Default)]
pub(super) struct Failure<'a> {
    pub(super) message: &'a str,
    /// `usageLimitExceeded`
    pub(super) code: Option<&'a str>,
    /// Of HTTP.
    pub(super) status: Option<u16>,
    /// When the limit is over that was reached, where that was told by the second.
    pub(super) until: Option<Timestamp>,
}

impl<'a> Failure<'a> {
    /// One of which there are only words.
    pub(super) fn said(message: &'a str) -> Self {
        Self { message, ..Self::default() }
    }
}

/// What a failure comes to. `since` is a moment shortly before it was said. The same code is said of a quota that resets and of
/// one that has to be paid for, so the words count first.
pub(super) fn stop(failure: &Failure<'_>, since: Option<Timestamp>, zone: &TimeZone) -> Stop {
    let Failure { message, code, .. } = *failure;
    let words = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let is = |codes: &[&str]| code.is_some_and(|code| codes.contains(&code));
    let until = || moment(message, since, zone);
    if says(&USED_UP) {
        return Stop::UsageLimit { until: failure.until.or_else(until) };
    }
    if says(&SHUT_OUT) {
        return Stop::Refused(message.to_owned());
    }
    match failure.status.or_else(|| status(message)) {
        Some(401..=404 | 407) => return Stop::Refused(message.to_owned()),
        Some(429 | 500..=599) => return Stop::RateLimited { until: until() },
        Some(_) | None => {}
    }
    if is(&["usageLimitExceeded"]) {
        Stop::UsageLimit { until: failure.until.or_else(until) }
    } else if is(&SHUT_OUT_CODES) {
        Stop::Refused(message.to_owned())
    } else if is(&SLOWED_DOWN_CODES) || says(&SLOWED_DOWN) {
        Stop::RateLimited { until: until() }
    } else {
        Stop::Failed(message.to_owned())
    }
}

/// The HTTP status that a text tells: `unexpected status 401 Unauthorized: …`, `…, last status: 429 Too Many Requests`.
pub(super) fn status(message: &str) -> Option<u16> {
    let (_, told) = message.split_once("last status: ").or_else(|| message.split_once("unexpected status "))?;
    told.get(..3)?.parse().ok()
}

/// The attempt that a text announces: `Reconnecting... 2/5 (…)`. Without a network it does not count them.
pub(super) fn attempt(message: &str) -> Option<u32> {
    let told = message.strip_prefix("Reconnecting... ")?;
    Some(told.split_once('/').and_then(|(attempt, _)| attempt.parse().ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: impl FnOnce(String) -> Stop) {
        assert_eq!(stop(&Failure::said(message), None, &TimeZone::UTC), expected(message.to_owned()), "{message}");
    }

    #[test]
    fn one_who_is_not_let_in_is_refused() {
        for message in [
            "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:1/v1/responses",
            "unexpected status 402 Payment Required: x",
            "unexpected status 403 Forbidden: x",
            "unexpected status 404 Not Found: x",
            "Quota exceeded. Check your plan and billing details.",
            "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
            "Your workspace is out of credits. Add credits to continue.",
            "Your access token could not be refreshed because your refresh token was revoked. Please log out and sign in again.",
            "Missing environment variable: `CODEX_API_KEY`.",
            "The model `gpt-9` does not exist or you do not have access to it.",
            "Your prompt was flagged as potentially violating our usage policy.",
        ] {
            check(message, Stop::Refused);
        }
    }

    #[test]
    fn one_who_is_asked_to_wait_is_no_failure() {
        for message in [
            "exceeded retry limit, last status: 429 Too Many Requests, request id: 429a",
            "unexpected status 529 <unknown status code>: x",
            "unexpected status 503 Service Unavailable: x",
            "Selected model is at capacity. Please try a different model.",
            "We’re currently experiencing high demand, which may cause temporary errors.",
            "rate limit exceeded: Rate limit reached for gpt-5.5 in organization org on tokens per min (TPM): Limit 1. Please try again in 2s.",
        ] {
            check(message, |_| Stop::RateLimited { until: None });
        }
        let said = "rate limit exceeded: Please try again in 2s.";
        assert_eq!(stop(&Failure::said(said), Some(Timestamp(1_000)), &TimeZone::UTC), Stop::RateLimited { until: Some(Timestamp(3_000)) });
    }

    #[test]
    fn a_limit_of_a_plan_is_one_until_its_reset() {
        check("You’ve hit your usage limit. Try again later.", |_| Stop::UsageLimit { until: None });
        let until = Some(Timestamp(1_999_999_980_000 + 60_000));
        check(
            "You've hit your usage limit. To get more access now, send a request to your admin or try again at May 18th, 2033 3:33 AM.",
            |_| Stop::UsageLimit { until },
        );
    }

    #[test]
    fn anything_else_has_failed() {
        for message in [
            "stream disconnected before completion: Transport error: network error: error decoding response body",
            "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
            "Connection failed: error sending request",
            "unexpected status 418",
            "unexpected status ✗",
            "",
        ] {
            check(message, Stop::Failed);
        }
    }

    #[test]
    fn a_code_says_what_the_words_do_not() {
        let coded = |code, message| stop(&Failure { message, code: Some(code), ..Failure::default() }, None, &TimeZone::UTC);
        let until = Some(Timestamp(7));

        assert_eq!(coded("usageLimitExceeded", "That was all."), Stop::UsageLimit { until: None });
        assert_eq!(coded("usageLimitExceeded", "Quota exceeded."), Stop::Refused("Quota exceeded.".to_owned()));
        assert_eq!(coded("unauthorized", "Who?"), Stop::Refused("Who?".to_owned()));
        assert_eq!(coded("serverOverloaded", "Later."), Stop::RateLimited { until: None });
        assert_eq!(coded("contextWindowExceeded", "Too long."), Stop::Failed("Too long.".to_owned()));
        let by_status = Failure { message: "No.", status: Some(403), ..Failure::default() };
        assert_eq!(stop(&by_status, None, &TimeZone::UTC), Stop::Refused("No.".to_owned()));
        let by_second = Failure { until, ..Failure::said("You've hit your usage limit. Try again at 3:05 PM.") };
        assert_eq!(stop(&by_second, Some(Timestamp(0)), &TimeZone::UTC), Stop::UsageLimit { until });
    }

    #[test]
    fn an_attempt_is_counted_where_it_is_told() {
        assert_eq!(attempt("Reconnecting... 2/5 (unexpected status 503 x)"), Some(2));
        assert_eq!(attempt("Reconnecting... waiting for network (Connection failed)"), Some(1));
        assert_eq!(attempt("unexpected status 503 x"), None);
    }
}
