//! Steps that ask a person: what a parked run says, and what becomes of an answer.

use proctor_testkit::World;

use crate::agent_scene::world_of;
use crate::procedures::{FAILS, newest_run};
use crate::scene::{record, shell_item, status};
use crate::world;

/// Builds, asks, and publishes.
const ASKS: &str = "\
description: Asks before it publishes
steps:
  - id: build
    run:
      shells: ['echo built > built']
  - id: publish
    approve: Publish it now?
    run:
      shells: ['echo published > published']
";

fn parked() -> World {
    let world = world().with_card("release", ASKS);
    let output = world.proctor(&["procedure", "run", "release", "--quiet"]).expect_code(5);
    let run = newest_run(&world);
    assert!(output.stderr.contains("release is parked: step `publish` asks: Publish it now?"), "{output}");
    assert!(output.stderr.contains(&format!("`proctor answer {run} approve --resume`")), "{output}");
    assert!(!output.stderr.contains("error"), "{output}");
    world
}

#[test]
fn a_run_that_asks_nothing_can_not_be_answered() {
    let world = world().with_card("fails", FAILS);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);

    let output = world.proctor(&["answer", &newest_run(&world), "approve"]).expect_code(4);

    assert!(output.stderr.contains("it asks nothing"), "{output}");
    let parked = parked();
    let undecided = parked.proctor(&["answer", &newest_run(&parked), "-m", "well"]).expect_code(4);
    assert!(undecided.stderr.contains("neither yes nor no"), "{undecided}");
    let _ = world.proctor(&["answer", "run_zzz", "approve"]).expect_code(2);
    let _ = world.proctor(&["answer", &newest_run(&world), "perhaps"]).expect_code(2);
}

#[test]
fn a_parked_run_is_listed_with_what_it_waits_for() {
    let world = parked();
    let run = newest_run(&world);
    let _ = world.proctor(&["procedure", "run", "release", "--step", "build"]).expect_code(0);

    let listed = world.proctor(&["runs", "--parked", "--limit", "5"]).expect_code(0).stdout;
    let object = world.proctor(&["runs", "--parked", "--json"]).expect_code(0).json();
    let shown = world.proctor(&["procedure", "status", &run]).expect_code(0);
    let standing = world.proctor(&["procedure", "status", &run, "--json"]).json();

    assert_eq!((listed.lines().count(), listed.contains("parked"), listed.trim_end().ends_with(", asks")), (1, true, true), "{listed}");
    assert_eq!(object["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!((&object["runs"][0]["outcome"], &object["runs"][0]["waits_for"]), (&"parked".into(), &"answer".into()));
    assert!(shown.stdout.contains("‖ release: parked"), "{shown}");
    assert!(shown.stdout.contains("waits      step `publish` asks: Publish it now?"), "{shown}");
    assert_eq!((&standing["outcome"], &standing["exit_code"]), (&"parked".into(), &5.into()));
    assert_eq!(
        standing["standing"],
        serde_json::json!({
            "state": "parked",
            "waits_for": "answer",
            "reason": "step `publish` asks: Publish it now?",
            "until": null,
            "go_on": [format!("proctor answer {run} approve --resume"), format!("proctor answer {run} reject --resume")],
        })
    );
}

#[test]
fn an_approval_is_recorded_and_the_run_goes_on_when_it_is_resumed() {
    let world = parked();
    let run = newest_run(&world);

    let answered = world.proctor(&["answer", &run, "approve", "-m", "after\u{1b}[2J lunch"]).expect_code(0);

    assert_eq!(answered.stderr, format!("step `publish` of {run} is approved; `proctor procedure resume {run}` goes on with it\n"));
    assert!(!world.has("published"));
    assert!(world.proctor(&["runs"]).stdout.trim_end().ends_with(", answered"));
    let standing = status(&world)["standing"].clone();
    assert_eq!((&standing["waits_for"], &standing["go_on"][0]), (&"resume".into(), &format!("proctor procedure resume {run}").into()));
    let _ = world.proctor(&["answer", &run, "reject"]).expect_code(4);

    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert!(world.has("published"));
    let approval = record(&world)["steps"][1]["approval"].clone();
    assert_eq!((&approval["answer"], &approval["message"]), (&"approve".into(), &"after\u{1b}[2J lunch".into()));
    let shown = world.proctor(&["show", &run]).stdout;
    assert!(shown.contains("answer       approved ") && shown.contains(": after\\u{1b}[2J lunch"), "{shown}");
}

#[test]
fn an_answer_can_go_on_at_once() {
    let world = parked();
    let run = newest_run(&world);

    let output = world.proctor(&["answer", &run, "approve", "--resume", "--json"]).expect_code(0);

    assert_eq!((&output.json()["run"], &output.json()["outcome"]), (&run.into(), &"completed".into()));
    assert!(world.has("published"));
}

#[test]
fn a_rejection_fails_the_step_in_the_words_of_the_person() {
    let world = parked();
    let run = newest_run(&world);

    let answered = world.proctor(&["answer", &run, "reject", "-m", "not before Monday", "--json"]).expect_code(0).json();
    let output = world.proctor(&["procedure", "resume", &run]).expect_code(1);

    assert_eq!(
        answered,
        serde_json::json!({
            "version": 1, "run": run, "step": "publish", "answer": "reject", "message": "not before Monday",
            "go_on": [format!("proctor procedure resume {run}")],
        })
    );
    assert!(output.stderr.contains("it was rejected: not before Monday"), "{output}");
    assert!(!world.has("published"));
}

#[test]
fn a_run_at_a_limit_says_until_when() {
    let card = "description: Works\nsteps:\n  - id: work\n    run:\n      agents: [{prompt: Work}]\n";
    let world = world_of(card, "[[default.turn]]\ndo = [{ usage-limit = { resets-at = 4102444800 } }]\n");

    let output = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(5);

    let until = "2100-01-01 00:00:00";
    let run = newest_run(&world);
    assert_eq!(output.json()["standing"]["waits_for"], "reset");
    assert_eq!(output.json()["standing"]["until"], "2100-01-01T00:00:00.000Z");
    assert!(output.stderr.contains(until) && output.stderr.contains(&format!("`proctor procedure resume {run}`")), "{output}");
    assert!(world.proctor(&["runs"]).stdout.trim_end().ends_with(&format!(", at a limit until {until}")));
    assert!(world.proctor(&["stop", &run]).expect_code(75).stderr.contains("is parked"));
}

/// Every command that speaks for a person, from a shell that hides that it is in a session: without the marker, and from
/// an orphan that has left the session's processes too.
#[test]
fn a_session_can_not_speak_for_a_person_by_hiding_where_it_is() {
    let commands = [
        "answer \"$run\" approve",
        "stop \"$run\"",
        "procedure resume \"$run\"",
        "procedure rejudge \"$run\"",
        "procedure merge \"$run\"",
        "procedure pin \"$run\"",
        "procedure unpin \"$run\"",
        "trust",
    ];
    let program = env!("CARGO_BIN_EXE_proctor");
    let tries: String = commands
        .iter()
        .map(|command| {
            let call = format!("env -u PROCTOR_SESSION \"{program}\" {command}");
            format!("code=0; {call} >> ../said 2>&1 || code=$?; echo \"child $code\" >> ../codes\n(setsid bash -c '{call} >> ../said 2>&1; echo \"orphan $?\" > ../pipe' &)\ncat ../pipe >> ../codes\n")
        })
        .collect();
    // With this there is something to trust.
    let settings = "echo 'pass-env = [\"DEPLOY_TOKEN\"]' > proctor.toml";
    let shell = format!("mkfifo ../pipe\nexport run=\"$PROCTOR_RUN\"\n{settings}\n{tries}rm proctor.toml\n");
    let world = world().with_card("work", &format!("steps:\n  - id: work\n    run:\n      shells:\n{}", shell_item(&shell, 8)));

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    let expected = "child 4\norphan 4\n".repeat(commands.len());
    assert_eq!(world.read("../codes"), expected, "{}", world.read("../said"));
    assert_eq!(world.read("../said").matches("this command speaks for a person").count(), 2 * commands.len());
}
