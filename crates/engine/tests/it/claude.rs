//! What recorded sessions of Claude Code come to. See `tests/fixtures/claude/README.md` for how each was recorded.

use proctor_domain::session::{AgentReport, SessionEnd, Spending, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};
use proctor_engine::agent::{AgentEvent, EngineKind, Opening, engine};
use proptest::prelude::*;

use crate::recordings::Recordings;

const MODEL: &str = "claude-opus-5-5";

const RECORDED: Recordings = Recordings { kind: EngineKind::Claude, model: MODEL };

fn fixture(name: &str) -> String {
    RECORDED.one(name)
}

fn events(bytes: &[u8]) -> Vec<AgentEvent> {
    RECORDED.events(&Opening::default(), bytes)
}

fn close(bytes: &[u8], exit_code: i32, owes_result: bool) -> (SessionEnd, AgentReport) {
    RECORDED.close(&Opening::default(), bytes, exit_code, owes_result)
}

/// What most sessions come to: the model has answered, and said this at last.
fn answered(turns: u32, spent: (u64, u64, u64), claim: &str) -> AgentReport {
    let (input, output, micros) = spent;
    let usage = Usage { input, output, ..Usage::default() };
    AgentReport {
        responded: true,
        turns,
        spent: vec![Spending { model: MODEL.to_owned(), usage, cost: Cost::Known(MicroDollars(micros)) }],
        claim: Some(claim.to_owned()),
        ..unanswered(None)
    }
}

/// What a session comes to in which the model answered nothing.
fn unanswered(error: Option<&str>) -> AgentReport {
    RECORDED.unanswered(error)
}

/// The conversation's id is another one in each recording, and is what its first line says.
fn check(name: &str, owes_result: bool, end: SessionEnd, mut report: AgentReport) {
    let text = fixture(name);
    let init = text.lines().next().filter(|line| line.contains(r#""subtype":"init""#));
    let value: Option<serde_json::Value> = init.map(|line| serde_json::from_str(line).unwrap());
    report.conversation = value.map(|value| value["session_id"].as_str().unwrap().to_owned());

    assert_eq!(close(text.as_bytes(), 1, owes_result), (end, report), "{name}");
}

#[test]
fn a_success_that_was_refused_is_not_completed() {
    check("unauthorized", false, SessionEnd::Refused, unanswered(Some("Invalid API key · Fix external API key")));
    check("rate-limited-for-good", false, SessionEnd::RateLimited { until: None }, unanswered(None));
    check("usage-limit-api-key", false, SessionEnd::RateLimited { until: None }, unanswered(None));
    check("overloaded-for-good", false, SessionEnd::RateLimited { until: None }, unanswered(None));
    let (end, report) = close(fixture("server-error").as_bytes(), 1, false);
    assert!(matches!(&end, SessionEnd::Crashed { reason } if reason.starts_with("API Error: 500")), "{end:?}");
    assert!(!report.responded);
}

#[test]
fn a_quota_that_is_used_up_says_until_when() {
    let until = |millis| SessionEnd::UsageLimit { until: Some(Timestamp(millis)) };
    let subscribed = "claude-sonnet-5-5".to_owned();
    let mut report = answered(1, (100, 20, 400), "One.");
    report.spent[0].model.clone_from(&subscribed);

    check("usage-limit", false, until(1_796_080_238_000), AgentReport { model: Some(subscribed.clone()), ..unanswered(None) });
    check("usage-limit-after-work", false, until(1_796_080_240_000), AgentReport { model: Some(subscribed), ..report });
    let told = br#"{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1796060000"}"#;
    assert_eq!(close(told, 1, false).0, until(1_796_060_000_000));
    let killed = br#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796060000}}"#;
    assert_eq!(close(killed, 143, false).0, until(1_796_060_000_000));
}

#[test]
fn a_quota_that_is_paid_beyond_stops_nothing() {
    let line = br#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796060000,"isUsingOverage":true}}"#;

    assert_eq!(events(line), [AgentEvent::Limit { until: Some(Timestamp(1_796_060_000_000)), reached: false }]);
}

#[test]
fn caps_and_interrupts_are_told_apart() {
    check("budget", false, SessionEnd::Budget, answered(1, (400_000, 40_000, 2_400_000), "Spending."));
    check("max-turns", false, SessionEnd::TurnLimit, answered(2, (200, 40, 1_600), "Again."));
    check("interrupted", false, SessionEnd::Interrupted, answered(1, (100, 5, 500), "Starting a long command."));
}

#[test]
fn a_session_that_says_nothing_at_its_end_has_crashed() {
    let reason = "the engine ended with exit code 1 and without a result".to_owned();
    let report = AgentReport { error: Some(reason.clone()), spent: Vec::new(), ..answered(1, (0, 0, 0), "Starting a long command.") };
    check("sigterm-during-tool", false, SessionEnd::Crashed { reason }, report);

    let reason = "No conversation found with session ID: 11111111-2222-3333-4444-555555555555".to_owned();
    let report = AgentReport { model: None, ..unanswered(Some(&reason)) };
    check("resume-unknown-session", false, SessionEnd::Crashed { reason }, report);

    let (end, report) = close(fixture("cut-for-good").as_bytes(), 1, false);
    assert!(matches!(&end, SessionEnd::Crashed { reason } if reason.starts_with("API Error: Connection dropped")), "{end:?}");
    assert!(!report.responded && report.spent.len() == 1);
}

#[test]
fn a_refusal_of_the_model_is_refused_and_keeps_what_it_cost() {
    let (end, report) = close(fixture("refusal").as_bytes(), 1, false);

    assert_eq!((end, report.turns, report.responded), (SessionEnd::Refused, 2, true));
    assert_eq!(report.spent, answered(2, (200, 40, 1_600), "").spent);
    assert!(report.error.unwrap().starts_with("API Error: Opus 5.5's safeguards flagged this message"));
}

#[test]
fn a_result_that_was_owed_and_did_not_come_is_missing() {
    let error = "Failed to provide valid structured output after 5 attempts — last StructuredOutput error: \
                 Output does not match required schema: root: must have required property 'reasoning', /passed: must be boolean";
    let report = AgentReport { claim: None, error: Some(error.to_owned()), ..answered(5, (500, 100, 4_000), "") };
    check("json-schema-wrong-always", true, SessionEnd::NoResult, report);
    check("json-schema-prose", true, SessionEnd::NoResult, answered(2, (200, 40, 1_600), "Nothing is scripted for this prompt."));
}

#[test]
fn a_structured_result_is_kept_as_it_came() {
    let result = r#"{"passed":true,"reasoning":"All there."}"#;
    let with = |report: AgentReport| AgentReport { result: Some(result.to_owned()), ..report };

    check("json-schema", true, SessionEnd::Completed, with(answered(2, (1_300, 50, 6_200), result)));
    check("json-schema-wrong-first", true, SessionEnd::Completed, with(answered(2, (200, 40, 1_600), result)));
}

#[test]
fn work_that_went_well_is_completed_and_counted_once() {
    let nothing = "Nothing is scripted for this prompt.";
    let cases = [
        ("cut-then-fine", 1, (100, 20, 800), "Recovered after a cut stream, with enough text for several chunks."),
        ("max-tokens", 3, (300, 60, 2_400), nothing),
        ("overloaded-then-fine", 1, (100, 20, 800), "Recovered."),
        ("rate-limited-then-fine", 1, (100, 20, 800), "Recovered."),
        // Its totals go on from those of `write-file`, which must not be paid twice.
        ("resume", 1, (100, 20, 800), "Going on from where we were."),
        ("tool-failure", 2, (200, 40, 1_600), "It failed: Exit code 3\noops"),
        // Two results in one program are one session.
        ("two-prompts", 2, (200, 10, 1_000), "An answer."),
        // The helper's two turns are paid for and are none of ours.
        ("helper-agent", 3, (500, 25, 2_500), "An answer."),
    ];
    for (name, turns, spent, claim) in cases {
        check(name, false, SessionEnd::Completed, answered(turns, spent, claim));
    }
}

#[test]
fn tokens_of_the_cache_are_told_apart() {
    let mut written = answered(2, (2_100, 52, 10_030), "Done: wrote hello.txt (hi from the loopback model)");
    written.spent[0].usage = Usage { cache_read: 1_700, cache_write: 50, ..written.spent[0].usage };
    let mut thought = answered(2, (200, 70, 2_380), "Wrote note.md.");
    thought.spent[0].usage.cache_read = 900;

    check("write-file", false, SessionEnd::Completed, written);
    check("thinking", false, SessionEnd::Completed, thought.clone());
    check("partial-messages", false, SessionEnd::Completed, thought);
}

#[test]
fn a_cost_that_is_a_guess_is_unknown() {
    let usage = |rest| format!(r#"{{"other":{{"inputTokens":3,"outputTokens":4,"costUSD":0.5{rest}}}}}"#);
    let result = |usage: &str| format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"ok","modelUsage":{usage}}}"#);
    let cost = |rest| close(result(&usage(rest)).as_bytes(), 0, false).1.spent[0].cost;

    assert_eq!(cost(r#","costBasis":"unknown""#), Cost::Unknown);
    assert_eq!(cost(""), Cost::Known(MicroDollars(500_000)));
}

#[test]
fn lines_of_an_unknown_kind_and_broken_ones_are_told_apart() {
    let unknown = |kind: &str| vec![AgentEvent::Unknown(kind.to_owned())];

    assert_eq!(events(br#"{"type":"brand_new","x":1}"#), unknown("brand_new"));
    assert_eq!(events(br#"{"subtype":"brand_new","type":"system"}"#), unknown("system/brand_new"));
    assert_eq!(events(br#"{"type":"assistant","message":7}"#), unknown("assistant"));
    for broken in [r#"{"type":"brand_new","x":1"#, r#"{"type":"brand_new","x":}"#, "warning: {}", "{}", "42", r#"["type"]"#] {
        assert_eq!(events(broken.as_bytes()), [AgentEvent::Garbage], "{broken}");
    }
}

#[test]
fn every_line_of_every_recording_is_known() {
    RECORDED.check_that_every_line_is_known(&Opening::default());
}

#[test]
fn a_recording_that_is_cut_anywhere_says_no_more_than_its_whole_lines() {
    RECORDED.check_that_half_a_line_says_nothing(&Opening::default());
    for (name, text) in RECORDED.all() {
        let last = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
        let (end, _) = close(&text.as_bytes()[..text.trim_end().len() - 1], 0, false);
        // `two-prompts` and `helper-agent` print a result before the last one.
        let earlier = text[..last].contains(r#""type":"result""#);
        assert_eq!(end == SessionEnd::Completed, earlier, "{name}");
    }
}

proptest! {
    #[test]
    fn whatever_is_printed_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut read = Vec::new();

        engine(EngineKind::Claude).reader(&Opening::default()).read(&bytes, &mut read);

        prop_assert!(!read.is_empty());
    }

    #[test]
    fn a_line_with_a_wrong_byte_never_panics(which in any::<proptest::sample::Index>(), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let lines = RECORDED.lines();
        let mut line = which.get(&lines).clone().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;

        let (_, report) = close(&line, 0, true);

        prop_assert!(report.turns <= 1);
    }
}
