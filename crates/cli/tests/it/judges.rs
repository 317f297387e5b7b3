//! Judges that another engine drives than the one that did the work.

use proctor_domain::procedure::CheckResult;
use proctor_domain::session::Work;
use proctor_testkit::{World, loopback};
use serde_json::json;

use crate::agent_scene::{ends, report, run_of, step_of, world_of};

/// The step is approved by a person before its agent begins, so that a run can be gone on with.
const CARD: &str = "\
steps:
  - id: build
    approve: Build it?
    run:
      agents: [{prompt: Build it}]
    validate:
      severity: abort
      instructions: ['It is good']
";

/// Only an agent of this engine writes the file, and it can't judge.
const BUILDS: &str = "[[scenario]]\ncontains = 'Build it'\nturn = [{ do = [{ write = { path = 'built', content = 'first' } }] }]\n";

/// Prints a verdict and can do nothing else.
const JUDGE: &str = "#!/bin/bash\ncat > /dev/null\necho '{\"passed\": true, \"reasoning\": \"Somebody else looked.\"}'\n";

/// A world whose scripted agents are judged by a program of the user's.
fn world_with_judge(setting: &str) -> World {
    let world = world_of(CARD, BUILDS).with_file("../judge.sh", JUDGE).with_variable("PROCTOR_CONFINE", "none");
    let program = world.root().join("judge.sh");
    world.write(world.user_settings(), format!("{setting}\n[engines.mine]\ncommand = ['bash', '{}']\n", program.display()));
    world.commit_all("Begin");
    world
}

/// Who drove the sessions of the first step.
fn engines(world: &World) -> Vec<(Work, String)> {
    let step = step_of(world);
    let engine = |work| report(&step, work).agent.as_ref().unwrap().engine.to_string();
    ends(&step).into_iter().map(|(work, _)| (work, engine(work))).collect()
}

fn both() -> Vec<(Work, String)> {
    vec![(Work::Agent(1), "scripted".to_owned()), (Work::Judge(1), "mine".to_owned())]
}

#[test]
fn a_judge_that_can_not_be_started_refuses_the_run_before_anything_is_done() {
    let world = world_with_judge("");

    let refused = world.proctor(&["procedure", "run", "work", "--judge", "claude"]).expect_code(4);
    let unknown = world.proctor(&["procedure", "run", "work", "--judge", "nobody"]).expect_code(2);

    assert!(refused.stderr.contains("claude"), "{refused}");
    assert!(unknown.stderr.contains("`nobody`"), "{unknown}");
    assert!(!world.has("built"));
}

#[test]
fn a_run_that_goes_on_is_judged_by_the_engine_that_it_was_started_with() {
    let world = world_with_judge("");
    let _ = world.proctor(&["procedure", "run", "work", "--judge", "mine"]).expect_code(5);
    let id = crate::procedures::newest_run(&world);

    let _ = world.proctor(&["answer", &id, "approve", "--resume"]).expect_code(0);

    assert_eq!(engines(&world), both());
    let step = step_of(&world);
    assert_eq!((step.validate, step.reasoning.as_deref()), (Some(CheckResult::Pass), Some("Somebody else looked.")));
    let recorded = run_of(&world).started.engine.unwrap();
    assert_eq!((recorded.name.as_str(), recorded.judge.unwrap().as_str()), ("scripted", "mine"));
}

#[test]
fn the_settings_judge_holds_unless_somebody_names_another_engine_for_all() {
    let mut world = world_with_judge("engine = 'scripted'\njudge = 'mine'");
    world.set_variable("PROCTOR_ENGINE", "");

    let judge = |world: &World| world.proctor(&["engines", "--json"]).expect_code(0).json()["judge"].clone();
    let by_settings = judge(&world);
    world.set_variable("PROCTOR_ENGINE", "scripted");
    let by_engine = judge(&world);
    world.set_variable("PROCTOR_JUDGE", "mine");
    let by_variable = judge(&world);

    assert_eq!(by_settings["name"], "mine");
    assert_eq!(by_engine, json!({"name": "scripted", "source": "PROCTOR_ENGINE"}));
    assert_eq!(by_variable, json!({"name": "mine", "source": "PROCTOR_JUDGE"}));
}

#[test]
fn what_claude_code_did_is_judged_by_codex() {
    let (Some(claude), Some(codex)) = (proctor_testkit::claude(), proctor_testkit::codex()) else { return };
    let mut world = crate::world().with_card("work", &CARD.replace("    approve: Build it?\n", ""));
    world.write(
        world.user_settings(),
        format!(
            "engine = 'claude'\njudge = 'codex'\n[engines.claude]\nprogram = '{}'\n[engines.codex]\nprogram = '{}'\n",
            claude.display(),
            codex.display()
        ),
    );
    let model = loopback(
        "[[scenario]]\nmatch = 'Judge the work of step `build`'\nturn = [{ structured = { passed = true, reasoning = 'Codex looked.' } }]\n\
         [[scenario]]\nmatch = 'Build it'\nturn = [{ text = 'So.', tools = [{ shell = 'echo first > built' }] }, { text = 'Built.' }]\n",
    );
    world.set_variable("ANTHROPIC_BASE_URL", model.url());
    world.set_variable("ANTHROPIC_API_KEY", "dummy");
    world.set_variable("OPENAI_BASE_URL", format!("{}/v1", model.url()));
    world.set_variable("CODEX_API_KEY", "dummy");
    world.commit_all("Begin");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    assert_eq!(engines(&world), [(Work::Agent(1), "claude".to_owned()), (Work::Judge(1), "codex".to_owned())]);
    assert_eq!(step_of(&world).reasoning.as_deref(), Some("Codex looked."));
    assert_eq!(world.read("built"), "first\n");
}
