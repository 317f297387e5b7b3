//! What a run leaves in the repository: its commits, and in each of them a run card that is true of it.

use std::collections::BTreeSet;
use std::fs;

use proctor_cards::{RunCard, StepStatus, read_run_card};
use proctor_domain::procedure::Outcome;
use proctor_domain::retention::Expires;
use proctor_testkit::World;

use crate::git_matrix::{WAIT, hook, is_clean, made, steps};
use crate::procedures::{kill_all, let_go, newest_run, start_waiting};
use crate::world;

/// The run folders in the working tree, sorted.
fn folders(world: &World, runs: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(world.repository().join(runs)) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The run card of the only run folder, as a commit holds it.
fn card_in(world: &World, runs: &str, commit: &str) -> Option<RunCard> {
    let [folder] = &folders(world, runs)[..] else { panic!("one run folder was expected: {:?}", folders(world, runs)) };
    let text = world.try_git(&["show", &format!("{commit}:{runs}/{folder}/run.procedure-run.card")]);
    (text.code == Some(0)).then(|| read_run_card(&text.stdout).unwrap_or_else(|finding| panic!("{finding}\n{}", text.stdout)))
}

fn word(card: &RunCard) -> String {
    let steps: Vec<String> = card.steps.iter().map(|step| format!("{}={}", step.id, step.status.name())).collect();
    format!("{} {}", card.outcome.map_or("open", Outcome::name), steps.join(" "))
}

/// Each commit since the procedure was added: its subject, and what the card in it says.
fn history(world: &World, runs: &str) -> Vec<(String, String)> {
    let listed = world.git(&["log", "--reverse", "--format=%H %s"]);
    let commits = listed.lines().filter_map(|line| line.split_once(' '));
    let commits = commits.skip_while(|(_, subject)| !subject.starts_with("Add ")).skip(1);
    commits.map(|(commit, subject)| (subject.to_owned(), card_in(world, runs, commit).as_ref().map(word).unwrap_or_default())).collect()
}

fn told(history: &[(String, String)]) -> Vec<(&str, &str)> {
    history.iter().map(|(subject, card)| (subject.as_str(), card.as_str())).collect()
}

fn trailers(world: &World, commit: &str) -> Vec<String> {
    world.git(&["log", "-1", "--format=%(trailers:only,unfold)", commit]).lines().map(str::to_owned).collect()
}

const RUNS: &str = "proctor/runs";

/// Skipped, changing, quiet, skipped by its condition, changing.
const MIXED: &str = "\
description: All kinds of steps
records: git
inputs:
  - name: colour
    type: string
    default: red
steps:
  - id: needless
    precheck:
      shells: ['echo not now; exit $CHECK_SKIP']
    run:
      shells: ['false']
  - id: make
    run:
      shells: ['echo one > out.txt; echo size=4 >> $PROCTOR_OUTPUT']
  - id: quiet
    run:
      shells: ['echo nothing to see']
  - id: other
    when: inputs.colour == 'blue'
    run:
      shells: ['false']
  - id: last
    run:
      shells: ['echo two >> out.txt; rm README.md']
    validate:
      shells: ['test -s out.txt']
";

// --- records: git

#[test]
fn every_commit_of_a_run_holds_a_card_that_is_true_of_it() {
    let world = world().with_card("work", MIXED);

    let _ = world.proctor(&["procedure", "run", "work", "--directive", "be: \"quick\"\n- and neat"]).expect_code(0);

    assert_eq!(
        told(&history(&world, RUNS)),
        [
            ("Start procedure: work", "open needless=skipped make=running quiet=pending other=pending last=pending"),
            ("[procedure] Complete step: make", "open needless=skipped make=completed quiet=pending other=pending last=pending"),
            ("[procedure] Complete step: quiet", "open needless=skipped make=completed quiet=completed other=pending last=pending"),
            ("[procedure] Complete step: last", "open needless=skipped make=completed quiet=completed other=skipped last=completed"),
            ("Complete procedure: work", "completed needless=skipped make=completed quiet=completed other=skipped last=completed"),
        ]
    );
    assert!(is_clean(&world));
    let card = card_in(&world, RUNS, "HEAD").expect("the card");
    assert_eq!(card.procedure, "proctor/procedures/work.procedure.card");
    assert_eq!(card.run.map(|run| run.to_string()), Some(newest_run(&world)));
    assert_eq!(card.directive.as_deref(), Some("be: \"quick\"\n- and neat"));
    assert_eq!(card.inputs.get("colour").map(String::as_str), Some("red"));
    assert_eq!(card.steps[1].outputs.get("size").map(String::as_str), Some("4"));
    let (ended, Expires::At(expires)) = (card.completed_at.expect("its end"), card.expires) else { panic!("it expires") };
    assert_eq!(expires.millis_since(ended), 30 * 24 * 3_600_000);
}

#[test]
fn each_commit_takes_exactly_the_steps_files_and_the_record() {
    let world = world().with_card("work", MIXED);
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    let run = newest_run(&world);

    let changed = |commit: &str| world.git(&["show", "--format=", "--name-status", "--no-renames", commit]);
    let card = format!("{RUNS}/{}/run.procedure-run.card", folders(&world, RUNS)[0]);

    assert_eq!(changed("HEAD~4"), format!("A\t{card}"));
    assert_eq!(changed("HEAD~3"), format!("A\tout.txt\nM\t{card}"));
    assert_eq!(changed("HEAD~2"), format!("M\t{card}"));
    assert_eq!(changed("HEAD~1"), format!("D\tREADME.md\nM\tout.txt\nM\t{card}"));
    assert_eq!(changed("HEAD"), format!("M\t{card}"));
    let common = ["Procedure: work".to_owned(), format!("Run: {run}")];
    assert_eq!(trailers(&world, "HEAD~4"), common);
    assert_eq!(trailers(&world, "HEAD~3"), [&common[..], &["Step: make".to_owned(), "Attempt: 1".to_owned()]].concat());
    assert_eq!(trailers(&world, "HEAD"), common);
}

#[test]
fn a_run_in_which_all_was_skipped_leaves_nothing() {
    let world = world().with_card(
        "work",
        "description: d\nrecords: git\nsteps:\n  - id: a\n    precheck:\n      shells: ['exit 75']\n    run:\n      shells: ['false']\n  - id: b\n    when: 'false'\n    run:\n      shells: ['false']\n",
    );
    let before = world.git(&["rev-parse", "HEAD"]);

    let run = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(75).json();

    assert_eq!(run["outcome"], "skipped");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), before);
    assert!(!world.has(RUNS));
    assert!(is_clean(&world));
    assert_eq!(world.proctor(&["runs", "--json"]).json()["runs"], serde_json::json!([]));
    assert_eq!(world.proctor(&["runs", "--all", "--json"]).json()["runs"].as_array().map(Vec::len), Some(1));
}

const FAILS: &str = "\
description: Fails once
records: git
steps:
  - id: make
    run:
      shells: ['echo one > out.txt']
  - id: check
    precheck:
      shells: ['test ! -e ../unprepared']
    run:
      shells: ['echo half > half.txt; test -e ../fixed']
  - id: last
    run:
      shells: ['echo two >> out.txt']
";

#[test]
fn a_failed_step_is_committed_and_a_resume_appends_to_the_record() {
    let world = world().with_card("work", FAILS);
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(1);
    let failed = card_in(&world, RUNS, "HEAD").expect("the card");
    let left = world.git(&["status", "--porcelain", "-uall"]);
    world.write("../fixed", "");

    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert_eq!(
        told(&history(&world, RUNS)),
        [
            ("Start procedure: work", "open make=running check=pending last=pending"),
            ("[procedure] Complete step: make", "open make=completed check=pending last=pending"),
            ("[procedure] Failed step: check", "open make=completed check=failed last=pending"),
            ("Failed procedure: work", "failed make=completed check=failed last=pending"),
            ("[procedure] Complete step: check", "open make=completed check=completed last=pending"),
            ("[procedure] Complete step: last", "open make=completed check=completed last=completed"),
            ("Complete procedure: work", "completed make=completed check=completed last=completed"),
        ]
    );
    // A failed step's files are in its commit or in the tree, never gone.
    assert!(left.is_empty() || left.contains("half.txt"), "{left}");
    assert_eq!(world.git(&["show", "HEAD:half.txt"]), "half");
    assert!(is_clean(&world));
    let (ended, Expires::At(expires)) = (failed.completed_at.expect("its end"), failed.expires) else { panic!("it expires") };
    assert_eq!(expires.millis_since(ended), 90 * 24 * 3_600_000);
    let card = card_in(&world, RUNS, "HEAD").expect("the card");
    assert_eq!(card.steps[1].attempts, 2);
    assert_eq!(card.started_at, failed.started_at);
}

#[test]
fn a_failed_precheck_is_named_in_the_subject() {
    let world = world().with_card("work", FAILS);
    world.write("../unprepared", "");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(1);

    assert_eq!(
        made(&world),
        ["Start procedure: work", "[procedure] Complete step: make", "[procedure] Failed step: check (precheck)", "Failed procedure: work"]
    );
    let card = card_in(&world, RUNS, "HEAD").expect("the card");
    assert_eq!(card.steps[1].status, StepStatus::Failed);
    assert!(is_clean(&world));
}

#[test]
fn runs_of_one_minute_get_folders_of_their_own() {
    let world = world().with_card("work", &steps("git", &[("make", "date +%N > out.txt")]));

    // Of three runs within a minute two have the same minute in their names.
    for _ in 0..3 {
        let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    }

    let names = folders(&world, RUNS);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("-2")), "{names:?}");
    for name in &names {
        let shape: String = name.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
        assert!(["work_0000-00-00T0000", "work_0000-00-00T0000-0"].contains(&shape.as_str()), "{name}");
    }
    let ids: BTreeSet<String> = names
        .iter()
        .map(|name| {
            read_run_card(&world.read(format!("{RUNS}/{name}/run.procedure-run.card"))).expect("a card").run.expect("its id").to_string()
        })
        .collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn bookkeeping_skips_hooks_and_work_runs_them() {
    let world = world().with_card("work", MIXED);
    hook(&world, "pre-commit", "git log -1 --format=%s >> ../hooked");
    hook(&world, "commit-msg", "head -n 1 \"$1\" >> ../checked");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    assert_eq!(world.read("../checked"), "[procedure] Complete step: make\n[procedure] Complete step: last\n");
    assert_eq!(world.read("../hooked").lines().count(), 2);
}

#[test]
fn a_refused_commit_leaves_the_record_without_the_files_and_the_tree_keeps_them() {
    let world = world().with_card("work", &steps("git", &[("make", "echo one > out.txt"), ("last", "echo two >> out.txt")]));
    hook(&world, "pre-commit", "echo 'not on a Monday' >&2; exit 1");

    let failed = world.proctor(&["procedure", "run", "work"]).expect_code(1);

    assert!(failed.stderr.contains("not on a Monday"), "{failed}");
    assert_eq!(
        told(&history(&world, RUNS)),
        [
            ("Start procedure: work", "open make=running last=pending"),
            ("[procedure] Failed step: make", "open make=failed last=pending"),
            ("Failed procedure: work", "failed make=failed last=pending"),
        ]
    );
    assert_eq!(world.git(&["status", "--porcelain", "-uall"]), "?? out.txt");
    assert_eq!(world.read("out.txt"), "one\n");
    let status = world.proctor(&["procedure", "status"]).expect_code(0);
    assert!(status.stdout.contains("not on a Monday"), "{status}");
    let shown = world.proctor(&["show", &newest_run(&world)]).expect_code(0);
    assert!(shown.stdout.contains("left         out.txt"), "what stays uncommitted is listed: {shown}");

    fs::remove_file(world.repository().join(".git/hooks/pre-commit")).expect("the hook");
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!(made(&world)[3..], ["[procedure] Complete step: make", "[procedure] Complete step: last", "Complete procedure: work"]);
    assert_eq!(world.git(&["show", "HEAD:out.txt"]), "one\ntwo");
    assert!(is_clean(&world));
}

#[test]
fn cards_stay_true_when_the_driver_dies_and_the_run_is_resumed() {
    let world = world().with_card("work", &steps("git", &[("make", "echo one > out.txt"), ("wait", &format!("echo x > waited; {WAIT}"))]));
    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    kill_all(&world, driver);
    let_go(&world);

    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert_eq!(
        told(&history(&world, RUNS)),
        [
            ("Start procedure: work", "open make=running wait=pending"),
            ("[procedure] Complete step: make", "open make=completed wait=pending"),
            ("[procedure] Complete step: wait", "open make=completed wait=completed"),
            ("Complete procedure: work", "completed make=completed wait=completed"),
        ]
    );
    assert_eq!(trailers(&world, "HEAD~1").last().map(String::as_str), Some("Attempt: 2"));
}

#[test]
fn a_step_that_commits_itself_gets_a_record_of_its_commits() {
    let world = world().with_card(
        "work",
        &steps("git", &[("own", "echo one > out.txt; git add out.txt; git commit -qm 'By the step'; echo more > more.txt")]),
    );

    let run = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(0).json();

    assert_eq!(made(&world), ["Start procedure: work", "By the step", "[procedure] Complete step: own", "Complete procedure: work"]);
    assert_eq!(run["steps"][0]["commits"].as_array().map(Vec::len), Some(2));
    let own = world.git(&["rev-parse", "HEAD~2"]);
    let card = card_in(&world, RUNS, "HEAD~1").expect("the card");
    assert_eq!(card.steps[0].commits.iter().map(|commit| commit.0.as_str()).collect::<Vec<_>>(), [own]);
}

#[test]
fn a_step_that_removes_the_record_does_not_lose_it() {
    let world = world().with_card(
        "work",
        &steps("git", &[("clean", "echo x > out.txt; git rm -rq --cached proctor/runs; rm -rf proctor/runs"), ("last", "true")]),
    );

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    assert_eq!(
        told(&history(&world, RUNS)).last().copied(),
        Some(("Complete procedure: work", "completed clean=completed last=completed"))
    );
    assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
}

// --- records: state

#[test]
fn in_state_each_changing_step_is_one_commit_and_nothing_else_is() {
    let world = world().with_card("work", &MIXED.replace("records: git", "records: state"));

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    let run = newest_run(&world);
    assert_eq!(made(&world), ["[procedure] Complete step: make", "[procedure] Complete step: last"]);
    assert_eq!(
        trailers(&world, "HEAD"),
        ["Procedure: work".to_owned(), format!("Run: {run}"), "Step: last".to_owned(), "Attempt: 1".to_owned()]
    );
    assert!(!world.has(RUNS));
    assert!(is_clean(&world));
}

#[test]
fn in_state_a_failed_run_commits_nothing_for_the_failed_step() {
    let world = world().with_card("work", &FAILS.replace("records: git", "records: state"));
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(1);
    assert_eq!(made(&world), ["[procedure] Complete step: make"]);
    world.write("../fixed", "");

    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert_eq!(made(&world), ["[procedure] Complete step: make", "[procedure] Complete step: check", "[procedure] Complete step: last"]);
    assert!(is_clean(&world));
}

#[test]
fn in_state_a_run_without_work_is_one_line_that_is_hidden_unless_asked_for() {
    let skips = "description: d\nsteps:\n  - id: a\n    precheck:\n      shells: ['exit 75']\n    run:\n      shells: ['false']\n";
    let world = world().with_card("work", skips).with_card("empty", "description: d\nsteps: []\n");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(75);
    let _ = world.proctor(&["procedure", "run", "empty"]).expect_code(75);

    assert_eq!(world.proctor(&["runs"]).expect_code(0).stdout, "");
    let all = world.proctor(&["runs", "--all"]).expect_code(0);
    assert_eq!(all.stdout.lines().count(), 2, "{all}");
    assert_eq!(made(&world), ["Add procedure empty"]);
}

// --- the beebox layout

const BOX_CARD: &str = "---
name: tidy-seeds
description: Sort new seed packets into beds
run-expiry: 6w
failed-run-expiry: never
steps:
  - id: sort
    precheck:
      pass-output: true
      shells: ['test -e new.txt || exit $CHECK_SKIP; cat new.txt']
    run:
      shells: ['mkdir -p _content/beds; mv new.txt _content/beds/one.txt']
    validate:
      severity: review
      shells: ['test -e ../approved']
---
";

fn bee_box() -> World {
    let world = world();
    world.write(
        "_config/box.json",
        "{\"version\": \"1\", \"shapeVersion\": 3, \"timezone\": \"Europe/Berlin\", \"agentEngine\": \"claude\"}\n",
    );
    world.write("_config/procedures/tidy-seeds.procedure.card", BOX_CARD);
    world.write("new.txt", "basil\n");
    world.commit_all("Add the box");
    world
}

const BOX_RUNS: &str = "_bookkeeping/procedure/runs";

#[test]
fn a_box_is_run_with_its_own_layout_and_records() {
    let world = bee_box();
    world.write("../approved", "");

    let linted = world.proctor(&["procedure", "lint"]).expect_code(1);
    let _ = world.proctor(&["procedure", "run", "tidy-seeds"]).expect_code(0);

    assert!(linted.to_string().contains("warning") && linted.to_string().contains("review"), "{linted}");
    assert_eq!(
        told(&history(&world, BOX_RUNS)),
        [
            ("Start procedure: tidy-seeds", "open sort=running"),
            ("[procedure] Complete step: sort", "open sort=completed"),
            ("Complete procedure: tidy-seeds", "completed sort=completed"),
        ]
    );
    assert!(folders(&world, BOX_RUNS)[0].starts_with("tidy-seeds_"));
    let card = card_in(&world, BOX_RUNS, "HEAD").expect("the card");
    assert_eq!(card.procedure, "_config/procedures/tidy-seeds.procedure.card");
    let (ended, Expires::At(expires)) = (card.completed_at.expect("its end"), card.expires) else { panic!("it expires") };
    assert_eq!(expires.millis_since(ended), 6 * 7 * 24 * 3_600_000);
    assert_eq!(world.git(&["show", "HEAD:_content/beds/one.txt"]), "basil");

    let before = world.commits();
    let _ = world.proctor(&["procedure", "run", "tidy-seeds"]).expect_code(75);
    assert_eq!(world.commits(), before);
    assert_eq!(folders(&world, BOX_RUNS).len(), 1);
}

#[test]
fn in_a_box_a_review_without_an_agent_fails_when_its_check_fails() {
    let world = bee_box();

    let failed = world.proctor(&["procedure", "run", "tidy-seeds", "--json"]).expect_code(1).json();

    assert_eq!((&failed["steps"][0]["state"], &failed["steps"][0]["validate"]["result"]), (&"failed".into(), &"fail".into()));
    assert_eq!(
        told(&history(&world, BOX_RUNS)),
        [
            ("Start procedure: tidy-seeds", "open sort=running"),
            ("[procedure] Failed step: sort", "open sort=failed"),
            ("Failed procedure: tidy-seeds", "failed sort=failed"),
        ]
    );
    assert_eq!(card_in(&world, BOX_RUNS, "HEAD").expect("the card").expires, Expires::Never);
}
