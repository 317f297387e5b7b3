//! What sessions with Codex' app-server come to, recorded ones and such as no recorded one was. See
//! `tests/fixtures/codex/server/README.md` for how each was recorded.

mod talk;

use std::path::Path;

use proctor_domain::session::{AgentReport, SessionEnd, Spending, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};
use proctor_engine::agent::{Access, Account, AgentEvent, EngineKind, Input, Opening, Permission, Reader, engine};
use proctor_process::Program;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use talk::Talk;

const SCHEMA: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;
/// Notices of what is never asked for here: they are kept as lines that nobody knows.
const FOREIGN: [&str; 10] = [
    "externalAgentConfig/",
    "fuzzyFileSearch/",
    "process/",
    "thread/deleted",
    "thread/realtime/",
    "thread/reverted",
    "thread/search/",
    "thread/unarchived",
    "windows/",
    "windowsSandbox/",
];

/// One session, both sides.
struct Recording {
    name: String,
    lines: Vec<Said>,
}

struct Said {
    is_ours: bool,
    message: Value,
    /// As it was printed.
    line: String,
}

impl Recording {
    fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/codex/server");
        let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn named(name: &str) -> Self {
        Self::all().into_iter().find(|recording| recording.name == name).unwrap()
    }

    fn read(path: &Path) -> Self {
        #[derive(Deserialize)]
        struct Line<'a> {
            from: &'a str,
            #[serde(borrow)]
            message: &'a RawValue,
        }

        let said = |line: &str| {
            let Line { from, message } = serde_json::from_str(line).unwrap();
            Said { is_ours: from == "client", message: serde_json::from_str(message.get()).unwrap(), line: message.get().to_owned() }
        };
        let text = std::fs::read_to_string(path).unwrap();
        Self { name: path.file_stem().unwrap().display().to_string(), lines: text.lines().map(said).collect() }
    }

    /// The first of these that we said.
    fn asked(&self, method: &str) -> Option<&Value> {
        self.lines.iter().find(|said| said.is_ours && said.message["method"] == method).map(|said| &said.message["params"])
    }

    fn printed(&self) -> Vec<String> {
        self.lines.iter().filter(|said| !said.is_ours).map(|said| said.line.clone()).collect()
    }

    fn conversation(&self) -> Option<String> {
        let answer = self.lines.iter().find(|said| !said.is_ours && said.message["id"] == 2);
        answer?.message["result"]["thread"]["id"].as_str().map(str::to_owned)
    }

    fn opening(&self) -> Opening {
        let thread = self.asked("thread/start").or(self.asked("thread/resume")).unwrap();
        let turn = self.asked("turn/start");
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let is_boxed = thread["sandbox"] == "workspace-write";
        Opening {
            system: "You are examined.".to_owned(),
            prompt: turn.and_then(|turn| text(&turn["input"][0]["text"])).unwrap_or_default(),
            resume: text(&thread["threadId"]),
            model: text(&thread["model"]),
            schema: turn.filter(|turn| !turn["outputSchema"].is_null()).map(|_| SCHEMA.to_owned()),
            access: Access::Full,
            permission: if is_boxed { Permission::Ask } else { Permission::Bypass },
            directory: "/project".into(),
            input: Input::Spoken,
            begun: Some(Timestamp(1_796_116_900_000)),
            ..Opening::default()
        }
    }

    /// Plays our part again. It has to say what was said then, word by word.
    fn play(&self) -> Vec<AgentEvent> {
        let mut reader = engine(EngineKind::Codex).reader(&self.opening());
        let (mut events, mut words) = (Vec::new(), words(reader.as_mut()));
        for Said { is_ours, message, line } in &self.lines {
            if *is_ours {
                let text = message["params"]["input"][0]["text"].as_str();
                match message["method"].as_str() {
                    Some("turn/interrupt") => assert!(reader.interrupt(), "{}", self.name),
                    Some("turn/steer" | "turn/start") if words.is_empty() => assert!(reader.say(text.unwrap()), "{}", self.name),
                    _ => {}
                }
                words.extend(self::words(reader.as_mut()));
                assert!(!words.is_empty(), "{}: nothing is said, and {message} was", self.name);
                assert_eq!(comparable(words.remove(0)), comparable(message.clone()), "{}", self.name);
            } else {
                reader.read(line.as_bytes(), &mut events);
            }
            words.extend(self::words(reader.as_mut()));
        }
        assert!(words.is_empty(), "{}: {words:?}", self.name);
        events
    }

    fn close(&self) -> (SessionEnd, AgentReport) {
        close(self.play(), self.opening().schema.is_some())
    }
}

/// The version is another one in each release, and to record a question Codex had to be told that it may ask.
fn comparable(mut message: Value) -> Value {
    for varying in ["/params/clientInfo/version", "/params/approvalPolicy"] {
        if let Some(value) = message.pointer_mut(varying) {
            *value = Value::Null;
        }
    }
    message
}

/// What the reader says now.
fn words(reader: &mut dyn Reader) -> Vec<Value> {
    let words = String::from_utf8(reader.take_words()).unwrap();
    assert!(words.is_empty() || words.ends_with('\n'), "{words}");
    words.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn close(events: Vec<AgentEvent>, owes_result: bool) -> (SessionEnd, AgentReport) {
    let mut account = Account::new(EngineKind::Codex.engine_name());
    for event in events {
        account.add(event);
    }
    account.close(Some(0), owes_result)
}

/// The end, turns, whether the model answered, and the last words.
type Outcome<'a> = (SessionEnd, u32, bool, Option<&'a str>);

fn outcome((end, report): &(SessionEnd, AgentReport)) -> Outcome<'_> {
    (end.clone(), report.turns, report.responded, report.claim.as_deref())
}

#[test]
fn one_who_is_not_let_in_is_refused_and_told_why() {
    for (name, reason) in [
        ("unauthorized", "unexpected status 401 Unauthorized"),
        ("forbidden", "unexpected status 403 Forbidden"),
        ("quota-exceeded", "Quota exceeded. Check your plan and billing details."),
        ("flagged", "Your prompt was flagged as potentially violating our usage policy."),
        ("unknown-model", "The model `gpt-9` does not exist or you do not have access to it."),
    ] {
        let (end, report) = Recording::named(name).close();

        assert_eq!((end, report.responded), (SessionEnd::Refused, false), "{name}");
        assert!(report.error.as_ref().is_some_and(|error| error.starts_with(reason)), "{name}: {report:?}");
    }
}

#[test]
fn a_conversation_that_is_not_known_is_named_and_nothing_is_asked() {
    let recording = Recording::named("resume-unknown");

    let (end, report) = recording.close();

    let reason = "Codex does not go on with the conversation `11111111-2222-3333-4444-555555555555`: no rollout found for thread id \
                  11111111-2222-3333-4444-555555555555";
    assert_eq!((end, report.responded), (SessionEnd::Crashed { reason: reason.to_owned() }, false));
    assert!(recording.asked("turn/start").is_none() && report.conversation.is_none());
}

#[test]
fn one_who_is_asked_to_wait_has_not_failed() {
    for name in ["rate-limited-for-good", "overloaded", "server-error", "at-capacity"] {
        let played = Recording::named(name).close();

        assert_eq!(outcome(&played), (SessionEnd::RateLimited { until: None }, 0, false, None), "{name}");
    }
}

#[test]
fn a_limit_of_a_plan_is_over_at_the_second_that_was_told() {
    let played = Recording::named("usage-limit").close();

    assert_eq!(outcome(&played), (SessionEnd::UsageLimit { until: Some(Timestamp(1_999_999_999_000)) }, 0, false, None));
}

#[test]
fn a_turn_that_fails_otherwise_is_a_crash() {
    for (name, reason) in [
        ("cut-for-good", "stream disconnected before completion: Transport error"),
        ("context-window", "Codex ran out of room in the model's context window."),
    ] {
        let (end, report) = Recording::named(name).close();

        assert!(matches!(&end, SessionEnd::Crashed { reason: told } if told.starts_with(reason)), "{name}: {end:?}");
        assert_eq!((report.responded, report.turns), (false, 0), "{name}");
    }
}

#[test]
fn work_that_went_well_is_completed_and_its_answers_are_those_of_the_provider() {
    for (name, turns, (input, output), claim) in [
        ("write-file", 2, (150, 25), "Done."),
        ("resume", 1, (100, 20), "Going on."),
        ("reasoning", 2, (200, 40), "Done."),
        ("tool-failure", 2, (200, 40), "It failed."),
        ("file-change", 2, (200, 40), "Patched."),
        ("plan", 2, (200, 40), "Planned."),
        ("mcp-tools", 3, (300, 60), "Noted."),
        // Of the first answer nothing is known of where it ends when its second call is made.
        ("two-calls-at-once", 4, (300, 60), "Both."),
        ("declined", 2, (200, 40), "It was declined."),
        ("rate-limited-then-fine", 1, (100, 20), "It is done."),
        ("cut-then-fine", 1, (100, 20), "It is done."),
        ("asked-again", 2, (200, 40), "Going on."),
        ("steered", 2, (200, 40), "Turning left."),
    ] {
        let recording = Recording::named(name);

        let played = recording.close();

        assert_eq!(outcome(&played), (SessionEnd::Completed, turns, true, Some(claim)), "{name}");
        let [spending] = played.1.spent.as_slice() else { panic!("{name}: {played:?}") };
        assert_eq!((spending.usage.input, spending.usage.output), (input, output), "{name}");
        assert_eq!((played.1.conversation.clone(), played.1.unknown_lines), (recording.conversation(), 0), "{name}");
    }
}

#[test]
fn what_was_used_is_told_after_each_answer_and_priced() {
    let told = |event: AgentEvent| if let AgentEvent::Spent(spent) = event { Some(spent[0].clone()) } else { None };

    let spent: Vec<Spending> = Recording::named("write-file").play().into_iter().filter_map(told).collect();

    let usage = |input, output, cache_read| Usage { input, output, cache_read, cache_write: 10 };
    let spending = |usage, cost| Spending { model: "gpt-5.5".to_owned(), usage, cost: Cost::Known(MicroDollars(cost)) };
    assert_eq!(spent, [spending(usage(100, 20, 800), 1_550), spending(usage(150, 25, 1_700), 2_400)]);
}

#[test]
fn a_turn_that_was_broken_off_is_interrupted() {
    let played = Recording::named("interrupted").close();

    assert_eq!(outcome(&played), (SessionEnd::Interrupted, 1, true, Some("Starting.")));
}

#[test]
fn a_result_is_the_last_words_where_they_are_json() {
    let (end, report) = Recording::named("schema").close();

    assert_eq!((end, report.result.as_deref()), (SessionEnd::Completed, Some(r#"{"passed":true}"#)));
}

#[test]
fn tools_are_told_by_name_with_what_they_were_given_and_said() {
    let calls = |name: &str| {
        let told = Recording::named(name).play().into_iter().filter_map(|event| {
            if let AgentEvent::ToolCall { name, input, .. } = &event {
                return Some(format!("{name} {input}"));
            }
            let AgentEvent::ToolResult { failed, text, .. } = event else { return None };
            Some(format!("{} {text}", if failed { "failed" } else { "went well" }))
        });
        told.collect::<Vec<_>>()
    };

    assert_eq!(calls("tool-failure"), [r#"shell {"command":"/bin/bash -lc 'echo oops >&2; exit 3'"}"#, "failed oops\n"]);
    assert_eq!(calls("declined"), [r#"shell {"command":"/bin/bash -lc 'echo x > /outside'"}"#, "failed "]);
    assert_eq!(calls("file-change"), [r#"apply_patch [{"path":"/project/note.md","kind":{"type":"add"},"diff":"x\n"}]"#, "went well "]);
    assert_eq!(calls("mcp-tools"), [r#"mcp__desk__note {"text":"hello"}"#, "went well kept", "mcp__desk__fail {}", "failed no desk"]);
}

#[test]
fn a_further_attempt_is_no_sign_of_progress_and_tells_its_status() {
    let retries = |name: &str| {
        Recording::named(name).play().into_iter().filter(|event| matches!(event, AgentEvent::Retrying { .. })).collect::<Vec<_>>()
    };
    let retrying = |status| vec![AgentEvent::Retrying { attempt: 1, status, wait_ms: None }];

    assert_eq!([retries("unauthorized"), retries("rate-limited-then-fine")], [retrying(Some(401)), retrying(Some(429))]);
    assert_eq!(retries("cut-for-good"), retrying(None));
}

/// As a driver reads what a host left that died: nobody knows how the session began.
#[test]
fn lines_alone_tell_the_same_and_nothing_is_said() {
    for recording in Recording::all() {
        let (mut reader, mut events) = (engine(EngineKind::Codex).reader(&Opening::default()), Vec::new());
        for line in recording.printed() {
            reader.read(line.as_bytes(), &mut events);
        }

        assert_eq!(words(reader.as_mut()), [Value::Null; 0], "{}", recording.name);
        let (_, report) = close(events, false);
        let (_, played) = recording.close();
        assert_eq!(
            (report.conversation, report.turns, report.spent),
            (played.conversation, played.turns, played.spent),
            "{}",
            recording.name
        );
        assert_eq!((report.claim, report.unknown_lines), (played.claim, 0), "{}", recording.name);
    }
}

#[test]
fn half_a_line_says_nothing() {
    for recording in Recording::all() {
        let mut reader = engine(EngineKind::Codex).reader(&recording.opening());
        for line in recording.printed() {
            for cut in (1..line.len()).step_by(23) {
                let mut events = Vec::new();
                reader.read(&line.as_bytes()[..cut], &mut events);
                assert_eq!(events, [AgentEvent::Garbage], "{} at byte {cut} of {line}", recording.name);
            }
            reader.read(line.as_bytes(), &mut Vec::new());
        }
    }
}

/// Codex prints the schema of its protocol.
#[test]
fn all_that_is_said_is_in_the_protocol_and_all_its_notices_are_known_or_foreign() {
    let Some(codex) = proctor_testkit::codex() else { return };
    let folder = tempfile::tempdir().unwrap();
    let home = ("CODEX_HOME", folder.path().as_os_str());
    let printed =
        Program::new(codex).args(["app-server", "generate-json-schema", "--out"]).arg(folder.path()).env([home]).run(None).unwrap();
    assert!(printed.status.is_success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let schema = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.path().join(name)).unwrap()).unwrap() };
    let requests = jsonschema::validator_for(&schema("ClientRequest.json")).unwrap();
    let decision = jsonschema::validator_for(&schema("CommandExecutionRequestApprovalResponse.json")).unwrap();

    for recording in Recording::all() {
        let said = recording.lines.iter().filter(|said| said.is_ours).map(|said| &said.message);
        for message in said.filter(|message| message.get("id").is_some()) {
            let is_right = if message.get("method").is_some() { requests.is_valid(message) } else { decision.is_valid(&message["result"]) };
            assert!(is_right, "{}: {message}", recording.name);
        }
    }
    let notices = schema("ServerNotification.json");
    for kind in notices["oneOf"].as_array().unwrap() {
        let method = kind["properties"]["method"]["enum"][0].as_str().unwrap();
        let is_foreign = FOREIGN.iter().any(|foreign| method.starts_with(foreign));
        let is_unknown = Talk::asked().hears(method, json!({ "tokenUsage": { "total": {} } })) == [AgentEvent::Unknown(method.to_owned())];
        assert_eq!(is_unknown, is_foreign, "{method}");
    }
}

proptest! {
    #[test]
    fn a_line_with_a_wrong_byte_never_panics(which in any::<proptest::sample::Index>(), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let lines: Vec<String> = Recording::named("write-file").printed();
        let mut line = which.get(&lines).clone().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        let mut events = Vec::new();

        Talk::working().reader.read(&line, &mut events);

        prop_assert!(!events.is_empty());
    }
}
