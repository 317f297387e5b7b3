//! The procedures of `examples/`, each in a real repository, its agent played by the script that is shipped with it.

use std::fs;
use std::path::{Path, PathBuf};

use proctor_testkit::{Output, World};

use crate::world;

const CHECKLIST: [&str; 4] = ["--input", "name=logging", "--input", "goal=Call log and not print"];
pub(crate) const TESTED: [&str; 2] = ["--input", "test-command=sh check"];
pub(crate) const RELEASED: [&str; 4] = ["--input", "test-command=sh check", "--input", "version=1.2.0"];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A project that is tested by `sh check`, with every example among its procedures. What is `replaced` in the scripts
/// makes their agents fail.
pub(crate) fn project(replaced: (&str, &str)) -> World {
    let world = world()
        .with_file("VERSION", "1.2.0\n")
        .with_file(
            "check",
            "case $(cat dependencies.txt) in *1) want=hello;; *) want=greet;; esac\ngrep $want program || { echo want $want; exit 1; }\n",
        )
        .with_file("dependencies.txt", "greeting 1\n")
        .with_file("program", "hello Ann\n")
        .with_file("src/main.sh", "#!/bin/sh\nwc -w < \"$1\" 2>/dev/null || echo 0 # TODO\n");
    for name in ["a", "b", "c"] {
        world.write(format!("src/{name}"), format!("print {name}\n"));
    }
    for (folder, target) in [("procedures", "proctor/procedures"), ("scripts", "scripts")] {
        for file in fs::read_dir(examples().join(folder)).expect("the examples") {
            let path = file.expect("a file").path();
            let text = fs::read_to_string(&path).expect("a text").replace(replaced.0, replaced.1);
            world.write(Path::new(target).join(path.file_name().expect("a name")), text);
        }
    }
    world.commit_all("Begin");
    world
}

fn run(world: &World, procedure: &str, inputs: &[&str]) -> Output {
    let script = format!("scripts/{procedure}.toml");
    world.proctor(&[&["procedure", "run", procedure, "--script", &script], inputs].concat())
}

/// Runs `release-check` to its question, and answers it.
fn answered(world: &World, answer: &str) -> Output {
    let parked = run(world, "release-check", &RELEASED).expect_code(5);
    let id = parked.stderr.split([':', ' ']).find(|word| word.starts_with("run_")).expect("an id").to_owned();
    let _ = world.proctor(&["answer", &id, answer]).expect_code(0);
    world.proctor(&["procedure", "resume", &id, "--script", "scripts/release-check.toml"])
}

#[test]
fn every_example_is_a_card_without_findings() {
    let output = project(("", "")).proctor(&["procedure", "lint"]).expect_code(0);

    assert_eq!(output.stderr.trim(), "4 cards checked, no findings", "{output}");
}

#[test]
fn release_check_tags_nothing_that_a_person_rejects() {
    let world = project(("", ""));

    let output = answered(&world, "reject").expect_code(1);

    assert!(output.stderr.contains("✗ tag: failed"), "{output}");
    assert_eq!(world.git(&["tag"]), "");
}

#[test]
fn release_check_stops_at_a_version_that_the_project_does_not_say() {
    let world = project(("", ""));

    let _ = run(&world, "release-check", &[&TESTED[..], &["--input", "version=2.0.0"]].concat()).expect_code(1);

    let status = world.proctor(&["procedure", "status"]).expect_code(0);
    assert!(status.stdout.contains("| VERSION does not say 2.0.0"), "{status}");
}

#[test]
fn release_check_drafts_the_changelog_and_tags_once_a_person_says_so() {
    let world = project(("", ""));

    let _ = answered(&world, "approve").expect_code(0);

    assert_eq!(world.read("CHANGELOG.md"), "# 1.2.0\n\n- Count words in a file that is given by its name\n\n");
    assert_eq!(world.git(&["rev-parse", "v1.2.0^{commit}"]), world.git(&["rev-parse", "HEAD"]));
}

#[test]
fn a_project_that_nobody_knows_how_to_test_is_not_touched() {
    let world = project(("", ""));

    let _ = run(&world, "dependency-update", &[]).expect_code(1);

    let status = world.proctor(&["procedure", "status"]).expect_code(0);
    assert!(status.stdout.contains("| found no way to test this project; say it with --input test-command=…"), "{status}");
}

#[test]
fn dependency_update_that_stays_broken_is_merged_nowhere() {
    let world = project(("sed -i 's/hello/greet/' program", "true"));

    let _ = run(&world, "dependency-update", &TESTED).expect_code(1);

    assert_eq!((world.read("dependencies.txt"), world.commits().len()), ("greeting 1\n".to_owned(), 2));
    assert!(world.git(&["branch"]).contains("proctor/dependency-update-"));
    let status = world.proctor(&["procedure", "status"]).expect_code(0);
    assert!(status.stdout.contains("| want greet"), "{status}");
}

#[test]
fn dependency_update_repairs_what_it_broke_and_is_merged() {
    let world = project(("", ""));

    let output = run(&world, "dependency-update", &TESTED).expect_code(0);

    assert!(output.stderr.contains("dependency-update, 3 steps; works in a worktree of its own, made for main\n"), "{output}");
    assert!(output.stderr.contains("  agent\n") && output.stderr.contains("  repair\n"), "{output}");
    assert_eq!((world.read("dependencies.txt"), world.read("program")), ("greeting 2\n".to_owned(), "greet Ann\n".to_owned()));
    assert!(world.commits().ends_with(&["Update greeting to 2".to_owned(), "Adapt to greeting 2".to_owned()]), "{:?}", world.commits());
    assert_eq!(world.git(&["branch", "--list", "proctor/*"]), "");
}

#[test]
fn repository_audit_marks_a_report_that_can_not_be_acted_on() {
    let world = project(("passed = true", "passed = false"));

    let output = run(&world, "repository-audit", &[]).expect_code(0);

    assert!(output.stderr.contains("✓ audit: completed") && output.stderr.contains("(warning: "), "{output}");
}

#[test]
fn repository_audit_without_a_report_has_failed_and_no_judge_was_asked() {
    let world = project(("cat > \"$STEP_REPORT_PATH\" <<", "cat <<"));

    let output = run(&world, "repository-audit", &[]).expect_code(1);

    assert!(output.stderr.contains("✗ audit: failed") && !output.stderr.contains("judge"), "{output}");
}

#[test]
fn repository_audit_writes_a_report_and_has_nothing_to_do_until_something_is_committed() {
    let world = project(("", ""));

    let _ = run(&world, "repository-audit", &[]).expect_code(0);
    let again = run(&world, "repository-audit", &[]).expect_code(75);

    let reports: Vec<_> = fs::read_dir(world.repository().join("audits")).expect("reports").collect();
    assert_eq!(reports.len(), 1);
    assert!(again.stderr.contains("audit: skipped (condition)"), "{again}");
}

#[test]
fn checklist_migration_fails_with_the_items_that_are_open() {
    let world = project((r"sed -i 's/\\[ \\]/[x]/'", "true"));

    let _ = run(&world, "checklist-migration", &CHECKLIST).expect_code(1);

    let status = world.proctor(&["procedure", "status"]).expect_code(0);
    assert!(
        status.stdout.contains("| not done yet in proctor/checklists/logging.checklist.md:\n    | 7:- [ ] src/c: call `log`"),
        "{status}"
    );
    assert_eq!(world.read("src/a"), "print a\n");
}

#[test]
fn checklist_migration_does_every_item_and_is_merged() {
    let world = project(("", ""));

    let _ = run(&world, "checklist-migration", &CHECKLIST).expect_code(0);

    assert_eq!(["a", "b", "c"].map(|name| world.read(format!("src/{name}"))), ["log a\n", "log b\n", "log c\n"]);
    assert_eq!(world.read("proctor/checklists/logging.checklist.md").matches("- [x]").count(), 3);
}
