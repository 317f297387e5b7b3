//! Runs whose agents and judges are the real Claude Code, which talks to a loopback model. Without its program these tests
//! say that they are skipped.

use proctor_domain::MicroDollars;
use proctor_domain::session::{SessionEnd, Work};
use proctor_testkit::{Output, Server, World, loopback, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use crate::agent_scene::{conversation, ends, made, report, step_of};
use crate::procedures::{LIMIT, newest_run};
use crate::scene::{kill, living_host, status, wait_for_nothing_left};

/// An agent writes a greeting, which a judge finds wanting; then it is repaired.
const GREET: &str = "\
description: Greets somebody
steps:
  - id: greet
    run:
      agents:
        - prompt: Write a greeting into greeting.txt.
    validate:
      shells: ['test -s greeting.txt']
      instructions: [The greeting names somebody]
      whys: [A greeting to nobody is lost]
      severity: review
";

/// Goes on when there is a file `go` beside the repository.
const HOLD: &str = "until [ -e ../go ]; do read -rt 0.02 _ <> <(:) || true; done; echo held";

/// What the model says; a judge's first answer has these further keys.
fn script(hold: &str, judge: &str) -> String {
    format!(
        r#"
[[scenario]]
name = "judge, wanting"
match = '(?ms)\AJudge the work of step `greet`.*^\+hello$'
turn = [{{ structured = {{ passed = false, reasoning = "It greets nobody." }}{judge} }}]

[[scenario]]
name = "judge"
match = '\AJudge the work of step `greet`'
turn = [{{ structured = {{ passed = true, reasoning = "It greets Ann." }} }}]

[[scenario]]
name = "repair"
match = 'was checked and found wanting'
turn = [{{ text = "Ann it is.", tools = [{{ shell = "echo 'hello Ann' > greeting.txt" }}] }}, {{ text = "Repaired." }}]

[[scenario]]
name = "agent, gone on"
match = 'interrupted'
turn = [{{ text = "Where was I?", tools = [{{ shell = "cat greeting.txt" }}] }}, {{ text = "Greeted." }}]

[[scenario]]
name = "agent"
match = 'Write a greeting'

[[scenario.turn]]
text = "I write it."
tools = [{{ shell = "echo hello > greeting.txt" }}]

[[scenario.turn]]
text = "I look after it."
tools = [{{ shell = '''{hold}''' }}]

[[scenario.turn]]
text = "Greeted."
"#
    )
}

/// A world with the procedure `work` whose agents are the real ones, and their model.
fn world(card: &str, script: &str) -> Option<(World, Server)> {
    let program = proctor_testkit::claude()?;
    let mut world = crate::world().with_card("work", card);
    let settings = format!("engine = 'claude'\n[engines.claude]\nprogram = '{}'\n", program.display());
    world.write(world.user_settings(), settings);
    let model = loopback(script);
    world.set_variable("ANTHROPIC_BASE_URL", model.url());
    world.set_variable("ANTHROPIC_API_KEY", "dummy");
    Some((world, model))
}

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

fn resume(world: &World) -> Output {
    world.proctor(&["procedure", "resume"])
}

/// How often a turn of a scenario has answered.
fn answers(model: &Server, scenario: &str, turn: usize) -> usize {
    let requests = model.requests();
    let exchanges = requests.iter().filter_map(|request| request.exchange.as_ref());
    exchanges.filter(|exchange| exchange.scenario == scenario && exchange.turn == turn).count()
}

/// The run is over, the work is right, each commit is there once, and nothing runs any more.
fn assert_greeted(world: &World) {
    assert_eq!(status(world)["outcome"], "completed");
    assert_eq!(world.read("greeting.txt"), "hello Ann\n");
    assert_eq!(world.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(made(world), ["[procedure] greet: update greeting.txt"; 2], "the agent's work, and its repair");
    wait_for_nothing_left(world);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Driver,
    Host,
    Both,
}

/// Starts the run, waits for this turn of this scenario, kills, and resumes what does not go on by itself.
fn kill_at(world: &World, model: &Server, (scenario, turn): (&str, usize), victim: Victim) {
    let driver = world.start(&["procedure", "run", "work"]);
    wait_for(scenario, LIMIT, || answers(model, scenario, turn) > 0);
    let host = living_host(world);
    if victim != Victim::Host {
        driver.signal(Signal::KILL);
    }
    if victim != Victim::Driver {
        kill(&host);
    }
    world.write("../go", "");
    // A driver whose host was killed goes on with another one.
    if driver.wait(LIMIT).code != Some(0) {
        let _ = resume(world).expect_code(0);
    }
}

#[test]
fn what_memory_knows_stands_in_what_the_model_is_asked() {
    let card = "steps:\n  - id: greet\n    run: {agents: [{prompt: Write a greeting into greeting.txt}]}\n";
    let Some((world, model)) = world(card, "[default]\nturn = [{ text = 'No.' }]") else { return };
    let seen = "nobody could read it";
    let _ = world
        .proctor(&["memory", "add", "fails", "--user", "--route", "write a greeting into greeting.txt", "--observation", seen])
        .expect_code(0);

    let _ = run(&world).expect_code(0);

    let asked = model.requests().iter().map(|request| request.body.clone()).collect::<String>();
    let known = step_of(&world).sessions[0].known[0].to_string();
    assert!(asked.contains("known here") && asked.contains(&format!("seen: {seen}")) && asked.contains(&known), "{asked}");
}

#[test]
fn a_login_that_is_refused_is_told_at_once_and_costs_no_turn() {
    let Some((world, _model)) = world(GREET, "[default]\nturn = [{ text = 'x', fail = { status = 401 } }]") else { return };

    let output = run(&world).expect_code(1);

    let step = step_of(&world);
    assert_eq!(ends(&step)[0], (Work::Agent(1), "refused"), "{output}");
    assert!(output.stderr.contains("agent 1 gave no answer: the provider refuses the login (API Error: 401)"), "{output}");
    assert_eq!(made(&world), [""; 0]);
    assert!(report(&step, Work::Agent(1)).duration_ms < 30_000);
    wait_for_nothing_left(&world);
}

#[test]
fn a_quota_that_is_used_up_parks_the_run_until_its_reset() {
    let limited = script("true", "")
        .replace("text = \"I look after it.\"", "text = \"I look.\"\nfail = { status = 429, usage-limit = { resets-in = 8 } }");
    let Some((mut world, model)) = world(GREET, &limited) else { return };
    world.remove_variable("ANTHROPIC_API_KEY");
    world.set_variable("CLAUDE_CODE_OAUTH_TOKEN", "dummy");

    let parked = run(&world).expect_code(5);
    let SessionEnd::UsageLimit { until: Some(until) } = report(&step_of(&world), Work::Agent(1)).end else { panic!("{parked}") };
    wait_for("the reset", LIMIT, || jiff::Timestamp::now().as_millisecond() > until.0);
    let _ = resume(&world).expect_code(0);

    assert!(parked.stderr.contains("claude is at a limit until"), "{parked}");
    let step = step_of(&world);
    assert_eq!(ends(&step)[..2], [(Work::Agent(1), "usage-limit"), (Work::Agent(1), "completed")]);
    assert_eq!(conversation(&step.sessions[0]), conversation(&step.sessions[1]));
    assert_eq!(answers(&model, "agent", 1), 1);
    assert_greeted(&world);
}

#[test]
fn an_agent_that_is_killed_goes_on_in_its_conversation() {
    for victim in [Victim::Driver, Victim::Host, Victim::Both] {
        let Some((world, model)) = world(GREET, &script(HOLD, "")) else { return };

        kill_at(&world, &model, ("agent", 2), victim);

        assert_greeted(&world);
        let step = step_of(&world);
        // A host without its driver finishes what it has begun.
        let lost = victim != Victim::Driver;
        let expected = [(Work::Agent(1), "lost"), (Work::Agent(1), "completed")];
        assert_eq!(ends(&step)[..2], if lost { expected } else { [expected[1], (Work::Shells, "completed")] }, "{victim:?}");
        assert_eq!((answers(&model, "agent", 1), answers(&model, "agent, gone on", 1)), (1, usize::from(lost)), "{victim:?}");
        assert_eq!(answers(&model, "repair", 1), 1);
        let knows = model.requests().iter().any(|request| {
            request.exchange.as_ref().is_some_and(|exchange| exchange.scenario == "agent, gone on") && request.body.contains("I write it.")
        });
        assert_eq!(knows, lost, "{victim:?}: the conversation is the same");
    }
}

#[test]
fn a_judge_that_is_killed_is_asked_afresh() {
    for victim in [Victim::Host, Victim::Both] {
        let Some((world, model)) = world(GREET, &script("true", ", hang = { times = 1, count = \"server\" }")) else { return };

        kill_at(&world, &model, ("judge, wanting", 1), victim);

        assert_greeted(&world);
        assert_eq!((answers(&model, "agent", 1), answers(&model, "repair", 1)), (1, 1), "{victim:?}");
    }
}

#[test]
fn what_the_agents_did_is_shown_logged_and_paid_for() {
    let Some((world, _model)) = world(GREET, &script("true", "")) else { return };

    let output = run(&world).expect_code(0);
    let shown = world.proctor(&["show", &newest_run(&world)]).expect_code(0);
    let logged = world.proctor(&["log", &newest_run(&world)]).expect_code(0);
    let cost: Value = world.proctor(&["cost", "--json"]).expect_code(0).json();

    assert_greeted(&world);
    let step = step_of(&world);
    let checks = [(Work::Shells, "completed"), (Work::Judge(1), "completed")];
    let expected = [&[(Work::Agent(1), "completed")], &checks[..], &[(Work::Repair, "completed")], &checks[..]].concat();
    assert_eq!(ends(&step), expected, "{output}");
    assert_eq!(conversation(&step.sessions[0]), conversation(&step.sessions[3]), "a repair goes on in the agent's conversation");
    assert!(shown.stdout.contains("It greets Ann."), "{shown}");
    for said in ["I write it.", "echo hello > greeting.txt", "Ann it is.", "Repaired."] {
        assert!(logged.stdout.contains(said), "{said}: {logged}");
    }
    let costs = step.sessions.iter().filter_map(|session| session.report.as_ref()?.agent.as_ref()?.cost().known());
    let told = cost["total"]["cost_usd"].as_f64().and_then(MicroDollars::from_float);
    assert_eq!((told, told > Some(MicroDollars(0))), (Some(MicroDollars(costs.map(|cost| cost.0).sum())), true), "{cost}");
}
