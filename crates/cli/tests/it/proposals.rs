//! What runs teach memory.

use std::fs;

use proctor_testkit::{Output, World};
use serde_json::Value;

use crate::agent_scene::{PASSES, file_of, last, run_of, step_of, world_of, write_script};
use crate::procedures::newest_run;

/// A step whose check the agent's first work does not pass.
fn card(severity: &str) -> String {
    format!(
        "steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Upgrade the parser of the grammar to version 4\n    validate:\n      \
         severity: {severity}\n      shells: ['echo \"token=hush-hush-1 two fixtures of the grammar differ\" >&2; test -f repaired']\n"
    )
}

const WORKS_BADLY: &str = "[[default.turn]]\ndo = [{ write = { path = 'parser', content = '4' } }, { say = 'Done.' }]\n";

/// A repair that mends it, and says what it learnt.
fn repairs(told: &str) -> String {
    format!(
        "[[scenario]]\ncontains = 'Repair it'\nturn = [{{ do = [{{ write = {{ path = 'repaired', content = 'x' }} }}, {told}] }}]\n{WORKS_BADLY}"
    )
}

const LEARNED: &str = "{ call = { tool = 'learned', input = { route = 'regenerate the fixtures with the new grammar', \
                       trap = 'the old fixtures pass on an empty grammar' } } }";

fn run(world: &World, code: i32) -> Output {
    world.proctor(&["procedure", "run", "work"]).expect_code(code)
}

/// Undoes what the runs before left, so that the next one starts as they did.
fn cleared(world: &World) {
    let _ = world.git(&["reset", "--hard", "--quiet", "HEAD"]);
    let _ = world.git(&["clean", "-fdq"]);
}

/// Every record of the user's memory, rejected ones among them.
fn records(world: &World) -> Vec<Value> {
    world.proctor(&["memory", "list", "--user", "--all", "--json"]).expect_code(0).json()["records"].as_array().unwrap().clone()
}

fn only(world: &World) -> Value {
    let mut records = records(world);
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

#[test]
fn a_repair_that_passed_and_stated_a_trap_is_proposed_as_what_works() {
    let world = world_of(&card("review"), &repairs(LEARNED));

    let output = run(&world, 0);

    let record = only(&world);
    let id = record["id"].as_str().unwrap();
    assert!(output.stderr.contains(&format!("memory: 1 record proposed ({id}); `proctor memory list --proposed`\n")), "{output}");
    assert_eq!((&record["polarity"], &record["approval"], &record["evidence"]), (&"works".into(), &"proposed".into(), &"once".into()));
    assert_eq!(record["route"], "regenerate the fixtures with the new grammar");
    assert_eq!(record["trap"], "the old fixtures pass on an empty grammar");
    let session = last(&step_of(&world), proctor_domain::session::Work::Repair).id.to_string();
    assert_eq!((&record["session"], &record["run"]), (&session.into(), &newest_run(&world).into()));
    assert!(record["agent"].as_str().unwrap().starts_with("scripted"), "{record}");
    assert_eq!(record["files"], serde_json::json!(["parser", "repaired"]));
    assert_eq!(record["commit"], run_of(&world).head.unwrap().0);
    assert!(record["project"].is_string() && record["created"].is_string(), "{record}");
    assert_eq!(world.git(&["status", "--porcelain"]), "", "no working tree changes by a proposal");
    assert!(!world.has("proctor/memory"));
    let shown = world.proctor(&["show", &newest_run(&world)]).expect_code(0).stdout;
    assert!(shown.contains(&format!("memory       {id} proposed, by step build\n")), "{shown}");
    assert!(shown.contains("repair says that it learnt:\n    | regenerate the fixtures"), "{shown}");
    let details = world.proctor(&["show", &newest_run(&world), "--json"]).expect_code(0).json();
    assert_eq!(details["memory"]["proposals"], serde_json::json!([{ "step": "build", "record": id, "reception": "proposed" }]));
}

#[test]
fn a_repair_that_states_no_trap_or_does_not_pass_proposes_nothing_that_works() {
    let silent = world_of(&card("review"), &repairs("{ say = 'I regenerated the fixtures.' }"));
    let failing = world_of(&card("review"), &repairs(LEARNED).replace("path = 'repaired'", "path = 'elsewhere'"));

    let quiet = run(&silent, 0);
    let _ = run(&failing, 1);

    assert_eq!((records(&silent), quiet.stderr.contains("memory:")), (Vec::new(), false));
    assert_eq!(only(&failing)["polarity"], "fails");
}

#[test]
fn a_check_that_failed_at_the_end_is_proposed_as_a_dead_end_with_what_it_printed() {
    let world = world_of(&card("abort"), WORKS_BADLY).with_variable("PROCTOR_SECRETS", "TOKEN").with_variable("TOKEN", "hush-hush-1");

    let _ = run(&world, 1);

    let record = only(&world);
    assert_eq!((&record["polarity"], &record["approval"]), (&"fails".into(), &"proposed".into()));
    assert_eq!(record["route"], "Upgrade the parser of the grammar to version 4");
    let observation = record["observation"].as_str().unwrap();
    assert!(observation.contains("two fixtures of the grammar differ") && !observation.contains("hush"), "{observation}");
    assert_eq!(record["files"], serde_json::json!(["parser"]));
}

#[test]
fn a_judges_no_is_proposed_as_a_dead_end_with_its_reasoning() {
    let card = "steps:\n  - id: build\n    run: {agents: [{prompt: Upgrade the parser}]}\n    validate: {severity: abort, instructions: ['It is whole']}\n";
    let judge = "[[scenario]]\ncontains = 'Judge the work'\nturn = [{ do = [{ result = { passed = false, reasoning = 'The lexer is missing.' } }] }]\n";
    let world = world_of(card, &format!("{judge}{WORKS_BADLY}"));

    let _ = run(&world, 1);

    let record = only(&world);
    assert_eq!((&record["polarity"], &record["observation"]), (&"fails".into(), &"The lexer is missing.".into()));
}

#[test]
fn what_went_well_warned_or_ran_no_agent_teaches_nothing() {
    let shells = "steps:\n  - id: build\n    validate: {severity: abort, shells: ['false']}\n";
    for (card, code) in [(card("warn"), 0), (shells.to_owned(), 1), (card("abort").replace("repaired", "parser"), 0)] {
        let world = world_of(&card, &format!("{WORKS_BADLY}{PASSES}"));

        let _ = run(&world, code);

        assert_eq!(records(&world), Vec::<Value>::new(), "{card}");
    }
}

#[test]
fn nothing_is_proposed_where_it_is_off() {
    for (top, settings) in [("memory: off\n", ""), ("", "[memory]\nproposals = false\n")] {
        let world = world_of(&format!("{top}{}", card("abort")), WORKS_BADLY);
        world.write(world.user_settings(), settings);

        let _ = run(&world, 1);

        assert_eq!(records(&world), Vec::<Value>::new(), "{top}{settings}");
    }
}

#[test]
fn a_proposal_counts_once_another_run_met_the_same_and_a_person_can_take_it_back() {
    let world = world_of(&card("abort"), WORKS_BADLY);
    let _ = run(&world, 1);
    let first = newest_run(&world);
    let id = only(&world)["id"].as_str().unwrap().to_owned();
    cleared(&world);

    let second = run(&world, 1);

    assert!(second.stderr.contains(&format!("memory: 1 record corroborated ({id});")), "{second}");
    let record = only(&world);
    assert_eq!((&record["approval"], &record["corroborated"], &record["run"]), (&"active".into(), &true.into(), &first.into()));
    assert_eq!(record["met"][0]["run"], newest_run(&world));
    assert!(last(&step_of(&world), proctor_domain::session::Work::Agent(1)).known.is_empty(), "it was not shown before it counted");
    let shown = world.proctor(&["memory", "show", &id]).expect_code(0).stdout;
    assert!(shown.contains("counts       by corroboration: nobody approved it\n") && shown.contains("met by       ses_"), "{shown}");
    assert!(world.proctor(&["memory", "list"]).expect_code(0).stdout.contains("[corroborated] Upgrade the parser"));
    cleared(&world);

    let third = run(&world, 1);

    let step = step_of(&world);
    let agent = last(&step, proctor_domain::session::Work::Agent(1));
    assert_eq!(agent.known.iter().map(ToString::to_string).collect::<Vec<_>>(), std::slice::from_ref(&id));
    assert!(file_of(&world, agent, "system.md").contains("approved by nobody; another session met the same"));
    assert_eq!(only(&world)["met"].as_array().unwrap().len(), 1, "who was shown it says nothing more about it");
    assert!(!third.stderr.contains("memory: "), "{third}");
    let _ = world.proctor(&["memory", "reject", &id]).expect_code(0);
    cleared(&world);
    let _ = run(&world, 1);
    assert_eq!(only(&world)["approval"], "rejected", "what a person rejected stays so");
}

#[test]
fn a_run_that_fails_again_on_being_resumed_does_not_corroborate_itself() {
    let world = world_of(&card("abort"), WORKS_BADLY);
    let _ = run(&world, 1);

    let _ = world.proctor(&["procedure", "resume"]).expect_code(1);

    assert_eq!((&only(&world)["approval"], &only(&world)["met"]), (&"proposed".into(), &serde_json::json!([])));
}

#[test]
fn a_record_that_its_agent_was_shown_is_not_corroborated_by_it() {
    let world = world_of(&card("abort"), WORKS_BADLY);
    let _ = run(&world, 1);
    let id = only(&world)["id"].as_str().unwrap().to_owned();
    let _ = world.proctor(&["memory", "approve", &id]).expect_code(0);
    cleared(&world);
    // While the run is at work the record becomes a proposal again, by the hand of somebody who edits the files.
    let memory = world.home().join(".local/share/proctor/memory");
    let moved = format!(
        "sed -i 's/<!-- proctor id={id}/<!-- proctor id={id} is=fails approval=proposed/' {0}/fails.md && \
         grep '^- ' {0}/fails.md > {0}/line && sed -i '/^- /d' {0}/fails.md && sed -i \"/^<!-- end/e cat {0}/line\" {0}/pending.md && rm {0}/line",
        memory.display()
    );
    write_script(
        &world,
        &format!("[[default.turn]]\ndo = [{{ write = {{ path = 'parser', content = '4' }} }}, {{ run = '''{moved}''' }}]\n"),
    );
    let world = world.with_variable("PROCTOR_CONFINE", "none");

    let _ = run(&world, 1);

    let agent = step_of(&world);
    assert_eq!(last(&agent, proctor_domain::session::Work::Agent(1)).known.len(), 1, "it was shown the record");
    let record = only(&world);
    assert_eq!((&record["id"], &record["approval"], &record["met"]), (&id.into(), &"proposed".into(), &serde_json::json!([])), "{record}");
}

#[test]
fn memory_that_can_not_be_written_is_said_and_recorded_and_changes_no_end() {
    let world = world_of(&card("abort"), WORKS_BADLY);
    world.write(world.home().join(".local/share/proctor/memory/pending.md"), "<<<<<<< ours\n");

    let output = run(&world, 1);

    assert!(output.stderr.contains("warning: memory could not be told what this run taught: "), "{output}");
    let details = world.proctor(&["show", &newest_run(&world), "--json"]).expect_code(0).json();
    assert!(details["memory"]["obstacle"].as_str().unwrap().contains("pending.md"), "{details}");
    assert_eq!(world.read(world.home().join(".local/share/proctor/memory/pending.md")), "<<<<<<< ours\n");
    assert!(fs::read_dir(world.home().join(".local/share/proctor/memory")).is_ok());
}

/// Every point that the driver reaches, when nothing disturbs it.
fn points(script: &str) -> usize {
    let world = world_of(&card("review"), script).with_variable("PROCTOR_CONFINE", "none");
    let log = world.root().join("points");
    let world = world.with_variable("PROCTOR_KILLPOINT_LOG", &log);
    let _ = world.proctor(&["procedure", "run", "work"]);
    world.read(log).lines().count()
}

#[test]
fn killed_anywhere_near_its_end_a_run_proposes_once() {
    let script = repairs(LEARNED);
    let all = points(&script);

    for number in all.saturating_sub(8)..=all {
        let world = world_of(&card("review"), &script).with_variable("PROCTOR_CONFINE", "none");
        let mut world = world.with_variable("PROCTOR_KILLPOINT", format!("driver:{number}"));
        let _ = world.proctor(&["procedure", "run", "work"]);
        world.remove_variable("PROCTOR_KILLPOINT");
        let _ = world.proctor(&["procedure", "resume"]);

        let proposals = &run_of(&world).proposals;
        assert_eq!(proposals.len(), 1, "killed at {number} of {all}");
        assert_eq!((&only(&world)["id"], &only(&world)["approval"]), (&proposals[0].record.to_string().into(), &"proposed".into()));
        assert!(run_of(&world).ended_at.is_some(), "killed at {number}");
    }
}

#[test]
fn killed_anywhere_near_its_end_a_run_corroborates_once() {
    let all = points(WORKS_BADLY);

    for number in all.saturating_sub(7)..=all {
        let mut world = world_of(&card("abort"), WORKS_BADLY).with_variable("PROCTOR_CONFINE", "none");
        let _ = run(&world, 1);
        cleared(&world);
        world.set_variable("PROCTOR_KILLPOINT", format!("driver:{number}"));
        let _ = world.proctor(&["procedure", "run", "work"]);
        world.remove_variable("PROCTOR_KILLPOINT");
        if run_of(&world).ended_at.is_none() {
            let _ = world.proctor(&["procedure", "resume"]).expect_code(1);
        }

        let record = only(&world);
        assert_eq!((&record["approval"], record["met"].as_array().unwrap().len()), (&"active".into(), 1), "killed at {number} of {all}");
        assert_eq!(run_of(&world).proposals[0].reception.name(), "corroborated", "killed at {number} of {all}");
    }
}
