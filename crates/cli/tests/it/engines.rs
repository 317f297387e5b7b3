use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use insta::assert_snapshot;
use proctor_testkit::{Output, World};
use serde_json::{Value, json};

use crate::world;

/// A procedure whose only step is an agent.
const AGENT: &str = "description: Says hello\nsteps:\n  - id: greet\n    run:\n      agents:\n        - prompt: Write hello.txt\n";
/// An agent that does it.
const SCRIPT: &str = "[[default.turn]]\ndo = [{ write = { path = 'hello.txt', content = 'hello' } }]\n";

/// Puts a program there, made of this shell text.
fn install(world: &World, path: &str, text: &str) {
    world.write(path, format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(world.repository().join(path), Permissions::from_mode(0o755)).expect("a program");
}

/// A world whose `claude` is this shell text.
fn world_with_claude(text: &str) -> World {
    let world = world();
    install(&world, "../bin/claude", text);
    let path = format!("{}:/usr/bin:/bin", world.root().join("bin").display());
    world.with_variable("PATH", path)
}

/// A world whose `claude` is one that was tested.
fn world_with_good_claude() -> World {
    world_with_claude("echo '2.1.332 (Claude Code)'")
}

fn engines(world: &World) -> Value {
    world.proctor(&["engines", "--json"]).expect_code(0).json()
}

fn claude(world: &World) -> Value {
    engines(world)["engines"][0].clone()
}

/// What was said, without the lines about boxes, which differ from machine to machine, and the path of the binary.
fn without_boxes(output: &Output) -> String {
    let own_version = |word: &str| format!("  version   {word}\n  login     not needed");
    let text = output.snapshot().replace(env!("CARGO_BIN_EXE_proctor"), "[proctor]");
    let text = text.replace(&own_version(env!("CARGO_PKG_VERSION")), &own_version("[version]"));
    let (engines, _) = text.split_once("\nbox ").expect("a part about boxes");
    engines.to_owned()
}

#[test]
fn a_program_that_is_not_there_is_said_with_its_remedy() {
    let world = world().with_file("proctor.toml", "engines.claude.program = 'no-such-claude'\n");
    let _ = world.proctor(&["trust", "--yes"]).expect_code(0);

    let claude = claude(&world);

    assert_eq!((&claude["usable"], &claude["found"]), (&json!(false), &Value::Null));
    assert_eq!(
        claude["troubles"][0],
        json!({
            "hindrance": true,
            "detail": "its program `no-such-claude` is not found",
            "remedy": "install it, or name it: `engines.claude.program` in your settings",
        })
    );
}

#[test]
fn what_says_no_version_of_it_or_fails_is_doubtful() {
    for (text, detail) in [
        ("echo 'claude 1.0'", "says `claude 1.0`, which is no version of claude"),
        ("exit 3", "fails (exit 3)"),
        ("echo '2.0.1 (Claude Code)'", "version 2.0.1 is not among those that it was tested with"),
    ] {
        let claude = claude(&world_with_claude(text));

        assert_eq!(claude["usable"], true, "{text}");
        assert!(claude["troubles"][0]["detail"].as_str().expect("a detail").contains(detail), "{claude}");
    }
}

#[test]
fn unreadable_settings_are_the_only_failure() {
    let world = world().with_file("proctor.toml", "engine = 'Codex'\n");

    assert_snapshot!(world.proctor(&["engines"]).snapshot(), @"
    exit 2
    --- stderr
    error: [root]/repository/proctor.toml can't be used

    [root]/repository/proctor.toml:1:10: error: `engine`: `Codex` is no name of an engine: it wants at most 40 lower-case letters, digits and `-`, a letter first
      1 | engine = 'Codex'
        |          ^^^^^^^
    ");
}

#[test]
fn each_engine_is_described() {
    let world = world_with_good_claude().with_variable("ANTHROPIC_API_KEY", "not-a-key");

    assert_snapshot!(without_boxes(&world.proctor(&["engines"])), @"
    exit 0
    --- stdout
    claude (in use, default)
      program   [root]/bin/claude
      version   2.1.332 (tested with 2.1.197 to 2.1.332)
      login     by ANTHROPIC_API_KEY
      can       resume, structured result, turn cap, money cap, tool list, system prompt, cost, steering, effort, fallback model, mcp servers
      models    efficient = haiku, balanced = sonnet, strong = opus, strongest = fable
      settings  inherit false, permission ask
    codex
      program   not found
      version   unknown
      login     nobody
      can       resume, system prompt, cost, steering, effort, mcp servers
      models    efficient = gpt-6-luna, balanced = gpt-6.2-sol, strong = gpt-6.2-astra, strongest = gpt-6.2-astra
      settings  inherit false, permission ask
      ✗ its program `codex` is not found
        remedy: install it, or name it: `engines.codex.program` in your settings
      ! nobody is logged in
        remedy: run `codex login`, or set CODEX_API_KEY
    opencode
      program   not found
      version   unknown
      login     by ANTHROPIC_API_KEY
      can       resume, tool list, system prompt, cost
      models    efficient = anthropic/claude-haiku-4-5, balanced = anthropic/claude-sonnet-5, strong = anthropic/claude-opus-5-5, strongest = anthropic/claude-fable-5-1
      settings  inherit false, permission ask
      ✗ its program `opencode` is not found
        remedy: install it, or name it: `engines.opencode.program` in your settings
    scripted
      program   [proctor]
      version   [version]
      login     not needed
      can       resume, structured result, turn cap, money cap, tool list, system prompt, cost, steering
      models    efficient = efficient, balanced = balanced, strong = strong, strongest = strongest
      script    none
      ✗ no script says what it does
        remedy: give `--script FILE`, or set `engines.scripted.script`
    ");
}

#[test]
fn the_object_says_the_same() {
    let world = world_with_good_claude();

    let listing = engines(&world);

    let mut claude = listing["engines"][0].clone();
    claude["found"] = claude["found"].as_str().expect("a path").replace(&world.root().display().to_string(), "[root]").into();
    assert_snapshot!(serde_json::to_string_pretty(&claude).expect("JSON"), @r#"
    {
      "capabilities": {
        "cost": true,
        "effort": true,
        "fallback_model": true,
        "mcp_servers": true,
        "money_cap": true,
        "resume": true,
        "steering": true,
        "structured_result": true,
        "system_prompt": true,
        "tool_list": true,
        "turn_cap": true
      },
      "effort": null,
      "fallback_model": null,
      "found": "[root]/bin/claude",
      "in_tested_range": true,
      "inherit": false,
      "kind": "claude",
      "login": "logged-out",
      "login_by": null,
      "mcp": [],
      "models": {
        "balanced": "sonnet",
        "efficient": "haiku",
        "strong": "opus",
        "strongest": "fable"
      },
      "name": "claude",
      "permission": "ask",
      "program": "claude",
      "script": null,
      "tested": [
        "2.1.197",
        "2.1.332"
      ],
      "troubles": [
        {
          "detail": "nobody is logged in",
          "hindrance": false,
          "remedy": "start `claude` and log in, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN"
        }
      ],
      "usable": true,
      "version": "2.1.332"
    }
    "#);
    assert_eq!(listing["version"], 1);
    assert_eq!(listing["engine"], json!({"name": "claude", "source": "default"}));
    assert_eq!(listing["confine"], json!({"name": "auto", "source": "default"}));
    assert_eq!(listing["tiers"][0], json!({"name": "efficient", "alias": "haiku"}));
    assert!(["bwrap", "landlock", "none"].contains(&listing["box"]["used"].as_str().expect("a kind")), "{listing}");
}

#[test]
fn it_works_outside_of_a_repository() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));

    let listing = world.proctor_in(world.root(), &["engines", "--json"]).expect_code(0).json();

    let names: Vec<&str> = listing["engines"].as_array().expect("engines").iter().filter_map(|engine| engine["name"].as_str()).collect();
    assert_eq!(names, ["claude", "codex", "opencode", "scripted"]);
}

#[test]
fn each_layer_of_settings_about_agents_wins_over_the_one_before() {
    let mut world = world_with_good_claude();
    let source = |world: &World, key: &str| (engines(world)[key]["name"].clone(), engines(world)[key]["source"].clone());
    let file = |path: PathBuf| json!(path.display().to_string());

    world.write(world.user_settings(), "engine = 'scripted'\nconfine = 'none'\n");
    assert_eq!(source(&world, "engine"), (json!("scripted"), file(world.user_settings())));
    assert_eq!(source(&world, "confine"), (json!("none"), file(world.user_settings())));
    world.write("proctor.toml", "engine = 'claude'\nconfine = 'auto'\n[models.claude]\nstrong = 'opus-9'\n");
    assert_eq!(source(&world, "engine"), (json!("claude"), file(world.repository().join("proctor.toml"))));
    assert_eq!(source(&world, "confine"), (json!("auto"), file(world.repository().join("proctor.toml"))));
    assert_eq!(claude(&world)["models"]["strong"], "opus-9");
    world.set_variable("PROCTOR_ENGINE", "scripted");
    world.set_variable("PROCTOR_CONFINE", "none");
    assert_eq!(source(&world, "engine"), (json!("scripted"), json!("PROCTOR_ENGINE")));
    assert_eq!(source(&world, "confine"), (json!("none"), json!("PROCTOR_CONFINE")));
}

#[test]
fn a_program_that_a_repository_names_is_not_even_asked_for_its_version_without_consent() {
    let world = world_with_good_claude();
    install(&world, "tools/claude", "touch \"$0.was-run\"\necho '2.1.332 (Claude Code)'");
    world.write("proctor.toml", "[engines.claude]\nprogram = 'tools/claude'\npermission = 'bypass'\n");

    let before = engines(&world);

    assert_eq!(before["not_accepted"], json!(["engines.claude.program", "engines.claude.permission"]));
    assert_eq!(before["engines"][0]["found"], world.root().join("bin/claude").display().to_string());
    assert_eq!(before["engines"][0]["permission"], "ask");
    assert!(!world.has("tools/claude.was-run"));
    let _ = world.proctor(&["trust", "--yes"]).expect_code(0);
    let after = engines(&world);
    assert_eq!(after["not_accepted"], json!([]));
    assert_eq!(after["engines"][0]["found"], world.repository().join("tools/claude").display().to_string());
    assert_eq!(after["engines"][0]["permission"], "bypass");
}

#[test]
fn no_run_starts_before_the_repository_s_program_box_and_openness_are_accepted() {
    let world = world().with_card("greet", AGENT);
    world.write("proctor.toml", "confine = 'none'\n[engines.claude]\nprogram = '/tmp/claude'\ninherit = true\npermission = 'bypass'\n");
    world.commit_all("Ask for much");

    assert_snapshot!(world.proctor(&["procedure", "run", "greet"]).snapshot(), @"
    exit 4
    --- stderr
    error: [root]/repository/proctor.toml asks for what you have not accepted: confine, engines.claude.program, engines.claude.inherit, engines.claude.permission

    hint: proctor trust
    ");
    assert_snapshot!(world.proctor(&["trust"]).snapshot(), @"
    exit 2
    --- stderr
    [root]/repository/proctor.toml asks:
      to hold agents in this box, which can be weaker than yours (confine): none
      to run this program as the engine (engines.claude.program): /tmp/claude
      to take in your own settings, memory and tools of the engine (engines.claude.inherit): true
      to let agents act without asking, also outside of a box (engines.claude.permission): bypass
    error: there is no terminal to ask on

    hint: give --yes to go on without being asked
    ");
}

#[test]
fn the_scripted_engine_without_a_script_is_refused() {
    let world = world().with_card("greet", AGENT);

    assert_snapshot!(world.proctor(&["procedure", "run", "greet", "--engine", "scripted"]).snapshot(), @"
    exit 4
    --- stderr
    error: refused to run step `greet`: it needs the engine scripted, and no script says what it does

    hint: name one with `--script FILE`, or `script` under `[engines.scripted]` in proctor.toml
    hint: `proctor engines` lists what is found
    ");
}

#[test]
fn a_script_is_looked_for_from_where_it_is_named() {
    let run = |world: &World, folder: &str, arguments: &[&str]| {
        let arguments: Vec<&str> = ["procedure", "run", "greet", "--json"].iter().chain(arguments).copied().collect();
        let output = world.proctor_in(world.repository().join(folder), &arguments).expect_code(0);
        assert_eq!(world.read("hello.txt"), "hello", "{output}");
    };
    let world = || {
        let world = world().with_card("greet", AGENT).with_variable("PROCTOR_CONFINE", "none");
        world.write("inner/agent.toml", SCRIPT);
        world
    };

    let by_repository = world().with_file("proctor.toml", "engine = 'scripted'\nengines.scripted.script = 'inner/agent.toml'\n");
    by_repository.commit_all("Follow a script");
    run(&by_repository, "inner", &[]);

    let by_user = world();
    by_user.commit_all("Keep a script");
    by_user.write(by_user.user_settings(), "engine = 'scripted'\n[engines.scripted]\nscript = 'agent.toml'\n");
    by_user.write(by_user.user_settings().with_file_name("agent.toml"), SCRIPT);
    run(&by_user, "", &[]);

    let by_variable = world().with_variable("PROCTOR_ENGINE", "scripted").with_variable("PROCTOR_SCRIPT", "agent.toml");
    by_variable.commit_all("Keep a script");
    run(&by_variable, "inner", &[]);

    let by_flag = world().with_variable("PROCTOR_SCRIPT", "/nowhere/agent.toml");
    by_flag.commit_all("Keep a script");
    run(&by_flag, "inner", &["--script", "agent.toml"]);
}

#[test]
fn completions_know_the_command_and_the_flags() {
    let script = world().proctor(&["completions", "bash"]).expect_code(0).stdout;

    for word in ["engines", "--engine", "--script"] {
        assert!(script.contains(word), "{word}");
    }
}

#[test]
fn a_program_is_asked_for_its_version_once_until_it_is_another_file() {
    let world = world_with_claude("echo x >> \"$0.asked\"\necho '2.1.332 (Claude Code)'");
    let _ = world.proctor(&["where"]);
    fs::create_dir_all(world.home().join(".local/state/proctor")).expect("a folder for state");
    let asked = || world.read("../bin/claude.asked").lines().count();

    let first = claude(&world);
    let second = claude(&world);
    assert_eq!((&first["version"], &second["version"], asked()), (&json!("2.1.332"), &json!("2.1.332"), 1));
    install(&world, "../bin/claude", "echo x >> \"$0.asked\"\necho '2.1.300 (Claude Code)'");
    let third = claude(&world);

    assert_eq!((&third["version"], asked()), (&json!("2.1.300"), 2));
}

#[test]
fn a_run_with_an_engine_of_another_version_says_so_once() {
    let world = world_with_claude("[ \"$1\" = --version ] && echo '3.0.0 (Claude Code)' || exit 1");
    let mut world = world.with_card("greet", AGENT);
    world.commit_all("Begin");
    world.set_variable("PROCTOR_CONFINE", "none");

    let run = world.proctor(&["procedure", "run", "greet"]).expect_code(1);
    let again = world.proctor(&["procedure", "resume"]);

    let warning = "warning: claude: version 3.0.0 is not among those that it was tested with, 2.1.197 to 2.1.332";
    assert_eq!((run.stderr.matches(warning).count(), again.stderr.matches("warning: claude").count()), (1, 0), "{run}\n{again}");
}

#[test]
fn a_codex_of_before_the_app_server_is_run_by_exec() {
    let world = world_with_claude("exit 1");
    let lines = r#"{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"Hello."}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let program = |world: &World, version: &str| {
        let text = format!(
            "[ \"$1\" = --version ] && exec echo 'codex-cli {version}'\necho \"$1\" > \"$0.way\"\n[ \"$1\" = exec ] || exit 1\ncat > /dev/null; echo '{lines}'"
        );
        install(world, "../bin/codex", &text);
    };
    let mut world = world.with_card("greet", AGENT);
    world.commit_all("Begin");
    world.set_variable("PROCTOR_CONFINE", "none");

    program(&world, "0.119.0");
    let older = world.proctor(&["procedure", "run", "greet", "--engine", "codex"]).expect_code(0);
    let way = world.read("../bin/codex.way");
    program(&world, "0.120.0");
    let newer = world.proctor(&["procedure", "run", "greet", "--engine", "codex"]).expect_code(1);

    assert_eq!((way.as_str(), world.read("../bin/codex.way").as_str()), ("exec\n", "app-server\n"), "{older}\n{newer}");
}
