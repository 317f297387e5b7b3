//! Keys that are unknown, twice there, or known to other programs.

use proctor_cards::Layout;

use super::{card, findings, findings_in, step};

#[test]
fn keys_that_are_unknown_or_twice_there_are_errors_at_every_level() {
    insta::assert_snapshot!(findings(&card("steps: []\nname: q\ncolour: red\ncolour: blue\n[a]: b\n<<: {}\n")), @"
    p.procedure.card:4:1: error: duplicate key `name`: it is already on line 2
      4 | name: q
        | ^^^^
    p.procedure.card:5:1: error: unknown key `colour`
      5 | colour: red
        | ^^^^^^
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, memory, inputs, steps
    p.procedure.card:6:1: error: duplicate key `colour`: it is already on line 5
      6 | colour: blue
        | ^^^^^^
    p.procedure.card:7:1: error: a key must be a text
      7 | [a]: b
        | ^^^
    p.procedure.card:8:1: error: unknown key `<<`
      8 | <<: {}
        | ^^
      hint: merge keys are not read: repeat the keys, or use an alias for a whole value
    ");
    insta::assert_snapshot!(findings(&card("inputs: [{name: a, typ: int}]\nsteps: []\n")), @"
    p.procedure.card:3:20: error: unknown key `typ`
      3 | inputs: [{name: a, typ: int}]
        |                    ^^^
      hint: did you mean `type`?
    ");
    insta::assert_snapshot!(findings(&step("shells: [ls]\nretry: {max: 1, back-off: 1s}\nenv: {A: 1, A: 2}\nrun: {shells: [ls], severity: warn}")), @"
    p.procedure.card:5:5: error: unknown key `shells`
      5 |     shells: [ls]
        |     ^^^^^^
      hint: `shells` belongs under `precheck`, `run`, `validate`
    p.procedure.card:6:21: error: unknown key `back-off`
      6 |     retry: {max: 1, back-off: 1s}
        |                     ^^^^^^^^
      hint: did you mean `backoff`?
    p.procedure.card:7:17: error: duplicate key `A`: it is already on line 7
      7 |     env: {A: 1, A: 2}
        |                 ^
    p.procedure.card:8:25: error: `severity` can't work here: only a check has a severity: it belongs under `validate`
      8 |     run: {shells: [ls], severity: warn}
        |                         ^^^^^^^^
    ");
    insta::assert_snapshot!(findings(&step("run: {agents: [{prompt: x, turns: 3}]}\nvalidate: {shells: [ls], sevrity: abort}")), @"
    p.procedure.card:5:32: error: unknown key `turns`
      5 |     run: {agents: [{prompt: x, turns: 3}]}
        |                                ^^^^^
      hint: the keys here are prompt, model, max-turns
    p.procedure.card:6:30: error: unknown key `sevrity`
      6 |     validate: {shells: [ls], sevrity: abort}
        |                              ^^^^^^^
      hint: did you mean `severity`?
    ");
    insta::assert_snapshot!(findings(&card("title: x\ntheme: y\nsteps: []\n")), @"
    p.procedure.card:3:1: error: unknown key `title`
      3 | title: x
        | ^^^^^
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, memory, inputs, steps
    p.procedure.card:4:1: error: unknown key `theme`
      4 | theme: y
        | ^^^^^
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, memory, inputs, steps
    ");
}

#[test]
fn the_keys_of_every_card_of_a_box_are_fine_in_a_box() {
    assert_eq!(findings_in(Layout::BeeBox, &card("title: x\ntodos: [{a: b}]\ntheme:\ntype: procedure\nsteps: []\n")), "");
    insta::assert_snapshot!(findings_in(Layout::BeeBox, &card("type: schedule\ntitel: x\nsteps: []\n")), @"
    p.procedure.card:3:7: error: `type` must be `procedure`, and is `schedule`
      3 | type: schedule
        |       ^^^^^^^^
    p.procedure.card:4:1: error: unknown key `titel`
      4 | titel: x
        | ^^^^^
      hint: did you mean `title`?
    ");
}

#[test]
fn keys_of_other_programs_lead_to_ours() {
    insta::assert_snapshot!(findings(&card("steps:\n  - name: build\n    if: true\n    run: {script: ls}\n")), @"
    p.procedure.card:4:5: error: unknown key `name`
      4 |   - name: build
        |     ^^^^
      hint: did you mean `id`?
    p.procedure.card:4:5: error: this step has no `id`
      4 |   - name: build
        |     ^
    p.procedure.card:5:5: error: unknown key `if`
      5 |     if: true
        |     ^^
      hint: did you mean `when`?
    p.procedure.card:6:11: error: unknown key `script`
      6 |     run: {script: ls}
        |           ^^^^^^
      hint: did you mean `shells`?
    ");
}
