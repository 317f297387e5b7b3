//! Runs in which a review reached no verdict: how that is said, and how it is judged again.

use proctor_testkit::{Output, World};

use crate::agent_scene::{BUILT_AND_JUDGED as CARD, PASSES, world_of, write_script};
use crate::procedures::newest_run;
use crate::scene::status;

const BUILDS: &str = "[[scenario]]\ncontains = 'Build it'\nturn = [{ do = [{ write = { path = 'built', content = 'x' } }] }]\n";

const LINE: &str = "Inconclusive: procedure work — review of step build reached max turns (16); work completed";

/// A run whose judge has used up all its turns.
fn undecided() -> (World, Output) {
    let thinks = format!("[[scenario]]\ncontains = 'Judge the work'\n{}", "[[scenario.turn]]\ndo = [{ think = 'Hm.' }]\n".repeat(20));
    let world = world_of(CARD, &format!("{thinks}{BUILDS}"));
    let output = world.proctor(&["procedure", "run", "work", "--quiet", "--json", "--color", "always"]).expect_code(3);
    (world, output)
}

fn lines(output: &Output) -> usize {
    output.stderr.lines().filter(|line| *line == LINE).count()
}

#[test]
fn a_run_without_a_verdict_says_so_on_a_line_of_its_own_however_it_is_asked() {
    let (world, ran) = undecided();
    let run = newest_run(&world);

    let resumed = world.proctor(&["procedure", "resume", &run]).expect_code(3);
    let again = world.proctor(&["procedure", "resume", &run, "--json", "--color", "always", "-q"]).expect_code(3);

    assert_eq!([&ran, &resumed, &again].map(lines), [1, 1, 1], "{ran}\n{resumed}\n{again}");
    assert_eq!((&ran.json()["outcome"], &again.json()["outcome"]), (&"inconclusive".into(), &"inconclusive".into()));
    assert!(resumed.stderr.contains(&format!("`proctor procedure rejudge {run}` judges it again")), "{resumed}");
    let validate = ran.json()["steps"][0]["validate"].clone();
    assert_eq!((&validate["result"], &validate["reason"]), (&"inconclusive".into(), &"max-turns".into()));
    assert_eq!(validate["sessions"].as_array().map(Vec::len), Some(2));
    let shown = world.proctor(&["procedure", "status"]).stdout;
    assert!(shown.contains("unjudged: its review reached max turns (16)"), "{shown}");
}

#[test]
fn judged_again_without_an_answer_it_is_said_again() {
    let (world, _) = undecided();

    let output = world.proctor(&["procedure", "rejudge", &newest_run(&world), "-q"]).expect_code(3);

    assert_eq!(output.stderr, format!("{LINE}\n"));
}

#[test]
fn a_verdict_ends_the_run_anew() {
    let (world, _) = undecided();
    let run = newest_run(&world);
    world.write("../other.toml", format!("{PASSES}{BUILDS}"));

    let output = world.proctor(&["procedure", "rejudge", &run, "--json", "--script", "../other.toml"]).expect_code(0);

    assert_eq!(lines(&output), 0);
    assert_eq!(
        (&output.json()["outcome"], &output.json()["steps"][0]["validate"]["reasoning"]),
        (&"completed".into(), &"It is there.".into())
    );
    assert_eq!(status(&world)["outcome"], "completed");
    let _ = world.proctor(&["procedure", "rejudge", &run]).expect_code(4);
}

#[test]
fn an_isolated_run_without_a_verdict_names_its_branch() {
    let world = world_of(&format!("isolation: worktree\n{CARD}"), &format!("{BUILDS}[[default.turn]]\ndo = [{{ say = 'Nice.' }}]\n"));

    let output = world.proctor(&["procedure", "run", "work"]).expect_code(3);

    let run = newest_run(&world);
    let branch = format!("proctor/work-{}", run.trim_start_matches("run_"));
    assert!(output.stderr.contains("Inconclusive: procedure work — review of step build returned no structured output; work completed\n"));
    assert!(
        output.stderr.contains(&format!("its work is on the branch `{branch}`; `proctor procedure merge {run}` merges it")),
        "{output}"
    );
    assert_eq!(status(&world)["branch_to_merge"], branch.as_str());
    let shown = world.proctor(&["show", &run]).stdout;
    assert!(shown.contains("merged       not yet") && shown.contains("made for     main in"), "{shown}");

    write_script(&world, &format!("{PASSES}{BUILDS}"));
    let _ = world.proctor(&["procedure", "rejudge", &run]).expect_code(0);

    assert!(world.has("built"));
    assert!(world.proctor(&["show", &run]).stdout.contains("merged       main was at "));
}
