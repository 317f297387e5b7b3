//! What agents cost: what is known, and what nobody knows.

use insta::assert_snapshot;
use proctor_testkit::{World, wait_for};
use serde_json::Value;

use crate::agent_scene::{wait_until_printed, world_of};
use crate::procedures::LIMIT;
use crate::scene::{kill, living_host};
use crate::world;

const CARD: &str = "\
description: Builds
steps:
  - id: build
    run:
      agents: [{prompt: Build it}]
    validate:
      severity: review
      instructions: ['It is good']
";

/// The agent's cost is unknown, the judge finds fault once, and the repair's cost is known.
const SCRIPT: &str = "\
[[scenario]]
contains = 'Judge the work'
unless-file = 'built'
turn = [{ do = [{ result = { passed = false, reasoning = 'Nothing is there.' } }], cost = 0.01, usage = { input = 100, output = 5 } }]

[[scenario]]
contains = 'Judge the work'
turn = [{ do = [{ result = { passed = true, reasoning = 'It is there.' } }], cost = 0.02, usage = { input = 100, output = 5 } }]

[[scenario]]
on = 'resume'
turn = [{ do = [{ write = { path = 'built', content = 'x' } }], cost = 0.04, usage = { input = 12000, output = 80, cache-read = 7 } }]

[[scenario]]
contains = 'Build it'
turn = [{ do = [{ say = 'Built.' }], cost = 'unknown', usage = { input = 1, output = 1 } }]
";

fn ran() -> World {
    let world = world_of(CARD, SCRIPT);
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    world
}

fn cost(world: &World, more: &[&str]) -> Value {
    world.proctor(&[&["cost", "--json"], more].concat()).expect_code(0).json()
}

#[test]
fn a_time_that_is_none_is_refused() {
    for since in ["yesterday", "7", "2026-13-01", "2026-03-02T06:00:00", ""] {
        let _ = world().proctor(&["cost", "--since", since]).expect_code(2);
    }
}

#[test]
fn where_no_agent_worked_nothing_was_spent_and_that_is_known() {
    let world = world();

    assert!(world.proctor(&["cost"]).expect_code(0).stderr.contains("no agent has worked here"));
    assert_eq!(cost(&world, &[])["total"]["cost_usd"], 0.0);
    assert_eq!(cost(&world, &[])["total"]["cost_complete"], true);
}

#[test]
fn costs_are_shown_by_work_and_the_unknown_is_not_summed_in_silence() {
    let world = ran();

    assert_snapshot!(world.proctor(&["cost"]).expect_code(0).stdout, @"
    procedure   sessions  turns     in  out  cache read  cache write  cost
    work               4      4  12.2k   91           7            0  at least 0.07 USD (1 session of unknown cost)

    by agents          1      1      1    1           0            0  unknown
    by judges          2      2    200   10           0            0  0.03 USD
    by repairs         1      1  12.0k   80           7            0  0.04 USD

    total              4      4  12.2k   91           7            0  at least 0.07 USD (1 session of unknown cost)
    ");
    let total = cost(&world, &[])["total"].clone();
    assert_eq!(
        total,
        serde_json::json!({
            "sessions": 4, "turns": 4,
            "tokens": {"input": 12201, "output": 91, "cache_read": 7, "cache_write": 0, "complete": true},
            "cost_usd": 0.07, "cost_complete": false, "unknown_cost_sessions": 1,
        })
    );
    assert_eq!(cost(&world, &[])["by_work"]["agent"]["cost_usd"], Value::Null);
}

#[test]
fn costs_are_added_up_by_what_is_asked_for() {
    let world = ran();
    let subjects = |by: &str| -> Vec<Value> {
        let groups = cost(&world, &["--by", by])["groups"].clone();
        groups.as_array().unwrap().iter().map(|group| group["of"].clone()).collect()
    };

    assert_eq!(subjects("procedure"), [serde_json::json!({"procedure": "work"})]);
    assert_eq!(subjects("step"), [serde_json::json!({"procedure": "work", "step": "build"})]);
    assert_eq!(subjects("model"), [serde_json::json!({"model": "balanced"}), serde_json::json!({"model": "scripted"})]);
    let days = subjects("day");
    assert_eq!((days.len(), days[0]["day"].as_str().map(str::len)), (1, Some("2026-03-02".len())));
    let models = cost(&world, &["--by", "model"]);
    assert_eq!((&models["groups"][0]["sum"]["cost_usd"], &models["groups"][1]["sum"]["cost_usd"]), (&0.03.into(), &0.04.into()));
}

#[test]
fn only_what_ended_since_counts() {
    let world = ran();

    for (since, sessions) in [("1h", 4), ("2020-01-01", 4), ("2020-01-01T00:00:00Z", 4), ("2100-01-01", 0), ("0s", 0)] {
        assert_eq!(cost(&world, &["--since", since])["total"]["sessions"], sessions, "{since}");
    }
}

#[test]
fn a_session_that_died_with_its_host_counts_by_its_transcript() {
    let card = "description: Works\nsteps:\n  - id: work\n    run:\n      agents: [{prompt: Work}]\n";
    let script = "\
[[scenario]]
on = 'resume'
turn = [{ do = [{ say = 'Done.' }], cost = 0.5 }]

[[default.turn]]
do = [{ say = 'Begun.' }]
cost = 0.25

[[default.turn]]
do = [{ say = 'Waiting.' }, { wait = { file = '../go' } }]
";
    let world = world_of(card, script);
    let driver = world.start(&["procedure", "run", "work"]);
    let _ = wait_until_printed(&world, "Waiting.");
    wait_for("the first turn is told", LIMIT, || cost(&world, &[])["total"]["turns"] == 1);

    kill(&living_host(&world));
    let _ = driver.wait(LIMIT).expect_code(0);

    let total = cost(&world, &[])["total"].clone();
    assert_eq!((&total["sessions"], &total["turns"], &total["unknown_cost_sessions"]), (&2.into(), &2.into(), &1.into()), "{total}");
    assert_eq!((&total["cost_usd"], &total["tokens"]["complete"]), (&0.5.into(), &false.into()));
}
