//! I4: what the user does in the tree while a run is at work, between its steps, and between a death and the resume.
//! Nothing foreign is staged, committed, reset or deleted; and I1: nothing of anybody's is lost.

use proctor_testkit::{Output, World};

use crate::procedures::{LIMIT, newest_run};
use crate::scene::{
    HOLD, kill, living_host, open_gate, record, start_and_hold, status, step, steps, uncommitted, wait_for_nothing_left,
    wait_past_the_slack, world_with,
};

/// Two steps with a change each; the first one waits at the gate before it changes anything.
fn held_then_next() -> String {
    steps(&[step("work", &[], &format!("{HOLD}\necho done > work.txt")), step("next", &[], "echo next > next.txt")])
}

/// The same without waiting.
fn work_then_next() -> String {
    steps(&[step("work", &[], "echo done > work.txt"), step("next", &[], "echo next > next.txt")])
}

const WORK: &str = "[procedure] Complete step: work";
const NEXT: &str = "[procedure] Complete step: next";

/// Starts a rebase that stands in the middle, and brings the branch back from it.
const REBASE: &[&str] = &["-c", "sequence.editor=sed -i 1ibreak", "rebase", "--quiet", "--interactive", "HEAD~1"];

fn resume(world: &World) -> Output {
    world.proctor(&["procedure", "resume"])
}

fn assert_completed(world: &World, output: Output) {
    let _ = output.expect_code(0);
    assert_eq!(status(world)["outcome"], "completed");
    assert_eq!(uncommitted(world), Vec::<String>::new());
    wait_for_nothing_left(world);
}

// During a step.

#[test]
fn what_the_user_edits_and_stages_during_a_step_is_the_steps_as_the_run_says_at_its_start() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    assert!(driver.stderr_so_far().contains("what changes here while a step runs counts as the step's"));

    world.write("README.md", "Edited.\n");
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    open_gate(&world);

    assert_completed(&world, driver.wait(LIMIT));
    assert_eq!(world.git(&["show", "--format=", "--name-only", "HEAD~1"]), "README.md\nstaged.txt\nwork.txt");
}

#[test]
fn a_commit_of_the_user_during_a_step_stays_and_is_recorded_with_the_step() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    world.write("own.txt", "own\n");
    world.commit_all("The user's own");
    open_gate(&world);

    assert_completed(&world, driver.wait(LIMIT));
    assert_eq!(world.commits()[2..], ["The user's own", WORK, NEXT]);
    assert_eq!(status(&world)["steps"][0]["commits"].as_array().expect("commits").len(), 2);
}

#[test]
fn i4_a_branch_switched_during_a_step_stops_the_run_before_it_commits_there() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    world.git(&["switch", "--quiet", "--create", "elsewhere"]);
    open_gate(&world);
    let output = driver.wait(LIMIT).expect_code(4);

    assert!(output.stderr.contains("it works on main, and HEAD is on elsewhere"), "{output}");
    assert!(output.stderr.contains("git switch main"), "{output}");
    assert_eq!(world.commits().len(), 2);
    assert_eq!(uncommitted(&world), ["?? work.txt"]);
    let _ = resume(&world).expect_code(4);
    world.git(&["switch", "--quiet", "main"]);
    assert_completed(&world, resume(&world));
    assert_eq!(world.commits()[2..], [WORK, NEXT]);
    assert_eq!(status(&world)["steps"][0]["attempts"], 1);
}

#[test]
fn i4_a_rebase_started_during_a_step_stops_the_run_until_it_is_over() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    world.git(REBASE);
    open_gate(&world);
    let output = driver.wait(LIMIT).expect_code(4);

    assert!(output.stderr.contains("a rebase is in progress"), "{output}");
    let again = resume(&world).expect_code(4);
    assert!(again.stderr.contains("git rebase --continue"), "{again}");
    world.git(&["rebase", "--continue"]);
    assert_completed(&world, resume(&world));
    assert_eq!(world.commits()[2..], [WORK, NEXT]);
}

#[test]
fn i4_history_rewritten_during_a_step_stops_the_run_and_can_be_accepted() {
    let world = world_with(&held_then_next());
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);

    world.git(&["commit", "--quiet", "--amend", "-m", "Reworded"]);
    open_gate(&world);
    let output = driver.wait(LIMIT).expect_code(4);

    assert!(output.stderr.contains("--accept-foreign"), "{output}");
    assert_eq!(uncommitted(&world), ["?? work.txt"]);
    assert_completed(&world, world.proctor(&["procedure", "resume", "--accept-foreign"]));
    assert_eq!(world.commits(), ["Begin", "Reworded", WORK, NEXT]);
}

// Between steps and between a death and the resume.

/// When the user comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The run was interrupted in good order after its first step.
    Interrupted,
    /// The driver died when the first step's commit was made and not yet recorded.
    DiedBetweenSteps,
    /// Driver and host died in the middle of the first step, which had changed something.
    DiedInAStep,
}

const MOMENTS: [Moment; 3] = [Moment::Interrupted, Moment::DiedBetweenSteps, Moment::DiedInAStep];

/// A run that stands still at this moment.
fn standing_at(moment: Moment) -> World {
    match moment {
        Moment::Interrupted => {
            let world = world_with(&held_then_next());
            let driver = start_and_hold(&world, &["procedure", "run", "work"]);
            driver.signal(rustix::process::Signal::INT);
            proctor_testkit::wait_for("it is heeded", LIMIT, || driver.stderr_so_far().contains("stopping after"));
            open_gate(&world);
            let _ = driver.wait(LIMIT).expect_code(130);
            world
        }
        Moment::DiedBetweenSteps => {
            let mut world = world_with(&work_then_next());
            world.set_variable("PROCTOR_KILLPOINT", format!("driver:{}", point("after commit")));
            let killed = world.proctor(&["procedure", "run", "work"]);
            assert_eq!(killed.signal, Some(9), "{killed}");
            world.remove_variable("PROCTOR_KILLPOINT");
            world
        }
        Moment::DiedInAStep => {
            let shell = format!("if [ \"$PROCTOR_ATTEMPT\" = 1 ]; then echo half > work.txt; {HOLD}; fi\necho done > work.txt");
            let world = world_with(&steps(&[step("work", &[], &shell), step("next", &[], "echo next > next.txt")]));
            let driver = start_and_hold(&world, &["procedure", "run", "work"]);
            let host = living_host(&world);
            let _ = driver.kill();
            kill(&host);
            wait_past_the_slack(&world);
            world
        }
    }
}

/// The number of the first point of this name in an undisturbed run of [`work_then_next`].
fn point(name: &str) -> usize {
    let mut world = world_with(&work_then_next());
    world.set_variable("PROCTOR_KILLPOINT_LOG", world.root().join("points"));
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    let points = world.read("../points");
    points.lines().position(|line| line.ends_with(name)).expect("such a point") + 1
}

/// The files that the run has changed itself and not committed when it stands still.
fn own_changes(moment: Moment) -> &'static [&'static str] {
    match moment {
        Moment::Interrupted | Moment::DiedBetweenSteps => &[],
        Moment::DiedInAStep => &["?? work.txt"],
    }
}

fn assert_refused(world: &World, named: &[&str]) {
    let head = world.git(&["rev-parse", "HEAD"]);
    let before = (uncommitted(world), world.git(&["ls-files", "--stage"]));

    let output = resume(world).expect_code(4);

    for text in named {
        assert!(output.stderr.contains(text), "`{text}` is not named: {output}");
    }
    assert_eq!((uncommitted(world), world.git(&["ls-files", "--stage"])), before, "nothing was touched");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn i4_foreign_edits_stop_a_resume_by_name_and_are_left_alone() {
    for moment in MOMENTS {
        let world = standing_at(moment);
        world.write("README.md", "Edited by the user.\n");
        world.write("own.txt", "own\n");
        std::fs::remove_file(world.repository().join("proctor/procedures/work.procedure.card")).expect("removed");

        assert_refused(&world, &["README.md", "own.txt", "work.procedure.card", "--accept-foreign"]);

        let output = resume(&world).expect_code(4);
        assert!(!output.stderr.contains("changed: work.txt"), "{moment:?}: its own work is not foreign: {output}");
        let mut expected: Vec<&str> = vec![" M README.md", " D proctor/procedures/work.procedure.card", "?? own.txt"];
        expected.extend(own_changes(moment));
        assert_eq!(uncommitted(&world), expected, "{moment:?}");
    }
}

#[test]
fn i4_what_came_after_a_session_that_never_began_is_foreign_at_once() {
    let mut world = world_with(&work_then_next());
    world.set_variable("PROCTOR_KILLPOINT", format!("driver:{}", point("before host")));
    let killed = world.proctor(&["procedure", "run", "work"]);
    assert_eq!(killed.signal, Some(9), "{killed}");
    world.remove_variable("PROCTOR_KILLPOINT");
    // File systems stamp in ticks.
    let killed_at = std::time::Instant::now();
    proctor_testkit::wait_for("the next tick", LIMIT, || killed_at.elapsed() > std::time::Duration::from_millis(60));
    world.write("own.txt", "own\n");

    assert_refused(&world, &["own.txt"]);
}

#[test]
fn i1_foreign_edits_that_are_accepted_go_into_the_next_step_and_keep_their_contents() {
    for moment in MOMENTS {
        let world = standing_at(moment);
        world.write("README.md", "Edited by the user.\n");
        world.write("own.txt", "own\n");

        let _ = resume(&world).expect_code(4);
        assert_completed(&world, world.proctor(&["procedure", "resume", "--accept-foreign"]));

        assert_eq!(world.commits()[2..], [WORK, NEXT], "{moment:?}");
        assert_eq!(world.git(&["show", "HEAD:README.md"]), "Edited by the user.");
        assert_eq!(world.git(&["show", "HEAD:own.txt"]), "own");
        assert_eq!(world.git(&["show", "HEAD:work.txt"]), "done");
    }
}

#[test]
fn i1_accepted_edits_survive_the_death_of_the_driver_that_took_them() {
    for moment in MOMENTS {
        let mut world = standing_at(moment);
        world.write("README.md", "Edited by the user.\n");
        world.set_variable("PROCTOR_KILLPOINT_LOG", world.root().join("resumed"));

        // It dies when it has recorded what it takes, and before it does anything with it.
        let recorded = if moment == Moment::DiedBetweenSteps { 4 } else { 2 };
        world.set_variable("PROCTOR_KILLPOINT", format!("driver:{recorded}"));
        let killed = world.proctor(&["procedure", "resume", "--accept-foreign"]);
        assert_eq!(killed.signal, Some(9), "{killed}");
        world.remove_variable("PROCTOR_KILLPOINT");

        assert_completed(&world, resume(&world));
        assert_eq!(world.git(&["show", "HEAD:README.md"]), "Edited by the user.", "{moment:?}");
    }
}

#[test]
fn i1_accepted_edits_wait_for_a_step_that_is_not_skipped_and_survive_lost_attempts_of_it() {
    let skipped = "  - id: skipped\n    precheck:\n      shells: ['exit 75']\n".to_owned();
    let spoil = format!("if [ \"$PROCTOR_ATTEMPT\" = 1 ]; then echo spoilt > README.md; {HOLD}; fi\ncp README.md ../seen");
    let world = world_with(&steps(&[step("work", &[], HOLD), skipped, step("next", &[], &spoil)]));
    let driver = start_and_hold(&world, &["procedure", "run", "work"]);
    driver.signal(rustix::process::Signal::INT);
    proctor_testkit::wait_for("it is heeded", LIMIT, || driver.stderr_so_far().contains("stopping after"));
    open_gate(&world);
    let _ = driver.wait(LIMIT).expect_code(130);
    world.write("README.md", "Edited by the user.\n");

    let second = start_and_hold(&world, &["procedure", "resume", "--accept-foreign"]);
    kill(&living_host(&world));
    let output = second.wait(LIMIT);

    assert_completed(&world, output);
    assert_eq!(world.read("../seen"), "Edited by the user.\n", "the second attempt began with what was accepted");
    assert_eq!(world.git(&["show", "HEAD:README.md"]), "Edited by the user.");
}

#[test]
fn i4_what_the_user_staged_stays_staged_when_a_resume_is_refused() {
    for moment in MOMENTS {
        let world = standing_at(moment);
        world.write("staged.txt", "staged\n");
        world.git(&["add", "staged.txt"]);
        world.write("staged.txt", "edited after that\n");

        assert_refused(&world, &["staged.txt"]);

        assert_eq!(world.git(&["show", ":staged.txt"]), "staged", "{moment:?}");
        assert!(uncommitted(&world).contains(&"AM staged.txt".to_owned()), "{moment:?}");
    }
}

#[test]
fn i4_foreign_commits_stop_a_resume_and_can_be_accepted() {
    for moment in MOMENTS {
        let world = standing_at(moment);
        world.write("own.txt", "own\n");
        world.git(&["add", "own.txt"]);
        if moment == Moment::DiedInAStep {
            // The times of commits are whole seconds, so they are told apart only after another one.
            wait_past_the_slack(&world);
        }
        world.git(&["commit", "--quiet", "-m", "The user's own", "--", "own.txt"]);
        let commit = world.git(&["rev-parse", "HEAD"]);
        world.write("beside.txt", "not committed\n");

        // What would be taken in with the commit is named with it.
        assert_refused(&world, &["there is 1 commit that is not the run's", &commit[..12], "changed: beside.txt", "--accept-foreign"]);
        std::fs::remove_file(world.root().join("repository/beside.txt")).expect("the file");

        assert_completed(&world, world.proctor(&["procedure", "resume", "--accept-foreign"]));
        let expected = match moment {
            Moment::DiedInAStep => ["The user's own", WORK, NEXT],
            Moment::Interrupted | Moment::DiedBetweenSteps => [WORK, "The user's own", NEXT],
        };
        assert_eq!(world.commits()[2..], expected, "{moment:?}");
        assert_eq!(world.git(&["show", "HEAD:own.txt"]), "own");
    }
}

#[test]
fn i4_a_run_goes_on_only_on_its_own_branch() {
    for moment in MOMENTS {
        let world = standing_at(moment);
        world.git(&["switch", "--quiet", "--create", "elsewhere"]);

        assert_refused(&world, &["it works on main, and HEAD is on elsewhere", "git switch main"]);
        let _ = world.proctor(&["procedure", "resume", "--accept-foreign"]).expect_code(4);

        world.git(&["switch", "--quiet", "main"]);
        assert_completed(&world, resume(&world));
        assert_eq!(world.commits()[2..], [WORK, NEXT], "{moment:?}");
    }
}

#[test]
fn i4_a_run_does_not_go_on_inside_a_rebase() {
    for moment in MOMENTS {
        let world = standing_at(moment);
        world.git(REBASE);

        assert_refused(&world, &["a rebase is in progress", "git rebase --abort"]);
        let _ = world.proctor(&["procedure", "resume", "--accept-foreign"]).expect_code(4);

        world.git(&["rebase", "--abort"]);
        assert_completed(&world, resume(&world));
        assert_eq!(world.commits()[2..], [WORK, NEXT], "{moment:?}");
    }
}

#[test]
fn i4_history_rewritten_under_a_standing_run_is_named_and_can_be_accepted() {
    for moment in MOMENTS {
        let world = standing_at(moment);
        world.git(&["commit", "--quiet", "--amend", "-m", "Reworded"]);

        if moment == Moment::DiedBetweenSteps {
            // The run's own commit, not recorded yet, is known by what it holds.
            assert_completed(&world, resume(&world));
            assert_eq!(world.commits()[2..], ["Reworded", NEXT]);
            continue;
        }
        assert_refused(&world, &["is no longer behind HEAD", "--accept-foreign"]);
        assert_completed(&world, world.proctor(&["procedure", "resume", "--accept-foreign"]));
        assert_eq!(world.git(&["show", "HEAD:next.txt"]), "next", "{moment:?}");
    }
}

// What steps do to the repository.

#[test]
fn i1_a_step_that_cleans_up_the_tree_takes_nothing_of_the_runs_away() {
    for records in ["state", "git"] {
        for command in ["git clean -ffdxq", "git stash --quiet --include-untracked || true", "git worktree prune", "rm -rf .git/hooks"] {
            let keys = steps(&[
                step("work", &[], "echo done > work.txt; echo tag=1 >> \"$PROCTOR_OUTPUT\""),
                step("clean", &[], &format!("echo lost > lost.txt\n{command}")),
                step("next", &[], "test \"$STEP_WORK_TAG\" = 1; echo next > next.txt"),
            ]);
            let world = world_with(&format!("records: {records}\n{keys}"));

            let output = world.proctor(&["procedure", "run", "work"]);

            assert_completed(&world, output);
            assert_eq!(world.git(&["show", "HEAD:work.txt"]), "done", "{command}, records: {records}");
            assert_eq!(record(&world)["steps"].as_array().expect("steps").len(), 3);
        }
    }
}

/// Makes `program`, which leaves a mark when it is run.
fn plant(world: &World) -> String {
    let program = world.root().join("planted");
    world.write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", world.root().join("planted-ran").display()));
    let _ = world.run("chmod", &["+x", "../planted"]).expect_code(0);
    program.display().to_string()
}

#[test]
fn a_planted_fsmonitor_is_never_run_by_proctor() {
    let world = world_with(&steps(&[
        step("plant", &[], "git config core.fsmonitor ../planted; echo done > work.txt"),
        step("next", &[], "echo next > next.txt; exit 1"),
    ]));
    let program = plant(&world);
    world.write(
        "proctor/procedures/work.procedure.card",
        world.read("proctor/procedures/work.procedure.card").replace("../planted", &program),
    );
    world.commit_all("Name the program");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(1);
    let _ = resume(&world).expect_code(1);
    let run = newest_run(&world);
    for command in [&["procedure", "status"][..], &["show", &run], &["log", &run], &["runs"], &["where"], &["doctor"]] {
        let _ = world.proctor(command);
    }

    assert_eq!(world.git(&["config", "core.fsmonitor"]), program, "it was planted");
    assert!(!world.has("../planted-ran"));
}

#[test]
fn planted_filters_are_not_run_by_looks_and_saves() {
    let shell = "echo '* filter=planted' > .git/info/attributes; git config filter.planted.clean PROGRAM; git config filter.planted.smudge \
                 PROGRAM; echo changed >> README.md; echo new > new.txt";
    let world = world_with(&steps(&[step("work", &[], &format!("{shell}; exit 1"))]));
    let program = plant(&world);
    world
        .write("proctor/procedures/work.procedure.card", world.read("proctor/procedures/work.procedure.card").replace("PROGRAM", &program));
    world.commit_all("Name the program");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(1);
    let _ = resume(&world).expect_code(1);
    assert_eq!(world.git(&["config", "filter.planted.clean"]), program, "it was planted");
    assert!(!world.has("../planted-ran"));
    let left = record(&world)["left"]["tree"].as_str().expect("what it left").to_owned();
    assert_eq!(world.git(&["cat-file", "blob", &format!("{left}:new.txt")]), "new");
}

#[test]
fn a_replaced_pointer_of_a_linked_worktree_leads_proctor_nowhere_else() {
    let world = world_with(&steps(&[
        step("work", &[], "echo done > work.txt; printf 'gitdir: %s\\n' ../evil/.git > .git"),
        step("next", &[], "true"),
    ]));
    let program = plant(&world);
    world.git(&["worktree", "add", "--quiet", "../linked"]);
    let _ = world.run("git", &["init", "--quiet", "../evil"]).expect_code(0);
    let _ = world.run_in("../evil", "git", &["config", "core.fsmonitor", &program]).expect_code(0);
    let pointer = world.read("../linked/.git");

    let output = world.proctor_in("../linked", &["procedure", "run", "work"]).expect_code(0);

    assert!(!world.has("../planted-ran"), "{output}");
    assert_eq!(world.run_in("../evil", "git", &["for-each-ref"]).stdout, "");
    assert_eq!(world.git(&["log", "--format=%s", "-1", "linked"]), WORK);
    world.write("../linked/.git", pointer);
    assert_eq!(world.run_in("../linked", "git", &["status", "--porcelain"]).stdout, "");
}

/// A world whose commits all get another message from a hook.
fn rewording_world(records: &str) -> World {
    let world = world_with(&format!("records: {records}\n{}", work_then_next()));
    world.write(".git/hooks/prepare-commit-msg", "#!/bin/sh\necho \"Reworded $(head -n 1 \"$1\" | cut -d ' ' -f 1-4)\" > \"$1\"\n");
    let _ = world.run("chmod", &["+x", ".git/hooks/prepare-commit-msg"]).expect_code(0);
    world
}

#[test]
fn i2_a_commit_whose_message_a_hook_rewrote_is_found_again_after_a_death() {
    for records in ["state", "git"] {
        let mut undisturbed = rewording_world(records);
        undisturbed.set_variable("PROCTOR_KILLPOINT_LOG", undisturbed.root().join("points"));
        let _ = undisturbed.proctor(&["procedure", "run", "work"]).expect_code(0);
        let points = undisturbed.read("../points");
        let after_commits: Vec<&str> = points.lines().filter_map(|line| line.strip_suffix(" after commit")).collect();
        assert_eq!(after_commits.len(), if records == "state" { 2 } else { 4 });

        for point in after_commits {
            let mut world = rewording_world(records);
            world.set_variable("PROCTOR_KILLPOINT", format!("driver:{point}"));
            assert_eq!(world.proctor(&["procedure", "run", "work"]).signal, Some(9));
            world.remove_variable("PROCTOR_KILLPOINT");

            assert_completed(&world, resume(&world));

            assert_eq!(world.commits(), undisturbed.commits(), "killed at point {point}, records: {records}");
        }
    }
}
