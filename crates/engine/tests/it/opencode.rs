//! What recorded sessions of OpenCode come to. See `tests/fixtures/opencode/README.md` for how each was recorded.

use proctor_domain::session::{AgentReport, SessionEnd, Spending, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};
use proctor_engine::agent::{Account, AgentEvent, EngineKind, Opening, engine};
use proptest::prelude::*;

use crate::recordings::Recordings;

const MODEL: &str = "fake/fake-model";

const RECORDED: Recordings = Recordings { kind: EngineKind::OpenCode, model: MODEL };

fn fixture(name: &str) -> String {
    RECORDED.one(name)
}

fn events_of(opening: &Opening, bytes: &[u8]) -> Vec<AgentEvent> {
    RECORDED.events(opening, bytes)
}

fn events(bytes: &[u8]) -> Vec<AgentEvent> {
    events_of(&Opening::default(), bytes)
}

fn close(bytes: &[u8]) -> (SessionEnd, AgentReport) {
    // Its exit code is 0 whatever happened.
    RECORDED.close(&Opening::default(), bytes, 0, false)
}

fn spending(model: &str, usage: (u64, u64, u64), cost: Cost) -> Spending {
    let (input, output, cache_read) = usage;
    Spending { model: model.to_owned(), usage: Usage { input, output, cache_read, cache_write: 0 }, cost }
}

/// What most sessions come to: the model has answered, and said this at last.
fn answered(turns: u32, usage: (u64, u64, u64), micros: u64, claim: &str) -> AgentReport {
    AgentReport {
        responded: true,
        turns,
        spent: vec![spending(MODEL, usage, Cost::Known(MicroDollars(micros)))],
        claim: Some(claim.to_owned()),
        ..unanswered(None)
    }
}

/// What a session comes to in which the model answered nothing.
fn unanswered(error: Option<&str>) -> AgentReport {
    RECORDED.unanswered(error)
}

/// The conversation's id is another one in each recording, and is in its first line.
fn check(name: &str, end: SessionEnd, mut report: AgentReport) {
    let text = fixture(name);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    report.conversation = first["sessionID"].as_str().map(str::to_owned);

    assert_eq!(close(text.as_bytes()), (end, report), "{name}");
}

#[test]
fn work_that_went_well_is_completed_and_counted_once() {
    let cases = [
        ("write-file", answered(2, (2_100, 52, 900), 2_294, "Done: wrote hello.txt (hi from the loopback model\n)")),
        // A conversation that goes on begins at nothing: what was paid for before is not paid again.
        ("resume", answered(1, (100, 20, 0), 140, "Going on from where we were.")),
        ("tool-failure", answered(2, (200, 40, 0), 280, "It failed: oops\n")),
        ("cut-once", answered(1, (100, 20, 0), 140, "Recovered after a cut stream, with enough text for several chunks.")),
        ("overloaded-once", answered(1, (100, 20, 0), 140, "Recovered.")),
        ("limited-once", answered(1, (100, 20, 0), 140, "Recovered.")),
        // The turn of the agent that ours set to work is paid for and is none of ours.
        ("helper", answered(2, (1_300, 130, 0), 1_560, "It is done.")),
        ("thinking", answered(2, (200, 70, 900), 430, "Wrote note.md.")),
        ("looking", answered(2, (200, 40, 0), 280, "It is done.")),
    ];
    for (name, report) in cases {
        check(name, SessionEnd::Completed, report);
    }
}

#[test]
fn a_model_without_a_price_costs_nobody_knows_what() {
    let unpriced = "fake/unpriced";
    let spent = vec![spending(unpriced, (10, 5, 0), Cost::Unknown)];
    let report = AgentReport { model: Some(unpriced.to_owned()), spent, ..answered(1, (0, 0, 0), 0, "It is done.") };

    check("unpriced", SessionEnd::Completed, report);
}

#[test]
fn a_provider_that_refuses_ends_the_session_by_what_it_says() {
    let resets = Timestamp(1_999_999_999_000);
    check("unauthorized", SessionEnd::Refused, unanswered(Some("a scripted failure")));
    check("unpaid", SessionEnd::Refused, unanswered(Some("You exceeded your current quota.")));
    check("limited-always", SessionEnd::RateLimited { until: None }, unanswered(None));
    check("overloaded-always", SessionEnd::RateLimited { until: None }, unanswered(None));
    check("used-up", SessionEnd::UsageLimit { until: Some(resets) }, unanswered(None));
    check("bad-request", SessionEnd::Crashed { reason: "that is no request".to_owned() }, unanswered(Some("that is no request")));
}

#[test]
fn a_wait_of_an_hour_is_given_up_and_says_until_when() {
    let text = fixture("limited-hour");
    let told = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let gave_up = told.into_iter().find(|line| line["type"] == "proctor_gave_up").unwrap()["timestamp"].as_i64().unwrap();

    check("limited-hour", SessionEnd::RateLimited { until: Some(Timestamp(gave_up + 3_600_000)) }, unanswered(None));
}

#[test]
fn a_session_that_says_nothing_at_its_end_has_crashed() {
    let reason = "the engine ended with exit code 0 and without a result".to_owned();
    let report = AgentReport { error: Some(reason.clone()), spent: Vec::new(), ..answered(1, (0, 0, 0), 0, "Starting a long command.") };

    check("sigterm-during-tool", SessionEnd::Crashed { reason }, report);
}

#[test]
fn an_answer_that_breaks_off_every_time_is_a_crash() {
    let (end, report) = close(fixture("cut-always").as_bytes());

    assert!(matches!(&end, SessionEnd::Crashed { reason } if reason == "Connection reset by server"), "{end:?}");
    assert_eq!((report.turns, report.error.is_some()), (1, true), "{report:?}");
}

#[test]
fn a_conversation_that_is_not_known_is_named() {
    let opening = Opening { resume: Some("ses_1".to_owned()), ..Opening::default() };
    let text = fixture("resume-unknown-session");
    let mut account = Account::new(EngineKind::OpenCode.engine_name());
    events_of(&opening, text.as_bytes()).into_iter().for_each(|event| _ = account.add(event));

    let (end, report) = account.close(Some(1), false);

    let reason = "the engine ended with exit code 1 before it went on with the conversation ses_1".to_owned();
    assert_eq!((end, report), (SessionEnd::Crashed { reason: reason.clone() }, AgentReport { model: None, ..unanswered(Some(&reason)) }));
}

#[test]
fn an_answer_that_is_cut_off_is_not_the_end_of_the_work() {
    let cut = "the last answer was cut off at the number of tokens that the model may say";
    let blocked = "The response was blocked by the provider's content filter";
    let spent = (100, 20, 0);

    let report = AgentReport { error: Some(cut.to_owned()), ..answered(1, spent, 140, "A text that is cut") };
    check("too-long", SessionEnd::Crashed { reason: cut.to_owned() }, report);
    check("refusal", SessionEnd::Refused, AgentReport { error: Some(blocked.to_owned()), ..answered(1, spent, 140, "I can't") });
}

#[test]
fn a_model_that_is_not_known_is_an_error_of_the_program() {
    let (end, report) = close(fixture("unknown-model").as_bytes());

    assert!(matches!(&end, SessionEnd::Crashed { reason } if reason.starts_with("Unexpected server error")), "{end:?}");
    assert_eq!((report.responded, report.turns, report.spent.len()), (false, 0, 0));
}

/// An error, as the program tells it.
fn error(name: &str, data: &str) -> SessionEnd {
    let line = format!(r#"{{"type":"error","timestamp":1000,"sessionID":"s","error":{{"name":"{name}","data":{data}}}}}"#);
    close(line.as_bytes()).0
}

#[test]
fn errors_are_told_apart_by_what_they_mean() {
    let refused =
        |status: u16, rest: &str| error("APIError", &format!(r#"{{"message":"no","statusCode":{status},"isRetryable":true{rest}}}"#));
    let body = |body: &str| format!(r#","responseBody":{}"#, serde_json::Value::from(body));
    let crashed = |reason: &str| SessionEnd::Crashed { reason: reason.to_owned() };

    assert_eq!(error("ProviderAuthError", r#"{"providerID":"p","message":"no key"}"#), SessionEnd::Refused);
    assert_eq!(error("MessageAbortedError", r#"{"message":"aborted"}"#), SessionEnd::Interrupted);
    assert_eq!(error("ContextOverflowError", r#"{"message":"too long"}"#), crashed("too long"));
    assert_eq!(error("MessageOutputLengthError", "{}"), crashed("the engine ended with `MessageOutputLengthError` and said no more"));
    assert_eq!(error("UnknownError", r#"{"message":"Overloaded"}"#), SessionEnd::RateLimited { until: None });
    assert_eq!((refused(403, ""), refused(404, ""), refused(500, "")), (SessionEnd::Refused, SessionEnd::Refused, crashed("no")));
    assert_eq!(refused(429, r#","responseHeaders":{"retry-after":"7"}"#), SessionEnd::RateLimited { until: Some(Timestamp(8_000)) });
    let used_up = body(r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":60}}"#);
    assert_eq!(refused(429, &used_up), SessionEnd::UsageLimit { until: Some(Timestamp(61_000)) });
    assert_eq!(refused(429, &body("not JSON")), SessionEnd::RateLimited { until: None });
}

#[test]
fn a_summary_that_makes_room_is_no_turn_and_no_claim_and_no_end() {
    let message = |id: &str, summary| {
        format!(
            r#"{{"type":"proctor_message","timestamp":1,"sessionID":"s","messageID":"{id}","model":"p/m","summary":{summary},"delegate":false}}"#
        )
    };
    let part = |kind: &str, id: &str, rest: &str| {
        format!(r#"{{"type":"{kind}","timestamp":1,"sessionID":"s","part":{{"messageID":"{id}"{rest}}}}}"#)
    };
    let answer = |id: &str, text: &str, reason: &str| {
        let said = part("text", id, &format!(r#","text":"{text}""#));
        let step = part("step_finish", id, &format!(r#","reason":"{reason}","tokens":{{"input":10,"output":1}},"cost":0.001"#));
        [part("step_start", id, ""), said, step].join("\n")
    };
    let begun = [message("m1", false), answer("m1", "Working.", "tool-calls"), message("m2", true), answer("m2", "So far:", "stop")];
    let before = begun.join("\n");

    let (end, report) = close(before.as_bytes());
    assert!(matches!(end, SessionEnd::Crashed { .. }), "{end:?}");
    assert_eq!((report.turns, report.claim.as_deref()), (1, Some("Working.")));

    let whole = [before, message("m3", false), answer("m3", "It is done.", "stop")].join("\n");
    let (end, report) = close(whole.as_bytes());
    assert_eq!((end, report.turns, report.claim.as_deref()), (SessionEnd::Completed, 2, Some("It is done.")));
    assert_eq!(report.spent, [spending("p/m", (30, 3, 0), Cost::Known(MicroDollars(3_000)))]);
}

#[test]
fn what_was_spent_is_known_before_the_end() {
    let text = fixture("write-file");
    let first_step: Vec<&str> = text.split_inclusive('\n').take_while(|line| !line.contains("Done: wrote")).collect();

    let (end, report) = close(first_step.concat().as_bytes());

    assert!(matches!(end, SessionEnd::Crashed { .. }), "{end:?}");
    assert_eq!(report.spent, [spending(MODEL, (1_000, 40, 900), Cost::Known(MicroDollars(1_170)))]);
}

#[test]
fn a_tool_is_told_when_it_begins_and_its_result_when_it_ends() {
    let told = events(fixture("tool-failure").as_bytes());
    let calls = told.iter().filter(|event| matches!(event, AgentEvent::ToolCall { name, .. } if name == "bash")).count();
    let failures = told.iter().filter(|event| matches!(event, AgentEvent::ToolResult { failed: true, text, .. } if text == "oops\n"));

    assert_eq!((calls, failures.count()), (1, 1));
    let begun = events(fixture("sigterm-during-tool").as_bytes());
    assert!(begun.iter().any(|event| matches!(event, AgentEvent::ToolCall { input, .. } if input.contains("sleep"))), "{begun:?}");
}

/// Without the witness, as with a version that loads none, less is known and nothing else is different.
#[test]
fn the_program_alone_says_enough() {
    let text = fixture("write-file");
    let alone: Vec<&str> = text.split_inclusive('\n').filter(|line| !line.contains(r#""type":"proctor_"#)).collect();

    let (end, report) = close(alone.concat().as_bytes());

    assert_eq!((end, report.turns, report.model), (SessionEnd::Completed, 2, None));
    assert_eq!(report.spent[0].model, "unknown");
}

#[test]
fn lines_of_an_unknown_kind_and_broken_ones_are_told_apart() {
    let unknown = |kind: &str| vec![AgentEvent::Unknown(kind.to_owned())];

    assert_eq!(events(br#"{"type":"brand_new","x":1}"#), unknown("brand_new"));
    assert_eq!(events(br#"{"timestamp":1,"type":"step_start","part":7}"#), unknown("step_start"));
    for broken in [r#"{"type":"brand_new","x":1"#, r#"{"type":"brand_new","x":}"#, "Error: {}", "{}", "42", r#"["type"]"#] {
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
}

proptest! {
    #[test]
    fn whatever_is_printed_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut read = Vec::new();

        engine(EngineKind::OpenCode).reader(&Opening::default()).read(&bytes, &mut read);

        prop_assert!(!read.is_empty());
    }

    #[test]
    fn a_line_with_a_wrong_byte_never_panics(which in any::<proptest::sample::Index>(), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let lines = RECORDED.lines();
        let mut line = which.get(&lines).clone().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;

        let (_, report) = close(&line);

        prop_assert!(report.turns <= 1);
    }
}
