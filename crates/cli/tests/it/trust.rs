use insta::assert_snapshot;

use crate::world;

const ASKS: &str = "pass-env = ['DEPLOY_TOKEN']\nlinger = ['gradle']\n";

#[test]
fn without_a_terminal_nothing_is_accepted_unless_told() {
    let world = world().with_file("proctor.toml", ASKS);

    assert_snapshot!(world.proctor(&["trust"]).snapshot(), @"
    exit 2
    --- stderr
    [root]/repository/proctor.toml asks:
      to pass to sessions from your environment (pass-env): DEPLOY_TOKEN
      to let these programs outlive sessions (linger): gradle
    error: there is no terminal to ask on

    hint: give --yes to go on without being asked
    ");
    assert_eq!(world.proctor(&["trust", "--json"]).json()["consent"], "missing");
}

#[test]
fn what_is_accepted_is_shown() {
    let world = world().with_file("proctor.toml", ASKS);

    assert_snapshot!(world.proctor(&["trust", "--yes"]).snapshot(), @"
    exit 0
    --- stderr
    [root]/repository/proctor.toml asks:
      to pass to sessions from your environment (pass-env): DEPLOY_TOKEN
      to let these programs outlive sessions (linger): gradle
    accepted; when these values change, you are asked again
    ");
    assert_snapshot!(world.proctor(&["trust", "--json"]).snapshot(), @r#"
    exit 0
    --- stdout
    {"version":1,"file":"[root]/repository/proctor.toml","asks":[{"key":"pass-env","values":["DEPLOY_TOKEN"]},{"key":"linger","values":["gradle"]}],"consent":"given"}
    --- stderr
    you have accepted these values
    "#);
}

#[test]
fn changed_values_ask_again() {
    let world = world().with_file("proctor.toml", ASKS);
    let _ = world.proctor(&["trust", "--yes"]).expect_code(0);

    world.write("proctor.toml", ASKS.replace("gradle", "bash"));

    assert_eq!(world.proctor(&["trust", "--json"]).expect_code(0).json()["consent"], "missing");
}

#[test]
fn consent_can_be_taken_back() {
    let world = world().with_file("proctor.toml", ASKS);
    let _ = world.proctor(&["trust", "--yes"]).expect_code(0);

    assert_snapshot!(world.proctor(&["trust", "--revoke"]).snapshot(), @"
    exit 0
    --- stderr
    nothing that this repository's settings ask for is accepted any more
    ");
    assert_eq!(world.proctor(&["trust", "--json"]).expect_code(0).json()["consent"], "missing");
}

#[test]
fn a_repository_that_asks_for_nothing_needs_no_consent() {
    let world = world().with_file("proctor.toml", "pass-env = []\n");

    assert_snapshot!(world.proctor(&["trust", "--json"]).snapshot(), @r#"
    exit 0
    --- stdout
    {"version":1,"file":"[root]/repository/proctor.toml","asks":[],"consent":"not-needed"}
    --- stderr
    this repository's settings ask for nothing that needs your consent
    "#);
    assert!(!world.has(".git/proctor-id"));
}

#[test]
fn a_session_can_not_consent_even_with_a_clean_environment() {
    let world = world().with_file("proctor.toml", ASKS).with_variable("PROCTOR_SESSION", "ses_0000000011");

    assert_snapshot!(world.proctor(&["trust", "--yes"]).snapshot(), @"
    exit 4
    --- stderr
    error: this command speaks for a person, and it was started by a session of Proctor

    hint: run it yourself, outside of the session
    ");
    // The `wait` keeps the shell, which carries the marker, between the test and Proctor.
    let script = "env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$0\" trust --yes & wait $!";
    let _ = world.run("bash", &["-c", script, env!("CARGO_BIN_EXE_proctor")]).expect_code(4);
    let _ = world.proctor(&["trust", "--revoke"]).expect_code(4);
}
