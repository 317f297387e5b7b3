//! Invariants that no other module is about.

use crate::world;

#[test]
fn i6_a_check_that_did_not_pass_is_visible_wherever_the_result_is() {
    let card =
        "description: Warns\nrecords: git\nsteps:\n  - id: look\n    run: {shells: ['echo x > x']}\n    validate: {shells: ['exit 3']}\n";
    let world = world().with_card("warns", card);

    let run = world.proctor(&["procedure", "run", "warns", "--json"]).expect_code(0);

    assert!(run.stderr.contains("warning: validate shell 1: exit 3"), "{run}");
    assert_eq!(run.json()["steps"][0]["validate"]["result"], "warn");
    for command in [["procedure", "status"].as_slice(), &["show", run.json()["run"].as_str().unwrap()]] {
        let shown = world.proctor(command).expect_code(0);
        assert!(shown.stdout.contains("validate shell 1: exit 3"), "{shown}");
    }
    let folders = world.run("ls", &["proctor/runs"]).stdout;
    assert!(world.read(format!("proctor/runs/{}/run.procedure-run.card", folders.trim())).contains("warn"));
}

#[test]
fn i10_nothing_of_proctor_runs_when_no_command_does() {
    let world = world().with_card("quiet", "description: Quiet\nsteps:\n  - id: look\n    run: {shells: ['true']}\n");

    let _ = world.proctor(&["procedure", "run", "quiet"]).expect_code(0);
    let _ = world.proctor(&["runs"]).expect_code(0);

    assert_eq!(world.leftovers(), []);
}

#[test]
fn a_later_shell_of_the_same_phase_reads_what_an_earlier_one_wrote() {
    let shells = "'echo name=one >> \"$PROCTOR_OUTPUT\"', 'echo \"$STEP_MAKE_NAME\" > seen; echo name=two >> \"$PROCTOR_OUTPUT\"', 'echo \"$STEP_MAKE_NAME\" >> seen'";
    let world = world().with_card("hands-on", &format!("description: Hands on\nsteps:\n  - id: make\n    run: {{shells: [{shells}]}}\n"));

    let _ = world.proctor(&["procedure", "run", "hands-on"]).expect_code(0);

    assert_eq!(world.read("seen"), "one\ntwo\n");
}
