//! The procedures of `examples/`, unchanged, with each of the real agents in turn: killed once while the agent works, and
//! gone on with. A model on this machine answers them. Without their programs these tests say that they are skipped.

use std::time::Duration;

use proctor_testkit::{Server, World, loopback, wait_for};
use rustix::process::Signal;

use crate::examples::{RELEASED, TESTED, project};
use crate::procedures::{LIMIT, newest_run};
use crate::scene::{kill, living_host, status, wait_for_nothing_left};

/// A real agent takes seconds of the processor for each session, which other tests may want too.
const PATIENCE: Duration = Duration::from_secs(600);

/// What the model says to the agent of one example after it was interrupted, to its repair, and to its judge.
struct Played {
    procedure: &'static str,
    inputs: &'static [&'static str],
    /// Found in the agent's prompt.
    asked: &'static str,
    work: &'static str,
    repair: &'static str,
    step: &'static str,
}

const RELEASE: Played = Played {
    procedure: "release-check",
    inputs: &RELEASED,
    asked: "to the changelog",
    work: "printf '# 1.2.0\\n\\n- Count words in a file that is given by its name\\n' > CHANGELOG.md",
    repair: "true",
    step: "changelog",
};

const UPDATE: Played = Played {
    procedure: "dependency-update",
    inputs: &TESTED,
    asked: "Bring the dependencies of this project up to date",
    work: "sed -i 's/^greeting 1$/greeting 2/' dependencies.txt && git commit -qam 'Update greeting to 2'",
    repair: "sed -i 's/hello/greet/' program && git commit -qam 'Adapt to greeting 2'",
    step: "update",
};

const AUDIT: Played = Played {
    procedure: "repository-audit",
    inputs: &[],
    asked: "Audit this repository",
    work: "mkdir -p audits && printf '# Audit\\n\\n## Findings\\n\\n1. `src/main.sh`, line 2.\\n\\n## Looked at\\n\\nAll.\\n' > \"$STEP_REPORT_PATH\"",
    repair: "true",
    step: "audit",
};

/// The agent waits in a shell of its own for `go`, and is killed there.
fn model_for(played: &Played, go: &str) -> Server {
    let Played { asked, work, repair, step, .. } = played;
    loopback(&format!(
        r#"
[[scenario]]
name = "judge"
match = 'Judge the work of step `{step}`'
turn = [{{ structured = {{ passed = true, reasoning = "It is as it should be." }} }}]

[[scenario]]
name = "repair"
match = 'was checked and found wanting'
turn = [{{ text = "I repair it.", tools = [{{ shell = '''{repair}''' }}] }}, {{ text = "Repaired." }}]

[[scenario]]
name = "gone on"
match = 'interrupted'
turn = [{{ text = "I go on.", tools = [{{ shell = '''{work}''' }}] }}, {{ text = "Done." }}]

[[scenario]]
name = "agent"
match = '{asked}'
turn = [{{ text = "I look.", tools = [{{ shell = '''until [ -e {go} ]; do read -rt 0.02 _ <> <(:) || true; done''' }}] }}, {{ text = "Done." }}]
"#
    ))
}

/// Kills driver and host once the model has asked for the agent's first tool, and goes on.
fn killed_and_gone_on(played: &Played, engine: &str, settings: impl Fn(&Server) -> Option<String>) -> Option<World> {
    let mut world = project(("", ""));
    let model = model_for(played, &world.root().join("go").display().to_string());
    world.write(world.user_settings(), settings(&model)?);
    for (name, value) in [("ANTHROPIC_BASE_URL", model.url()), ("OPENAI_BASE_URL", format!("{}/v1", model.url()))] {
        world.set_variable(name, value);
    }
    world.set_variable("ANTHROPIC_API_KEY", "dummy");
    world.set_variable("CODEX_API_KEY", "dummy");
    let has_asked = |scenario: &str| {
        let requests = model.requests();
        requests.iter().filter_map(|request| request.exchange.as_ref()).any(|exchange| exchange.scenario == scenario)
    };

    let driver = world.start(&[&["procedure", "run", played.procedure, "--engine", engine], played.inputs].concat());
    wait_for("the agent's first tool", LIMIT, || has_asked("agent"));
    let host = living_host(&world);
    driver.signal(Signal::KILL);
    kill(&host);
    world.write("../go", "");
    let _ = driver.wait(LIMIT);
    let parks = played.procedure == RELEASE.procedure;
    let gone_on = world.start(&["procedure", "resume"]).wait(PATIENCE);
    let _ = gone_on.expect_code(if parks { 5 } else { 0 });
    if parks {
        let _ = world.proctor(&["answer", &newest_run(&world), "approve", "--resume"]).expect_code(0);
    }

    assert_eq!(status(&world)["outcome"], "completed", "{engine}");
    assert!(has_asked("gone on") && has_asked("judge"), "{engine}");
    wait_for_nothing_left(&world);
    Some(world)
}

/// Every example with one engine.
fn each_example(engine: &str, settings: impl Fn(&Server) -> Option<String>) {
    let Some(released) = killed_and_gone_on(&RELEASE, engine, &settings) else { return };
    assert_eq!(released.git(&["rev-parse", "v1.2.0^{commit}"]), released.git(&["rev-parse", "HEAD"]), "{engine}");

    let updated = killed_and_gone_on(&UPDATE, engine, &settings).expect("the program is there");
    assert_eq!(
        (updated.read("dependencies.txt"), updated.read("program")),
        ("greeting 2\n".to_owned(), "greet Ann\n".to_owned()),
        "{engine}"
    );
    assert!(updated.commits().ends_with(&["Update greeting to 2".to_owned(), "Adapt to greeting 2".to_owned()]), "{:?}", updated.commits());

    let audited = killed_and_gone_on(&AUDIT, engine, &settings).expect("the program is there");
    assert!(audited.git(&["ls-files", "audits"]).ends_with(".md"), "{engine}");
}

#[test]
fn every_example_runs_on_claude_code_is_killed_and_goes_on() {
    each_example("claude", |_| Some(format!("[engines.claude]\nprogram = '{}'\n", proctor_testkit::claude()?.display())));
}

#[test]
fn every_example_runs_on_codex_is_killed_and_goes_on() {
    each_example("codex", |_| Some(format!("[engines.codex]\nprogram = '{}'\n", proctor_testkit::codex()?.display())));
}

#[test]
fn every_example_runs_on_opencode_is_killed_and_goes_on() {
    each_example("tried", |model| {
        let program = proctor_testkit::opencode()?;
        Some(format!(
            "[engines.tried]\nopencode = ['{}']\nenv = {{ ANTHROPIC_BASE_URL = '{}/v1', ANTHROPIC_API_KEY = 'dummy' }}\nmodels = {{ balanced = \
             'anthropic/claude-sonnet-5', strong = 'anthropic/claude-opus-5-5' }}\n",
            program.display(),
            model.url()
        ))
    });
}

#[test]
fn every_example_runs_on_an_agent_of_the_client_protocol_is_killed_and_goes_on() {
    each_example("adapter", |model| {
        let (node, adapter) = proctor_testkit::claude_agent_acp()?;
        let claude = proctor_testkit::claude()?;
        Some(format!(
            "[engines.adapter]\nacp = ['{}', '{}']\nenv = {{ ANTHROPIC_BASE_URL = '{}', ANTHROPIC_API_KEY = 'dummy', CLAUDE_CODE_EXECUTABLE = \
             '{}' }}\n",
            node.display(),
            adapter.display(),
            model.url(),
            claude.display()
        ))
    });
}
