//! Work that a model judges, and the one repair that a step's only agent may try.

use proctor_domain::procedure::{CheckResult, StepRecord, Unjudged};
use proctor_domain::session::Work;
use proctor_testkit::{Output, World};

use crate::agent_scene::{PASSES, conversation, ends, file_of, last, made, report, step_of, with_silence, world_of, write_script};
use crate::scene::{status, uncommitted};

const BUILDS: &str = r#"
[[scenario]]
contains = "Build it"
turn = [{ do = [{ write = { path = "built", content = "first\n" } }] }]
"#;

/// A judge that says this of the work.
fn says(passed: bool) -> String {
    format!(
        "[[scenario]]\ncontains = 'Judge the work'\nturn = [{{ do = [{{ result = {{ passed = {passed}, reasoning = 'I looked at it.' }} }}] }}]\n"
    )
}

/// A judge whose turns never end in an answer.
fn never_answers(turns: usize) -> String {
    format!("[[scenario]]\ncontains = 'Judge the work'\n{}", "[[scenario.turn]]\ndo = [{ think = 'Hm.' }]\n".repeat(turns))
}

fn card(severity: &str, more: &str) -> String {
    format!(
        "steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n    validate:\n      severity: {severity}\n      \
         instructions: ['It says second']\n      whys: ['Because first is not enough']\n{more}  - id: after\n    run:\n      shells: ['touch \
         ../after']\n"
    )
}

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

#[test]
fn a_verdict_counts_by_the_severity_of_the_check() {
    for (severity, passed, code, result) in [
        ("warn", true, 0, CheckResult::Pass),
        ("abort", true, 0, CheckResult::Pass),
        ("review", true, 0, CheckResult::Pass),
        ("warn", false, 0, CheckResult::Warn),
        ("abort", false, 1, CheckResult::Fail),
    ] {
        let world = world_of(&card(severity, ""), &format!("{BUILDS}{}", says(passed)));

        let output = run(&world).expect_code(code);

        let step = step_of(&world);
        assert_eq!(step.validate, Some(result), "{severity}");
        assert_eq!(step.reasoning.as_deref(), Some("I looked at it."));
        assert_eq!(ends(&step), [(Work::Agent(1), "completed"), (Work::Judge(1), "completed")]);
        assert_eq!(world.has("../after"), code == 0);
        assert_eq!(output.stderr.contains("judged: I looked at it."), !passed, "{output}");
    }
}

#[test]
fn a_judge_sees_criteria_and_the_whole_diff_and_not_what_the_agent_says() {
    let world = world_of(&card("abort", ""), &format!("{BUILDS}{PASSES}"));

    let _ = run(&world).expect_code(0);

    let step = step_of(&world);
    let judge = last(&step, Work::Judge(1));
    let (system, prompt) = (file_of(&world, judge, "system.md"), file_of(&world, judge, "prompt.md"));
    assert!(system.contains("1. It says second\n") && system.contains("Because first is not enough"), "{system}");
    assert!(prompt.contains("+first") && prompt.contains("b/built"), "{prompt}");
    let tag = format!("data-{}", judge.id.as_str().trim_start_matches("ses_"));
    assert!(prompt.contains(&format!("<{tag} what=\"diff\">")), "{prompt}");
    assert_ne!(conversation(judge), conversation(last(&step, Work::Agent(1))));
}

#[test]
fn the_record_in_git_is_no_evidence_and_a_diff_too_long_is_cut_and_says_so() {
    let script = format!(
        "[[scenario]]\ncontains = 'Build it'\nturn = [{{ do = [{{ run = 'seq 100000 > long; echo short > short' }}, {{ commit = {{ message = \
         'Mine', paths = ['short'] }} }}] }}]\n{PASSES}"
    );
    let world = world_of(&format!("records: git\n{}", card("abort", "")), &script);

    let _ = run(&world).expect_code(0);

    let prompt = file_of(&world, last(&step_of(&world), Work::Judge(1)), "prompt.md");
    assert!(prompt.contains("+short"), "the agent's own commit is part of it");
    assert!(!prompt.contains("procedure-run.card"), "the record is not");
    assert!(prompt.len() < 220_000, "{} bytes", prompt.len());
    let end = &prompt[prompt.len() - 1000..];
    assert!(prompt.contains("long") && (prompt.contains("cut") || prompt.contains("not shown")), "{end}");
}

#[test]
fn a_judge_that_changes_something_does_not() {
    let judge = r#"
[[scenario]]
contains = "Judge the work"
turn = [{ do = [
  { write = { path = "planted", content = "x" } },
  { run = "echo spoiled > built; touch ../planted" },
  { commit = { message = "Planted" } },
  { result = { passed = true, reasoning = "Fine." } },
] }]
"#;
    let world = world_of(&card("abort", ""), &format!("{BUILDS}{judge}"));

    let _ = run(&world).expect_code(0);

    assert_eq!(made(&world), ["[procedure] build: update built"]);
    assert_eq!((world.read("built"), world.has("planted"), world.has("../planted")), ("first\n".to_owned(), false, false));
    assert_eq!(uncommitted(&world), [""; 0]);
}

// No verdict.

#[test]
fn a_judge_that_answers_prose_twice_leaves_the_run_inconclusive() {
    for severity in ["warn", "review", "abort"] {
        let prose = "[[scenario]]\ncontains = 'Judge the work'\nturn = [{ do = [{ say = 'Looks good to me!' }] }]\n";
        let world = world_of(&card(severity, ""), &format!("{BUILDS}{prose}"));

        let output = run(&world).expect_code(3);

        let line = "Inconclusive: procedure work — review of step build returned no structured output; work completed";
        assert!(output.stderr.contains(line), "{output}");
        let step = step_of(&world);
        assert_eq!(step.unjudged, Some(Unjudged::NoStructuredOutput));
        let expected = [(Work::Agent(1), "completed"), (Work::Judge(1), "no-result"), (Work::Judge(2), "no-result")];
        assert_eq!(ends(&step), expected, "no repair follows");
        assert!(world.has("../after"), "it gates nothing");
        assert_eq!(made(&world), ["[procedure] build: update built"], "the work is completed");

        let again = world.proctor(&["procedure", "resume", &crate::procedures::newest_run(&world)]).expect_code(3);
        assert!(again.stderr.contains(line), "{again}");
        assert_eq!(status(&world)["outcome"], "inconclusive");
    }
}

#[test]
fn a_judge_gets_8_turns_then_16_in_a_fresh_session() {
    let world = world_of(&card("abort", ""), &format!("{BUILDS}{}", never_answers(20)));

    let output = run(&world).expect_code(3);

    let line = "Inconclusive: procedure work — review of step build reached max turns (16); work completed";
    assert!(output.stderr.contains(line), "{output}");
    let step = step_of(&world);
    assert_eq!(ends(&step)[1..], [(Work::Judge(1), "turn-limit"), (Work::Judge(2), "turn-limit")]);
    let turns = |work| report(&step, work).agent.as_ref().map(|agent| agent.turns);
    assert_eq!((turns(Work::Judge(1)), turns(Work::Judge(2))), (Some(8), Some(16)));
    assert_ne!(conversation(last(&step, Work::Judge(1))), conversation(last(&step, Work::Judge(2))));
    assert_eq!(step.unjudged, Some(Unjudged::MaxTurns(16)));
}

#[test]
fn why_there_is_no_verdict_is_said_by_how_the_judge_ended() {
    for (actions, reason, words) in [
        ("{ say = 'x' }, 'hang'", Unjudged::Timeout, "timed out"),
        ("{ say = 'x' }, { exit = 3 }", Unjudged::Unknown, "reached no verdict"),
        ("{ result = { passed = 'yes' } }", Unjudged::NoStructuredOutput, "returned no structured output"),
        ("{ unvalidated-result = { passed = 'yes', reasoning = 'x' } }", Unjudged::NoStructuredOutput, "returned no structured output"),
    ] {
        let judge = format!("[[scenario]]\ncontains = 'Judge the work'\nturn = [{{ do = [{actions}] }}]\n");
        let world = with_silence(world_of(&card("abort", ""), &format!("{BUILDS}{judge}")), "1s");

        let output = run(&world).expect_code(3);

        assert_eq!(step_of(&world).unjudged, Some(reason), "{actions}: {output}");
        assert!(output.stderr.contains(&format!("review of step build {words}; work completed")), "{output}");
    }
}

#[test]
fn a_judge_without_any_response_fails_the_step_at_every_severity() {
    for severity in ["warn", "review", "abort"] {
        let judge = "[[scenario]]\ncontains = 'Judge the work'\nturn = [{ do = [{ refuse = 'please log in' }] }]\n";
        let world = world_of(&card(severity, ""), &format!("{BUILDS}{judge}"));

        let output = run(&world).expect_code(1);

        assert!(output.stderr.contains("the judge gave no answer: please log in"), "{output}");
        let step = step_of(&world);
        assert_eq!((step.validate, ends(&step).len()), (Some(CheckResult::Inconclusive), 2), "{severity}");
        assert!(!world.has("../after"));
    }
}

// Judging again.

fn inconclusive(records: &str) -> World {
    let prose = "[[scenario]]\ncontains = 'Judge the work'\nturn = [{ do = [{ say = 'Looks good to me!' }] }]\n";
    let world = world_of(&format!("records: {records}\n{}", card("abort", "")), &format!("{BUILDS}{prose}"));
    let _ = run(&world).expect_code(3);
    world
}

fn rejudge(world: &World) -> Output {
    world.proctor(&["procedure", "rejudge", &crate::procedures::newest_run(world)])
}

#[test]
fn judged_again_the_run_ends_by_the_verdict_on_the_evidence_of_then() {
    for (passed, code, outcome) in [(true, 0, "completed"), (false, 1, "failed")] {
        for records in ["state", "git"] {
            let world = inconclusive(records);
            let before = made(&world);
            write_script(&world, &says(passed));
            // What has happened since is no part of it.
            world.write("built", "changed since\n");

            let _ = rejudge(&world).expect_code(code);

            assert_eq!(status(&world)["outcome"], outcome);
            let step = step_of(&world);
            let judges = ends(&step).into_iter().filter(|(work, _)| matches!(work, Work::Judge(_))).count();
            assert_eq!(judges, 3);
            let prompt = file_of(&world, step.sessions.last().expect("the judge"), "prompt.md");
            assert!(prompt.contains("+first") && !prompt.contains("changed since"), "{prompt}");
            let since = &made(&world)[before.len()..];
            let last = if passed { "Complete procedure: work" } else { "Failed procedure: work" };
            assert_eq!(since.last().map(String::as_str), (records == "git").then_some(last), "{since:?}");
            assert_eq!(uncommitted(&world), [" M built"]);
        }
    }
}

#[test]
fn there_is_nothing_to_judge_again_where_everything_has_a_verdict() {
    let world = world_of(&card("abort", ""), &format!("{BUILDS}{PASSES}"));
    let _ = run(&world).expect_code(0);

    let output = rejudge(&world).expect_code(4);

    assert!(output.stderr.contains("it has ended with a verdict on everything"), "{output}");
}

// The repair.

const REPAIRS: &str = r#"
[[scenario]]
on = "resume"
contains = "Repair it"
turn = [{ do = [{ write = { path = "repaired", content = "second\n" } }], cost = 0.1 }]
"#;

/// Passes once there is the repair in the diff.
const STRICT: &str = r#"
[[scenario]]
contains = "+second"
turn = [{ do = [{ result = { passed = true, reasoning = "Now it does." } }] }]

[[scenario]]
contains = "Judge the work"
turn = [{ do = [{ result = { passed = false, reasoning = "It says first." } }] }]
"#;

#[test]
fn the_only_agent_repairs_once_in_its_conversation_and_everything_is_checked_again() {
    let more = "      shells: ['echo checked >> ../checks']\n";
    let world = world_of(&card("review", more), &format!("{REPAIRS}{STRICT}{BUILDS}"));

    let _ = run(&world).expect_code(0);

    let step = step_of(&world);
    let works: Vec<Work> = ends(&step).into_iter().map(|(work, _)| work).collect();
    assert_eq!(works, [Work::Agent(1), Work::Shells, Work::Judge(1), Work::Repair, Work::Shells, Work::Judge(1)]);
    assert_eq!(step.validate, Some(CheckResult::Pass));
    assert_eq!(conversation(last(&step, Work::Repair)), conversation(last(&step, Work::Agent(1))));
    let prompt = file_of(&world, last(&step, Work::Repair), "prompt.md");
    for expected in ["A judge says:", "It says first.", "A criterion is: It says second", "Because first is not enough"] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    let evidence = file_of(&world, last(&step, Work::Judge(1)), "prompt.md");
    assert!(evidence.contains("+first") && evidence.contains("+second"), "the first work and the repair: {evidence}");
    assert_eq!(world.read("../checks"), "checked\nchecked\n");
    assert_eq!(made(&world), ["[procedure] build: update built", "[procedure] build: update repaired"]);
}

#[test]
fn a_repair_of_a_failed_shell_is_told_both_its_streams() {
    let more = "      shells: ['echo looked at it; echo is wrong >&2; test -f repaired']\n";
    let world = world_of(&card("review", more), &format!("{REPAIRS}{STRICT}{BUILDS}"));

    let _ = run(&world).expect_code(0);

    let step = step_of(&world);
    let prompt = file_of(&world, last(&step, Work::Repair), "prompt.md");
    for expected in ["validate shell 1: exit 1", "looked at it", "is wrong", "It says second", "Because first is not enough"] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    assert_eq!(ends(&step).last(), Some(&(Work::Judge(1), "completed")));
}

#[test]
fn there_is_one_repair_and_then_the_step_fails() {
    let idle = "[[scenario]]\non = 'resume'\nturn = [{ do = [{ say = 'I like it as it is.' }] }]\n";
    let world = world_of(&card("review", ""), &format!("{idle}{STRICT}{BUILDS}"));

    let output = run(&world).expect_code(1);

    let works: Vec<Work> = ends(&step_of(&world)).into_iter().map(|(work, _)| work).collect();
    assert_eq!(works, [Work::Agent(1), Work::Judge(1), Work::Repair, Work::Judge(1)]);
    assert!(output.stderr.contains("judged: It says first."), "{output}");
    assert!(!world.has("../after"));
    assert_eq!(made(&world), ["[procedure] build: update built"], "what was done is not lost");
}

#[test]
fn a_repair_may_cost_two_dollars() {
    let dear = "[[scenario]]\non = 'resume'\n[[scenario.turn]]\ncost = 1.5\n[[scenario.turn]]\ncost = 1.5\n[[scenario.turn]]\ncost = 1.5\n";
    let world = world_of(&card("review", ""), &format!("{dear}{STRICT}{BUILDS}"));

    let _ = run(&world).expect_code(1);

    let step = step_of(&world);
    let repair = report(&step, Work::Repair);
    assert_eq!((repair.end.name(), repair.agent.as_ref().map(|agent| agent.turns)), ("budget", Some(2)));
}

#[test]
fn a_repair_whose_conversation_is_forgotten_is_told_the_task() {
    let script = format!(
        "[[scenario]]\ncontains = 'Repair it'\nturn = [{{ do = [{{ write = {{ path = 'repaired', content = 'second' }} }}] }}]\n{STRICT}{BUILDS}"
    );
    let forget = "      shells: ['rm -rf \"$HOME\"/.local/state/proctor/repos/*/conversations/*']\n";
    let world = world_of(&card("review", forget), &script);

    let _ = run(&world).expect_code(0);

    let step: StepRecord = step_of(&world);
    let repairs: Vec<&str> = ends(&step).into_iter().filter(|(work, _)| *work == Work::Repair).map(|(_, end)| end).collect();
    assert_eq!(repairs, ["refused", "completed"]);
    let prompt = file_of(&world, last(&step, Work::Repair), "prompt.md");
    assert!(prompt.contains("The task was:\n\nBuild it"), "{prompt}");
}
