//! What Claude Code has that not every engine has, with the real one.

use std::time::Duration;

use proctor_domain::session::SessionEnd;
use proctor_engine::agent::{Access, AgentEvent};
use serde_json::json;

use super::stage::{Stage, task};
use super::{DONE, outcome};

/// A server of the Model Context Protocol with one tool, in bash.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p' <<<"$line")
  case $line in
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"desk","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"look","description":"Looks.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer "{\"content\":[{\"type\":\"text\",\"text\":\"It is desk $DESK.\"}]}" ;;
  esac
done
"#;

const LOOKS: &str = r#"
[[default.turn]]
tools = [{ name = "mcp__desk__look", input = {} }]
[[default.turn]]
text = "{{last_tool_output}}"
"#;

fn with_server(script: &str) -> Option<Stage> {
    Stage::claude(script, |setup, _| {
        let server = json!({ "command": "bash", "args": ["-c", SERVER], "env": { "DESK": "4711" } });
        setup.servers.insert("desk".to_owned(), server);
    })
}

#[test]
fn a_server_of_the_settings_gives_its_tools_to_one_that_works_and_to_no_judge() {
    let Some(mut stage) = with_server(LOOKS) else { return };

    let working = stage.play(&task("Do it."));
    assert_eq!(outcome(&working), (SessionEnd::Completed, Some("It is desk 4711.")), "{}", stage.transcript());

    let mut looking = task("Do it.");
    looking.access = Access::ReadOnly;
    let judging = stage.play(&looking);
    assert!(!outcome(&judging).1.unwrap().contains("4711"), "{judging:?}");
}

#[test]
fn a_server_that_does_not_start_is_told_of_once() {
    let script = "[[default.turn]]\ntext = 'It is done.'\n";
    let broken = Stage::claude(script, |setup, _| {
        setup.servers.insert("desk".to_owned(), json!({ "command": "false" }));
    });
    let Some(mut stage) = broken else { return };

    let report = stage.play(&task("Do it."));

    assert_eq!(outcome(&report), DONE);
    let failed = |event: &AgentEvent| matches!(event, AgentEvent::ServerFailed { name, .. } if name == "desk");
    assert_eq!(stage.events().iter().filter(|event| failed(event)).count(), 1, "{}", stage.transcript());
}

#[test]
fn an_effort_reaches_the_model() {
    let Some(mut stage) = Stage::claude("[[default.turn]]\ntext = 'It is done.'\n", |setup, _| setup.effort = Some("low".to_owned()))
    else {
        return;
    };

    let report = stage.play(&task("Do it."));

    assert_eq!(outcome(&report), DONE);
    assert!(stage.model_saw(r#""effort":"low""#));
}

#[test]
fn another_model_answers_when_the_first_is_overloaded() {
    let script = "[[default.turn]]\ntext = 'It is done.'\nfail = { status = 529, times = 3 }\n";
    let Some(mut stage) = Stage::claude(script, |setup, _| setup.fallback_model = Some("claude-haiku-4-5".to_owned())) else { return };

    let report = stage.play(&task("Do it."));

    assert_eq!(outcome(&report), DONE, "{}", stage.transcript());
    assert!(stage.model_saw(r#""model":"claude-haiku-4-5"#), "{}", stage.transcript());
}

#[test]
fn a_long_answer_is_no_silence_and_its_pieces_are_not_kept() {
    // Some eight seconds, in which the client does nothing but pass on what comes.
    let script = format!("[[default.turn]]\ntext = '{}'\nchunk-delay-ms = 400\n", "It goes on and on. ".repeat(20));
    let Some(mut stage) = Stage::claude(&script, |_, _| {}) else { return };
    stage.limit_silence(Duration::from_secs(4));

    let report = stage.play(&task("Do it."));

    assert_eq!(report.end, SessionEnd::Completed, "{}", stage.transcript());
    assert!(report.duration_ms > 6_000, "{}", report.duration_ms);
    assert!(!stage.transcript().contains("stream_event"));
}
