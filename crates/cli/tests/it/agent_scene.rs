//! What the tests of agents share: worlds whose agents follow a script, and looks at what became of a run.

use std::fs;
use std::path::{Path, PathBuf};

use proctor_domain::procedure::{Run, StepRecord};
use proctor_domain::session::{SessionRecord, SessionReport, Work};
use proctor_journal::{Journal, JournalStore, RunFilter, SkippedRuns};
use proctor_orchestrator::procedure::{LoadedRun, load_run};
use proctor_testkit::{World, wait_for};

use crate::box_image;
use crate::procedures::LIMIT;

/// A step with an agent, whose work a judge can fail.
pub(crate) const BUILT_AND_JUDGED: &str = "\
description: Builds
steps:
  - id: build
    run:
      agents: [{prompt: Build it}]
    validate:
      severity: abort
      instructions: ['It is good']
";

/// The judge passes everything.
pub(crate) const PASSES: &str = r#"
[[scenario]]
contains = "Judge the work"
turn = [{ do = [{ result = { passed = true, reasoning = "It is there." } }], cost = 0.01 }]
"#;

/// A world with the procedure `work`, whose agents follow `script`.
pub(crate) fn world_of(card: &str, script: &str) -> World {
    let mut world = crate::world().with_card("work", card);
    write_script(&world, script);
    let path = world.root().join("agent.toml");
    world.set_variable("PROCTOR_ENGINE", "scripted");
    world.set_variable("PROCTOR_SCRIPT", path);
    world
}

/// Gives the agents another script.
pub(crate) fn write_script(world: &World, script: &str) {
    world.write("../agent.toml", script);
}

/// How long an agent may give no sign of life.
pub(crate) fn with_silence(mut world: World, limit: &str) -> World {
    world.set_variable("PROCTOR_AGENT_SILENCE", limit);
    world
}

/// The box that agents are held in.
pub(crate) fn in_box(mut world: World, kind: &str) -> World {
    world.set_variable("PROCTOR_CONFINE", kind);
    world
}

/// The same without the network.
pub(crate) fn without_network(mut world: World) -> World {
    world.set_variable("PROCTOR_NET", "none");
    world
}

/// What a container needs: the image of the tests, and where the container program finds it.
pub(crate) fn with_container(mut world: World) -> World {
    if let Ok(setup) = box_image::setup() {
        let program = setup.program.as_deref().unwrap_or(Path::new("")).display();
        let image = setup.image.as_deref().unwrap_or_default();
        world.write(world.user_settings(), format!("[box]\nprogram = '{program}'\nimage = '{image}'\n"));
    }
    for (name, value) in box_image::variables() {
        world.set_variable(&name, value);
    }
    world
}

/// A variable whose value must never be written.
pub(crate) fn with_secret(mut world: World, name: &str, value: &str) -> World {
    world.set_variable("PROCTOR_SECRETS", name);
    world.set_variable(name, value);
    world
}

/// The newest run, as the journal has it.
pub(crate) fn loaded(world: &World) -> LoadedRun {
    let journal = Journal::open(&world.state()).expect("the journal");
    let rows = journal.runs(&RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() }).expect("runs");
    load_run(&journal, &rows.first().expect("a run").run).expect("the run")
}

/// The newest run.
pub(crate) fn run_of(world: &World) -> Run {
    loaded(world).run
}

/// The kind of the newest run's box, as it is recorded.
pub(crate) fn kind_of(world: &World) -> Option<String> {
    run_of(world).confined.map(|confined| confined.kind)
}

/// The first step of the newest run.
pub(crate) fn step_of(world: &World) -> StepRecord {
    run_of(world).steps.swap_remove(0)
}

/// What the sessions of the first step were for, and how they ended, in order.
pub(crate) fn ends(step: &StepRecord) -> Vec<(Work, &'static str)> {
    step.sessions.iter().map(|session| (session.work, session.report.as_ref().map_or("lost", |report| report.end.name()))).collect()
}

/// The last session of this kind.
pub(crate) fn last(step: &StepRecord, work: Work) -> &SessionRecord {
    step.sessions.iter().rev().find(|session| session.work == work).expect("such a session")
}

/// The report of the last session of this kind.
pub(crate) fn report(step: &StepRecord, work: Work) -> &SessionReport {
    last(step, work).report.as_ref().expect("its report")
}

/// The conversation of a session.
pub(crate) fn conversation(session: &SessionRecord) -> &str {
    session.report.as_ref().and_then(|report| report.agent.as_ref()?.conversation.as_deref()).expect("a conversation")
}

/// A file of a session.
pub(crate) fn file_of(world: &World, session: &SessionRecord, name: &str) -> String {
    world.read(world.state().join("sessions").join(session.id.as_str()).join(name))
}

/// Waits until an agent has printed this, and returns its session's folder.
pub(crate) fn wait_until_printed(world: &World, text: &str) -> PathBuf {
    let mut found = None;
    wait_for(text, LIMIT, || {
        let repos = world.home().join(".local/state/proctor/repos");
        let states = fs::read_dir(repos).into_iter().flatten().flatten().map(|entry| entry.path());
        let folders =
            states.flat_map(|state| fs::read_dir(state.join("sessions")).into_iter().flatten().flatten().map(|entry| entry.path()));
        found = folders
            .into_iter()
            .find(|folder| fs::read_to_string(folder.join("transcript.jsonl")).is_ok_and(|printed| printed.contains(text)));
        found.is_some()
    });
    found.expect("a session")
}

/// The subjects of the commits since the world was made.
pub(crate) fn made(world: &World) -> Vec<String> {
    world.commits().split_off(2)
}
