//! What sessions of the Agent Client Protocol come to, recorded ones and such as no agent that we know would begin. See
//! `tests/fixtures/acp/README.md` for how each was recorded.

mod recording;
pub(crate) mod schema;
#[cfg(feature = "acp-v2")]
mod second;
mod serving;
mod talk;

use std::sync::LazyLock;

use proctor_domain::session::{AgentReport, SessionEnd, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};
use proctor_engine::agent::AgentEvent;
use proptest::prelude::*;

use recording::{Recording, close, read_at_work, replay, result_text};
use schema::Protocol;

/// The end, turns, whether the model answered, and the last words.
type Outcome<'a> = (SessionEnd, u32, bool, Option<&'a str>);

fn outcome((end, report): &(SessionEnd, AgentReport)) -> Outcome<'_> {
    (end.clone(), report.turns, report.responded, report.claim.as_deref())
}

fn check(name: &str, expected: Outcome<'_>) -> AgentReport {
    let played = close(Recording::named(name).play());

    assert_eq!(outcome(&played), expected, "{name}");
    assert_eq!((played.1.unknown_lines, played.1.result.clone()), (0, None), "{name}");
    played.1
}

#[test]
fn every_message_of_the_recordings_is_one_of_the_protocol() {
    for recording in Recording::all() {
        let mut protocol = Protocol::new();
        recording.lines.iter().for_each(|said| protocol.check(said.from, &said.message));
    }
}

#[test]
fn a_tool_between_two_texts_makes_two_turns() {
    for name in ["claude-write-file", "codex-write-file", "opencode-write-file", "gemini-write-file"] {
        let report = check(name, (SessionEnd::Completed, 2, true, Some("It is done.")));

        assert!(report.conversation.is_some() && report.model.is_some() && report.error.is_none(), "{report:?}");
        let events = Recording::named(name).play();
        let calls = events.iter().filter(|event| matches!(event, AgentEvent::ToolCall { input, .. } if input.contains("cat hello.txt")));
        let results = events.iter().filter(|event| matches!(event, AgentEvent::ToolResult { failed: false, .. }));
        assert_eq!((calls.count(), results.count()), (1, 1), "{events:?}");
    }
    let codex = Recording::named("codex-write-file").play();
    assert!(codex.iter().any(|event| result_text(event) == Some("hi\n")), "{codex:?}");
    check("claude-thinking", (SessionEnd::Completed, 1, true, Some("It is done.")));
    let failed = Recording::named("claude-tool-failure").play();
    assert!(failed.iter().any(|event| matches!(event, AgentEvent::ToolResult { failed: true, text, .. } if text == "Exit code 3")));
}

#[test]
fn what_was_spent_is_what_the_agent_tells() {
    let spent = |name: &str| {
        let (_, report) = close(Recording::named(name).play());
        report.spent.into_iter().map(|spending| (spending.model, spending.usage, spending.cost)).collect::<Vec<_>>()
    };
    let cached = |input, output, cache_write| Usage { input, output, cache_read: 500, cache_write };
    let known = |micros| Cost::Known(MicroDollars(micros));

    assert_eq!(spent("claude-write-file"), [("claude-opus-5-5".to_owned(), cached(1_100, 120, 50), known(7_950))]);
    assert_eq!(spent("codex-write-file"), [("fake-model".to_owned(), cached(1_150, 120, 0), Cost::Unknown)]);
    assert_eq!(spent("opencode-write-file"), [("fake/fake-model".to_owned(), cached(1_050, 100, 0), known(1_390))]);
    assert_eq!(spent("claude-rate-limited"), []);
}

#[test]
fn a_conversation_that_goes_on_has_only_the_words_of_its_new_session() {
    let report = check("gemini-load", (SessionEnd::Completed, 1, true, Some("Going on.")));
    assert!(!Recording::named("gemini-load").play().contains(&AgentEvent::Text("It is done.".to_owned())));
    assert_eq!(report.conversation, Recording::named("gemini-load").opening().resume);
    check("codex-resume", (SessionEnd::Completed, 1, true, Some("Going on.")));
    let opencode = check("opencode-resume", (SessionEnd::Completed, 1, true, Some("Going on.")));
    // It tells what the whole conversation has cost, and not what it had cost before.
    assert_eq!(opencode.spent[0].cost, Cost::Unknown);

    let (end, report) = close(Recording::named("claude-resume-unknown-session").play());

    let unknown = "11111111-2222-3333-4444-555555555555";
    assert!(matches!(&end, SessionEnd::Crashed { reason } if reason.contains(unknown)), "{end:?}");
    assert!(!report.responded && report.conversation.is_none());
}

#[test]
fn one_that_only_looks_is_refused_everything_else() {
    for name in ["claude-permission-refused", "gemini-permission-refused"] {
        check(name, (SessionEnd::Completed, 2, true, Some("It is done.")));
    }
    // It has nothing more to say when it is refused something.
    check("opencode-permission-refused", (SessionEnd::Completed, 1, true, Some("I write.")));
    // It does not even ask.
    check("codex-read-only", (SessionEnd::Completed, 2, true, Some("It is done.")));
}

#[test]
fn one_that_is_broken_off_is_interrupted_and_keeps_what_it_said() {
    for name in ["claude-interrupted", "codex-interrupted", "opencode-interrupted"] {
        check(name, (SessionEnd::Interrupted, 1, true, Some("Starting.")));
    }
}

#[test]
fn what_an_agent_says_of_its_provider_is_no_answer_of_the_model() {
    let nothing = |end| (end, 0, false, None);

    let claude = check("claude-unauthorized", nothing(SessionEnd::Refused));
    let codex = check("codex-unauthorized", nothing(SessionEnd::Refused));
    check("claude-rate-limited", nothing(SessionEnd::RateLimited { until: None }));
    check("claude-usage-limit", nothing(SessionEnd::UsageLimit { until: Some(Timestamp(2_000_000_040_000)) }));
    let failed = close(Recording::named("claude-server-error").play());

    assert!(claude.error.unwrap().contains("API Error: 401"));
    assert!(codex.error.unwrap().contains("API Key (`api-key`)"));
    assert!(matches!(&failed.0, SessionEnd::Crashed { reason } if reason.contains("API Error: 500")) && !failed.1.responded, "{failed:?}");
}

#[test]
fn a_refusal_of_the_model_is_refused_and_says_why() {
    let (end, report) = close(Recording::named("claude-refusal").play());

    assert_eq!((end, report.turns, report.responded), (SessionEnd::Refused, 2, true));
    assert!(report.error.unwrap().contains("safeguards flagged this message"));
    assert!(report.spent[0].usage.output > 0);
}

#[test]
fn a_model_that_the_agent_does_not_have_is_found_before_anything_is_prompted() {
    let recording = Recording::named("claude-unknown-model");

    let (end, report) = close(recording.play());

    assert!(matches!(&end, SessionEnd::Crashed { reason } if reason.contains("`nonsense`") && reason.contains("opus")), "{end:?}");
    assert!(!report.responded && !recording.lines.iter().any(|said| said.message["method"] == "session/prompt"));
}

#[test]
fn a_session_that_is_over_is_read_from_its_lines_alone() {
    for recording in Recording::all() {
        let (end, told) = close(recording.play());
        let (read_end, read) = close(replay(&recording.printed()));

        let name = &recording.name;
        if name == "gemini-load" {
            // Where the repeated conversation ends, only one that asked knows.
            assert_eq!((read_end, read.conversation), (end, told.conversation));
            continue;
        }
        let of_ours = ["claude-unknown-model", "claude-resume-unknown-session"].contains(&name.as_str());
        assert_eq!((read.turns, read.responded, &read.claim), (told.turns, told.responded, &told.claim), "{name}");
        assert!(of_ours || (read_end == end && read.conversation == told.conversation), "{name}: {read_end:?}, {read:?}");
    }
}

#[test]
fn a_session_is_completed_by_its_last_line_only_and_half_a_line_is_garbage() {
    let recording = Recording::named("claude-write-file");
    let lines = recording.printed();
    for end in 0..lines.len() {
        assert_ne!(close(replay(&lines[..end])).0, SessionEnd::Completed, "after {end} lines");
    }
    let last = lines.last().unwrap();
    for cut in 1..last.len() {
        assert_eq!(replay(&[last[..cut].to_owned()]), [AgentEvent::Garbage], "at byte {cut}");
    }
}

proptest! {
    #[test]
    fn whatever_is_printed_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(!read_at_work(&bytes).is_empty());
    }

    #[test]
    fn a_line_with_a_wrong_byte_never_panics(which in any::<proptest::sample::Index>(), at in any::<proptest::sample::Index>(), byte in 32..127_u8) {
        static LINES: LazyLock<Vec<String>> = LazyLock::new(|| Recording::named("codex-write-file").printed());
        let mut line = which.get(&LINES).clone().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;

        prop_assert!(!read_at_work(&line).is_empty());
    }
}
