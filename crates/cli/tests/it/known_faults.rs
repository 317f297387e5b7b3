//! Faults that engines of this kind are known to have, each shown not to exist here.
//!
//! A test is named after what holds instead; the number at each is that of the fault in the list from which they were
//! gathered, whose first 24 were reported by users and whose others were found by reading.

use std::time::Duration;

use proctor_domain::procedure::Outcome;
use proctor_testkit::World;
use serde_json::{Value, json};

use crate::gc_runs::{gc, old, ran, record as record_old_runs};
use crate::procedures::{LIMIT, kill_all, newest_run};
use crate::scene::{HOLD, open_gate, record, start_and_hold, status, step, steps, uncommitted, wait_for_nothing_left, world_with};

const WORKS: &str = "steps:\n  - id: work\n    run:\n      shells: ['echo done > work.txt']\n";

fn run(world: &World, name: &str) -> proctor_testkit::Output {
    world.proctor(&["procedure", "run", name])
}

/// Fault 14: a `.git/index.lock` of a killed git blocks every writer for days, and nobody says so.
#[test]
fn an_abandoned_index_lock_is_named_at_once_with_the_command_that_removes_it() {
    let world = world_with(WORKS);
    world.write(".git/index.lock", "");

    let refused = run(&world, "work").expect_code(4);

    let remedy = refused.stderr.lines().find_map(|line| line.split_once("rm '")).map(|(_, rest)| format!("rm '{rest}")).expect("a remedy");
    let _ = world.run("bash", &["-c", &remedy]).expect_code(0);
    let _ = run(&world, "work").expect_code(0);
}

/// Fault 16: the record of a killed run counts as running and blocks housekeeping for months.
#[test]
fn a_killed_run_counts_as_interrupted_at_once_and_blocks_nothing() {
    let world = world_with(&steps(&[step("work", &[], &format!("if [ ! -e ../second ]; then {HOLD}; fi"))]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let killed = newest_run(&world);
    kill_all(&world, driver);

    assert_eq!(status(&world)["outcome"], "interrupted");
    world.write("../second", "");
    let _ = run(&world, "work").expect_code(0);
    let _ = world.proctor(&["procedure", "gc"]).expect_code(0);
    let _ = world.proctor(&["procedure", "resume", &killed]).expect_code(0);
}

/// Fault 17: a procedure that fails every minute leaves folders without end.
#[test]
fn no_procedure_keeps_more_runs_than_a_hundred() {
    let world = ran();
    let runs: Vec<_> = (0..130).map(|_| old("busy", 1, Outcome::Failed)).collect();
    let ids = record_old_runs(&world, &runs);

    let done = gc(&world);

    assert_eq!(ids.iter().filter(|id| done[*id].starts_with("kept")).count(), 100);
}

/// Fault 25: without an argument the alphabetically last run is taken.
#[test]
fn without_an_argument_the_newest_run_is_meant_whatever_its_name() {
    let fails = steps(&[step("work", &[], "echo \"$PROCTOR_PROCEDURE\" >> ../ran; exit 1")]);
    let world = world_with("steps: []\n").with_card("zebra", &fails).with_card("ape", &fails);
    let _ = run(&world, "zebra").expect_code(1);
    let _ = run(&world, "ape").expect_code(1);

    let _ = world.proctor(&["procedure", "resume"]).expect_code(1);

    assert_eq!(status(&world)["procedure"], "ape");
    assert_eq!(world.read("../ran"), "zebra\nape\nape\n");
}

/// Fault 26: the name of a run folder is looked for in the wrong place.
#[test]
fn a_run_folder_is_accepted_by_name_and_by_path_from_anywhere() {
    let world = world_with(&format!("records: git\n{}", steps(&[step("work", &[], "test -e ../mended")])));
    let _ = run(&world, "work").expect_code(1);
    let path = record(&world)["folder"].as_str().expect("a folder").to_owned();
    let name = path.rsplit('/').next().expect("a name").to_owned();

    for argument in [name.as_str(), path.as_str(), &format!("{path}/run.procedure-run.card")] {
        for folder in [".", "proctor"] {
            let shown = world.proctor_in(folder, &["procedure", "status", argument, "--json"]).expect_code(0).json();
            assert_eq!(shown["run"], newest_run(&world), "{argument} in {folder}");
        }
    }
    world.write("../mended", "");
    let _ = world.proctor(&["procedure", "resume", &name]).expect_code(0);
}

/// Fault 27: two runs of one procedure exclude each other by a flag that does nothing.
#[test]
fn two_runs_in_one_tree_exclude_each_other_and_there_is_no_flag_against_it() {
    let world = world_with(&steps(&[step("work", &[], HOLD)]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    let _ = run(&world, "work").expect_code(4);
    let _ = world.proctor(&["procedure", "run", "work", "--force"]).expect_code(2);

    open_gate(&world);
    let _ = driver.wait(LIMIT).expect_code(0);
}

/// Fault 28: a second start in the same minute overwrites the record of the first.
#[test]
fn runs_of_one_minute_have_a_folder_each() {
    let world = world_with("records: git\nsteps:\n  - id: work\n    run:\n      shells: ['true']\n");

    for _ in 0..3 {
        let _ = run(&world, "work").expect_code(0);
    }

    let folders = world.run("ls", &["proctor/runs"]).stdout;
    assert_eq!(folders.lines().count(), 3, "{folders}");
}

/// Fault 29: a step with checks and no work completes unchecked.
#[test]
fn checks_without_work_are_carried_out() {
    let world = world_with("steps:\n  - id: work\n    validate:\n      severity: abort\n      shells: ['touch ../checked; exit 1']\n");

    let _ = run(&world, "work").expect_code(1);

    assert!(world.has("../checked"));
}

/// Fault 30: exit 75 in a run shell is a silent success.
#[test]
fn exit_75_of_work_is_a_failure_that_says_where_it_would_skip() {
    let world = world_with("steps:\n  - id: work\n    run:\n      shells: ['exit 75', 'touch ../second']\n");

    let output = run(&world, "work").expect_code(1);

    assert!(output.stderr.contains("run shell 1: exit 75, which skips only in a precheck"), "{output}");
    assert!(!world.has("../second"));
}

/// Fault 31: what a failed check or precheck wrote to stderr is lost, and its cause with it.
#[test]
fn a_failed_check_shows_its_cause_and_both_its_streams() {
    for phase in ["precheck", "validate"] {
        let severity = if phase == "validate" { "      severity: abort\n" } else { "" };
        let world = world_with(&format!(
            "steps:\n  - id: work\n    {phase}:\n{severity}      shells: ['echo to stdout; echo the cause >&2; exit 6']\n"
        ));

        let output = run(&world, "work").expect_code(1);

        assert!(output.stderr.contains(&format!("{phase} shell 1: exit 6")), "{output}");
        let shown = world.proctor(&["procedure", "status"]).expect_code(0).stdout;
        assert!(shown.contains("| to stdout") && shown.contains("| the cause") && shown.contains("exit 6"), "{shown}");
    }
}

/// Fault 32: what a passing precheck printed is thrown away.
#[test]
fn what_a_passing_precheck_printed_is_kept() {
    let world = world_with("steps:\n  - id: work\n    precheck:\n      shells: ['echo three packets; echo a note >&2']\n");

    let _ = run(&world, "work").expect_code(0);

    let session = &record(&world)["steps"][0]["sessions"][0];
    assert_eq!((&session["stdout"]["head"], &session["stderr"]["head"]), (&json!("three packets\n"), &json!("a note\n")));
}

/// Fault 33: no shell has a time limit, and whoever kills it from outside leaves the record open.
#[test]
fn a_shell_has_a_time_limit_and_the_record_says_that_it_was_reached() {
    let mut world = world_with(&steps(&[step("work", &[], "sleep 1000")]));
    world.set_variable("PROCTOR_SHELL_TIMEOUT", "1s");

    let _ = run(&world, "work").expect_code(1);

    let status = status(&world);
    assert_eq!((&status["outcome"], &status["steps"][0]["error"]), (&json!("failed"), &json!("run reached its time limit")));
    wait_for_nothing_left(&world);
}

/// Fault 34: a step of more than an hour looks dead, and housekeeping acts on it.
#[test]
fn a_long_step_is_alive_however_old_its_files_are() {
    let world = world_with(&format!("run-expiry: 0s\nfailed-run-expiry: 0s\n{}", steps(&[step("work", &[], HOLD)])));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    let run_id = newest_run(&world);
    let state = world.state().display().to_string();
    let _ = world.run("find", &[&state, "-exec", "touch", "-h", "-d", "2 days ago", "{}", "+"]).expect_code(0);

    assert_eq!(status(&world)["outcome"], "running");
    let collected = world.proctor(&["procedure", "gc", "--json"]).expect_code(0).json();
    assert_eq!(collected["removed"], json!([]));
    let _ = run(&world, "work").expect_code(4);
    let live = world.proctor(&["procedure", "resume", &run_id]).expect_code(4);
    assert!(live.stderr.contains("it is running"), "{live}");

    open_gate(&world);
    let _ = driver.wait(LIMIT).expect_code(0);
}

/// Fault 35: the first commit takes in whatever was dirty before, under the procedure's name.
#[test]
fn what_was_dirty_before_is_in_no_commit_of_a_run() {
    let world = world_with(&format!("records: git\n{WORKS}"));
    let before = world.git(&["rev-parse", "HEAD"]);
    world.write("README.md", "Edited.\n");
    world.write("own.txt", "own\n");

    let _ = run(&world, "work").expect_code(4);
    let _ = world.proctor(&["procedure", "run", "work", "--allow-dirty"]).expect_code(0);

    let committed = world.git(&["log", "--format=", "--name-only", &format!("{before}..HEAD")]);
    assert!(!committed.contains("README.md") && !committed.contains("own.txt") && committed.contains("work.txt"), "{committed}");
    assert_eq!(uncommitted(&world), [" M README.md", "?? own.txt"]);
}

/// Fault 36: the engine's own edit of its record makes a commit of its own from the second step on, and is in the
/// step's diff.
#[test]
fn each_step_is_one_commit_and_its_record_is_in_no_other() {
    let world = world_with(&format!(
        "records: git\n{}",
        steps(&[
            step("one", &[], "git status --porcelain > ../seen1; echo 1 > 1.txt"),
            step("two", &[], "git status --porcelain > ../seen2; echo 2 > 2.txt"),
            step("three", &[], "true")
        ])
    ));

    let _ = run(&world, "work").expect_code(0);

    assert_eq!((world.read("../seen1").as_str(), world.read("../seen2").as_str()), ("", ""), "a step begins with a clean tree");
    assert_eq!(
        world.commits()[2..],
        [
            "Start procedure: work",
            "[procedure] Complete step: one",
            "[procedure] Complete step: two",
            "[procedure] Complete step: three",
            "Complete procedure: work"
        ]
    );
    let changed = world.git(&["show", "--format=", "--name-only", "HEAD~2"]);
    assert_eq!(changed.lines().filter(|path| !path.ends_with(".procedure-run.card")).collect::<Vec<_>>(), ["2.txt"]);
}

/// Fault 37: a second step of the same id is run and not recorded, unknown keys do nothing, errors name no place.
#[test]
fn mistakes_in_a_card_are_errors_with_their_place() {
    for (keys, place, said) in [
        ("steps:\n  - id: one\n  - id: one\n", "5:", "one"),
        ("steps:\n  - id: one\n    max_turns: 3\n", "5:5", "unknown key `max_turns`"),
        ("steps:\n  - id: one\n    run:\n      shells: 'not a list'\n", "6:15", "list"),
    ] {
        let world = world_with(keys);

        let output = run(&world, "work").expect_code(2);

        assert!(output.stderr.contains(&format!("work.procedure.card:{place}")) && output.stderr.contains(said), "{output}");
    }
}

/// Fault 38: a run of one chosen step is complete with the others pending.
#[test]
fn the_steps_that_were_not_chosen_are_recorded_as_skipped() {
    let world = world_with(&steps(&[step("one", &[], "true"), step("two", &[], "true")]));

    let _ = world.proctor(&["procedure", "run", "work", "--step", "one"]).expect_code(0);

    let status = status(&world);
    let two = &status["steps"][1];
    assert_eq!((&two["state"], &two["reason"]), (&json!("skipped"), &json!("not-selected")));
}

/// Fault 39: a resume runs what an edited card says, steps included that the record does not know.
#[test]
fn a_resume_runs_the_card_as_it_was_and_every_step_that_runs_is_recorded() {
    let world = world_with(&steps(&[step("one", &[], "test -e ../mended"), step("two", &[], "true")]));
    let _ = run(&world, "work").expect_code(1);
    world.write("../mended", "");
    let edited = steps(&[step("one", &[], "true"), step("unknown", &[], "touch ../unknown"), step("two", &[], "true")]);
    world.write("proctor/procedures/work.procedure.card", format!("---\nname: work\n{edited}---\n"));
    world.commit_all("Edit the card");

    let _ = world.proctor(&["procedure", "resume", "--accept-foreign"]).expect_code(0);

    assert!(!world.has("../unknown"));
    let status = status(&world);
    let ids: Vec<&Value> = status["steps"].as_array().expect("steps").iter().map(|step| &step["id"]).collect();
    assert_eq!(ids, ["one", "two"]);
}

/// Fault 40: a resume does not look whether the run is dead.
#[test]
fn a_living_run_is_not_resumed_a_second_time() {
    let world = world_with(&steps(&[step("work", &[], &format!("echo . >> ../ran; {HOLD}"))]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    for _ in 0..2 {
        let refused = world.proctor(&["procedure", "resume"]).expect_code(4);
        assert!(refused.stderr.contains("it is running"), "{refused}");
    }

    assert!(!driver.ends_within(Duration::ZERO));
    open_gate(&world);
    let _ = driver.wait(LIMIT).expect_code(0);
    assert_eq!(world.read("../ran"), ".\n");
}

/// Fault 44: large output goes into the record and into git as it is.
#[test]
fn large_output_leaves_head_and_tail_in_the_record_and_little_in_git() {
    let world = world_with(
        "records: git\nsteps:\n  - id: work\n    run:\n      shells: ['echo first; head -c 3000000 /dev/zero | tr \"\\0\" a; echo last; exit 1']\n",
    );

    let _ = run(&world, "work").expect_code(1);

    let stdout = record(&world)["steps"][0]["sessions"][0]["stdout"].clone();
    let (head, tail) = (stdout["head"].as_str().expect("a head"), stdout["tail"].as_str().expect("a tail"));
    assert_eq!((head.len(), tail.len()), (4 * 1024, 12 * 1024));
    assert!(head.starts_with("first\na") && tail.ends_with("alast\n"));
    assert_eq!(stdout["omitted"], 3_000_000 + 11 - 16 * 1024);
    let card = world.git(&["ls-tree", "-r", "-l", "HEAD", "proctor/runs"]);
    let size: usize = card.split_whitespace().nth(3).and_then(|size| size.parse().ok()).expect("a size");
    assert!(size < 40 * 1024, "{card}");
}
