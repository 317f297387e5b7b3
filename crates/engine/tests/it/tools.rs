//! The tools of a session, called through its socket: what they come to, and who is let in.
//!
//! The agent is a bash text that starts this binary again in the role of a client, which writes lines and keeps the replies.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::session::{SessionEnd, SessionReport};
use proctor_engine::tools::{Bridge, BridgeError, ToolServer};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, agent, ended, host_program, until, wait};

const SCHEMA: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;

/// In an ordinary test run this does nothing.
#[test]
fn role() {
    let Some(socket) = std::env::var_os("TOOLS_SOCKET").map(PathBuf::from) else { return };
    let number = |name: &str| std::env::var(name).map_or(1, |text| text.parse::<usize>().unwrap());
    let lines = std::env::var("TOOLS_LINES").unwrap().repeat(number("TOOLS_TIMES"));
    let mut replies = std::fs::File::create(std::env::var_os("TOOLS_REPLIES").unwrap()).unwrap();
    let open: Vec<_> = (0..number("TOOLS_CONNECTIONS")).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    for mut stream in open.iter().rev() {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        // Whoever is not let in may be told so while it speaks.
        let _ = stream.write_all(lines.as_bytes());
        let asked = lines.lines().filter(|line| line.contains("\"id\"")).count();
        let answered: Vec<_> = BufReader::new(stream).lines().take(asked).map_while(Result::ok).collect();
        writeln!(replies, "{}", answered.join("\n")).unwrap();
    }
}

/// An agent that says these lines to the socket of the session with this folder, and is done.
fn text(socket: &Path, lines: &str, more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "started; export TOOLS_SOCKET='{}' TOOLS_LINES='{lines}' TOOLS_REPLIES=\"$PWD/replies\" {more}\n\
         '{}' --exact tools::role --test-threads=1 >/dev/null; turn; finished",
        socket.display(),
        program.display()
    )
}

fn with_tools(mut world: World) -> World {
    let tools = ToolServer::of(&host_program(), &world.spec.folder);
    world.run_mut().opening.tools = tools;
    world
}

fn socket(world: &World) -> PathBuf {
    world.file("engine/tools.sock")
}

fn saying(lines: &str, more: &str) -> World {
    let mut world = with_tools(agent(""));
    let text = text(&socket(&world), lines, more);
    world.run_mut().argv[2] = format!("{}{text}", world.run_mut().argv[2].to_str().unwrap()).into();
    world
}

fn replies(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.work("replies")).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(id: u64, tool: &str, input: &Value) -> String {
    format!("{}\n", json!({ "version": 1, "id": id, "call": tool, "input": input }))
}

fn notes(report: &SessionReport) -> &[String] {
    &report.agent.as_ref().unwrap().told.notes
}

#[test]
fn a_result_that_is_submitted_is_checked_at_once_and_is_the_sessions() {
    let lines = [
        "{\"version\":1,\"id\":1,\"offer\":true}\n".to_owned(),
        call(2, "submit_result", &json!({ "result": { "passed": "yes" } })),
        call(3, "submit_result", &json!({ "result": { "passed": true } })),
        call(4, "note", &json!({ "text": "The tests were slow." })),
    ];
    let mut world = saying(&lines.concat(), "");
    world.run_mut().opening.schema = Some(SCHEMA.to_owned());

    let report = world.run();

    let replies = replies(&world);
    let offered: Vec<_> = replies[0]["offer"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(offered, ["submit_result", "note"]);
    assert!(replies[1]["failed"] == true && replies[1]["text"].as_str().unwrap().contains("/passed"), "{replies:?}");
    assert_eq!([&replies[2]["failed"], &replies[3]["failed"]], [&Value::Null, &Value::Null], "{replies:?}");
    let agent = report.agent.as_ref().unwrap();
    assert_eq!((&report.end, agent.result.as_deref()), (&SessionEnd::Completed, Some(r#"{"passed":true}"#)));
    assert_eq!(notes(&report), ["The tests were slow."]);
}

#[test]
fn garbage_is_passed_over_and_a_version_that_is_not_known_is_answered() {
    let newer = "garbage\n{\"version\":2,\"id\":1,\"call\":\"note\",\"input\":{\"text\":\"new\"}}\n";
    let known = "{\"version\":1,\"id\":2,\"call\":\"note\",\"input\":{\"text\":\"known\"},\"later\":{}}\n";
    let nothing = "{\"version\":1,\"id\":3}\n{\"version\":1,\"id\":4,\"call\":\"dance\"}\n";
    let world = saying(&format!("{newer}{known}{nothing}"), "");

    let report = world.run();

    let failed: Vec<_> = replies(&world).iter().map(|reply| (reply["id"].clone(), reply["failed"] == true)).collect();
    assert_eq!(failed, [(1.into(), true), (2.into(), false), (3.into(), true), (4.into(), true)]);
    assert_eq!(notes(&report), ["known"]);
}

#[test]
fn more_connections_than_are_needed_are_refused_and_the_session_goes_on() {
    let world = saying(&call(1, "note", &json!({ "text": "heard" })), "TOOLS_CONNECTIONS=20");

    let report = world.run();

    assert_eq!((&report.end, notes(&report).len()), (&SessionEnd::Completed, 8), "{report:?}");
}

#[test]
fn a_line_without_an_end_ends_the_connection_and_the_session_goes_on() {
    let world = saying(&format!("{{\"id\":1, {}", "x".repeat(50_000)), "TOOLS_TIMES=40");

    let report = world.run();

    assert_eq!((&report.end, notes(&report).len(), replies(&world).len()), (&SessionEnd::Completed, 0, 0), "{report:?}");
}

#[test]
fn a_secret_in_a_note_is_not_kept() {
    let mut world = saying(&call(1, "note", &json!({ "text": "It is hush-hush-4711." })), "");
    world.spec.secrets = vec![b"hush-hush-4711".to_vec()];

    let report = world.run();

    assert_eq!(notes(&report), ["It is [redacted]."]);
}

#[test]
fn an_agent_that_is_blocked_says_so_and_one_that_only_looks_can_not() {
    let blocked = call(1, "report_blocked", &json!({ "reason": "There is no network." }));
    let looking = saying(&blocked, "");
    let mut working = saying(&blocked, "");
    working.run_mut().opening.access = proctor_engine::agent::Access::Full;

    let told = [looking.run(), working.run()].map(|report| report.agent.unwrap().told.blocked);

    assert_eq!(told, [None, Some("There is no network.".to_owned())]);
    assert_eq!(replies(&looking)[0]["failed"], true);
}

#[test]
fn a_stranger_is_refused_whoever_it_is() {
    let mut standing = with_tools(agent("started; touch begun; until [ -e go ]; do read -t 0.01 <> <(:); done; turn; finished"));
    standing.run_mut().opening.access = proctor_engine::agent::Access::Full;
    let mut attached = standing.start();
    assert!(until(|| standing.work("begun").exists()));

    // This process drives the session and is its host's parent, and is no descendant of its agent.
    let driver = Bridge::connect(&socket(&standing)).unwrap().offer();
    // The agent of another session, which has a socket of its own.
    let mut other = with_tools(agent(""));
    let asking = text(&socket(&standing), &call(1, "note", &json!({ "text": "from another session" })), "");
    other.run_mut().argv[2] = format!("{}{asking}", other.run_mut().argv[2].to_str().unwrap()).into();
    let theirs = other.run();
    std::fs::File::create(standing.work("go")).unwrap();
    let report = ended(wait(&mut attached));

    assert!(matches!(driver, Err(BridgeError::Refused)), "{driver:?}");
    assert_eq!((theirs.end, replies(&other).len()), (SessionEnd::Completed, 0));
    assert_eq!((&report.end, notes(&report).len()), (&SessionEnd::Completed, 0));
}

#[test]
fn a_session_without_tools_has_no_socket() {
    let world = agent("started; turn; finished");

    let report = world.run();

    assert_eq!((report.end, socket(&world).exists()), (SessionEnd::Completed, false));
}

/// Speaks the Model Context Protocol with the bridge, as an agent's client does.
const CLIENT: &str = r#"
started
coproc BRIDGE { "$HOST" tools "$SOCKET" 2> complaint; }
ask() { printf '%s\n' "$1" >&"${BRIDGE[1]}"; IFS= read -r -u "${BRIDGE[0]}" line; printf '%s\n' "$line" >> replies; }
ask '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&"${BRIDGE[1]}"
ask '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
ask '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"note","arguments":{"text":"By way of the bridge."}}}'
ask '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"note","arguments":{}}}'
turn; finished
"#;

#[test]
fn the_bridge_offers_and_calls_what_the_host_does() {
    let mut world = with_tools(agent(CLIENT));
    let (host, socket) = (host_program(), socket(&world));
    world.spec.environment.push(("HOST".into(), host.into()));
    world.spec.environment.push(("SOCKET".into(), socket.into()));

    let report = world.run();

    let replies = replies(&world);
    assert_eq!(replies[0]["result"]["serverInfo"]["name"], "proctor");
    let tools = replies[1]["result"]["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["name"], &tools[0]["annotations"]["destructiveHint"]), (1, &"note".into(), &false.into()));
    assert_eq!([&replies[2]["result"]["isError"], &replies[3]["result"]["isError"]], [false, true], "{replies:?}");
    assert_eq!(notes(&report), ["By way of the bridge."]);
    assert!(report.duration_ms < u64::try_from(Duration::from_secs(30).as_millis()).unwrap());
}
