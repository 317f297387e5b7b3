//! Settings that only some engines have: what a version lacks is found at the start, and a repository's servers need consent.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use proctor_testkit::World;

use crate::world;

const CARD: &str = "description: Says hello\nsteps:\n  - id: greet\n    run:\n      agents:\n        - prompt: Write hello.txt\n";

/// A world whose `claude` is this shell text, with these settings of the user.
fn world_with_claude(text: &str, settings: &str) -> World {
    let world = world().with_card("greet", CARD).with_file("../bin/claude", &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(world.root().join("bin/claude"), Permissions::from_mode(0o755)).expect("a program");
    world.write("../config/proctor/config.toml", settings);
    world.commit_all("Begin");
    let path = format!("{}:/usr/bin:/bin", world.root().join("bin").display());
    let config = world.root().join("config");
    world.with_variable("PATH", path).with_variable("XDG_CONFIG_HOME", config).with_variable("PROCTOR_CONFINE", "none")
}

#[test]
fn what_the_installed_version_lacks_is_found_before_anything_runs() {
    let world = world_with_claude("echo '  --efforts <x>  --fallback-model <model>'", "engines.claude.effort = 'high'\n");

    assert_snapshot!(world.proctor(&["procedure", "run", "greet"]).snapshot(), @"
    exit 4
    --- stderr
    error: refused to run step `greet`: it needs the engine claude, and its program knows no `--effort`, which a setting of yours needs; install a newer one, or leave the setting out

    hint: install it, or name its program under `[engines.claude]` in your settings
    hint: `proctor engines` lists what is found; `--engine scripted --script FILE` tries a card without a model
    ");
    assert_eq!(world.proctor(&["runs", "--all", "--json"]).json()["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_is_set_is_listed_with_the_engine() {
    let settings = "[engines.claude]\neffort = 'high'\nfallback-model = 'sonnet'\nmcp = { desk = { command = 'desk' } }\n";
    let world = world_with_claude("echo '2.1.332 (Claude Code)'", settings);

    let listed = world.proctor(&["engines", "--json"]).expect_code(0).json();

    let claude = &listed["engines"][0];
    assert_eq!((&claude["effort"], &claude["fallback_model"], &claude["mcp"][0]), (&"high".into(), &"sonnet".into(), &"desk".into()));
    let text = world.proctor(&["engines"]).expect_code(0).stdout;
    assert!(text.contains("inherit false, permission ask, effort high, fallback model sonnet, mcp desk"), "{text}");
}

#[test]
fn a_repositorys_servers_need_consent() {
    let world = world_with_claude("exit 1", "");
    world.write("proctor.toml", "[engines.claude.mcp.desk]\ncommand = 'desk'\n");
    world.commit_all("Ask");

    assert_snapshot!(world.proctor(&["procedure", "run", "greet"]).snapshot(), @"
    exit 4
    --- stderr
    error: [root]/repository/proctor.toml asks for what you have not accepted: engines.claude.mcp

    hint: proctor trust
    ");
    let asked = world.proctor(&["trust", "--yes"]).expect_code(0).to_string();
    assert!(asked.contains(r#"desk: {"command":"desk"}"#), "{asked}");
}
