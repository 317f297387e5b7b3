use insta::assert_snapshot;

use crate::{BAD, GOOD, world};

#[test]
fn a_bad_card_never_hides_the_others() {
    let world = world().with_card("after", GOOD).with_card("bad", BAD).with_card("before", GOOD);
    world.write("proctor/procedures/binary.procedure.card", b"---\n\xff\xfe\n---\n");

    assert_snapshot!(world.proctor(&["procedure", "list"]).snapshot(), @"
    exit 0
    --- stdout
    after   Does nothing
    bad     can't be read: 2 findings
    before  Does nothing
    binary  can't be read: 1 finding
    --- stderr

    hint: `proctor procedure lint` shows what is wrong with cards
    ");
}

#[test]
fn json_names_every_card_with_what_is_wrong_with_it() {
    let world = world().with_card("good", GOOD).with_card("bad", BAD);

    assert_snapshot!(world.proctor(&["procedure", "list", "--json"]).snapshot(), @r#"
    exit 0
    --- stdout
    {"version":1,"procedures":[{"name":"bad","card":"proctor/procedures/bad.procedure.card","readable":false,"description":null,"steps":null,"needs_agents":null,"findings":[{"level":"error","path":"proctor/procedures/bad.procedure.card","line":3,"column":1,"message":"unknown key `descripton`","hint":"did you mean `description`?"},{"level":"error","path":"proctor/procedures/bad.procedure.card","line":7,"column":7,"message":"unknown key `shels`","hint":"did you mean `shells`?"}]},{"name":"good","card":"proctor/procedures/good.procedure.card","readable":true,"description":"Does nothing","steps":1,"needs_agents":false,"findings":[]}]}
    "#);
}

#[test]
fn without_procedures_it_says_how_to_begin() {
    assert_snapshot!(world().proctor(&["procedure", "list"]).snapshot(), @"
    exit 0
    --- stderr
    there are no procedures in proctor/procedures

    hint: `proctor init` makes an example
    ");
}
