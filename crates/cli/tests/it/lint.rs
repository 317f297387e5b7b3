use insta::assert_snapshot;

use crate::{BAD, GOOD, world};

#[test]
fn findings_exit_1_with_file_line_column_and_nearest_key() {
    let world = world().with_card("bad", BAD).with_card("good", GOOD);

    assert_snapshot!(world.proctor(&["procedure", "lint"]).snapshot(), @"
    exit 1
    --- stdout
    proctor/procedures/bad.procedure.card:3:1: error: unknown key `descripton`
      3 | descripton: Does nothing
        | ^^^^^^^^^^
      hint: did you mean `description`?

    proctor/procedures/bad.procedure.card:7:7: error: unknown key `shels`
      7 |       shels:
        |       ^^^^^
      hint: did you mean `shells`?
    --- stderr

    2 cards checked: 2 errors, 0 warnings
    ");
}

#[test]
fn json_lists_every_card_that_was_checked() {
    let world = world().with_card("bad", BAD).with_card("good", GOOD);

    assert_snapshot!(world.proctor(&["procedure", "lint", "--json"]).snapshot(), @r#"
    exit 1
    --- stdout
    {"version":1,"exit_code":1,"cards":[{"card":"proctor/procedures/bad.procedure.card","findings":[{"level":"error","path":"proctor/procedures/bad.procedure.card","line":3,"column":1,"message":"unknown key `descripton`","hint":"did you mean `description`?"},{"level":"error","path":"proctor/procedures/bad.procedure.card","line":7,"column":7,"message":"unknown key `shels`","hint":"did you mean `shells`?"}]},{"card":"proctor/procedures/good.procedure.card","findings":[]}]}
    "#);
}

#[test]
fn only_named_cards_are_checked() {
    let world = world().with_card("bad", BAD).with_card("good", GOOD);
    world.write("elsewhere.procedure.card", format!("---\nname: elsewhere\n{GOOD}---\n"));

    assert_snapshot!(world.proctor(&["procedure", "lint", "good", "elsewhere.procedure.card"]).snapshot(), @"
    exit 0
    --- stderr
    2 cards checked, no findings
    ");
    let _ = world.proctor(&["procedure", "lint", "good", "bad"]).expect_code(1);
}

#[test]
fn a_name_that_does_not_exist_is_a_usage_error_that_names_the_nearest() {
    let world = world().with_card("release-check", GOOD);

    assert_snapshot!(world.proctor(&["procedure", "lint", "relaese-check", "--json"]).snapshot(), @r#"
    exit 2
    --- stdout
    {"version":1,"exit_code":2,"error":{"kind":"user","message":"there is no procedure `relaese-check`: no proctor/procedures/relaese-check.procedure.card","hints":["did you mean `release-check`?"]}}
    --- stderr
    error: there is no procedure `relaese-check`: no proctor/procedures/relaese-check.procedure.card

    hint: did you mean `release-check`?
    "#);
}
