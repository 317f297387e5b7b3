//! `proctor show` of runs with agents: what they claim beside what was seen.

use insta::assert_snapshot;
use proctor_testkit::World;

use crate::agent_scene::{BUILT_AND_JUDGED as CARD, PASSES, in_box, world_of};
use crate::procedures::{newest_run, plain, sessions_of};
use crate::scene::record;

const BUILDS: &str = r#"
[[scenario]]
contains = "Build it"
turn = [{ do = [{ write = { path = "built", content = "x" } }, { say = "I built it,\nand all\u001b[2J tests pass." }], cost = 0.25, usage = { input = 12, output = 3 } }]
"#;

fn ran() -> World {
    let world = in_box(world_of(CARD, &format!("{BUILDS}{PASSES}")), "none");
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    world
}

#[test]
fn claims_stand_beside_what_was_seen_and_are_marked_as_claims() {
    let world = ran();

    let shown = world.proctor(&["show", &newest_run(&world)]).expect_code(0).stdout;

    let (run, step) = shown.split_once("\n\n").unwrap();
    assert!(
        run.contains("  box          none: its agents worked outside of any box, with your permissions\n")
            && run.contains("  cost         0.26 USD, 2 sessions\n"),
        "{run}"
    );
    assert_snapshot!(plain(&world, step), @"
    ✓ build completed
        began        [time]
        took         [duration]
        attempts     1
        validate     pass
        commits      [commit 1]
        [session 1] agent 1, attempt 1: completed in [duration], 1 turn, 0.25 USD, engine scripted
        [session 2] judge, attempt 1: completed in [duration], 1 turn, 0.01 USD, engine scripted, model balanced
          verdict      pass: It is there.
        claim of agent 1, which nobody checked:
        | I built it,
        | and all\\u{1b}[2J tests pass.
        seen by Proctor: 1 changed path (built), 1 commit, checks: pass
    ");
}

#[test]
fn json_keeps_claims_and_facts_apart() {
    let world = ran();

    let shown = record(&world);

    let (step, session) = (&shown["steps"][0], &shown["steps"][0]["sessions"][0]);
    assert_eq!(
        step["claims"],
        serde_json::json!([{"session": session["id"], "by": "agent 1", "kind": "last-words", "text": "I built it,\nand all\u{1b}[2J tests pass."}])
    );
    assert_eq!((&step["facts"]["changed"], &step["facts"]["checks"]), (&serde_json::json!(["built"]), &"pass".into()));
    assert_eq!((&step["facts"]["judge"]["verdict"], &step["facts"]["judge"]["reasoning"]), (&"pass".into(), &"It is there.".into()));
    assert_eq!((&session["kind"], &session["work"], &session["facts"]["cost_usd"]), (&"agent".into(), &"agent 1".into(), &0.25.into()));
    assert_eq!(
        session["facts"]["tokens"],
        serde_json::json!({"input": 12, "output": 3, "cache_read": 0, "cache_write": 0, "complete": true})
    );
    assert_eq!(shown["steps"][0]["sessions"][1]["claims"]["result"]["passed"], true);
    assert_eq!((&shown["confined"], &shown["cost"]["cost_usd"]), (&"none".into(), &0.26.into()));
}

#[test]
fn a_session_of_an_agent_is_shown_with_its_words_marked() {
    let world = ran();
    let session = &sessions_of(&world, &newest_run(&world))[0];

    let output = world.proctor(&["show", session]).expect_code(0);

    for line in [
        "  engine       scripted",
        "  turns        1",
        "  cost         0.25 USD",
        "  claim, which nobody checked:",
        "  | and all\\u{1b}[2J tests pass.",
    ] {
        assert!(output.stdout.lines().any(|shown| shown == line), "{line}: {output}");
    }
    assert!(output.stderr.contains(&format!("`proctor log {session}` has the transcript")), "{output}");
}

#[test]
fn what_an_agent_planted_is_a_fact() {
    let plants = "[[default.turn]]\ndo = [{ run = 'git config core.pager evil' }, { say = 'I changed nothing.' }]\n";
    let world = in_box(world_of("description: Works\nsteps:\n  - id: work\n    run:\n      agents: [{prompt: Work}]\n", plants), "none");
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(1);

    let planted = record(&world)["steps"][0]["facts"]["planted"].clone();

    assert!(planted[0].as_str().is_some_and(|text| text.contains("core.pager")), "{planted}");
    assert!(world.proctor(&["show", &newest_run(&world)]).stdout.contains("      planted      "));
}
