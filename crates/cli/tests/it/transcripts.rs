//! `proctor log` of agents: what they said and did, as a text, as lines, and as JSON.

use insta::assert_snapshot;
use proctor_testkit::{World, wait_for};

use crate::agent_scene::{PASSES, wait_until_printed, world_of};
use crate::procedures::{LIMIT, newest_run, plain, sessions_of};
use crate::scene::living_host;

const CARD: &str = "\
description: Builds
steps:
  - id: build
    run:
      agents: [{prompt: Build it}]
      shells: ['echo shell']
    validate:
      severity: abort
      instructions: ['It is good']
";

const BUILDS: &str = r#"
[[scenario]]
contains = "Build it"

[[scenario.turn]]
do = [
  { think = "Perhaps\nso." },
  { say = "I shall\n-- completed\u001b[2J build." },
  { run = "seq 1 9" },
  { run = "echo no >&2; exit 3" },
  { print = '{"type":"rumour"}' },
  { print = "not JSON" },
  { print = '{"type":"retrying","attempt":2,"status":529,"wait_ms":3000}' },
  { stderr = "engine\u001b[2J grumbles" },
]
cost = 0.25

[[scenario.turn]]
do = [{ say = "Done." }]
"#;

fn ran() -> World {
    let world = world_of(CARD, &format!("{BUILDS}{PASSES}"));
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    world
}

#[test]
fn a_transcript_reads_as_a_text_in_which_nothing_passes_for_ours() {
    let world = ran();
    let session = &sessions_of(&world, &newest_run(&world))[0];

    let output = world.proctor(&["log", session, "--stream", "stdout"]).expect_code(0);

    let conversation = output.stdout.lines().next().unwrap().to_owned();
    assert!(conversation.starts_with("conversation scripted-"), "{output}");
    assert_snapshot!(plain(&world, output.stdout.trim_start_matches(&conversation).trim_start()), @r#"
    thinks: Perhaps
      so.
    agent: I shall
      -- completed\u{1b}[2J build.
      → run {"command":"seq 1 9"}
      ← 1
        2
        3
        4
        … 5 more lines
      → run {"command":"echo no >&2; exit 3"}
      ✗ failed: exit code 3
        no
      (a line of a kind that is not known here: rumour)
      (a line that the engine's format has no place for)
      ! the provider answered 529; attempt 2 in [duration]
    agent: Done.
    end: done, 2 turns, 0.25 USD
    -- completed after [duration]: 2 turns, 0.25 USD
    "#);
    assert_eq!(world.proctor(&["log", session, "--stream", "stderr"]).stdout, "engine grumbles\n");
}

#[test]
fn raw_is_every_byte_that_the_engine_printed() {
    let world = ran();
    let session = &sessions_of(&world, &newest_run(&world))[0];

    let output = world.proctor(&["log", session, "--raw", "--stream", "stdout"]).expect_code(0);

    assert_eq!(output.stdout, world.read(world.state().join("sessions").join(session).join("transcript.jsonl")));
}

#[test]
fn a_run_shows_its_sessions_with_headings() {
    let world = ran();
    let run = newest_run(&world);

    let output = world.proctor(&["log", &run]).expect_code(0);

    assert_snapshot!(plain(&world, &output.stderr), @"
    == [session 1] build, agent 1, attempt 1: transcript
    == [session 1] build, agent 1, attempt 1: stderr
    == [session 2] build, run, attempt 1: stdout
    == [session 3] build, judge, attempt 1: transcript
    ");
    assert!(output.stdout.contains("\nshell\n") && output.stdout.contains("result: {\"passed\":true"), "{output}");
}

#[test]
fn json_is_one_object_with_all_events() {
    let world = ran();

    let log = world.proctor(&["log", &newest_run(&world), "--json"]).expect_code(0).json();

    let sessions = log["sessions"].as_array().unwrap();
    let kinds: Vec<&str> = sessions.iter().map(|session| session["kind"].as_str().unwrap()).collect();
    let of_agent: Vec<&str> = sessions[0]["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["agent", "shell", "judge"]);
    assert_eq!(
        of_agent,
        [
            "started",
            "thinking",
            "text",
            "tool-call",
            "tool-result",
            "tool-call",
            "tool-result",
            "unknown",
            "garbage",
            "retrying",
            "turn",
            "text",
            "turn",
            "end",
            "output"
        ]
    );
    assert_eq!(sessions[0]["events"][3]["input"]["command"], "seq 1 9");
    assert_eq!(sessions[1]["events"], serde_json::json!([{"kind": "output", "stream": "stdout", "text": "shell\n"}]));
    let _ = world.proctor(&["log", &newest_run(&world), "--json", "--raw"]).expect_code(2);
}

#[test]
fn a_living_agent_is_followed_to_its_end_and_can_be_stopped() {
    let card = "description: Works\nsteps:\n  - id: work\n    run:\n      agents: [{prompt: Work}]\n";
    let script = "[[default.turn]]\ndo = [{ say = 'Waiting.' }, { wait = { file = '../go' } }, { say = 'Done.' }]\n";
    let world = world_of(card, script);
    let driver = world.start(&["procedure", "run", "work"]);
    let _ = wait_until_printed(&world, "Waiting.");
    let run = newest_run(&world);
    let host = living_host(&world);

    let follower = world.start(&["log", &run, "--follow"]);
    wait_for("its words are there", LIMIT, || follower.stdout_so_far().contains("agent: Waiting.\n"));
    let stopped = world.proctor(&["stop", &run]).expect_code(0);

    assert!(stopped.stderr.contains("was stopped; `proctor procedure resume"), "{stopped}");
    let _ = driver.wait(LIMIT).expect_code(130);
    let followed = follower.wait(LIMIT).expect_code(0);
    assert!(followed.stdout.contains("-- interrupted after"), "{followed}");
    assert!(!host.is_alive());
    wait_for("nothing of it is alive", LIMIT, || world.leftovers().is_empty());

    world.write("../go", "");
    let _ = world.proctor(&["procedure", "resume", &run]).expect_code(0);
    assert!(world.proctor(&["log", &run]).stdout.contains("agent: Done.\n"));
}
