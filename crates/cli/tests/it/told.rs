//! What people are told of runs that did not go straight through: warnings, what was cut off, what a run goes on with, and
//! why.

use proctor_domain::procedure::{CheckResult, Unjudged};
use proctor_domain::session::Work;
use proctor_testkit::{Output, World};
use serde_json::Value;

use crate::agent_scene::{ends, file_of, last, step_of, wait_until_printed, world_of, write_script};
use crate::procedures::{LIMIT, WAITS, newest_run, start_waiting};
use crate::scene::{kill, living_host, wait_for_nothing_left};
use crate::world;

/// A step with an agent whose checks stop nothing.
const DOUBTED: &str = "\
steps:
  - id: build
    run:
      agents: [{prompt: Build it}]
    validate:
      severity: warn
      shells: ['echo not there >&2; test -f built']
      instructions: ['It is good']
";

/// The same without the shell, and repaired once.
const REPAIRED: &str = "\
steps:
  - id: build
    run:
      agents: [{prompt: Build it}]
    validate:
      severity: review
      instructions: ['It is good']
";

const PASSES: &str = "[[scenario]]\ncontains = 'Judge the work'\nturn = [{ do = [{ result = { passed = true, reasoning = 'Fine.' } }] }]\n";

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

fn text(world: &World, arguments: &[&str]) -> String {
    world.proctor(arguments).stdout
}

#[test]
fn an_agent_that_somebody_kills_goes_on_once_and_that_is_told() {
    let script = "[default]\ncontinue = true\n[[default.turn]]\ndo = [{ say = 'hm' }, { die = 'kill' }]\n\
                  [[default.turn]]\ndo = [{ write = { path = 'built', content = 'x' } }, { say = 'Done.' }]\n";
    let world = world_of(DOUBTED, &format!("{PASSES}{script}"));

    let output = run(&world).expect_code(0);

    let told = "[1/1] build, attempt 2: the program of agent 1 was killed from outside (signal 9); goes on with its conversation";
    assert!(output.stderr.contains(told), "{output}");
    let step = step_of(&world);
    assert_eq!(ends(&step)[..2], [(Work::Agent(1), "crashed"), (Work::Agent(1), "completed")]);
    assert!(file_of(&world, last(&step, Work::Agent(1)), "prompt.md").starts_with("You were interrupted."));
    assert_eq!((step.attempts, step.cut_off()), (2, Vec::new()));
}

#[test]
fn what_was_cut_off_and_warned_of_is_told_wherever_the_run_is() {
    let world = world_of(DOUBTED, &format!("{PASSES}[[default.turn]]\ndo = [{{ say = 'hm' }}, {{ die = 'kill' }}]\n"));

    let output = run(&world).expect_code(0);
    let id = newest_run(&world);

    assert!(output.stderr.contains("completed with warnings"), "{output}");
    assert!(output.stderr.contains("(agent 1 was cut off: crashed)"), "{output}");
    let listed = text(&world, &["runs"]);
    assert!(listed.contains("✓ completed") && listed.trim_end().ends_with(", with warnings"), "{listed}");
    let status = text(&world, &["procedure", "status"]);
    assert!(status.contains("completed with warnings") && status.contains("agent 1 was cut off: crashed"), "{status}");
    assert!(text(&world, &["show", &id]).contains("completed with warnings"));
    let json = |arguments: &[&str]| world.proctor(arguments).json();
    assert_eq!(json(&["runs", "--json"])["runs"][0]["with_warnings"], true);
    assert_eq!(json(&["show", &id, "--json"])["with_warnings"], true);
    assert_eq!(json(&["procedure", "status", "--json"])["with_warnings"], true);
}

#[test]
fn a_warning_is_shown_with_the_session_that_gave_it() {
    let world = world_of(DOUBTED, &format!("{PASSES}[[default.turn]]\ndo = [{{ say = 'Done.' }}]\n"));
    let _ = run(&world).expect_code(0);

    let status = text(&world, &["procedure", "status"]);

    let shells = last(&step_of(&world), Work::Shells).id.clone();
    assert!(status.contains(&format!("stderr of {shells}:\n    | not there")), "{status}");
}

#[test]
fn a_session_of_a_model_is_not_said_to_have_printed_nothing() {
    let world = world_of(DOUBTED, "[[default.turn]]\ndo = [{ refuse = 'please log in' }]\n");
    let output = run(&world).expect_code(1);

    let status = world.proctor(&["procedure", "status"]);

    let session = last(&step_of(&world), Work::Agent(1)).id.clone();
    assert!(status.stdout.contains(&format!("`proctor log {session}` has the transcript")), "{status}");
    for told in [&output, &status] {
        assert!(told.stderr.contains("`proctor engines` says how scripted is logged in here"), "{told}");
    }
    assert!(text(&world, &["cost"]).contains("0.00 USD"), "what its provider turned away cost nothing");
}

/// The judge says no to work without `more` in it.
fn script_that_repairs() -> String {
    "\
[[scenario]]
match = 'Judge the work[\\s\\S]*\\+more'
turn = [{ do = [{ result = { passed = true, reasoning = 'Better.' } }] }]

[[scenario]]
contains = 'Judge the work'
turn = [{ do = [{ result = { passed = false, reasoning = 'It is thin.' } }] }]

[[scenario]]
contains = 'found wanting'
turn = [{ do = [{ run = 'echo more >> built' }, { say = 'half' }, { wait = { file = '../go', ms = 60000 } }, { say = 'Repaired.' }] }]

[[scenario]]
contains = 'Build it'
turn = [{ do = [{ run = 'echo thin > built' }, { say = 'Built.' }] }]
"
    .to_owned()
}

#[test]
fn each_verdict_is_shown_with_its_judge() {
    let world = world_of(REPAIRED, &script_that_repairs());
    world.write("../go", "");
    let _ = run(&world).expect_code(0);

    let id = newest_run(&world);
    let shown = text(&world, &["show", &id]);
    let json = world.proctor(&["show", &id, "--json"]).json();

    let verdicts: Vec<&str> = shown.lines().filter(|line| line.trim_start().starts_with("verdict")).map(str::trim).collect();
    assert_eq!(verdicts, ["verdict      fail: It is thin.", "verdict      pass: Better."], "{shown}");
    let sessions = json["steps"][0]["sessions"].as_array().expect("sessions");
    let passed: Vec<&Value> = sessions.iter().map(|session| &session["verdict"]["passed"]).filter(|passed| passed.is_boolean()).collect();
    assert_eq!(passed, [&Value::Bool(false), &Value::Bool(true)]);
}

#[test]
fn a_repair_that_was_cut_off_is_told_so() {
    let world = world_of(REPAIRED, &script_that_repairs());
    let driver = world.start(&["procedure", "run", "work"]);
    wait_until_printed(&world, "half");

    kill(&living_host(&world));
    world.write("../go", "");
    let output = driver.wait(LIMIT).expect_code(0);

    let step = step_of(&world);
    let prompt = file_of(&world, last(&step, Work::Repair), "prompt.md");
    assert!(prompt.starts_with("This repair was begun before and was interrupted.") && prompt.contains("found wanting"), "{prompt}");
    assert!(output.stderr.contains("[1/1] build, attempt 2: the host of repair died; goes on with its conversation"), "{output}");
    let id = newest_run(&world);
    assert!(text(&world, &["show", &step.sessions[2].id.to_string()]).contains("its host died without a report"), "{id}");
}

#[test]
fn a_judge_that_gave_no_answer_is_asked_again_alone() {
    let does = "[[scenario]]\ncontains = 'Build it'\nturn = [{ do = [{ run = 'echo x >> built' }, { say = 'Done.' }] }]\n";
    let world = world_of(REPAIRED, &format!("{does}[[default.turn]]\ndo = [{{ refuse = 'wrong key' }}]\n"));
    let output = run(&world).expect_code(1);
    assert!(output.stderr.contains("the judge gave no answer: wrong key"), "{output}");
    let step = step_of(&world);
    assert_eq!((step.validate, step.unjudged), (Some(CheckResult::Inconclusive), Some(Unjudged::Unknown)));

    write_script(&world, &format!("{does}{PASSES}"));
    let resumed = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert!(resumed.stderr.contains("[1/1] build, attempt 2: its judge gave no answer and is asked again"), "{resumed}");
    let ends: Vec<Work> = step_of(&world).sessions.iter().map(|session| session.work).collect();
    assert_eq!(ends, [Work::Agent(1), Work::Judge(1), Work::Judge(1)]);
    assert_eq!(world.read("built"), "x\n");
}

#[test]
fn a_run_at_work_has_no_exit_code_and_a_dead_driver_is_said_to_be_gone() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    let id = newest_run(&world);

    assert!(!text(&world, &["show", &id]).contains("exit code"));
    assert_eq!(world.proctor(&["show", &id, "--json"]).json()["exit_code"], Value::Null);
    let _ = driver.kill();
    let status = world.proctor(&["procedure", "status"]);
    assert!(status.stderr.contains("its driver is gone and its session works on"), "{status}");

    world.write("../go", "");
    wait_for_nothing_left(&world);
    let status = text(&world, &["procedure", "status"]);
    assert!(status.contains("run has ended meanwhile"), "{status}");
    let resumed = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert!(resumed.stderr.contains("[2/2] wait, attempt 1: run has ended meanwhile; going on with what it came to"), "{resumed}");
}

#[test]
fn a_limit_of_unknown_length_says_what_to_do() {
    let world = world_of(DOUBTED, "[[default.turn]]\ndo = [{ rate-limit = {} }]\n");

    let output = run(&world).expect_code(5);

    assert!(output.stderr.contains("how long that lasts is not known"), "{output}");
    assert!(output.stderr.contains("in a while; nothing is lost"), "{output}");
    let status = text(&world, &["procedure", "status"]);
    assert!(status.contains("parked after ") && !status.contains("attempts"), "{status}");
}
