//! Runs in a worktree and branch of their own: what the user's checkout sees of them, and what is left when they are over.

use std::fs;
use std::path::PathBuf;

use proctor_domain::procedure::{HaltReason, Outcome, Position};
use proctor_testkit::{Background, Output, World};

use crate::agent_scene::{in_box, made, run_of, wait_until_printed, world_of, write_script};
use crate::procedures::{LIMIT, newest_run};
use crate::scene::{status, uncommitted, wait_for_nothing_left};

const CARD: &str =
    "isolation: worktree\nsteps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n      shells: ['test -f built']\n";

const BUILDS: &str = "[[default.turn]]\ndo = [{ write = { path = 'built', content = 'x' } }]\n";

/// An agent that waits in the middle for a file beside the repository's state, which everyone can read.
fn waits(world: &World) -> String {
    let go = world.root().join("go");
    format!(
        "[[default.turn]]\ndo = [{{ write = {{ path = 'built', content = 'x' }} }}, {{ say = 'waiting' }}, {{ wait = {{ file = '{}' }} }}]\n",
        go.display()
    )
}

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

fn merge(world: &World) -> Output {
    world.proctor(&["procedure", "merge", &newest_run(world)])
}

/// Something that a person does in their checkout.
type Deed = fn(&World);

/// A run that waits in its agent.
fn started(world: &World) -> Background {
    write_script(world, &waits(world));
    let driver = world.start(&["procedure", "run", "work"]);
    wait_until_printed(world, "waiting");
    driver
}

fn let_go(world: &World, driver: Background) -> Output {
    world.write("../go", "");
    driver.wait(LIMIT)
}

fn worktrees(world: &World) -> usize {
    world.git(&["worktree", "list", "--porcelain"]).lines().filter(|line| line.starts_with("worktree ")).count()
}

fn branches(world: &World) -> Vec<String> {
    world.git(&["branch", "--format=%(refname:short)"]).lines().map(str::to_owned).collect()
}

fn folder(world: &World) -> PathBuf {
    world.state().join("worktrees").join(newest_run(world))
}

/// Nothing but the user's own checkout and branch is there.
#[track_caller]
fn assert_clean(world: &World) {
    assert_eq!((worktrees(world), branches(world)), (1, vec!["main".to_owned()]));
    assert_eq!(world.git(&["worktree", "prune", "--dry-run", "--verbose"]), "");
    assert!(!folder(world).exists());
    wait_for_nothing_left(world);
}

#[test]
fn a_completed_run_is_merged_forward_and_leaves_nothing() {
    let world = world_of(CARD, BUILDS);

    let output = run(&world).expect_code(0);

    assert_eq!(made(&world), ["[procedure] build: update built"], "{output}");
    assert_eq!((world.read("built").as_str(), uncommitted(&world).len()), ("x", 0));
    assert_eq!(run_of(&world).merged.map(|commit| commit.0), Some(world.git(&["rev-parse", "HEAD"])));
    assert_clean(&world);
}

#[test]
fn while_it_works_the_checkout_is_the_users_and_then_it_is_merged() {
    let world = world_of(CARD, "").with_card("other", "steps:\n  - id: touch\n    run:\n      shells: ['echo y > other']\n");
    let driver = started(&world);

    assert_eq!((uncommitted(&world).len(), world.has("built"), worktrees(&world)), (0, false, 2));
    // Another run and a commit of the user's, and a file that is nobody's business.
    let _ = world.proctor(&["procedure", "run", "other"]).expect_code(0);
    world.write("mine", "x");
    world.commit_all("Meanwhile");
    world.write("notes", "mine");
    let _ = let_go(&world, driver).expect_code(0);

    let subjects = made(&world);
    assert_eq!(subjects.last().map(String::as_str), Some("Merge procedure: work"), "{subjects:?}");
    assert!(["Meanwhile", "[procedure] build: update built"].iter().all(|one| subjects.iter().any(|subject| subject == one)));
    assert_eq!(world.git(&["rev-list", "--parents", "-1", "HEAD"]).split(' ').count(), 3);
    assert!(world.git(&["log", "-1", "--format=%(trailers:key=Run,valueonly)"]).starts_with("run_"));
    assert_eq!((world.has("built"), uncommitted(&world)), (true, vec!["?? notes".to_owned()]));
    assert_eq!((worktrees(&world), branches(&world).len()), (1, 1));
}

#[test]
fn a_driver_that_dies_after_the_merge_leaves_the_users_own_worktree_alone() {
    let mut world = world_of(CARD, BUILDS);
    world.git(&["worktree", "add", "-q", "-b", "linked", "../linked"]);
    world.write("../linked/notes", "the user's\n");
    let log = world.root().join("points");
    world.set_variable("PROCTOR_KILLPOINT_LOG", &log);
    let _ = world.proctor_in("../linked", &["procedure", "run", "work", "--allow-dirty"]).expect_code(0);
    world.remove_variable("PROCTOR_KILLPOINT_LOG");
    let points = world.read(&log);
    let merged = points.lines().position(|line| line.ends_with("after merge")).expect("the merge") + 1;
    let _ = world.run_in("../linked", "git", &["reset", "-q", "--hard", "HEAD~1"]).expect_code(0);

    // Once the merge is recorded, and before the end is.
    world.set_variable("PROCTOR_KILLPOINT", format!("driver:{}", merged + 2));
    assert_eq!(world.proctor_in("../linked", &["procedure", "run", "work", "--allow-dirty"]).signal, Some(9));
    world.remove_variable("PROCTOR_KILLPOINT");
    assert!(run_of(&world).merged.is_some());
    let run = newest_run(&world);
    let _ = world.proctor_in("../linked", &["procedure", "resume", &run]).expect_code(0);

    assert_eq!((world.read("../linked/notes").as_str(), world.has("../linked/built")), ("the user's\n", true));
    assert_eq!((worktrees(&world), branches(&world)), (2, vec!["linked".to_owned(), "main".to_owned()]));
}

#[test]
fn what_stands_in_the_way_of_the_merge_parks_the_run_and_names_its_branch() {
    let hindrances: [(&str, Deed, Deed); 3] = [
        ("uncommitted changes: README.md", |world| world.write("README.md", "edited"), |world| drop(world.git(&["checkout", "-q", "."]))),
        ("`side`", |world| drop(world.git(&["switch", "-qc", "side"])), |world| drop(world.git(&["switch", "-q", "main"]))),
        (
            "conflicts",
            |world| {
                world.write("built", "the user's own");
                world.commit_all("Built by hand");
            },
            |world| drop(world.git(&["reset", "-q", "--hard", "HEAD~1"])),
        ),
    ];
    for (words, hinder, clear) in hindrances {
        let world = world_of(CARD, "");
        let driver = started(&world);
        hinder(&world);
        let before = world.git(&["rev-parse", "HEAD"]);

        let output = let_go(&world, driver).expect_code(5);

        let branch = format!("proctor/work-{}", newest_run(&world).trim_start_matches("run_"));
        assert!(output.stderr.contains(words) && output.stderr.contains(&branch) && output.stderr.contains("procedure merge"), "{output}");
        assert_eq!(world.git(&["rev-parse", "HEAD"]), before, "nothing was touched");
        assert!(matches!(run_of(&world).halt, Some(HaltReason::NotMerged { .. })));
        let again = merge(&world).expect_code(5);
        assert!(again.stderr.contains(words), "{again}");

        clear(&world);
        let _ = merge(&world).expect_code(0);

        assert_eq!((world.read("built").as_str(), status(&world)["outcome"].as_str()), ("x", Some("completed")));
        assert_eq!(worktrees(&world), 1);
        let _ = merge(&world).expect_code(4);
    }
}

#[test]
fn a_failed_run_keeps_its_worktree_and_goes_on_there() {
    let world = world_of(CARD, "[[default.turn]]\ndo = [{ write = { path = 'half', content = 'x' } }]");

    let _ = run(&world).expect_code(1);

    assert_eq!((worktrees(&world), world.has("half"), uncommitted(&world).len()), (2, false, 0));
    assert!(folder(&world).join("half").exists());
    write_script(&world, BUILDS);
    let _ = world.proctor(&["procedure", "resume", &newest_run(&world)]).expect_code(0);
    assert!(world.has("half") && world.has("built"));
    assert_clean(&world);
}

#[test]
fn a_skipped_run_leaves_nothing() {
    let card = "isolation: worktree\nsteps:\n  - id: build\n    precheck:\n      shells: ['exit 75']\n    run:\n      agents:\n        - prompt: Build it\n";
    let world = world_of(card, BUILDS);

    let _ = run(&world).expect_code(75);

    assert_eq!(made(&world), [""; 0]);
    assert_clean(&world);
}

#[test]
fn an_inconclusive_run_keeps_its_branch_until_a_person_merges_it() {
    let card = format!("{CARD}    validate:\n      severity: abort\n      instructions: ['It is good']\n");
    let prose = "[[scenario]]\ncontains = 'Judge the work'\nturn = [{ do = [{ say = 'Nice.' }] }]\n";
    let world = world_of(&card, &format!("{prose}{BUILDS}"));

    let output = run(&world).expect_code(3);

    assert_eq!((worktrees(&world), branches(&world).len(), world.has("built")), (2, 2, false), "{output}");
    assert!(output.stderr.contains("procedure merge"), "{output}");
    // Merged it is, and still without a verdict.
    let merged = merge(&world).expect_code(3);
    assert!(merged.stderr.contains("merged;"), "{merged}");
    assert_eq!(run_of(&world).position, Position::Ended(Outcome::Inconclusive));
    assert!(world.has("built"));
    assert_clean(&world);
}

#[test]
fn an_agent_that_deletes_its_worktree_takes_nothing_with_it_but_that() {
    for (text, words) in [
        ("rm -rf \"$PWD\"", ".git was removed"),
        ("rm -rf .git", ".git was removed"),
        ("rm -rf \"$PWD\"/* && git add -A && git commit -qm Gone", "run shell 1: exit 1"),
    ] {
        let world = in_box(
            world_of(
                CARD,
                &format!("[[default.turn]]\ndo = [{{ write = {{ path = 'built', content = 'x' }} }}, {{ run = '''{text}''' }}]\n"),
            ),
            "none",
        );

        let output = run(&world).expect_code(1);

        assert!(output.stderr.contains(words), "{text}: {output}");
        assert_eq!((made(&world).len(), uncommitted(&world).len()), (0, 0), "{text}");
        assert!(world.has("README.md"));
        write_script(&world, "[[default.turn]]\ndo = [{ run = 'git checkout -q HEAD~1 -- . 2>/dev/null; echo x > built' }]");
        let _ = world.proctor(&["procedure", "resume", &newest_run(&world)]).expect_code(0);
        assert!(world.has("README.md") && world.has("built"), "{text}");
        assert_clean(&world);
    }
}

#[test]
fn nothing_can_be_isolated_where_nothing_can_be_merged() {
    let world = world_of(CARD, BUILDS);
    world.git(&["checkout", "-q", "--detach"]);

    let output = run(&world).expect_code(4);

    assert!(output.stderr.contains("HEAD is on no branch"), "{output}");
    assert_eq!(worktrees(&world), 1);
}

#[test]
fn gc_takes_what_a_run_that_was_never_merged_left() {
    let world =
        world_of(&format!("failed-run-expiry: 0s\n{CARD}"), "[[default.turn]]\ndo = [{ write = { path = 'half', content = 'x' } }]");
    let _ = run(&world).expect_code(1);
    let _ = run(&world).expect_code(1);
    assert_eq!(worktrees(&world), 3);

    let _ = world.proctor(&["procedure", "gc"]).expect_code(0);

    // The newest run is kept, whatever its time.
    assert_eq!((worktrees(&world), branches(&world).len()), (2, 2));
    assert_eq!(fs::read_dir(world.state().join("worktrees")).expect("it").flatten().filter(|entry| entry.path().is_dir()).count(), 1);
    assert_eq!(uncommitted(&world), [""; 0]);
}
