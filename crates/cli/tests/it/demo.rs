use std::fs;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use proctor_testkit::{World, claude, loopback, wait_for};

use crate::procedures::{LIMIT, plain, snapshot};

const IN_A_BOX: &str = "agents are held in a bwrap box";
/// What is said on a machine where none can be made.
const IN_NO_BOX: &str = "agents work outside of any box, with your permissions";

/// A user without a git identity, whose settings would break commits.
fn stranger() -> World {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    fs::create_dir_all(world.home().join("hooks")).expect("a folder");
    world.write(world.home().join("hooks/pre-commit"), "#!/bin/sh\nexit 1\n");
    world.write(
        world.home().join(".gitconfig"),
        "[user]\n\tuseConfigOnly = true\n[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n[core]\n\thooksPath = ~/hooks\n\tautocrlf = true\n",
    );
    let _ = world.run_in(world.root(), "chmod", &["+x", "home/hooks/pre-commit"]);
    world
}

#[test]
fn it_works_for_a_user_without_identity_and_leaves_nothing() {
    let world = stranger();
    let began = Instant::now();

    let output = world.proctor_in(world.root(), &["demo"]).expect_code(0);

    assert!(began.elapsed() < Duration::from_secs(10));
    let folder = output.stderr.split_once("/tmp/proctor-demo-").map(|(_, rest)| rest[..6].to_owned()).expect("the folder");
    assert_snapshot!(snapshot(&output).replace(&folder, "[random]").replace(IN_NO_BOX, IN_A_BOX), @r#"
    exit 0
    --- stdout
    ✗ release-check: failed  [run 1]
      started    [time]
      ended      [time], after [duration]
      records    state
      input      part = patch
      cost       0.046 USD
      left       dist/acorn, not committed

    ○ dependencies  skipped (precheck) in [duration]
    ✓ version       completed in [duration], commit [commit 1]
    ✓ changelog     completed in [duration], commits [commit 2] [commit 3]
    ✗ build         failed in [duration]
        validate shell 2: exit 1
        stdout of [session 1]:
        | ok: it says how it is used
        stderr of [session 1]:
        | not ok: it greets by name: wanted "Hello, Ann!", got "Hello, Ann"
    What happened:
      run      [run 1] of release-check: completed; 3 steps done, 1 skipped, 1 tried again after its failure
      commits
        [commit 4] Begin acorn
        [commit 5] Greet by name
        [commit 1] [procedure] Complete step: version
        [commit 2] [procedure] changelog: update CHANGELOG.md
        [commit 3] Name the change in the changelog
        [commit 6] Greet with an exclamation mark
        [commit 7] [procedure] Complete step: build

    Look further:
      proctor demo --keep proctor-demo
        or, from its source: cargo run --release -- demo --keep proctor-demo
      (this folder is removed now; that one stays, to be looked at with `proctor show`, `proctor log` and `proctor cost`)
    --- stderr
    A small project with a release check is made in [root]/tmp/proctor-demo-[random].
    Its agent follows a script: no model is called, and its costs are made up.
    $ proctor procedure run release-check
    [run 1]: release-check, 4 steps; what changes here while a step runs counts as the step's
    [1/4] dependencies
    ○ dependencies: skipped (precheck)
    [2/4] version
    ✓ version: completed in [duration], commit [commit 1]
    [3/4] changelog
      agent
    agents are held in a bwrap box
      judge
      repair
      judge
    ✓ changelog: completed in [duration], commit [commit 3]
    [4/4] build
    ✗ build: failed in [duration]: validate shell 2: exit 1

    An agent wrote the changelog. A judge, who saw the diff and not what the agent says about it, was not content:
      "Various improvements" tells no user what changed.
    So the agent repaired it, in the same conversation, and everything was checked again.

    The tests that check step `build` failed, so the run stopped there and the step was not committed.
    $ proctor procedure status

    Somebody mends the program and commits that, as you would. Here the demo does it:
      src/acorn.sh
      - *) echo "Hello, $1" ;;
      + *) echo "Hello, $1!" ;;
    $ git commit --all --message 'Greet with an exclamation mark'

    A commit that is not the run's own has to be accepted. The steps that are done stay done.
    $ proctor procedure resume [run 1] --accept-foreign
    [run 1]: going on with release-check
    [4/4] build, attempt 2
    ✓ build: completed in [duration], commit [commit 7]
    "#);
    assert_eq!(fs::read_dir(world.root().join("tmp")).expect("reads").count(), 0);
    assert!(!world.home().join(".local").exists(), "the user's state is not touched");
    assert_eq!(world.leftovers(), []);
}

#[test]
fn a_kept_demo_can_be_looked_at_with_the_commands_that_it_names() {
    let world = stranger();

    let output = world.proctor_in(world.root(), &["demo", "--keep", "kept/demo"]).expect_code(0);

    let ways: Vec<&str> = output.stdout.lines().skip_while(|line| *line != "Look further:").skip(1).map(str::trim).collect();
    assert_snapshot!(plain(&world, &ways.join("\n")), @"
    cd '[root]/kept/demo'
    export PROCTOR_STATE_DIR='[root]/kept/demo/.git/proctor-state'
    proctor show [run 1]
    proctor log [run 1]
    proctor cost
    proctor procedure show release-check
    git log --stat
    ");
    let script = format!("proctor() {{ '{}' \"$@\"; }}\nset -e\n{}", env!("CARGO_BIN_EXE_proctor"), ways.join("\n"));
    let looked = world.run_in(world.root(), "bash", &["-c", &script]).expect_code(0);
    assert!(looked.stdout.contains("release-check: completed"), "{looked}");
    let clean = world.run_in(world.root(), "git", &["-C", "kept/demo", "status", "--porcelain"]).expect_code(0);
    assert_eq!(clean.stdout, "");
}

#[test]
fn a_folder_with_something_in_it_is_refused() {
    let world = stranger();
    world.write(world.root().join("full/file"), "");
    world.write(world.root().join("file"), "");

    for folder in ["full", "file"] {
        let output = world.proctor_in(world.root(), &["demo", "--keep", folder]).expect_code(2);

        assert!(output.stderr.contains("is there already and not an empty folder"), "{output}");
    }
    assert_eq!(fs::read_dir(world.root().join("full")).expect("reads").count(), 1);
}

#[test]
fn interrupted_anywhere_it_leaves_nothing_behind() {
    for arguments in [vec!["demo"], vec!["demo", "--keep", "new"], vec!["demo", "--keep", "empty"]] {
        for mark in ["is made in", "[2/4] version", "[3/4] changelog", "  judge", "[4/4] build", "$ git commit"] {
            let world = stranger();
            fs::create_dir(world.root().join("empty")).expect("a folder");
            fs::create_dir_all(world.repository()).expect("a folder to start in");
            let root = world.root().display().to_string();
            let demo = world.start(&[vec!["-C", &root], arguments.clone()].concat());

            wait_for("it gets there", LIMIT, || demo.stderr_so_far().contains(mark));
            demo.signal(rustix::process::Signal::TERM);
            let output = demo.wait(LIMIT);

            // The signal may meet the end.
            assert!(matches!(output.code, Some(130 | 0)), "{mark}: {output}");
            assert_eq!(fs::read_dir(world.root().join("tmp")).expect("reads").count(), 0, "{mark}: {output}");
            if output.code == Some(130) {
                assert!(!world.root().join("new").exists(), "{mark}: {output}");
                assert_eq!(fs::read_dir(world.root().join("empty")).expect("reads").count(), 0, "{mark}: {output}");
            }
            wait_for("nothing is alive", LIMIT, || world.leftovers().is_empty());
        }
    }
}

#[test]
fn with_the_real_claude_it_goes_the_same_way_from_the_first_use_on() {
    let Some(claude) = claude() else { return };
    let model = loopback(include_str!("../../src/demo/model.toml"));
    let mut world = stranger();
    let path = format!("{}:{}", claude.parent().expect("its folder").display(), std::env::var("PATH").expect("PATH"));
    world.set_variable("PATH", path);
    world.set_variable("ANTHROPIC_API_KEY", "dummy");
    world.set_variable("ANTHROPIC_BASE_URL", model.url());

    let output = world.proctor_in(world.root(), &["demo", "--engine", "claude"]);

    if output.stderr.contains("no box can be made here") {
        let _ = output.expect_code(1);
        return;
    }
    let output = output.expect_code(0);
    // The conversation is still known: one repair, and no second attempt.
    assert!(output.stderr.contains("  judge\n  repair\n  judge\n"), "{output}");
    assert!(output.stderr.contains("So the agent repaired it, in the same conversation"), "{output}");
    assert!(output.stdout.contains("release-check: completed; 3 steps done, 1 skipped, 1 tried again"), "{output}");
    assert_eq!(world.leftovers(), []);
}
