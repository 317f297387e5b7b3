use insta::assert_snapshot;

use crate::{BAD, GOOD, world};

const RICH: &str = "\
description: Checks a release
records: git
inputs:
  - name: version
    required: true
    description: What is released
  - name: channel
    type: choice
    choices: [stable, beta]
    default: beta
steps:
  - id: build
    description: Build it
    timeout: 10m
    retry: {max: 2, on: [shell]}
    outputs: [file]
    precheck:
      shells: ['true']
    run:
      shells: ['echo file=x >> \"$PROCTOR_OUTPUT\"', 'true']
    validate:
      severity: abort
      shells: ['true']
  - id: publish
    when: inputs.channel == 'stable'
    run:
      agents:
        - prompt: Publish it
    validate:
      instructions: [It is published, It can be installed]
";

#[test]
fn it_shows_inputs_and_steps() {
    let world = world().with_card("release", RICH);

    assert_snapshot!(world.proctor(&["procedure", "show", "release"]).snapshot(), @"
    exit 0
    --- stdout
    release  Checks a release
    card     proctor/procedures/release.procedure.card
    records  git
    agents   needed

    inputs
      version (string, required)  What is released
      channel (stable|beta, default beta)

    steps
      1. build  Build it
         precheck: 1 shell; run: 2 shells; validate (abort): 1 shell
         timeout 10m
         up to 2 retries
         outputs file
      2. publish
         run: 1 agent; validate (warn): 2 criteria
         when inputs.channel == 'stable'
    ");
}

#[test]
fn json_has_what_the_card_declares() {
    let world = world().with_card("release", RICH);

    assert_snapshot!(world.proctor(&["procedure", "show", "release", "--json"]).snapshot(), @r#"
    exit 0
    --- stdout
    {"version":1,"name":"release","card":"proctor/procedures/release.procedure.card","description":"Checks a release","records":"git","isolation":"in-place","run_expiry":null,"failed_run_expiry":null,"needs_agents":true,"inputs":[{"name":"version","type":"string","choices":[],"default":null,"required":true,"description":"What is released"},{"name":"channel","type":"choice","choices":["stable","beta"],"default":"beta","required":false,"description":""}],"steps":[{"id":"build","description":"Build it","when":null,"timeout":"10m","retries":2,"outputs":["file"],"precheck":{"shells":1,"agents":0,"instructions":0},"run":{"shells":2,"agents":0,"instructions":0},"validate":{"shells":1,"agents":0,"instructions":0},"severity":"abort","lines":[14,25]},{"id":"publish","description":"","when":"inputs.channel == 'stable'","timeout":null,"retries":0,"outputs":null,"precheck":null,"run":{"shells":0,"agents":1,"instructions":0},"validate":{"shells":0,"agents":0,"instructions":2},"severity":"warn","lines":[26,32]}],"findings":[]}
    "#);
}

#[test]
fn a_bad_card_is_an_error_with_its_findings() {
    let world = world().with_card("bad", BAD);

    assert_snapshot!(world.proctor(&["procedure", "show", "bad", "--json"]).snapshot(), @r#"
    exit 2
    --- stdout
    {"version":1,"exit_code":2,"error":{"kind":"config","message":"proctor/procedures/bad.procedure.card can't be used: proctor/procedures/bad.procedure.card:3:1: error: unknown key `descripton`; proctor/procedures/bad.procedure.card:7:7: error: unknown key `shels`","hints":["did you mean `description`?","did you mean `shells`?"]}}
    --- stderr
    error: proctor/procedures/bad.procedure.card can't be used

    proctor/procedures/bad.procedure.card:3:1: error: unknown key `descripton`
      3 | descripton: Does nothing
        | ^^^^^^^^^^
      hint: did you mean `description`?

    proctor/procedures/bad.procedure.card:7:7: error: unknown key `shels`
      7 |       shels:
        |       ^^^^^
      hint: did you mean `shells`?
    "#);
}

#[test]
fn records_come_from_the_card_then_settings_then_layout() {
    let world = world().with_card("rich", RICH).with_card("plain", GOOD);
    let records = |name: &str| world.proctor(&["procedure", "show", name, "--json"]).expect_code(0).json()["records"].clone();

    assert_eq!((records("rich"), records("plain")), ("git".into(), "state".into()));
    world.write("proctor.toml", "records = 'git'\n");
    assert_eq!((records("rich"), records("plain")), ("git".into(), "git".into()));
}
