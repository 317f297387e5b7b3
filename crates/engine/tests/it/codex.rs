//! What recorded sessions of `codex exec` come to. See `tests/fixtures/codex/README.md` for how each was recorded.

mod server;

use proctor_domain::session::{AgentReport, SessionEnd, Spending, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};
use proctor_engine::agent::{AgentEvent, EngineKind, Opening, engine};
use proptest::prelude::*;

use crate::recordings::Recordings;

const MODEL: &str = "gpt-5.5";
const SCHEMA: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;
const INTERRUPTED: &str = "the engine ended with exit code 1 and without a result";

const RECORDED: Recordings = Recordings { kind: EngineKind::Codex, model: MODEL };

fn fixture(name: &str) -> String {
    RECORDED.one(name)
}

fn opening() -> Opening {
    Opening { model: Some(MODEL.to_owned()), ..Opening::default() }
}

fn events_after(opening: &Opening, bytes: &[u8]) -> Vec<AgentEvent> {
    RECORDED.events(opening, bytes)
}

fn events(bytes: &[u8]) -> Vec<AgentEvent> {
    events_after(&opening(), bytes)
}

fn close(opening: &Opening, bytes: &[u8]) -> (SessionEnd, AgentReport) {
    RECORDED.close(opening, bytes, 1, opening.schema.is_some())
}

fn told(name: &str) -> (SessionEnd, AgentReport) {
    close(&opening(), fixture(name).as_bytes())
}

/// What a session comes to in which the model answered so often, and said this at last.
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
fn check(name: &str, opening: &Opening, end: SessionEnd, mut report: AgentReport) {
    let text = fixture(name);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    report.conversation = Some(first["thread_id"].as_str().unwrap().to_owned());

    assert_eq!(close(opening, text.as_bytes()), (end, report), "{name}");
}

#[test]
fn one_who_is_not_let_in_is_refused_and_told_why() {
    for (name, reason) in [
        ("unauthorized", "unexpected status 401 Unauthorized: scripted failure, url: http://127.0.0.1:1/v1/responses"),
        ("forbidden", "unexpected status 403 Forbidden: scripted failure, url: http://127.0.0.1:1/v1/responses"),
        ("not-in-the-plan", "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus."),
        ("quota-exceeded", "Quota exceeded. Check your plan and billing details."),
        ("flagged", "Your prompt was flagged as potentially violating our usage policy."),
        ("unknown-model", "The model `gpt-9` does not exist or you do not have access to it."),
        ("without-key", "Missing environment variable: `CODEX_API_KEY`."),
    ] {
        check(name, &opening(), SessionEnd::Refused, unanswered(Some(reason)));
    }
}

#[test]
fn one_who_is_asked_to_wait_has_not_failed() {
    for name in ["rate-limited-for-good", "overloaded", "server-error", "at-capacity", "tokens-per-minute"] {
        check(name, &opening(), SessionEnd::RateLimited { until: None }, unanswered(None));
    }
    let since = Opening { begun: Some(Timestamp(1_000)), ..opening() };
    check("tokens-per-minute", &since, SessionEnd::RateLimited { until: Some(Timestamp(4_000)) }, unanswered(None));
}

#[test]
fn a_quota_that_is_used_up_says_until_when_where_that_was_told() {
    let until = |name: &str| match told(name) {
        (SessionEnd::UsageLimit { until }, report) => (until, report.responded),
        other => panic!("{name}: {other:?}"),
    };

    // The zone is that of this machine.
    let (moment, responded) = until("usage-limit");
    let hours = (moment.unwrap().0 - 2_000_000_040_000).abs() / 3_600_000;
    assert!(hours <= 14 && !responded, "{moment:?}");
    assert_eq!(until("usage-limit-without-time"), (None, false));
    assert_eq!(until("usage-limit-today"), (None, false));
}

#[test]
fn a_turn_that_fails_otherwise_is_a_crash() {
    for (name, reason) in [
        ("cut-for-good", "stream disconnected before completion: Transport error"),
        ("context-window", "Codex ran out of room in the model's context window."),
        ("refused-schema", r#"{"error": {"message": "Invalid schema for response_format"#),
        ("without-network", "Connection failed: error sending request"),
    ] {
        let (end, report) = told(name);
        assert!(matches!(&end, SessionEnd::Crashed { reason: told } if told.starts_with(reason)), "{name}: {end:?}");
        assert!(!report.responded && report.error.is_some_and(|error| error.starts_with(reason)), "{name}");
    }
}

#[test]
fn a_session_that_just_ends_has_crashed_whatever_it_did() {
    let reason = || SessionEnd::Crashed { reason: INTERRUPTED.to_owned() };
    let worked =
        AgentReport { error: Some(INTERRUPTED.to_owned()), spent: Vec::new(), ..answered(1, (0, 0, 0), "Starting a long command.") };

    check("interrupted", &opening(), reason(), worked.clone());
    check("sigterm-during-tool", &opening(), reason(), worked);
    check("rate-limited-for-an-hour", &opening(), reason(), unanswered(Some(INTERRUPTED)));
}

#[test]
fn work_that_went_well_is_completed_and_its_answers_are_counted() {
    let cases = [
        ("reasoning", 2, (110, 70, 2_695), 90, "Done."),
        ("tool-failure", 2, (200, 40, 2_200), 0, "It failed."),
        ("file-change", 2, (200, 40, 2_200), 0, "Patched."),
        // The call that was refused is not printed, but the words after it belong to a further answer.
        ("file-change-refused", 2, (200, 40, 2_200), 0, "No."),
        ("todo-list", 3, (300, 60, 3_300), 0, "Planned."),
        ("web-search", 1, (100, 20, 1_100), 0, "It is tall."),
        ("mcp-tools", 3, (300, 60, 3_300), 0, "Noted."),
        ("collaboration", 2, (210, 45, 2_400), 0, "It is done."),
        // Two calls of one answer look like two answers.
        ("two-calls-at-once", 3, (200, 40, 2_200), 0, "Both."),
        ("rate-limited-then-fine", 1, (100, 20, 1_100), 0, "It is done."),
        ("cut-then-fine", 1, (100, 20, 1_100), 0, "It is done."),
        ("setting-unknown", 1, (10, 5, 200), 0, "Nothing scripted for this prompt."),
    ];
    for (name, turns, spent, cache_read, claim) in cases {
        let mut report = answered(turns, spent, claim);
        report.spent[0].usage.cache_read = cache_read;
        check(name, &opening(), SessionEnd::Completed, report);
    }
}

#[test]
fn what_was_paid_in_an_earlier_session_is_not_paid_again() {
    let mut first = answered(2, (700, 52, 5_760), "Done.");
    first.spent[0].usage.cache_read = 1_400;
    let mut second = answered(1, (100, 5, 1_200), "Going on.");
    second.spent[0].usage.cache_read = 1_100;

    check("write-file", &opening(), SessionEnd::Completed, first.clone());
    let going_on = Opening { used_before: first.spent[0].usage, ..opening() };
    check("resume", &going_on, SessionEnd::Completed, second);
}

#[test]
fn a_model_that_nobody_named_has_no_price() {
    let (end, report) = close(&Opening::default(), fixture("write-file").as_bytes());

    assert_eq!((end, report.model.as_deref(), report.cost()), (SessionEnd::Completed, None, Cost::Unknown));
    assert_eq!(report.spent[0].model, "default");
}

#[test]
fn a_result_is_the_last_words_where_they_are_json() {
    let owing = Opening { schema: Some(SCHEMA.to_owned()), ..opening() };
    let result = |name: &str| {
        let (end, report) = close(&owing, fixture(name).as_bytes());
        (end, report.result)
    };

    let right = r#"{"passed": true, "reasoning": "All there."}"#;
    assert_eq!(result("schema"), (SessionEnd::Completed, Some(right.to_owned())));
    assert_eq!(result("schema-wrong"), (SessionEnd::Completed, Some(r#"{"passed": "yes"}"#.to_owned())));
    assert_eq!(result("schema-prose"), (SessionEnd::NoResult, None));
    assert_eq!(told("schema").1.result, None);
}

#[test]
fn tools_are_told_by_name_with_what_they_were_given_and_said() {
    let calls = |name: &str| {
        let told = events(fixture(name).as_bytes()).into_iter().filter_map(|event| {
            if let AgentEvent::ToolCall { name, input, .. } = &event {
                return Some(format!("{name} {input}"));
            }
            let AgentEvent::ToolResult { failed, text, .. } = event else { return None };
            Some(format!("{} {text}", if failed { "failed" } else { "went well" }))
        });
        told.collect::<Vec<_>>()
    };

    assert_eq!(calls("tool-failure"), [r#"shell {"command":"/bin/bash -lc 'echo oops >&2; exit 3'"}"#, "failed oops\n"]);
    assert_eq!(calls("file-change"), [r#"apply_patch [{"path":"/project/note.md","kind":"add"}]"#, "went well "]);
    assert_eq!(calls("mcp-tools"), [r#"mcp__desk__note {"text":"hello"}"#, "went well kept", "mcp__desk__fail {}", "failed no desk"]);
    assert_eq!(calls("collaboration"), [r#"spawn_agent {"prompt":"CHILD look"}"#, "went well "]);
    assert_eq!(calls("web-search"), [r#"web_search {"query":"how tall is it"}"#, "went well "]);
    assert_eq!(calls("two-calls-at-once").len(), 4);
}

#[test]
fn a_call_that_is_told_at_its_end_only_is_told_whole() {
    let item = r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"x","aggregated_output":"no","exit_code":null,"status":"declined"}}"#;

    let expected = [
        AgentEvent::Turn,
        AgentEvent::ToolCall { id: "item_1".to_owned(), name: "shell".to_owned(), input: r#"{"command":"x"}"#.to_owned() },
        AgentEvent::ToolResult { id: "item_1".to_owned(), failed: true, text: "no".to_owned() },
    ];
    assert_eq!(events(item.as_bytes()), expected);
}

#[test]
fn a_further_attempt_is_no_sign_of_progress_and_tells_its_status() {
    let retries = |name: &str| {
        events(fixture(name).as_bytes()).into_iter().filter(|event| matches!(event, AgentEvent::Retrying { .. })).collect::<Vec<_>>()
    };
    let retrying = |attempt, status| AgentEvent::Retrying { attempt, status, wait_ms: None };

    assert_eq!(retries("unauthorized"), [retrying(1, Some(401))]);
    assert_eq!(retries("rate-limited-then-fine"), [retrying(1, Some(429))]);
    assert_eq!(retries("cut-for-good"), [retrying(1, None)]);
    assert_eq!(retries("without-network").len(), 9);
}

#[test]
fn lines_of_an_unknown_kind_and_broken_ones_are_told_apart() {
    let unknown = |kind: &str| vec![AgentEvent::Unknown(kind.to_owned())];

    assert_eq!(events(br#"{"type":"brand_new","x":1}"#), unknown("brand_new"));
    assert_eq!(events(br#"{"type":"item.completed","item":{"id":"1","type":"brand_new"}}"#), unknown("item.completed/brand_new"));
    assert_eq!(events(br#"{"type":"item.completed","item":{"id":"1","type":"agent_message"}}"#), unknown("item.completed/agent_message"));
    assert_eq!(events(br#"{"type":"turn.completed"}"#), unknown("turn.completed"));
    assert_eq!(events(br#"{"type":"error","message":7}"#), unknown("error"));
    for broken in [r#"{"type":"brand_new","x":1"#, r#"{"type":"brand_new","x":}"#, "warning: {}", "{}", "42", r#"["type"]"#] {
        assert_eq!(events(broken.as_bytes()), [AgentEvent::Garbage], "{broken}");
    }
}

#[test]
fn every_line_of_every_recording_is_known() {
    RECORDED.check_that_every_line_is_known(&opening());
}

#[test]
fn a_recording_that_is_cut_anywhere_says_no_more_than_its_whole_lines() {
    RECORDED.check_that_half_a_line_says_nothing(&opening());
    for (name, text) in RECORDED.all() {
        let (end, _) = close(&opening(), &text.as_bytes()[..text.trim_end().len() - 1]);
        assert!(matches!(end, SessionEnd::Crashed { .. }), "{name}: {end:?}");
    }
}

proptest! {
    #[test]
    fn whatever_is_printed_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut read = Vec::new();

        engine(EngineKind::Codex).reader(&opening()).read(&bytes, &mut read);

        prop_assert!(!read.is_empty());
    }

    #[test]
    fn a_line_with_a_wrong_byte_never_panics(which in any::<proptest::sample::Index>(), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let lines = RECORDED.lines();
        let mut line = which.get(&lines).clone().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;

        let (_, report) = close(&Opening { schema: Some(SCHEMA.to_owned()), ..opening() }, &line);

        prop_assert!(report.turns <= 1);
    }
}
