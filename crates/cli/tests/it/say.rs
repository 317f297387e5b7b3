//! `proctor say`: what a person says to an agent at work, and what is kept of it.

use insta::assert_snapshot;
use proctor_testkit::{Output, World};

use crate::agent_scene::{run_of, wait_until_printed, world_of};
use crate::procedures::{LIMIT, WAITS, let_go, newest_run, sessions_of, snapshot, start_waiting};
use crate::world;

const CARD: &str = "steps:\n  - id: build\n    run:\n      agents: [{prompt: Build it}]\n";
/// Listens until something is said.
const LISTENS: &str = "[[default.turn]]\ndo = [{ say = 'Listening.' }, { hear = {} }]\n";

/// Says what is in a file, by standard input, with `--json`.
fn from_input(world: &World, run: &str, text: &str) -> Output {
    world.write("../word", text);
    let program = env!("CARGO_BIN_EXE_proctor");
    world.run("bash", &["-c", &format!("'{program}' say {run} - --json < ../word")])
}

#[test]
fn a_word_reaches_the_agent_at_work_and_is_kept_as_a_persons() {
    let mut world = world_of(CARD, LISTENS);
    let driver = world.start(&["procedure", "run", "work"]);
    let _ = wait_until_printed(&world, "Listening.");
    let run = newest_run(&world);

    world.set_variable("PROCTOR_SESSION", "ses_0000000000");
    let refused = world.proctor(&["say", &run, "Leave main alone."]);
    world.remove_variable("PROCTOR_SESSION");
    let said = world.proctor(&["say", &run, "Leave \"main\" alone."]);
    let _ = driver.wait(LIMIT).expect_code(0);

    assert_snapshot!(snapshot(&refused), @"
    exit 4
    --- stderr
    error: this command speaks for a person, and it was started by a session of Proctor

    hint: run it yourself, outside of the session
    ");
    assert_snapshot!(snapshot(&said), @"
    exit 0
    --- stderr
    said to the agent of step `build`; `proctor log [session 1] --follow` shows what it does
    ");
    let session = sessions_of(&world, &run).remove(0);
    let log = world.proctor(&["log", &session]).expect_code(0).stdout;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("main")).collect();
    assert_eq!(lines[..2], ["person: Leave \"main\" alone.", "agent: Heard: Leave \"main\" alone."], "{log}");
    let events = world.proctor(&["log", &session, "--json"]).json()["sessions"][0]["events"].clone();
    let is_said = |event: &&serde_json::Value| event["kind"] == "said";
    assert_eq!(events.as_array().expect("events").iter().find(is_said).expect("it")["text"], "Leave \"main\" alone.");
    assert_eq!(run_of(&world).steps[0].sessions.len(), 1);
}

#[test]
fn what_nobody_hears_is_refused() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let run = newest_run(&world);
    let to_shells = world.proctor(&["say", &run, "Hello?"]);
    let_go(&world);
    let _ = driver.wait(LIMIT).expect_code(0);

    assert_snapshot!(snapshot(&to_shells), @"
    exit 4
    --- stderr
    error: [session 1] of [run 1] runs shells, which hear nothing
    ");
    assert_snapshot!(snapshot(&world.proctor(&["say", &run, "Hello?"])), @"
    exit 4
    --- stderr
    error: no agent of [run 1] is at work

    hint: proctor procedure status [run 1]
    ");
}

#[test]
fn a_text_that_is_empty_or_too_long_is_none() {
    let world = world_of(CARD, LISTENS);
    let driver = world.start(&["procedure", "run", "work"]);
    let _ = wait_until_printed(&world, "Listening.");
    let run = newest_run(&world);

    assert_snapshot!(snapshot(&world.proctor(&["say", &run, " "])), @"
    exit 2
    --- stderr
    error: there is nothing to say: the text is empty
    ");
    let longer = from_input(&world, &run, &"x".repeat(64 * 1024 + 1)).expect_code(2);
    assert_eq!(longer.json()["error"]["message"], "the text is longer than 64 KiB");
    let said = from_input(&world, &run, &format!("{}!", "\u{1}".repeat(64 * 1024 - 1))).json();
    assert_eq!((&said["step"], &said["bytes"]), (&"build".into(), &65536.into()));
    let _ = driver.wait(LIMIT).expect_code(0);
}

#[test]
fn an_engine_that_hears_nothing_says_so() {
    let world = world()
        .with_card("work", CARD)
        .with_file("../agent.sh", "cat > /dev/null; touch ../waiting; until [ -e ../go ]; do sleep 0.02; done; echo Done.\n");
    let program = world.root().join("agent.sh");
    world.write("../config/proctor/config.toml", format!("[engines.mine]\ncommand = ['bash', '{}']\n", program.display()));
    let config = world.root().join("config");
    let world = world.with_variable("XDG_CONFIG_HOME", config).with_variable("PROCTOR_CONFINE", "none");
    let driver = start_waiting(&world, &["procedure", "run", "work", "--engine", "mine"]);
    let run = newest_run(&world);

    assert_snapshot!(snapshot(&world.proctor(&["say", &run, "Hello?"])), @"
    exit 4
    --- stderr
    error: the engine of [session 1] hears nothing while it works

    hint: `proctor engines` says which do (steering)
    hint: stop it, and go on with another prompt: proctor stop [run 1]
    ");
    let_go(&world);
    let _ = driver.wait(LIMIT).expect_code(0);
}
