//! What is wrong with a card, where, and what to do: each kind of mistake as people see it.

use proctor_cards::{Layout, Level};

use super::{card, findings, findings_in, read, read_in, step};

#[test]
fn many_mistakes_are_found_in_one_pass() {
    let text = r#"---
name: tidy/seeds
desc: Sort
run-expiry: 6 weeks
steps:
  - id: sort
    run:
      shell:
        - echo ${{ inputs.only }}
      agents:
        - promt: Put every packet under a bed
          max_turns: 25
  - id: sort
    timeout: 0s
    validate:
      severity: aborts
  - description: no id
    run: {shells: [""]}
---
More text.
"#;
    insta::assert_snapshot!(findings(text), @r#"
    p.procedure.card:2:7: error: the name `tidy/seeds` holds a slash, so it can't name a run's folder
      2 | name: tidy/seeds
        |       ^^^^^^^^^^
      hint: use a short name such as `release-check`
    p.procedure.card:3:1: error: unknown key `desc`
      3 | desc: Sort
        | ^^^^
      hint: did you mean `description`?
    p.procedure.card:4:13: error: `run-expiry` must be a duration or `never`, and is `6 weeks`
      4 | run-expiry: 6 weeks
        |             ^^^^^^^
      hint: write a number and one of s, m, h, d, w, as in 90s, 1.5h or 2w
    p.procedure.card:8:7: error: unknown key `shell`
      8 |       shell:
        |       ^^^^^
      hint: did you mean `shells`?
    p.procedure.card:11:11: error: unknown key `promt`
      11 |         - promt: Put every packet under a bed
         |           ^^^^^
      hint: did you mean `prompt`?
    p.procedure.card:11:11: error: this agent has no `prompt`
      11 |         - promt: Put every packet under a bed
         |           ^
    p.procedure.card:12:11: error: unknown key `max_turns`
      12 |           max_turns: 25
         |           ^^^^^^^^^
      hint: did you mean `max-turns`?
    p.procedure.card:13:9: error: duplicate step id `sort`: it is already on line 6
      13 |   - id: sort
         |         ^^^^
    p.procedure.card:14:14: error: `timeout` is 0, so nothing could ever run
      14 |     timeout: 0s
         |              ^^
      hint: leave it out for the default
    p.procedure.card:15:5: error: the validate phase can't work: it has neither `shells` nor `instructions`
      15 |     validate:
         |     ^^^^^^^^
    p.procedure.card:16:17: error: `severity` must be `warn`, `review` or `abort`, and is `aborts`
      16 |       severity: aborts
         |                 ^^^^^^
      hint: did you mean `abort`?
    p.procedure.card:17:5: error: this step has no `id`
      17 |   - description: no id
         |     ^
    p.procedure.card:18:20: error: an entry of `shells` is empty
      18 |     run: {shells: [""]}
         |                    ^^
    p.procedure.card:20:1: error: a procedure card has no text after its front matter
      20 | More text.
         | ^^^^^^^^^^
      hint: move it into the `description`, or into a YAML comment
    "#);
}

#[test]
fn a_text_that_is_no_card_says_so() {
    insta::assert_snapshot!(findings("name: p\nsteps: []\n"), @"
    p.procedure.card:1:1: error: a card begins with a line `---`, and this text does not
      1 | name: p
        | ^^^^^^^
      hint: a procedure card is a line `---`, YAML, and a line `---`
    ");
    insta::assert_snapshot!(findings(""), @"
    p.procedure.card:1:1: error: a card begins with a line `---`, and this text does not
      1 | 
        | ^
      hint: a procedure card is a line `---`, YAML, and a line `---`
    ");
    insta::assert_snapshot!(findings("---\nname: p\nsteps: []\n"), @"
    p.procedure.card:1:1: error: the front matter that begins here has no closing line `---`
      1 | ---
        | ^^^
      hint: a procedure card is a line `---`, YAML, and a line `---`
    ");
    insta::assert_snapshot!(findings("---\n---\n"), @"
    p.procedure.card:2:1: error: the front matter is empty: it needs at least `name` and `steps`
      2 | ---
        | ^^^
    ");
    insta::assert_snapshot!(findings("---\n- a\n---\n"), @"
    p.procedure.card:2:1: error: the front matter must be a mapping, and is a list
      2 | - a
        | ^^^
    ");
    insta::assert_snapshot!(findings("---\n{}\n---\n"), @"
    p.procedure.card:2:1: error: the card has no `name`
      2 | {}
        | ^
    p.procedure.card:2:1: error: the card has no `steps`
      2 | {}
        | ^
    ");
}

#[test]
fn yaml_that_can_not_be_read_is_named_with_its_place() {
    insta::assert_snapshot!(findings(&card("steps: [\n")), @"
    p.procedure.card:3:8: error: not valid YAML: unclosed bracket '['
      3 | steps: [
        |        ^
    ");
    insta::assert_snapshot!(findings(&card("steps:\n\t- id: a\n")), @"
    p.procedure.card:4:2: error: not valid YAML: tabs disallowed within this context (block indentation)
      4 |  - id: a
        |  ^
      hint: indent with spaces
    ");
    insta::assert_snapshot!(findings(&card("description: a: b\nsteps: []\n")), @"
    p.procedure.card:3:15: error: not valid YAML: mapping values are not allowed in this context
      3 | description: a: b
        |               ^
      hint: a text with `: ` in it needs quotes
    ");
    insta::assert_snapshot!(findings(&card("description: !secret x\nsteps: []\n")), @"
    p.procedure.card:3:14: error: the YAML tag `!secret` means nothing in a card
      3 | description: !secret x
        |              ^^^^^^^
      hint: a text that begins with `!` needs quotes
    ");
    insta::assert_snapshot!(findings(&card("description: @home\nsteps: []\n")), @"
    p.procedure.card:3:14: error: not valid YAML: unexpected character: `@'
      3 | description: @home
        |              ^
      hint: a text that begins with this character needs quotes
    ");
    insta::assert_snapshot!(findings(&card("steps: []\n...\nx: y\n")), @"
    p.procedure.card:5:1: error: a second YAML document begins here
      5 | x: y
        | ^
    ");
    insta::assert_snapshot!(findings(&card("steps: *nowhere\n")), @"
    p.procedure.card:3:8: error: not valid YAML: while parsing node, found unknown anchor
      3 | steps: *nowhere
        |        ^
      hint: a text that begins with `*` needs quotes
    ");
}

#[test]
fn keys_that_are_unknown_or_twice_there_are_errors_at_every_level() {
    insta::assert_snapshot!(findings(&card("steps: []\nname: q\ncolour: red\ncolour: blue\n[a]: b\n<<: {}\n")), @"
    p.procedure.card:4:1: error: duplicate key `name`: it is already on line 2
      4 | name: q
        | ^^^^
    p.procedure.card:5:1: error: unknown key `colour`
      5 | colour: red
        | ^^^^^^
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, inputs, steps
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
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, inputs, steps
    p.procedure.card:4:1: error: unknown key `theme`
      4 | theme: y
        | ^^^^^
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, inputs, steps
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
fn wrong_types_say_what_is_wanted_and_what_is_there() {
    insta::assert_snapshot!(findings("---\nname: 5\ndescription: [a]\nrecords: both\nisolation: true\ninputs: {}\nsteps: {a: b}\n---\n"), @"
    p.procedure.card:2:7: error: `name` must be a text, and is a number
      2 | name: 5
        |       ^
      hint: write it in quotes: '5'
    p.procedure.card:3:14: error: `description` must be a text, and is a list
      3 | description: [a]
        |              ^^^
    p.procedure.card:4:10: error: `records` must be `state` or `git`, and is `both`
      4 | records: both
        |          ^^^^
    p.procedure.card:5:12: error: `isolation` must be `in-place` or `worktree`, and is `true`
      5 | isolation: true
        |            ^^^^
    p.procedure.card:6:9: error: `inputs` must be a list, and is a mapping
      6 | inputs: {}
        |         ^^
    p.procedure.card:7:8: error: `steps` must be a list, and is a mapping
      7 | steps: {a: b}
        |        ^^^^^^
    ");
    insta::assert_snapshot!(findings("---\nname:\nrun-expiry: [1d]\nfailed-run-expiry: soon\nsteps:\n---\n"), @"
    p.procedure.card:2:1: error: `name` is empty; it must be a text
      2 | name:
        | ^^^^
    p.procedure.card:3:13: error: `run-expiry` must be a duration such as 30d, or `never`, and is a list
      3 | run-expiry: [1d]
        |             ^^^^
    p.procedure.card:4:20: error: `failed-run-expiry` must be a duration or `never`, and is `soon`
      4 | failed-run-expiry: soon
        |                    ^^^^
      hint: write a number and one of s, m, h, d, w, as in 90s, 1.5h or 2w
    p.procedure.card:5:1: error: `steps` is empty; it must be a list
      5 | steps:
        | ^^^^^
      hint: write [] for an empty list
    ");
}

#[test]
fn wrong_types_inside_a_step_say_what_is_wanted_and_what_is_there() {
    insta::assert_snapshot!(findings(&card("steps:\n  - sort\n  -\n  - id: true\n    run: ls\n    timeout: {}\n    env: [A]\n    outputs: a\n    retry: 3\n    when: [a]\n")), @"
    p.procedure.card:4:5: error: an entry of `steps` must be a mapping, and is a text
      4 |   - sort
        |     ^^^^
    p.procedure.card:5:4: error: an entry of `steps` must be a mapping, and is empty
      5 |   -
        |    ^
    p.procedure.card:6:9: error: `id` must be a text, and is a truth value
      6 |   - id: true
        |         ^^^^
      hint: write it in quotes: 'true'
    p.procedure.card:7:10: error: `run` must be a mapping, and is a text
      7 |     run: ls
        |          ^^
    p.procedure.card:8:14: error: `timeout` must be a duration such as 90s or 1.5h, and is a mapping
      8 |     timeout: {}
        |              ^^
    p.procedure.card:9:10: error: `env` must be a mapping, and is a list
      9 |     env: [A]
        |          ^^^
    p.procedure.card:10:14: error: `outputs` must be a list, and is a text
      10 |     outputs: a
         |              ^
      hint: put `- ` before it
    p.procedure.card:11:12: error: `retry` must be a mapping, and is a number
      11 |     retry: 3
         |            ^
    p.procedure.card:12:11: error: `when` must be one value, and is a list
      12 |     when: [a]
         |           ^^^
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: ls, agents: [x]}\nprecheck: {shells: [[ls]], pass-output: yes}\nvalidate: {shells: [{a: b}, ~], severity: 1}")), @"
    p.procedure.card:5:19: error: `shells` must be a list, and is a text
      5 |     run: {shells: ls, agents: [x]}
        |                   ^^
      hint: put `- ` before it
    p.procedure.card:5:32: error: an entry of `agents` must be a mapping, and is a text
      5 |     run: {shells: ls, agents: [x]}
        |                                ^
    p.procedure.card:6:25: error: an entry of `shells` must be one value, and is a list
      6 |     precheck: {shells: [[ls]], pass-output: yes}
        |                         ^^^^
    p.procedure.card:6:45: error: `pass-output` must be `true` or `false`, and is `yes`
      6 |     precheck: {shells: [[ls]], pass-output: yes}
        |                                             ^^^
    p.procedure.card:7:25: error: an entry of `shells` must be one value, and is a mapping
      7 |     validate: {shells: [{a: b}, ~], severity: 1}
        |                         ^^^^^^
    p.procedure.card:7:33: error: an entry of `shells` is empty; it must be one value
      7 |     validate: {shells: [{a: b}, ~], severity: 1}
        |                                 ^
      hint: write '' for an empty text
    p.procedure.card:7:47: error: `severity` must be `warn`, `review` or `abort`, and is `1`
      7 |     validate: {shells: [{a: b}, ~], severity: 1}
        |                                               ^
    ");
}

#[test]
fn names_that_can_not_name_a_folder_or_a_variable_are_refused() {
    for name in ["''", "' '", "a/b", "'a\\b'", ".hidden", "-x", "\"a\\nb\"", "' a'", "\"\\u001b\"", &"x".repeat(101)] {
        assert!(read(&format!("---\nname: {name}\nsteps: []\n---\n")).is_err(), "{name}");
    }
    insta::assert_snapshot!(findings("---\nname: \"a\\tb\"\nsteps: []\n---\n"), @r#"
    p.procedure.card:2:7: error: the name `a b` holds a control character or a line break, so it can't name a run's folder
      2 | name: "a\tb"
        |       ^^^^^^
      hint: use a short name such as `release-check`
    "#);
    insta::assert_snapshot!(findings(&card("steps:\n  - id: sort packets\n  - id: ''\n")), @"
    p.procedure.card:4:9: error: `sort packets` can't be a step id
      4 |   - id: sort packets
        |         ^^^^^^^^^^^^
      hint: use letters, digits, `-`, `_` and `.`, beginning with a letter or digit, at most 64
    p.procedure.card:5:9: error: `` can't be a step id
      5 |   - id: ''
        |         ^^
      hint: use letters, digits, `-`, `_` and `.`, beginning with a letter or digit, at most 64
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\nenv: {1A: x, A-B: x, PROCTOR_RUN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}")), @"
    p.procedure.card:6:11: error: `1A` can't be the name of a variable
      6 |     env: {1A: x, A-B: x, PROCTOR_RUN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}
        |           ^^
      hint: use letters, digits and `_`, not beginning with a digit
    p.procedure.card:6:18: error: `A-B` can't be the name of a variable
      6 |     env: {1A: x, A-B: x, PROCTOR_RUN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}
        |                  ^^^
      hint: use letters, digits and `_`, not beginning with a digit
    p.procedure.card:6:26: error: `PROCTOR_RUN` is taken: Proctor sets the variables that begin with `PROCTOR_`
      6 |     env: {1A: x, A-B: x, PROCTOR_RUN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}
        |                          ^^^^^^^^^^^
    p.procedure.card:6:42: error: `CHECK_SKIP` is taken: Proctor sets it to the exit code that skips a step
      6 |     env: {1A: x, A-B: x, PROCTOR_RUN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}
        |                                          ^^^^^^^^^^
    p.procedure.card:6:57: error: `INPUT_A` is taken: Proctor sets the variables that begin with `INPUT_`
      6 |     env: {1A: x, A-B: x, PROCTOR_RUN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}
        |                                                         ^^^^^^^
    p.procedure.card:6:69: error: `STEP_A` is taken: Proctor sets the variables that begin with `STEP_`
      6 | … {1A: x, A-B: x, PROCTOR_RUN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}
        |                                                              ^^^^^^
    p.procedure.card:6:95: error: an entry of `env` is empty; it must be one value
      6 | …UN: x, CHECK_SKIP: 1, INPUT_A: x, STEP_A: x, PATH: x, _OK9: ~}
        |                                                              ^
      hint: write '' for an empty text
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\noutputs: [ok, a b, '', 5, ok, a-b, a_b]")), @"
    p.procedure.card:6:19: error: `a b` can't be a name here
      6 |     outputs: [ok, a b, '', 5, ok, a-b, a_b]
        |                   ^^^
      hint: use letters, digits, `-` and `_`, beginning with a letter, at most 64
    p.procedure.card:6:24: error: `` can't be a name here
      6 |     outputs: [ok, a b, '', 5, ok, a-b, a_b]
        |                        ^^
      hint: use letters, digits, `-` and `_`, beginning with a letter, at most 64
    p.procedure.card:6:28: error: an entry of `outputs` must be a text, and is a number
      6 |     outputs: [ok, a b, '', 5, ok, a-b, a_b]
        |                            ^
      hint: write it in quotes: '5'
    p.procedure.card:6:31: error: duplicate output `ok`
      6 |     outputs: [ok, a b, '', 5, ok, a-b, a_b]
        |                               ^^
    p.procedure.card:6:40: error: the outputs `a_b` and `a-b` would share one variable
      6 |     outputs: [ok, a b, '', 5, ok, a-b, a_b]
        |                                        ^^^
    ");
}

#[test]
fn ids_that_are_the_same_or_share_their_variables_are_errors() {
    insta::assert_snapshot!(findings(&card("steps:\n  - id: a-b\n    run: {shells: [ls]}\n  - id: a_b\n    run: {shells: [ls]}\n  - id: a-b\n    run: {shells: [ls]}\n")), @"
    p.procedure.card:6:9: error: the step ids `a_b` and `a-b` (line 4) would share the variables `STEP_A_B_…`
      6 |   - id: a_b
        |         ^^^
    p.procedure.card:8:9: error: duplicate step id `a-b`: it is already on line 4
      8 |   - id: a-b
        |         ^^^
    ");
    insta::assert_snapshot!(findings(&card("steps:\n  - id: a\n    run: {shells: [ls]}\n    outputs: [b-c]\n  - id: a-b\n    run: {shells: [ls]}\n    outputs: [c]\n")), @"
    p.procedure.card:9:15: error: the outputs `c` of `a-b` and `b-c` of `a` would share the variable `STEP_A_B_C`
      9 |     outputs: [c]
        |               ^
    ");
}

#[test]
fn phases_that_can_not_work_are_errors() {
    insta::assert_snapshot!(findings(&step("precheck: {shells: [ls], agents: [{prompt: x}], instructions: [y]}\nrun: {shells: [ls], instructions: [y]}\nvalidate: {shells: [ls], agents: [{prompt: x}]}")), @"
    p.procedure.card:5:30: error: `agents` can't work here: a precheck can't start agents: only shells can say that a step is not needed
      5 |     precheck: {shells: [ls], agents: [{prompt: x}], instructions: [y]}
        |                              ^^^^^^
    p.procedure.card:5:53: error: `instructions` can't work here: a precheck has no judge: only shells can say that a step is not needed
      5 |     precheck: {shells: [ls], agents: [{prompt: x}], instructions: [y]}
        |                                                     ^^^^^^^^^^^^
    p.procedure.card:6:25: error: `instructions` can't work here: criteria are judged after the work: they belong under `validate`
      6 |     run: {shells: [ls], instructions: [y]}
        |                         ^^^^^^^^^^^^
    p.procedure.card:7:30: error: `agents` can't work here: agents do the work: they belong under `run`; `validate` has `instructions` for a judge
      7 |     validate: {shells: [ls], agents: [{prompt: x}]}
        |                              ^^^^^^
    ");
    insta::assert_snapshot!(findings(&step("precheck: {}\nrun:\nvalidate: {severity: abort}")), @"
    p.procedure.card:5:5: error: the precheck can't work: without `shells` nothing decides whether the step is needed
      5 |     precheck: {}
        |     ^^^^^^^^
    p.procedure.card:6:5: error: `run` is empty: leave it out, or say what it does
      6 |     run:
        |     ^^^
    p.procedure.card:7:5: error: the validate phase can't work: it has neither `shells` nor `instructions`
      7 |     validate: {severity: abort}
        |     ^^^^^^^^
    ");
    insta::assert_snapshot!(findings(&step("precheck: {pass-output: true}\nrun: {shells: [], agents: []}\nvalidate: {whys: [because]}")), @"
    p.procedure.card:5:5: error: the precheck can't work: without `shells` nothing decides whether the step is needed
      5 |     precheck: {pass-output: true}
        |     ^^^^^^^^
    p.procedure.card:5:29: warning: `pass-output` does nothing: the step has no agent to pass it to
      5 |     precheck: {pass-output: true}
        |                             ^^^^
    p.procedure.card:6:5: error: the run phase can't work: it has neither `shells` nor `agents`
      6 |     run: {shells: [], agents: []}
        |     ^^^
    p.procedure.card:7:5: error: the validate phase can't work: it has neither `shells` nor `instructions`
      7 |     validate: {whys: [because]}
        |     ^^^^^^^^
    ");
}

#[test]
fn parts_of_a_step_that_can_not_work_are_errors() {
    insta::assert_snapshot!(findings(&step("run: {agents: [{prompt: '', max-turns: 0}, {model: strong}, {prompt: x, max-turns: 1.5}]}")), @"
    p.procedure.card:5:29: error: `prompt` is empty
      5 |     run: {agents: [{prompt: '', max-turns: 0}, {model: strong}, {prompt: x, max-turns: 1.5}]}
        |                             ^^
    p.procedure.card:5:44: error: `max-turns` must be a whole number of at least 1, and is `0`
      5 |     run: {agents: [{prompt: '', max-turns: 0}, {model: strong}, {prompt: x, max-turns: 1.5}]}
        |                                            ^
    p.procedure.card:5:48: error: this agent has no `prompt`
      5 |     run: {agents: [{prompt: '', max-turns: 0}, {model: strong}, {prompt: x, max-turns: 1.5}]}
        |                                                ^
    p.procedure.card:5:88: error: `max-turns` must be a whole number of at least 1, and is `1.5`
      5 | … '', max-turns: 0}, {model: strong}, {prompt: x, max-turns: 1.5}]}
        |                                                              ^^^
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: ['', '  ', \"a\\0b\"]}")), @r#"
    p.procedure.card:5:20: error: an entry of `shells` is empty
      5 |     run: {shells: ['', '  ', "a\0b"]}
        |                    ^^
    p.procedure.card:5:24: error: an entry of `shells` is empty
      5 |     run: {shells: ['', '  ', "a\0b"]}
        |                        ^^^^
    p.procedure.card:5:30: error: an entry of `shells` holds a NUL character, which no program can be given
      5 |     run: {shells: ['', '  ', "a\0b"]}
        |                              ^^^^^^
    "#);
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\ntimeout: 0s\nretry: {max: 0, backoff: 5, on: [agent, shel]}")), @"
    p.procedure.card:6:14: error: `timeout` is 0, so nothing could ever run
      6 |     timeout: 0s
        |              ^^
      hint: leave it out for the default
    p.procedure.card:7:18: error: `max` must be a whole number from 1 to 100, and is `0`
      7 |     retry: {max: 0, backoff: 5, on: [agent, shel]}
        |                  ^
    p.procedure.card:7:30: error: `backoff` must be a duration, and is `5`
      7 |     retry: {max: 0, backoff: 5, on: [agent, shel]}
        |                              ^
      hint: write a number and one of s, m, h, d, w, as in 90s, 1.5h or 2w
    p.procedure.card:7:38: error: an entry of `on` must be `shell`, and is `agent`
      7 |     retry: {max: 0, backoff: 5, on: [agent, shel]}
        |                                      ^^^^^
    p.procedure.card:7:45: error: an entry of `on` must be `shell`, and is `shel`
      7 |     retry: {max: 0, backoff: 5, on: [agent, shel]}
        |                                             ^^^^
      hint: did you mean `shell`?
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\nretry: {max: 101, on: []}\ntimeout: 10")), @"
    p.procedure.card:6:18: error: `max` must be a whole number from 1 to 100, and is `101`
      6 |     retry: {max: 101, on: []}
        |                  ^^^
    p.procedure.card:6:27: error: `on` is empty, so nothing would be repeated
      6 |     retry: {max: 101, on: []}
        |                           ^^
      hint: write `on: [shell]`, or leave it out
    p.procedure.card:7:14: error: `timeout` must be a duration, and is `10`
      7 |     timeout: 10
        |              ^^
      hint: write a number and one of s, m, h, d, w, as in 90s, 1.5h or 2w
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\nretry: {backoff: 1s}")), @"
    p.procedure.card:6:12: error: `retry` has no `max`
      6 |     retry: {backoff: 1s}
        |            ^
    ");
}

#[test]
fn a_review_needs_exactly_one_agent() {
    let none = step("run: {shells: [ls]}\nvalidate:\n  shells: [ls]\n  severity: review");
    let two = step("run: {agents: [{prompt: x}, {prompt: y}]}\nvalidate: {shells: [ls], severity: review}");

    insta::assert_snapshot!(findings(&none), @"
    p.procedure.card:8:17: error: `review` lets the step's only agent repair its work, and this step has no agent
      8 |       severity: review
        |                 ^^^^^^
      hint: write `severity: abort` when a negative check is to fail the step
    ");
    insta::assert_snapshot!(findings_in(Layout::BeeBox, &two), @"
    p.procedure.card:6:40: warning: `review` lets the step's only agent repair its work, and this step has 2 agents
      6 |     validate: {shells: [ls], severity: review}
        |                                        ^^^^^^
      hint: write `severity: abort` when a negative check is to fail the step
    ");
    assert!(read_in(Layout::BeeBox, &none).is_ok_and(|card| card.warnings[0].level == Level::Warning));
    assert_eq!(findings(&step("run: {agents: [{prompt: x}]}\nvalidate: {shells: [ls], severity: review}")), "");
}

#[test]
fn what_has_no_effect_is_a_warning() {
    insta::assert_snapshot!(findings(&step("description: nothing")), @"
    p.procedure.card:4:9: warning: the step `a` does nothing: it has no precheck, run or validate
      4 |   - id: a
        |         ^
    ");
    insta::assert_snapshot!(findings(&step("precheck: {shells: [ls], pass-output: true, whys: [w]}\nrun: {shells: [ls], whys: [w]}")), @"
    p.procedure.card:5:43: warning: `pass-output` does nothing: the step has no agent to pass it to
      5 |     precheck: {shells: [ls], pass-output: true, whys: [w]}
        |                                           ^^^^
    p.procedure.card:5:49: warning: `whys` are not used here
      5 |     precheck: {shells: [ls], pass-output: true, whys: [w]}
        |                                                 ^^^^
      hint: they are given to the judge: put them under `validate`
    p.procedure.card:6:25: warning: `whys` are not used here
      6 |     run: {shells: [ls], whys: [w]}
        |                         ^^^^
      hint: they are given to the judge: put them under `validate`
    ");
    insta::assert_snapshot!(findings(&step("precheck: {shells: [ls]}\nretry: {max: 1}")), @"
    p.procedure.card:6:5: warning: `retry` does nothing: neither `run` nor `validate` has a shell
      6 |     retry: {max: 1}
        |     ^^^^^
    ");
    insta::assert_snapshot!(findings(&step("validate: {instructions: ['see ${{ inputs.a }}']}")), @"
    p.procedure.card:5:36: warning: `${{ … }}` is not replaced here: it works in prompts, `env` and `when`
      5 |     validate: {instructions: ['see ${{ inputs.a }}']}
        |                                    ^^^
    ");
}

#[test]
fn inputs_that_can_not_be_given_are_errors() {
    insta::assert_snapshot!(findings(&card("inputs:\n  - {name: a-b}\n  - {name: a_b}\n  - {name: a-b}\n  - {name: 9}\n  - {name: 9x}\n  - {type: int}\n  - a\nsteps: []\n")), @"
    p.procedure.card:5:12: error: the inputs `a_b` and `a-b` (line 4) would share the variable `INPUT_A_B`
      5 |   - {name: a_b}
        |            ^^^
    p.procedure.card:6:12: error: duplicate input `a-b`: it is already on line 4
      6 |   - {name: a-b}
        |            ^^^
    p.procedure.card:7:12: error: `name` must be a text, and is a number
      7 |   - {name: 9}
        |            ^
      hint: write it in quotes: '9'
    p.procedure.card:8:12: error: `9x` can't be a name here
      8 |   - {name: 9x}
        |            ^^
      hint: use letters, digits, `-` and `_`, beginning with a letter, at most 64
    p.procedure.card:9:5: error: this input has no `name`
      9 |   - {type: int}
        |     ^
    p.procedure.card:10:5: error: an entry of `inputs` must be a mapping, and is a text
      10 |   - a
         |     ^
    ");
    insta::assert_snapshot!(findings(&card("inputs:\n  - {name: a, type: integer}\n  - {name: b, type: flot}\n  - {name: c, type: choice}\n  - {name: d, choices: [x]}\n  - {name: e, type: choice, choices: []}\n  - {name: f, type: choice, choices: [x, x]}\nsteps: []\n")), @"
    p.procedure.card:4:21: error: `type` must be `string`, `int`, `float`, `bool`, `path` or `choice`, and is `integer`
      4 |   - {name: a, type: integer}
        |                     ^^^^^^^
      hint: did you mean `int`?
    p.procedure.card:5:21: error: `type` must be `string`, `int`, `float`, `bool`, `path` or `choice`, and is `flot`
      5 |   - {name: b, type: flot}
        |                     ^^^^
      hint: did you mean `float`?
    p.procedure.card:6:21: error: a `choice` needs `choices`
      6 |   - {name: c, type: choice}
        |                     ^^^^^^
      hint: as in `choices: [fast, thorough]`
    p.procedure.card:7:15: error: only a `choice` has `choices`
      7 |   - {name: d, choices: [x]}
        |               ^^^^^^^
      hint: write `type: choice`, or leave the choices out
    p.procedure.card:8:38: error: `choices` is empty, so nothing could be chosen
      8 |   - {name: e, type: choice, choices: []}
        |                                      ^^
    p.procedure.card:9:42: error: duplicate choice `x`
      9 |   - {name: f, type: choice, choices: [x, x]}
        |                                          ^
    ");
    insta::assert_snapshot!(findings(&card("inputs:\n  - {name: a, type: int, default: 1.5}\n  - {name: b, type: bool, default: yes}\n  - {name: c, type: choice, choices: [x, y], default: z}\n  - {name: d, required: true, default: x}\n  - {name: e, default: ~}\n  - {name: f, type: path, default: ''}\n  - {name: g, required: 1}\n  - {name: h, default: [x]}\nsteps: []\n")), @"
    p.procedure.card:4:35: error: the default of `a` is `1.5`, which is not a whole number
      4 |   - {name: a, type: int, default: 1.5}
        |                                   ^^^
    p.procedure.card:5:36: error: the default of `b` is `yes`, which is not `true` or `false`
      5 |   - {name: b, type: bool, default: yes}
        |                                    ^^^
    p.procedure.card:6:55: error: the default of `c` is `z`, which is not one of x, y
      6 |   - {name: c, type: choice, choices: [x, y], default: z}
        |                                                       ^
    p.procedure.card:7:31: error: the input `d` is required, so its default is never used
      7 |   - {name: d, required: true, default: x}
        |                               ^^^^^^^
      hint: leave one of the two out
    p.procedure.card:8:24: error: `default` is empty; it must be one value
      8 |   - {name: e, default: ~}
        |                        ^
      hint: write '' for an empty text
    p.procedure.card:9:36: error: the default of `f` is ``, which is not a path
      9 |   - {name: f, type: path, default: ''}
        |                                    ^^
    p.procedure.card:10:25: error: `required` must be `true` or `false`, and is `1`
      10 |   - {name: g, required: 1}
         |                         ^
    p.procedure.card:11:24: error: `default` must be one value, and is a list
      11 |   - {name: h, default: [x]}
         |                        ^^^
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

#[test]
fn carriage_returns_change_neither_places_nor_meaning() {
    let text = step("run:\n  shell: [ls]\n  shells:\n    - |\n      one\n      two");

    assert_eq!(findings(&text.replace('\n', "\r\n")), findings(&text));
}

#[test]
fn a_place_is_counted_in_characters_and_control_characters_are_not_printed() {
    insta::assert_snapshot!(findings(&card("description: \"ü\u{202e}ß\"\nsteps: [{ïd: x}]\n")), @"
    p.procedure.card:4:9: error: this step has no `id`
      4 | steps: [{ïd: x}]
        |         ^
    p.procedure.card:4:10: error: unknown key `ïd`
      4 | steps: [{ïd: x}]
        |          ^^
      hint: did you mean `id`?
    ");
    insta::assert_snapshot!(findings(&format!("---\n{{name: p, description: {}, colour: {}, steps: []}}\n---\n", "x".repeat(300), "y".repeat(300))), @"
    p.procedure.card:2:326: error: unknown key `colour`
      2 | …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, colour: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…
        |                                                              ^^^^^^
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, inputs, steps
    ");
}

#[test]
fn more_findings_than_anybody_reads_are_only_counted() {
    let findings = read(&card(&format!("steps:\n{}", "  - {}\n".repeat(300)))).unwrap_err();

    assert_eq!(findings.len(), 101);
    assert_eq!(findings[100].to_string(), "p.procedure.card: warning: 200 more findings are not shown");
}
