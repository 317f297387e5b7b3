use insta::assert_snapshot;

use crate::{BAD, GOOD, world};

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = world();
    let script = "set +o pipefail; \"$0\" completions bash | head -n 1 > /dev/null; echo \"${PIPESTATUS[0]}\"";

    let output = world.run("bash", &["-c", script, env!("CARGO_BIN_EXE_proctor")]);

    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("0\n", ""));
}

#[test]
fn data_that_does_not_fit_on_the_disk_is_a_failure() {
    let output = world().run("bash", &["-c", "\"$0\" completions bash > /dev/full", env!("CARGO_BIN_EXE_proctor")]);

    assert_snapshot!(output.snapshot(), @"
    exit 1
    --- stderr
    error: failed to write to standard output
      because No space left on device (os error 28)
    ");
}

#[test]
fn colour_is_used_only_when_asked_for() {
    let world = world().with_card("good", GOOD);

    let plain = world.proctor(&["procedure", "list"]).expect_code(0);
    let coloured = world.proctor(&["--color", "always", "procedure", "list"]).expect_code(0);

    assert!(!plain.stdout.contains('\u{1b}'));
    assert!(coloured.stdout.contains('\u{1b}'));
}

#[test]
fn quiet_leaves_results_and_errors() {
    let world = world().with_card("good", GOOD);

    let good = world.proctor(&["--quiet", "procedure", "lint"]).expect_code(0);
    let missing = world.proctor(&["--quiet", "procedure", "lint", "nothing"]).expect_code(2);

    assert_eq!((good.stdout.as_str(), good.stderr.as_str()), ("", ""));
    assert!(missing.stderr.starts_with("error: "), "{missing}");
}

#[test]
fn control_characters_of_a_card_never_reach_the_terminal() {
    let world = world().with_card("good", GOOD);
    world.write("proctor/procedures/sly.procedure.card", "---\nname: sly\ndescription: \"\\e[2Jgone\\rover\"\nsteps: []\n---\n");
    world.write("proctor/procedures/bad.procedure.card", BAD.replace("descripton", "\u{1b}[2J"));

    for arguments in
        [["procedure", "list"].as_slice(), &["procedure", "show", "sly"], &["procedure", "lint"], &["procedure", "show", "bad"]]
    {
        let output = world.proctor(arguments);

        assert!(!format!("{}{}", output.stdout, output.stderr).contains(['\u{1b}', '\r']), "{arguments:?}: {output}");
    }
}
