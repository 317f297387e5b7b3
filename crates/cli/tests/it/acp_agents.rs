//! Agents of the Agent Client Protocol end to end: what they ask of files and terminals is done in their box, and what they tell
//! is in the log. The agent is a bash text.

use insta::assert_snapshot;
use proctor_process::confine::BoxKind;
use proctor_testkit::World;
use serde_json::json;

use crate::agent_scene::in_box;
use crate::box_scene::is_here;
use crate::procedures::newest_run;

const ISOLATED: &str = "isolation: worktree\nsteps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";

/// Begins a session; what is answered to its requests it keeps in `seen`.
pub(crate) const AGENT: &str = r#"
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":%s}}}\n' "$1"; }
ask() {
  printf '{"jsonrpc":"2.0","id":"r","method":"%s","params":{"sessionId":"s-1",%s}}\n' "$1" "$2"
  IFS= read -r answer; printf '%s\n' "$answer" >> seen
}
read -r; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-1"}}'
read -r
WORK
update '"agent_message_chunk","content":{"type":"text","text":"I did it."}'
echo '{"jsonrpc":"2.0","id":5,"result":{"stopReason":"end_turn"}}'
read -r
"#;

/// A world whose engine is this agent, in a box of this kind.
fn world_of(work: &str, kind: BoxKind) -> World {
    let world = crate::world().with_card("work", ISOLATED).with_file("../agent.sh", &AGENT.replace("WORK", work));
    let script = world.root().join("agent.sh");
    world.write(
        "../config/proctor/config.toml",
        format!("[engines.asker]\nacp = ['bash', '{}']\npermission = 'bypass'\n", script.display()),
    );
    world.commit_all("Begin");
    let config = world.root().join("config");
    in_box(world.with_variable("XDG_CONFIG_HOME", config).with_variable("PROCTOR_ENGINE", "asker"), kind.name())
}

#[test]
fn what_is_served_to_an_agent_is_done_in_its_box() {
    for kind in [BoxKind::Bwrap, BoxKind::Landlock] {
        if !is_here(kind) {
            continue;
        }
        let work = r#"
            ask fs/write_text_file "\"path\":\"$PWD/made\",\"content\":\"made\\n\""
            ask fs/write_text_file "\"path\":\"${0%/*}/planted\",\"content\":\"\""
            ask terminal/create "\"command\":\"touch run; touch '${0%/*}/planted-too'\""
            ask terminal/wait_for_exit '"terminalId":"terminal-1"'
            ask terminal/output '"terminalId":"terminal-1"'"#;
        let world = world_of(work, kind);

        let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

        let root = world.root().display();
        let why = if kind == BoxKind::Bwrap { "Read-only file system" } else { "Permission denied" };
        let seen = world.read("seen");
        let seen: Vec<serde_json::Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&seen[0]["result"], world.read("made").as_str()), (&json!({}), "made\n"), "{kind}: {seen:?}");
        let refused = seen[1]["error"]["message"].as_str().unwrap();
        assert!(refused.starts_with(&format!("failed to write {root}/planted: {why}")), "{kind}: {refused}");
        assert!(refused.ends_with("; this session has no right to do that"), "{kind}: {refused}");
        assert_eq!(seen[3]["result"]["exitCode"], 1, "{kind}: {seen:?}");
        assert!(seen[4]["result"]["output"].as_str().unwrap().contains(why), "{kind}: {seen:?}");
        assert!(world.has("run") && !world.has("../planted") && !world.has("../planted-too"), "{kind}");
    }
}

#[test]
fn the_log_tells_of_plans_and_of_what_commands_printed() {
    let work = r#"
        update '"plan","entries":[{"content":"Look","status":"in_progress","priority":"high"},{"content":"Write","status":"pending","priority":"low"}]'
        ask terminal/create '"command":"echo","args":["seven files"]'
        update '"tool_call","toolCallId":"t","title":"Look","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"terminal-1"}]'
        ask terminal/wait_for_exit '"terminalId":"terminal-1"'
        update '"tool_call_update","toolCallId":"t","status":"completed"'
        update '"plan","entries":[{"content":"Look","status":"completed","priority":"high"}]'"#;
    let world = world_of(work, BoxKind::None);

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    let run = newest_run(&world);
    let told = world.proctor(&["log", &run]).expect_code(0).stdout;
    let told: Vec<&str> =
        told.lines().skip_while(|line| !line.contains("conversation")).take_while(|line| !line.starts_with("--")).collect();
    assert_snapshot!(told.join("\n"), @r#"
    conversation s-1
      plan:
        [>] Look
        [ ] Write
      → execute {"title":"Look"}
      ← seven files
      plan:
        [x] Look
    agent: I did it.
    end: done
    "#);
    let events = world.proctor(&["log", &run, "--json"]).expect_code(0).json();
    let events = events["sessions"][0]["events"].as_array().unwrap();
    let plans: Vec<_> = events.iter().filter(|event| event["kind"] == "plan").map(|event| &event["entries"]).collect();
    assert_eq!(
        plans,
        [
            &json!([{ "text": "Look", "state": "in-progress" }, { "text": "Write", "state": "pending" }]),
            &json!([{ "text": "Look", "state": "completed" }]),
        ]
    );
}
