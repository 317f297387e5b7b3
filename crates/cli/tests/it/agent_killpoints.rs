//! I1 and I2 for runs with agents: killed anywhere and resumed, a run with an agent, a judge and a repair ends like one
//! that was not.
//!
//! The walk is that of `killpoints.rs`: at every point that the driver reaches, or at every third, the driver dies, or its
//! host, or both; then the run is resumed until it has ended.

use proctor_testkit::{Output, World};
use serde_json::Value;

use crate::agent_scene::world_of;

/// An agent whose work a judge finds wanting until it is repaired, and shells before and after.
const CARD: &str = "steps:
  - id: build
    precheck:
      shells: ['echo looking']
    run:
      agents:
        - prompt: Build it
      shells: ['test -f built && echo by a shell > shell.txt']
    validate:
      severity: review
      shells: ['test -f built']
      instructions: ['It says second']
  - id: after
    run:
      shells: ['cat built repaired > both']
";

const SCRIPT: &str = r#"
[[scenario]]
contains = "Repair it"
turn = [{ do = [{ write = { path = "repaired", content = "second\n" } }], cost = 0.1 }]

[[scenario]]
contains = "+second"
turn = [{ do = [{ result = { passed = true, reasoning = "Now it does." } }], cost = 0.1 }]

[[scenario]]
contains = "Judge the work"
turn = [{ do = [{ result = { passed = false, reasoning = "It says first." } }], cost = 0.1 }]

[[default.turn]]
do = [{ write = { path = "built", content = "first\n" } }, { run = "mkdir -p deep && echo x > 'deep/a b'" }]
cost = 0.1
"#;

const MOST_RESUMES: usize = 6;

#[derive(Debug, Clone, Copy)]
enum Place {
    InPlace,
    Isolated,
}

fn world(records: &str, place: Place) -> World {
    let isolation = match place {
        Place::InPlace => "",
        Place::Isolated => "isolation: worktree\n",
    };
    // Boxes are tried elsewhere; here they would cost a third of the time.
    world_of(&format!("records: {records}\n{isolation}{CARD}"), SCRIPT).with_variable("PROCTOR_CONFINE", "none")
}

/// What is compared: the files of HEAD but for run cards, whether the tree is clean, the commits' subjects, the steps of
/// the record, and what git has of worktrees and branches.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    files: Vec<String>,
    uncommitted: String,
    subjects: Vec<String>,
    steps: Vec<Value>,
    branches: String,
    worktrees: usize,
}

impl Ending {
    fn of(world: &World, status: &Value) -> Self {
        let listing = world.git(&["ls-tree", "-r", "-z", "HEAD"]);
        let entries = listing.split('\0').filter(|entry| !entry.is_empty() && !entry.ends_with(".procedure-run.card"));
        Self {
            files: entries.map(str::to_owned).collect(),
            uncommitted: world.git(&["status", "--porcelain", "-uall"]),
            subjects: world.commits(),
            steps: status["steps"].as_array().unwrap().iter().map(Self::step).collect(),
            branches: world.git(&["branch", "--format=%(refname)"]),
            worktrees: world.git(&["worktree", "list"]).lines().count(),
        }
    }

    /// A step of the record without what differs between two runs of the same kind.
    fn step(step: &Value) -> Value {
        let mut step = step.clone();
        step["commits"] = step["commits"].as_array().unwrap().len().into();
        for volatile in ["attempts", "duration_ms", "run", "cost_usd", "sessions"] {
            step[volatile] = Value::Null;
        }
        if step["validate"].is_object() {
            step["validate"] = step["validate"]["result"].clone();
        }
        step
    }
}

/// Runs the procedure to its end; `disturb` is what the environment says about dying.
fn play(world: &mut World, disturb: Option<&str>) -> Ending {
    if let Some(death) = disturb {
        world.set_variable("PROCTOR_KILLPOINT", death);
    }
    let mut output = world.proctor(&["procedure", "run", "work", "--json"]);
    world.remove_variable("PROCTOR_KILLPOINT");
    for _ in 0..MOST_RESUMES {
        let Some(run) = latest_run(world) else {
            // It died before there was a run.
            output = world.proctor(&["procedure", "run", "work", "--json"]);
            continue;
        };
        let status = world.proctor(&["procedure", "status", &run, "--json"]).expect_code(0).json();
        if status["outcome"] == "completed" {
            assert_eq!(world.leftovers(), [], "no process is left");
            return Ending::of(world, &status);
        }
        let stands = status["outcome"].as_str().unwrap_or_default();
        assert!(["interrupted", "running"].contains(&stands), "{disturb:?} {stands}\n{output}");
        output = resume(world, &run);
    }
    panic!("{disturb:?}: not completed after {MOST_RESUMES} resumes:\n{output}");
}

fn resume(world: &World, run: &str) -> Output {
    world.proctor(&["procedure", "resume", run, "--json"])
}

fn latest_run(world: &World) -> Option<String> {
    let runs = world.proctor(&["runs", "--json"]).expect_code(0).json();
    runs["runs"][0]["run"].as_str().map(str::to_owned)
}

/// The number of points of a run, and how it ends.
fn undisturbed(records: &str, place: Place) -> (usize, Ending) {
    let mut world = world(records, place);
    let log = world.root().join("points");
    world.set_variable("PROCTOR_KILLPOINT_LOG", &log);
    let ending = play(&mut world, None);
    (world.read(&log).lines().count(), ending)
}

/// Has `victim` die at every `stride`-th point.
fn check(records: &str, place: Place, victim: &str, stride: usize) {
    let (points, expected) = undisturbed(records, place);
    assert!(points > 40, "the driver reaches its points: {points}");
    assert_eq!(expected.uncommitted, "");
    for point in (1..=points).step_by(stride) {
        let mut world = world(records, place);
        let ending = play(&mut world, Some(&format!("{victim}:{point}")));
        assert_eq!(ending, expected, "{victim} killed at point {point} of {points}");
    }
}

#[test]
fn i2_driver_of_agents_killed_at_every_point_with_records_in_state() {
    check("state", Place::InPlace, "driver", 1);
}

#[test]
fn i2_driver_and_host_of_agents_killed_at_every_point_with_records_in_state() {
    check("state", Place::InPlace, "both", 1);
}

#[test]
fn i2_host_of_agents_killed_at_every_third_point_with_records_in_state() {
    check("state", Place::InPlace, "host", 3);
}

#[test]
fn i2_driver_of_agents_killed_at_every_third_point_with_records_in_git() {
    check("git", Place::InPlace, "driver", 3);
}

#[test]
fn i2_driver_and_host_of_agents_killed_at_every_third_point_with_records_in_git() {
    check("git", Place::InPlace, "both", 3);
}

#[test]
fn i2_host_of_agents_killed_at_every_third_point_with_records_in_git() {
    check("git", Place::InPlace, "host", 3);
}

#[test]
fn i2_driver_of_an_isolated_run_killed_at_every_third_point_with_its_merge() {
    check("state", Place::Isolated, "driver", 3);
}
