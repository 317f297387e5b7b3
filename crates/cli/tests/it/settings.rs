use insta::assert_snapshot;

use crate::world;

#[test]
fn an_unknown_key_is_an_error_with_place_and_nearest_key() {
    let world = world().with_file("proctor.toml", "layout = \"auto\"\nrecrods = \"git\"\nlinger = \"gradle\"\n");

    assert_snapshot!(world.proctor(&["where", "--json"]).snapshot(), @r#"
    exit 2
    --- stdout
    {"version":1,"exit_code":2,"error":{"kind":"config","message":"[root]/repository/proctor.toml can't be used: [root]/repository/proctor.toml:2:1: error: unknown key `recrods`; [root]/repository/proctor.toml:3:10: error: `linger` wants a list of strings, this is a string","hints":["did you mean `records`?"]}}
    --- stderr
    error: [root]/repository/proctor.toml can't be used

    [root]/repository/proctor.toml:2:1: error: unknown key `recrods`
      2 | recrods = "git"
        | ^^^^^^^
      hint: did you mean `records`?

    [root]/repository/proctor.toml:3:10: error: `linger` wants a list of strings, this is a string
      3 | linger = "gradle"
        |          ^^^^^^^^
    "#);
}

#[test]
fn a_file_that_is_no_toml_is_an_error_with_its_place() {
    let world = world().with_file("proctor.toml", "layout = \n");

    assert_snapshot!(world.proctor(&["where"]).snapshot(), @"
    exit 2
    --- stderr
    error: [root]/repository/proctor.toml can't be used

    [root]/repository/proctor.toml:1:10: error: string values must be quoted, expected literal string
      1 | layout = 
        |          ^
    ");
}

#[test]
fn a_file_that_is_no_text_is_an_error_with_its_place() {
    let world = world();
    world.write("proctor.toml", b"layout = \"auto\"\nrecords = \"\xff\"\n");

    assert_snapshot!(world.proctor(&["where"]).snapshot(), @r#"
    exit 2
    --- stderr
    error: [root]/repository/proctor.toml can't be used

    [root]/repository/proctor.toml:2:12: error: this is not UTF-8
      2 | records = "�"
        |            ^
    "#);
}

#[test]
fn a_variable_with_a_wrong_value_is_an_error_that_names_it() {
    let world = world().with_variable("PROCTOR_SHELL_TIMEOUT", "soon");

    assert_snapshot!(world.proctor(&["where"]).snapshot(), @"
    exit 2
    --- stderr
    error: environment variable PROCTOR_SHELL_TIMEOUT: `soon` is not a duration: write a number and one of s, m, h, d, w, as in 90s, 1.5h or 2w

    hint: unset PROCTOR_SHELL_TIMEOUT, or correct it
    ");
}

#[test]
fn a_repository_can_not_say_where_state_is() {
    let world = world().with_file("proctor.toml", "state-dir = \"/tmp\"\n");

    assert_snapshot!(world.proctor(&["where"]).snapshot(), @r#"
    exit 2
    --- stderr
    error: [root]/repository/proctor.toml can't be used

    [root]/repository/proctor.toml:1:1: error: `state-dir` can't be set by a repository
      1 | state-dir = "/tmp"
        | ^^^^^^^^^
      hint: set it in your own settings file or with PROCTOR_STATE_DIR
    "#);
}

#[test]
fn each_layer_wins_over_the_one_before() {
    let mut world = world();
    let layout = |world: &proctor_testkit::World| world.proctor(&["where", "--json"]).expect_code(0).json()["layout"].clone();

    world.write(world.user_settings(), "layout = 'beebox'");
    assert_eq!(layout(&world)["source"], world.user_settings().display().to_string());
    world.write("proctor.toml", "layout = 'proctor'");
    assert_eq!(layout(&world)["source"], world.repository().join("proctor.toml").display().to_string());
    world.set_variable("PROCTOR_LAYOUT", "beebox");
    assert_eq!(layout(&world), serde_json::json!({"name": "beebox", "source": "PROCTOR_LAYOUT"}));
}
