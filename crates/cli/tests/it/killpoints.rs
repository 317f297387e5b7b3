//! I1 and I2: a run that is killed anywhere and resumed ends like one that was not.
//!
//! Every point that the driver reaches, before and after each journal append and each external effect, is a test
//! case: the driver dies there, or its host, or both. Then the run is resumed until it has ended, and its files,
//! its commits and its record are compared with those of an undisturbed run.

use proctor_testkit::{Output, World};
use serde_json::Value;

/// Steps that change files, are retried, are skipped and fail; the gate outside the tree lets the last one pass.
const KEYS: &str = r#"description: Everything a run can do
steps:
  - id: build
    precheck:
      shells: ['echo looking']
    run:
      shells: ['echo built > built.txt; echo "name=value" >> "$PROCTOR_OUTPUT"', 'mkdir -p deep; echo x > "deep/a b.txt"']
    validate:
      severity: abort
      shells: ['test -f built.txt']
  - id: needless
    precheck:
      shells: ['exit "$CHECK_SKIP"']
    run:
      shells: ['exit 1']
  - id: flaky
    retry: {max: 1}
    run:
      shells: ['[ -f flaky.txt ] || { echo one > flaky.txt; exit 1; }; echo two >> flaky.txt']
  - id: quiet
    run:
      shells: ['test "$STEP_BUILD_NAME" = value']
  - id: gate
    run:
      shells: ['echo gated > gate.txt; rm -f built.txt']
    validate:
      severity: abort
      shells: ['test -e "$HOME/gate-open"']
"#;

/// No run needs more resumes than this.
const MOST_RESUMES: usize = 6;

fn world(records: &str) -> World {
    let world = crate::world().with_card("all", &format!("records: {records}\n{KEYS}"));
    world.commit_all("Add the procedure");
    world
}

/// What is compared: the files of HEAD but for run cards, whether the tree is clean, the commits' subjects, the
/// steps of the record.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    files: Vec<String>,
    uncommitted: String,
    subjects: Vec<String>,
    steps: Vec<Value>,
}

impl Ending {
    fn of(world: &World, status: &Value) -> Self {
        let listing = world.git(&["ls-tree", "-r", "-z", "HEAD"]);
        let entries = listing.split('\0').filter(|entry| !entry.is_empty() && !entry.ends_with(".procedure-run.card"));
        let files = entries.map(str::to_owned).collect();
        let steps = status["steps"].as_array().unwrap().iter().map(Self::step).collect();
        Self { files, uncommitted: world.git(&["status", "--porcelain", "-uall"]), subjects: world.commits(), steps }
    }

    /// A step of the record without what differs between two runs of the same kind: ids, times, attempts.
    fn step(step: &Value) -> Value {
        let mut step = step.clone();
        step["commits"] = step["commits"].as_array().unwrap().len().into();
        for volatile in ["attempts", "duration_ms", "run"] {
            step[volatile] = Value::Null;
        }
        step
    }
}

/// Runs the procedure to its failure at the gate, opens the gate, and resumes it to its end. `disturb` and
/// `disturb_resume` are what the environment says about dying.
fn play(world: &mut World, disturb: Option<&str>, disturb_resume: Option<&str>) -> Ending {
    let output = with_death(world, disturb, &["procedure", "run", "all", "--json"]);
    let failed = drive_to(world, output, "failed");
    let run = failed["run"].as_str().unwrap().to_owned();

    world.write(world.home().join("gate-open"), "");
    let output = with_death(world, disturb_resume, &["procedure", "resume", &run, "--json"]);
    drive_to(world, output, "completed");
    let status = world.proctor(&["procedure", "status", &run, "--json"]).expect_code(0).json();
    assert_eq!(world.leftovers(), [], "no process is left");
    Ending::of(world, &status)
}

/// Resumes as a person would after each death, until the run has the wanted outcome.
fn drive_to(world: &World, mut output: Output, outcome: &str) -> Value {
    for _ in 0..MOST_RESUMES {
        // A driver that died has said nothing, and may have died before there was a run.
        let document = match (output.code, latest_run(world)) {
            (None, None) => {
                output = world.proctor(&["procedure", "run", "all", "--json"]);
                continue;
            }
            (None, Some(run)) => world.proctor(&["procedure", "status", &run, "--json"]).expect_code(0).json(),
            (Some(_), _) => output.json(),
        };
        if document["outcome"] == outcome {
            return document;
        }
        let stands = document["outcome"].as_str().unwrap_or_default();
        assert!(["interrupted", "running", "failed"].contains(&stands), "{}\n{}", output.stdout, output.stderr);
        let run = document["run"].as_str().unwrap();
        output = world.proctor(&["procedure", "resume", run, "--json"]);
    }
    panic!("no {outcome} after {MOST_RESUMES} resumes:\n{}\n{}", output.stdout, output.stderr);
}

fn latest_run(world: &World) -> Option<String> {
    let runs = world.proctor(&["runs", "--json"]).expect_code(0).json();
    runs["runs"][0]["run"].as_str().map(str::to_owned)
}

fn with_death(world: &mut World, death: Option<&str>, arguments: &[&str]) -> Output {
    if let Some(death) = death {
        world.set_variable("PROCTOR_KILLPOINT", death);
    }
    let output = world.proctor(arguments);
    world.remove_variable("PROCTOR_KILLPOINT");
    output
}

/// The number of points of the run and of its resume, and how they end.
fn undisturbed(records: &str) -> (usize, usize, Ending) {
    let mut world = world(records);
    let log = world.root().join("points");
    world.set_variable("PROCTOR_KILLPOINT_LOG", &log);
    let ending = play(&mut world, None, None);
    let text = world.read(&log);
    let starts: Vec<usize> = text.lines().enumerate().filter(|(_, line)| line.starts_with("1 ")).map(|(number, _)| number).collect();
    assert_eq!(starts.len(), 2, "only the run and its resume reach points");
    let (run, all) = (starts[1], text.lines().count());
    (run, all - run, ending)
}

fn check(records: &str, victim: &str) {
    let (run_points, resume_points, expected) = undisturbed(records);
    assert!(run_points > 20 && resume_points > 5, "the driver reaches its points: {run_points}, {resume_points}");
    for point in 1..=run_points {
        let mut world = world(records);
        let ending = play(&mut world, Some(&format!("{victim}:{point}")), None);
        assert_eq!(ending, expected, "{victim} killed at point {point} of the run");
    }
    for point in 1..=resume_points {
        let mut world = world(records);
        let ending = play(&mut world, None, Some(&format!("{victim}:{point}")));
        assert_eq!(ending, expected, "{victim} killed at point {point} of the resume");
    }
}

#[test]
fn i2_driver_killed_at_every_point_with_records_in_state() {
    check("state", "driver");
}

#[test]
fn i2_driver_killed_at_every_point_with_records_in_git() {
    check("git", "driver");
}

#[test]
fn i2_host_killed_at_every_point_with_records_in_state() {
    check("state", "host");
}

#[test]
fn i2_host_killed_at_every_point_with_records_in_git() {
    check("git", "host");
}

#[test]
fn i2_driver_and_host_killed_at_every_point_with_records_in_state() {
    check("state", "both");
}

#[test]
fn i2_driver_and_host_killed_at_every_point_with_records_in_git() {
    check("git", "both");
}
