//! `proctor hook HOST pre-read --read-budget`: what is turned down, and what passes.

use proctor_testkit::{Output, World};
use serde_json::{Value, json};

use crate::hooks::hook;
use crate::world;

const WORDS: [&str; 3] = ["claude-code", "pre-read", "--read-budget"];

fn lines(number: usize) -> String {
    "text\n".repeat(number)
}

/// A repository with files on both sides of the budget.
fn here() -> World {
    let world = world().with_file("long.txt", &lines(400)).with_file("short.txt", &lines(100)).with_file("sub/deep.txt", &lines(400));
    let world = world.with_file("one.txt", &lines(200)).with_file("two.txt", &lines(200)).with_file("at.txt", &lines(350));
    let world = world.with_file("wide.txt", &format!("{}\n", "x".repeat(70_000))).with_file("note.ipynb", &lines(400));
    world.write("binary", [&[0_u8; 8][..], lines(400).as_bytes()].concat());
    world
}

fn call(world: &World, tool: &str, input: &Value) -> String {
    json!({"session_id": "s", "cwd": world.repository(), "tool_name": tool, "tool_input": input}).to_string()
}

fn bash(world: &World, command: &str) -> Output {
    hook(world, &WORDS, call(world, "Bash", &json!({"command": command})))
}

fn read(world: &World, input: &Value) -> Output {
    hook(world, &WORDS, call(world, "Read", input))
}

fn denial(output: Output) -> Option<String> {
    let output = output.expect_code(0);
    if output.stdout.is_empty() {
        return None;
    }
    let answer = output.json();
    let said = &answer["hookSpecificOutput"];
    assert_eq!((&said["hookEventName"], &said["permissionDecision"]), (&json!("PreToolUse"), &json!("deny")));
    Some(said["permissionDecisionReason"].as_str().unwrap().to_owned())
}

#[test]
fn what_reads_more_than_the_budget_is_turned_down() {
    let world = here();
    for command in [
        "cat long.txt",
        "cat -n long.txt",
        "cat ./long.txt",
        "cat one.txt two.txt",
        "head -n 500 long.txt",
        "head -500 long.txt",
        "head --lines=500 long.txt",
        "head -n -5 long.txt",
        "tail -n 400 long.txt",
        "tail -n +5 long.txt",
        "cat wide.txt",
        "head -n 1 wide.txt",
        "ls && cat 'long.txt' # all of it",
        "cd sub && cat deep.txt",
        "AOP_READ_BUDGET_LINES=9999 cat long.txt",
        "AOP_WAIVE=other cat long.txt",
    ] {
        assert!(denial(bash(&world, command)).is_some_and(|said| said.starts_with("Not read: ")), "{command}");
    }
    for input in [json!({"file_path": "long.txt"}), json!({"file_path": "long.txt", "offset": 5}), json!({"file_path": "wide.txt"})] {
        assert!(denial(read(&world, &input)).is_some(), "{input}");
    }
    let absolute = json!({"file_path": world.repository().join("long.txt")});
    assert!(denial(read(&world, &absolute)).is_some());
}

#[test]
fn everything_else_passes_without_a_word() {
    let world = here();
    for command in [
        "cat short.txt",
        "cat at.txt",
        "cat binary",
        "cat missing.txt",
        "cat sub",
        "cat long.txt | head",
        "cat long.txt > out",
        "head long.txt",
        "head -n 50 long.txt",
        "tail -n 20 long.txt",
        "head -c 10 long.txt",
        "tail -f long.txt",
        "grep -n x long.txt",
        "sed -n 1,400p long.txt",
        "git status",
        "cat",
        "cat -",
        "cd sub && cat long.txt",
        "cd missing && cat long.txt",
        "cat *.txt",
        "cat $X",
        "cat \"long.txt",
        "sudo cat long.txt",
        "cat --help long.txt",
        "cat note.ipynb",
        "head -n 1k long.txt",
        "head -n 0 long.txt",
        "tail -n +500 long.txt",
    ] {
        let output = bash(&world, command);
        assert_eq!((output.code, &*output.stdout, &*output.stderr), (Some(0), "", ""), "{command}");
    }
    for input in [
        json!({"file_path": "long.txt", "limit": 100}),
        json!({"file_path": "short.txt"}),
        json!({"file_path": "binary"}),
        json!({"file_path": "missing.txt"}),
        json!({"file_path": "sub"}),
        json!({"file_path": "/dev/zero"}),
        json!({}),
    ] {
        assert_eq!(denial(read(&world, &input)), None, "{input}");
    }
    let edit = hook(&world, &WORDS, call(&world, "Edit", &json!({"file_path": "long.txt"})));
    assert_eq!(denial(edit), None);
    assert_eq!(denial(hook(&world, &WORDS, "{\"tool_name\": \"Read\", ")), None, "half an object");
    assert_eq!(denial(hook(&world, &WORDS[..2], call(&world, "Read", &json!({"file_path": "long.txt"})))), None, "without the flag");
}

#[test]
fn every_attempt_is_turned_down_and_the_second_in_one_line() {
    let world = here();

    let first = denial(bash(&world, "cat long.txt")).unwrap();
    let second = denial(read(&world, &json!({"file_path": "long.txt"}))).unwrap();

    assert!(first.contains("400 lines") && first.contains("Search first (`grep -n`)") && first.contains("subagent"), "{first}");
    assert_eq!(second.lines().count(), 1, "{second}");
    assert!(denial(bash(&world, "head -n -5 long.txt")).unwrap().contains("395 lines"));
    assert!(denial(bash(&world, "tail -n +5 long.txt")).unwrap().contains("396 lines"));
}

#[test]
fn what_is_waived_passes_and_says_so_on_standard_error() {
    const RULE: &str = "core.context:unbounded-read";
    let world = here();

    let own = bash(&world, &format!("AOP_WAIVE={RULE} cat long.txt"));
    let world = world.with_variable("AOP_WAIVE", format!("other,{RULE}"));
    let outer = bash(&world, "cat long.txt");
    let off = bash(&world.with_variable("AOP_WAIVE", "").with_variable("AGENTOPS_HOOKS_DISABLED", "1"), "cat long.txt");

    for output in [own, outer] {
        assert_eq!((output.code, &*output.stdout), (Some(0), ""));
        assert!(output.stderr.contains("core.context:unbounded-read is waived"), "{output}");
    }
    assert_eq!((&*off.stdout, &*off.stderr), ("", ""));
}

#[test]
fn the_budget_of_lines_is_taken_from_the_environment() {
    let budget = |value: &str| here().with_variable("AOP_READ_BUDGET_LINES", value);

    assert_eq!(denial(bash(&budget("500"), "cat long.txt")), None);
    assert!(denial(bash(&budget("50"), "cat short.txt")).is_some());
    assert!(denial(bash(&budget("-1"), "cat long.txt")).is_some_and(|said| said.contains("350 lines")));
    assert!(denial(bash(&budget("500"), "cat wide.txt")).is_some(), "the bytes stay");
}

#[test]
fn each_host_is_told_no_in_its_own_form() {
    let world = here();
    let shell = |tool: &str| {
        json!({"conversation_id": "c", "session_id": "s", "cwd": world.repository(), "tool_name": tool, "tool_input": {"command": "cat long.txt"}}).to_string()
    };

    let codex = hook(&world, &["codex", "pre-read", "--read-budget"], shell("Bash")).expect_code(0).json();
    let cursor = hook(&world, &["cursor", "pre-read", "--read-budget"], shell("Shell")).expect_code(0).json();

    assert_eq!(codex["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(cursor["permission"], "deny");
    assert!(cursor["agent_message"].as_str().unwrap().starts_with("Not read: "));
}
