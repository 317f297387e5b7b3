//! What the keys of a card and the flags of `run` and `resume` mean, each seen through the real binary.

use proctor_testkit::{Output, World, wait_for};
use serde_json::{Value, json};

use crate::procedures::{LIMIT, newest_run};
use crate::scene::{HOLD, open_gate, record, start_and_hold, status, step, steps, uncommitted, wait_for_nothing_left, world_with};

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

fn resume(world: &World) -> Output {
    world.proctor(&["procedure", "resume"])
}

/// The states of the steps, in order.
fn states(world: &World) -> Vec<String> {
    let status = status(world);
    status["steps"].as_array().expect("steps").iter().map(|step| step["state"].as_str().expect("a state").to_owned()).collect()
}

/// What a phase of the first step printed to both streams, in its last session.
fn printed(world: &World, phase: &str) -> (String, String) {
    let record = record(world);
    let sessions = record["steps"][0]["sessions"].as_array().expect("sessions").clone();
    let session = sessions.iter().rev().find(|session| session["phase"] == phase).expect("a session of the phase");
    let head = |stream: &str| session[stream]["head"].as_str().expect("text").to_owned();
    (head("stdout"), head("stderr"))
}

// Phases.

#[test]
fn a_precheck_passes_skips_or_fails_and_both_its_streams_are_recorded_in_each_case() {
    for (exit, code, result, state) in [(0, 0, "pass", "completed"), (75, 75, "skip", "skipped"), (3, 1, "fail", "failed")] {
        let keys = format!(
            "steps:\n  - id: work\n    precheck:\n      shells: ['echo to stdout; echo to stderr >&2; exit {exit}']\n    run:\n      shells: \
             ['touch ../ran']\n"
        );
        let world = world_with(&keys);

        let _ = run(&world).expect_code(code);

        assert_eq!(printed(&world, "precheck"), ("to stdout\n".to_owned(), "to stderr\n".to_owned()), "exit {exit}");
        let step = status(&world)["steps"][0].clone();
        assert_eq!((&step["precheck"], &step["state"]), (&json!({"result": result, "exit_code": exit}), &json!(state)));
        assert_eq!(world.has("../ran"), exit == 0);
        assert_eq!(step["error"], if exit == 3 { json!("precheck shell 1: exit 3") } else { Value::Null });
    }
}

#[test]
fn a_precheck_skips_by_the_variable_that_it_is_given() {
    let world = world_with("steps:\n  - id: work\n    precheck:\n      shells: ['exit \"$CHECK_SKIP\"', 'touch ../second']\n");

    let output = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(75).json();

    assert_eq!((&output["outcome"], &output["exit_code"]), (&json!("skipped"), &json!(75)));
    assert_eq!((&output["steps"][0]["state"], &output["steps"][0]["reason"]), (&json!("skipped"), &json!("precheck")));
    assert!(!world.has("../second"), "what follows the skip is not run");
}

#[test]
fn a_precheck_that_changes_files_and_skips_fails_naming_them() {
    let world = world_with("steps:\n  - id: work\n    precheck:\n      shells: ['echo x > made.txt; exit 75']\n");

    let output = run(&world).expect_code(1);

    assert!(output.stderr.contains("its precheck changed files: made.txt"), "{output}");
    assert!(world.has("made.txt"), "what it wrote is not lost");
}

#[test]
fn exit_75_skips_nothing_in_run_and_validate() {
    for phase in ["run", "validate"] {
        let severity = if phase == "validate" { "      severity: abort\n" } else { "" };
        let world = world_with(&format!("steps:\n  - id: work\n    {phase}:\n{severity}      shells: ['exit 75']\n"));

        let output = run(&world).expect_code(1);

        assert!(output.stderr.contains(&format!("{phase} shell 1: exit 75, which skips only in a precheck")), "{output}");
    }
}

#[test]
fn a_check_without_work_is_carried_out_and_decides() {
    for (severity, code, result, state) in [("warn", 0, "warn", "completed"), ("abort", 1, "fail", "failed")] {
        let keys = format!(
            "steps:\n  - id: work\n    validate:\n      severity: {severity}\n      shells: ['echo looked', 'echo wrong >&2; exit 4']\n"
        );
        let world = world_with(&keys);

        let _ = run(&world).expect_code(code);

        let step = status(&world)["steps"][0].clone();
        assert_eq!((&step["state"], &step["validate"]["result"]), (&json!(state), &json!(result)));
        assert_eq!(step["validate"]["reasoning"], "validate shell 2: exit 4");
        assert_eq!(printed(&world, "validate"), ("looked\n".to_owned(), "wrong\n".to_owned()));
    }
}

#[test]
fn a_failed_run_phase_is_not_checked_and_stops_the_run() {
    let keys = "steps:\n  - id: work\n    run:\n      shells: ['exit 2', 'touch ../second']\n    validate:\n      shells: ['touch ../checked']\n  \
                - id: next\n    run:\n      shells: ['touch ../next']\n";
    let world = world_with(keys);

    let _ = run(&world).expect_code(1);

    assert_eq!(states(&world), ["failed", "pending"]);
    assert!(["../second", "../checked", "../next"].iter().all(|file| !world.has(file)));
}

#[test]
fn a_step_of_nothing_completes_and_a_card_without_steps_has_nothing_to_do() {
    let world = world_with("steps:\n  - id: work\n").with_card("empty", "steps: []\n");

    let _ = run(&world).expect_code(0);
    let _ = world.proctor(&["procedure", "run", "empty"]).expect_code(75);
}

// Shells.

#[test]
fn shells_are_strict() {
    for text in ["false; true", "echo \"$NOT_SET\"", "false | true", "exit 9"] {
        let world = world_with(&steps(&[step("work", &[], &format!("{text}\ntouch ../after"))]));

        let _ = run(&world).expect_code(1);

        assert!(!world.has("../after"), "{text}");
    }
}

#[test]
fn shells_get_a_listed_environment_and_nothing_to_read() {
    let shell = "env | cut -d = -f 1 | sort > ../names; test ! -t 0; test -z \"$(cat)\"; pwd > ../where\n\
                 echo \"$PROCTOR_PROCEDURE $PROCTOR_STEP $PROCTOR_ATTEMPT $CHECK_SKIP $PROCTOR_DIRECTIVE\" > ../told; echo \"$PROCTOR_RUN\" > ../run";
    let mut world = world_with(&steps(&[step("work", &[], shell)]));
    for name in ["SECRET_TOKEN", "GIT_DIR", "BASH_ENV", "LANG", "HTTPS_PROXY", "KEPT"] {
        world.set_variable(name, "x");
    }
    world.remove_variable("GIT_DIR");
    world.write(world.user_settings(), "pass-env = [\"KEPT\"]\n");

    let _ = world.proctor(&["procedure", "run", "work", "--directive", "do it"]).expect_code(0);

    let names = world.read("../names");
    let has = |name: &str| names.lines().any(|line| line == name);
    assert!(!has("SECRET_TOKEN") && !has("BASH_ENV"), "{names}");
    assert!(has("LANG") && has("HTTPS_PROXY") && has("KEPT") && has("HOME") && has("PROCTOR_OUTPUT"), "{names}");
    assert_eq!(world.read("../told"), "work work 1 75 do it\n");
    assert_eq!(world.read("../run").trim(), newest_run(&world));
    assert_eq!(world.read("../where").trim(), world.repository().to_str().expect("UTF-8"));
}

#[test]
fn a_phase_over_its_time_is_ended_with_all_it_started() {
    let deaf =
        "trap '' TERM\nsetsid bash -c 'trap \"\" TERM; echo $$ > ../orphan; while :; do sleep 1000; done' &\nwhile :; do sleep 1000; done";
    let world = world_with(&steps(&[step("work", &["timeout: 1s"], deaf)]));

    let output = run(&world).expect_code(1);

    assert!(output.stderr.contains("run reached its time limit"), "{output}");
    wait_for_nothing_left(&world);
    assert_eq!(record(&world)["steps"][0]["sessions"][0]["end"], "timeout");
}

// Retry.

#[test]
fn a_retry_goes_on_with_the_tree_as_it_is_and_every_attempt_is_recorded() {
    let keys = "steps:\n  - id: work\n    retry: {max: 3, backoff: 0.02s}\n    precheck:\n      shells: ['echo . >> ../prechecks']\n    run:\n      \
                shells: ['echo \"$PROCTOR_ATTEMPT\" >> tries.txt']\n    validate:\n      severity: abort\n      shells: ['test \"$(wc -l < \
                tries.txt)\" = 3']\n";
    let world = world_with(keys);

    let output = run(&world).expect_code(0);

    assert_eq!(world.git(&["show", "HEAD:tries.txt"]), "1\n2\n3");
    assert_eq!(world.commits().len(), 3, "one commit for all attempts");
    assert_eq!(world.read("../prechecks"), ".\n", "the step is still needed");
    let step = record(&world)["steps"][0].clone();
    assert_eq!(step["earlier_failures"], json!(["validate shell 1: exit 1", "validate shell 1: exit 1"]));
    assert_eq!(step["attempts"], 3);
    let pauses: Vec<&str> = output.stderr.lines().filter_map(|line| line.split("trying again in ").nth(1)).collect();
    assert_eq!(pauses, ["0.02s", "0.04s"], "the pause doubles: {output}");
}

#[test]
fn a_retry_ends_with_the_last_failure_and_does_not_cover_prechecks() {
    let world =
        world_with(&steps(&[step("work", &["retry: {max: 2}"], "echo $PROCTOR_ATTEMPT >> ../tries; exit $((PROCTOR_ATTEMPT + 1))")]));
    let _ = run(&world).expect_code(1);
    assert_eq!(world.read("../tries"), "1\n2\n3\n");
    assert_eq!(status(&world)["steps"][0]["error"], "run shell 1: exit 4");

    let world = world_with("steps:\n  - id: work\n    retry: {max: 2}\n    precheck:\n      shells: ['echo . >> ../tries; exit 1']\n");
    let _ = run(&world).expect_code(1);
    assert_eq!(world.read("../tries"), ".\n");
}

// Inputs, outputs, conditions, templates.

const INPUTS: &str = "\
inputs:
  - {name: text, default: plain}
  - {name: count, type: int, default: 3}
  - {name: share, type: float, default: 0.5}
  - {name: loud, type: bool, default: false}
  - {name: some-file, type: path}
  - {name: colour, type: choice, choices: [red, green], default: red}
  - {name: needed, required: true}
steps:
  - id: work
    run:
      shells:
        - printf '%s\\n' \"$INPUT_TEXT\" \"$INPUT_COUNT\" \"$INPUT_SHARE\" \"$INPUT_LOUD\" \"$INPUT_SOME_FILE\" \"$INPUT_COLOUR\" \"$INPUT_NEEDED\" > ../inputs
";

#[test]
fn inputs_of_every_type_reach_the_shells() {
    let world = world_with(INPUTS);

    let _ = world.proctor(&["procedure", "run", "work", "--input", "needed=$(touch ../injected)"]).expect_code(0);
    assert_eq!(world.read("../inputs"), "plain\n3\n0.5\nfalse\n\nred\n$(touch ../injected)\n");
    assert!(!world.has("../injected"));

    let given = ["text=a=b", "count=-7", "share=1e3", "loud=true", "some-file=x y", "colour=green", "needed=", "text=last"];
    let mut arguments = vec!["procedure", "run", "work"];
    arguments.extend(given.iter().flat_map(|input| ["--input", input]));
    let _ = world.proctor(&arguments).expect_code(0);
    assert_eq!(world.read("../inputs"), "last\n-7\n1e3\ntrue\nx y\ngreen\n\n");
}

#[test]
fn inputs_that_do_not_fit_are_refused_before_anything_runs() {
    let world = world_with(INPUTS);
    for (input, said) in [
        ("count=many", "input `count`: `many` is not a whole number"),
        ("share=half", "input `share`: `half` is not a number"),
        ("loud=yes", "input `loud`: `yes` is not `true` or `false`"),
        ("some-file=", "input `some-file`: `` is not a path"),
        ("colour=blue", "input `colour`: `blue` is not one of red, green"),
        ("txet=x", "did you mean `--input text=…`?"),
    ] {
        let output = world.proctor(&["procedure", "run", "work", "--input", "needed=x", "--input", input]).expect_code(2);

        assert!(output.stderr.contains(said), "{output}");
    }
    let output = run(&world).expect_code(2);
    assert!(output.stderr.contains("the input `needed` is required"), "{output}");
    assert!(!world.has("../inputs"));
}

#[test]
fn outputs_reach_later_shells_conditions_and_templates() {
    let keys = "\
steps:
  - id: build-app
    outputs: [tag, file-name]
    run:
      shells:
        - |
          echo 'tag=v1' >> \"$PROCTOR_OUTPUT\"
          echo 'tag=v2 with = and $(touch ../injected)' >> \"$PROCTOR_OUTPUT\"
          echo 'file-name=a.txt' >> \"$PROCTOR_OUTPUT\"
  - id: never
    when: steps.build-app.outputs.tag == 'v1'
    run:
      shells: ['touch ../never']
  - id: use
    when: steps.build-app.outputs.file-name == 'a.txt'
    env:
      MESSAGE: 'got ${{ steps.build-app.outputs.file-name }} for ${{ inputs.who }}'
    run:
      shells:
        - printf '%s\\n' \"$STEP_BUILD_APP_TAG\" \"$STEP_BUILD_APP_FILE_NAME\" \"$MESSAGE\" > ../used
inputs:
  - {name: who, default: me}
";
    let world = world_with(keys);

    let _ = run(&world).expect_code(0);

    assert_eq!(world.read("../used"), "v2 with = and $(touch ../injected)\na.txt\ngot a.txt for me\n");
    assert!(!world.has("../injected") && !world.has("../never"));
    let status = status(&world);
    assert_eq!(status["steps"][0]["outputs"], json!({"tag": "v2 with = and $(touch ../injected)", "file-name": "a.txt"}));
    assert_eq!((&status["steps"][1]["state"], &status["steps"][1]["reason"]), (&json!("skipped"), &json!("condition")));
}

#[test]
fn outputs_that_can_not_be_used_fail_the_step() {
    for (declared, shell, said) in [
        ("", "echo nonsense", "line 1 of $PROCTOR_OUTPUT has no `=`"),
        ("", "echo '1x=2'", "has the name `1x`"),
        ("", "printf 'x='; head -c 70000 /dev/zero | tr '\\0' a", "65536 are the limit"),
        ("outputs: [tag]", "echo other=1", "`other` was written but is not declared"),
        ("outputs: [tag]", "true", "`tag` is declared but was not written"),
    ] {
        let keys: &[&str] = if declared.is_empty() { &[] } else { &[declared] };
        let world = world_with(&steps(&[step("work", keys, &format!("{{ {shell}; }} >> \"$PROCTOR_OUTPUT\""))]));

        let output = run(&world).expect_code(1);

        assert!(output.stderr.contains(said), "{shell}: {output}");
    }
}

#[test]
fn a_template_over_what_is_missing_fails_the_step_before_it_runs() {
    let keys = "steps:\n  - id: first\n    run:\n      shells: ['true']\n  - id: second\n    env: {TAG: '${{ steps.first.outputs.tag }}'}\n    \
                run:\n      shells: ['touch ../ran']\n";
    let world = world_with(keys);

    let output = run(&world).expect_code(1);

    assert!(output.stderr.contains("`env.TAG` can't be evaluated"), "{output}");
    assert!(!world.has("../ran"));
}

#[test]
fn i7_a_template_in_a_shell_text_is_refused_with_the_reason() {
    let world = world_with("inputs:\n  - {name: who}\nsteps:\n  - id: work\n    run:\n      shells: ['echo ${{ inputs.who }}']\n");

    for command in [&["procedure", "lint"][..], &["procedure", "run", "work"]] {
        let output = world.proctor(command);

        assert!(output.code == Some(1) || output.code == Some(2), "{output}");
        assert!(output.stderr.contains("INPUT_WHO") || output.stdout.contains("INPUT_WHO"), "it names the variable: {output}");
    }
}

// Flags of `run`.

#[test]
fn one_chosen_step_runs_and_the_others_are_recorded_as_not_selected() {
    let world =
        world_with(&steps(&[step("one", &[], "touch ../one"), step("two", &[], "echo 2 > two.txt"), step("three", &[], "touch ../three")]));

    let output = world.proctor(&["procedure", "run", "work", "--step", "two", "--json"]).expect_code(0).json();

    let reasons: Vec<(&Value, &Value)> =
        output["steps"].as_array().expect("steps").iter().map(|step| (&step["state"], &step["reason"])).collect();
    let skipped = (&json!("skipped"), &json!("not-selected"));
    assert_eq!(reasons, [skipped, (&json!("completed"), &Value::Null), skipped]);
    assert!(!world.has("../one") && !world.has("../three"));
    let unknown = world.proctor(&["procedure", "run", "work", "--step", "twoo"]).expect_code(2);
    assert!(unknown.stderr.contains("its steps are one, two, three"), "{unknown}");
}

#[test]
fn a_dry_run_prints_the_plan_and_leaves_no_trace() {
    let world = world_with(
        "description: Made for a test\ninputs:\n  - {name: who, default: me}\nsteps:\n  - id: one\n    when: inputs.who == 'me'\n    run:\n      shells: ['touch ../ran']\n",
    );

    let output = world.proctor(&["procedure", "run", "work", "--dry-run", "--directive", "now"]).expect_code(0);

    for text in ["work: Made for a test", "directive: now", "input who = me", "one:", "run, when inputs.who == 'me'"] {
        assert!(output.stdout.contains(text), "`{text}`: {output}");
    }
    assert!(!world.has("../ran"));
    assert_eq!(world.proctor(&["runs", "--all", "--json"]).json()["runs"], json!([]));
}

#[test]
fn the_records_flag_wins_over_the_card_and_the_settings() {
    for (card, flag, folders) in [("git", "state", false), ("state", "git", true)] {
        let world = world_with(&format!("records: {card}\n{}", steps(&[step("work", &[], "echo x > x.txt")])));

        let _ = world.proctor(&["procedure", "run", "work", "--records", flag]).expect_code(0);

        assert_eq!(world.has("proctor/runs"), folders, "--records {flag} over records: {card}");
    }
}

#[test]
fn a_card_whose_engine_is_not_here_is_refused_before_anything_happens() {
    for (keys, said) in [
        ("steps:\n  - id: work\n    run:\n      agents: [{prompt: Work}]\n", "its program `no-such-claude` is not found"),
        ("steps:\n  - id: work\n    validate:\n      instructions: [Good]\n", "its program `no-such-claude` is not found"),
    ] {
        let world = world_with(keys);
        world.write(world.home().join(".config/proctor/config.toml"), "[engines.claude]\nprogram = \"no-such-claude\"\n");

        let _ = world.proctor(&["procedure", "lint", "work"]).expect_code(0);
        let output = run(&world).expect_code(4);

        assert!(output.stderr.contains(said), "{output}");
    }
}

// A tree that is not clean.

#[test]
fn i4_a_dirty_tree_is_refused_with_its_paths_and_the_ways_out() {
    let world = world_with(&steps(&[step("work", &[], "touch ../ran")]));
    world.write("README.md", "Edited.\n");
    world.write("new dir/a.txt", "new\n");

    let output = run(&world).expect_code(4);

    for text in ["README.md", "new dir/a.txt", "commit the changes", "git stash -u", "--allow-dirty"] {
        assert!(output.stderr.contains(text), "`{text}`: {output}");
    }
    assert!(!world.has("../ran"));
    let object = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(4).json();
    assert_eq!((&object["exit_code"], &object["error"]["kind"]), (&json!(4), &json!("refused")));
}

#[test]
fn i4_allowed_changes_are_saved_left_alone_and_never_committed() {
    let world = world_with(&steps(&[step("work", &[], "echo done > work.txt"), step("next", &[], "echo next > next.txt")]));
    world.write("README.md", "Edited.\n");
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    world.write("staged.txt", "edited after that\n");
    world.write("new.txt", "new\n");
    let before = uncommitted(&world);

    let _ = world.proctor(&["procedure", "run", "work", "--allow-dirty"]).expect_code(0);

    assert_eq!(uncommitted(&world), before);
    assert_eq!(world.git(&["show", ":staged.txt"]), "staged", "the index is as it was");
    assert_eq!(world.git(&["diff", "--name-only", "HEAD~2", "HEAD"]), "next.txt\nwork.txt");
    let saved = format!("refs/proctor/salvage/{}/foreign", newest_run(&world));
    for (path, text) in [("README.md", "Edited."), ("staged.txt", "edited after that"), ("new.txt", "new")] {
        assert_eq!(world.git(&["show", &format!("{saved}:{path}")]), text);
    }
}

#[test]
fn i4_a_step_that_changes_what_was_there_before_fails_naming_it() {
    for shell in ["echo mine >> README.md", "rm new.txt", "git checkout -q README.md", "git stash -q -u"] {
        let world =
            world_with(&steps(&[step("first", &[], "echo 1 > first.txt"), step("work", &[], &format!("echo done > work.txt; {shell}"))]));
        world.write("README.md", "Edited.\n");
        world.write("new.txt", "new\n");

        let output = world.proctor(&["procedure", "run", "work", "--allow-dirty"]).expect_code(1);

        let named = if shell.contains("new.txt") { "new.txt" } else { "README.md" };
        assert!(output.stderr.contains("it changed files that were not the run's") && output.stderr.contains(named), "{shell}: {output}");
        assert_eq!(states(&world), ["completed", "failed"]);
        let saved = format!("refs/proctor/salvage/{}/foreign", newest_run(&world));
        assert_eq!(world.git(&["show", &format!("{saved}:README.md")]), "Edited.");
        assert_eq!(world.git(&["show", &format!("{saved}:new.txt")]), "new");
        assert_eq!(world.commits().len(), 3, "only the first step is committed");
    }
}

// More than one run.

#[test]
fn a_second_run_in_the_same_tree_is_refused_by_the_holders_name_or_waits() {
    let world = world_with(&steps(&[step("work", &[], HOLD)])).with_card("other", &steps(&[step("other", &[], "echo 2 > other.txt")]));
    let first = start_and_hold(&world, &["procedure", "run", "work"]);
    let holder = newest_run(&world);

    let refused = world.proctor(&["procedure", "run", "other"]).expect_code(4);
    assert!(refused.stderr.contains(&holder) && refused.stderr.contains("--wait"), "{refused}");
    let live = world.proctor(&["procedure", "resume", &holder]).expect_code(4);
    assert!(live.stderr.contains("it is running"), "{live}");

    let waiting = world.start(&["procedure", "run", "other", "--wait"]);
    wait_for("it waits", LIMIT, || waiting.stderr_so_far().contains(&format!("waiting: {holder}")));
    open_gate(&world);
    let _ = first.wait(LIMIT).expect_code(0);
    let _ = waiting.wait(LIMIT).expect_code(0);
    assert_eq!(world.git(&["show", "HEAD:other.txt"]), "2");
}

#[test]
fn a_run_waits_for_a_host_whose_driver_is_dead_too() {
    let world = world_with(&steps(&[step("work", &[], HOLD)])).with_card("other", &steps(&[step("other", &[], "echo 2 > other.txt")]));
    let first = start_and_hold(&world, &["procedure", "run", "work"]);
    let holder = newest_run(&world);
    let _ = first.kill();

    let refused = world.proctor(&["procedure", "run", "other"]).expect_code(4);
    assert!(refused.stderr.contains(&holder), "{refused}");
    let waiting = world.start(&["procedure", "run", "other", "--wait"]);
    wait_for("it waits", LIMIT, || waiting.stderr_so_far().contains(&format!("waiting: {holder}")));
    open_gate(&world);
    let _ = waiting.wait(LIMIT).expect_code(0);
    assert_eq!(world.git(&["show", "HEAD:other.txt"]), "2");
}

#[test]
fn a_run_inside_a_run_is_refused_in_the_same_tree_and_works_in_another() {
    let program = env!("CARGO_BIN_EXE_proctor");
    let inside = format!(
        "{program} procedure run inner > ../same 2>&1 && exit 9 || test $? = 4\n\
         {program} procedure run inner --wait > ../waited 2>&1 && exit 9 || test $? = 4\n\
         {program} -C ../linked procedure run inner"
    );
    let world = world_with(&steps(&[step("work", &[], &inside)])).with_card("inner", &steps(&[step("inner", &[], "echo in > inner.txt")]));
    world.git(&["worktree", "add", "--quiet", "../linked"]);

    let _ = run(&world).expect_code(0);

    let outer = world.proctor(&["procedure", "status", "--json"]).json()["run"].as_str().expect("a run").to_owned();
    for file in ["../same", "../waited"] {
        let said = world.read(file);
        assert!(said.contains(&outer) && said.contains("this command runs inside"), "{said}");
    }
    assert_eq!(world.git(&["show", "linked:inner.txt"]), "in");
    assert_eq!(world.commits().len(), 3);
}

#[test]
fn a_run_inside_a_run_inside_a_run_does_not_wait_for_its_own_end() {
    let program = env!("CARGO_BIN_EXE_proctor");
    let world = world_with(&steps(&[step("work", &[], &format!("{program} -C ../linked procedure run middle"))]))
        .with_card("middle", &steps(&[step("middle", &[], &format!("cd ../repository; {program} procedure run inner --wait"))]))
        .with_card("inner", &steps(&[step("inner", &[], "true")]));
    world.git(&["worktree", "add", "--quiet", "../linked"]);

    let driver = world.start(&["procedure", "run", "work"]);
    let _ = driver.wait(LIMIT).expect_code(1);

    let middle = world.proctor_in("../linked", &["procedure", "status", "--json"]).json();
    assert_eq!(middle["steps"][0]["error"], "run shell 1: exit 4");
}

// Resuming.

/// Fails in its second step until the card is mended.
fn broken() -> String {
    steps(&[step("one", &[], "echo 1 >> one.txt"), step("two", &[], "exit 3"), step("three", &[], "echo 3 > three.txt")])
}

fn mend(world: &World, keys: &str) {
    world.write("proctor/procedures/work.procedure.card", format!("---\nname: work\n{keys}---\n"));
    world.git(&["commit", "--quiet", "--all", "-m", "Mend the card"]);
}

#[test]
fn a_resume_follows_the_card_that_the_run_was_started_with() {
    let world = world_with(&broken());
    let _ = run(&world).expect_code(1);
    mend(&world, &steps(&[step("two", &[], "touch ../mended")]));

    let refused = resume(&world).expect_code(4);
    assert!(refused.stderr.contains("1 commit that is not the run's"), "{refused}");
    let _ = world.proctor(&["procedure", "resume", "--accept-foreign"]).expect_code(1);

    assert!(!world.has("../mended"));
    assert_eq!(states(&world), ["completed", "failed", "pending"]);
}

#[test]
fn a_resume_with_the_new_definition_keeps_what_is_done_by_id() {
    let world = world_with(&broken());
    let _ = run(&world).expect_code(1);
    mend(&world, &steps(&[step("zero", &[], "echo 0 > zero.txt"), step("one", &[], "exit 8"), step("two", &[], "echo 2 > two.txt")]));

    let _ = world.proctor(&["procedure", "resume", "--new-definition", "--accept-foreign"]).expect_code(0);

    let status = status(&world);
    let ids: Vec<&Value> = status["steps"].as_array().expect("steps").iter().map(|step| &step["id"]).collect();
    assert_eq!(ids, ["zero", "one", "two"]);
    assert_eq!(states(&world), ["completed"; 3]);
    assert_eq!(world.read("one.txt"), "1\n", "it was not done again");
    assert!(world.has("zero.txt") && world.has("two.txt") && !world.has("three.txt"));
}

#[test]
fn a_new_definition_is_refused_in_the_middle_of_a_step_and_nothing_changes() {
    let keys = format!(
        "steps:\n  - id: work\n    run:\n      shells: ['echo done > work.txt; {HOLD}']\n    validate:\n      severity: abort\n      shells: ['test -e work.txt']\n"
    );
    let world = world_with(&keys);
    let _ = start_and_hold(&world, &["procedure", "run", "work"]).kill();
    let alive = world.proctor(&["procedure", "resume", "--new-definition"]).expect_code(4);
    open_gate(&world);
    wait_for_nothing_left(&world);

    let after = world.proctor(&["procedure", "resume", "--new-definition"]).expect_code(4);

    for output in [alive, after] {
        assert!(output.stderr.contains("it stopped in the middle of step `work`"), "{output}");
    }
    let _ = resume(&world).expect_code(0);
    assert_eq!(world.git(&["show", "HEAD:work.txt"]), "done");
    assert_eq!(status(&world)["steps"][0]["attempts"], 1);
}

#[test]
fn a_completed_run_says_so_when_it_is_resumed() {
    let world = world_with(&steps(&[step("work", &[], "echo . >> ../ran")]));
    let _ = run(&world).expect_code(0);

    let unfinished = resume(&world).expect_code(2);
    assert!(unfinished.stderr.contains("no run to resume"), "{unfinished}");
    let completed = world.proctor(&["procedure", "resume", &newest_run(&world)]).expect_code(0);
    assert!(completed.stderr.contains("is over: completed"), "{completed}");
    assert_eq!(world.read("../ran"), ".\n");
}

#[test]
fn a_directive_carries_over_to_a_resume_unless_it_is_replaced() {
    let world = world_with(&steps(&[step("work", &[], "echo \"$PROCTOR_DIRECTIVE\" >> ../told; exit 1")]));
    let _ = world.proctor(&["procedure", "run", "work", "--directive", "first"]).expect_code(1);
    let _ = resume(&world).expect_code(1);
    let _ = world.proctor(&["procedure", "resume", "--directive", "second"]).expect_code(1);
    let _ = resume(&world).expect_code(1);

    assert_eq!(world.read("../told"), "first\nfirst\nsecond\nsecond\n");
}

// Cards and folders.

#[test]
fn a_card_with_windows_line_ends_runs_the_same_shells() {
    let world = world_with("steps: []\n");
    let text = "---\nname: work\nsteps:\n  - id: work\n    run:\n      shells:\n        - |\n          x=1\n          if [ \"$x\" = 1 ]; then\n            \
                echo \"yes\" > work.txt\n          fi\n---\n";
    world.write("proctor/procedures/work.procedure.card", text.replace('\n', "\r\n"));
    world.commit_all("Windows");

    let _ = run(&world).expect_code(0);

    assert_eq!(world.read("work.txt"), "yes\n");
}

#[test]
fn one_bad_card_does_not_keep_others_from_running() {
    let world = world_with(&steps(&[step("work", &[], "true")])).with_card("bad", "stesp: []\n");

    let _ = run(&world).expect_code(0);
    let bad = world.proctor(&["procedure", "run", "bad"]).expect_code(2);

    assert!(bad.stderr.contains("bad.procedure.card:3:1") && bad.stderr.contains("did you mean `steps`?"), "{bad}");
}

#[test]
fn shells_run_in_the_folder_of_the_settings_and_git_sees_the_whole_repository() {
    let world = world_with("steps: []\n");
    world.write("deep/box/proctor.toml", "records = \"git\"\n");
    let card = steps(&[step("work", &[], "pwd > ../../../where; echo in > in.txt; echo out > ../../out.txt")]);
    world.write("deep/box/proctor/procedures/nested.procedure.card", format!("---\nname: nested\n{card}---\n"));
    world.commit_all("A box below the top");

    let _ = world.proctor_in("deep/box", &["procedure", "run", "nested"]).expect_code(0);

    assert_eq!(world.read("../where").trim(), world.repository().join("deep/box").to_str().expect("UTF-8"));
    let committed = world.git(&["show", "--format=", "--name-only", "HEAD~1"]);
    let committed: Vec<&str> = committed.lines().collect();
    assert!(
        matches!(committed[..], ["deep/box/in.txt", record, "out.txt"] if record.starts_with("deep/box/proctor/runs/nested_")),
        "{committed:?}"
    );
    assert_eq!(uncommitted(&world), Vec::<String>::new());
    world.write("top.txt", "dirty\n");
    let dirty = world.proctor_in("deep/box", &["procedure", "run", "nested"]).expect_code(4);
    assert!(dirty.stderr.contains("top.txt"), "{dirty}");
}
