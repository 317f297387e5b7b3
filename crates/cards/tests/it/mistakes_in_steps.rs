//! What is wrong with a step, its names, its phases and what they hold.

use proctor_cards::{Layout, Level};

use super::{card, findings, findings_in, read, read_in, step};

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
fn questions_that_ask_nothing_are_errors() {
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\napprove: no")), @"
    p.procedure.card:6:14: error: `approve` must be a question, `true` or `false`, and is `no`
      6 |     approve: no
        |              ^^
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\napprove: ' '")), @"
    p.procedure.card:6:14: error: `approve` is empty
      6 |     approve: ' '
        |              ^^^
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\napprove: [a]")), @"
    p.procedure.card:6:14: error: `approve` must be one value, and is a list
      6 |     approve: [a]
        |              ^^^
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\naprove: true")), @"
    p.procedure.card:6:5: error: unknown key `aprove`
      6 |     aprove: true
        |     ^^^^^^
      hint: did you mean `approve`?
    ");
}

#[test]
fn budgets_that_are_no_dollars_are_errors() {
    for value in ["-1", "1e3", "$5", "2 USD", "1.2345678", ".5", "1_000", "99999999999999999999", "true", "''"] {
        let found = findings(&step(&format!("run: {{agents: [{{prompt: x}}]}}\nbudget: {value}")));

        assert!(found.starts_with("p.procedure.card:6:13: error: `budget` must be an amount of dollars, and is `"), "{value}: {found}");
    }
    insta::assert_snapshot!(findings(&step("run: {agents: [{prompt: x}]}\nbudget: 1e3")), @"
    p.procedure.card:6:13: error: `budget` must be an amount of dollars, and is `1e3`
      6 |     budget: 1e3
        |             ^^^
      hint: write it like 2 or 0.25, with at most six digits after the point
    ");
    insta::assert_snapshot!(findings(&step("run: {agents: [{prompt: x}]}\nbudget: 0.00")), @"
    p.procedure.card:6:13: error: `budget` is 0, so no agent could ever answer
      6 |     budget: 0.00
        |             ^^^^
      hint: leave it out for no limit
    ");
    insta::assert_snapshot!(findings(&step("run: {agents: [{prompt: x}]}\nbudget:")), @"
    p.procedure.card:6:5: error: `budget` is empty; it must be an amount of dollars such as 2 or 0.25
      6 |     budget:
        |     ^^^^^^
    ");
    insta::assert_snapshot!(findings(&step("run: {agents: [{prompt: x, budget: 2}]}")), @"
    p.procedure.card:5:32: error: unknown key `budget`
      5 |     run: {agents: [{prompt: x, budget: 2}]}
        |                                ^^^^^^
      hint: `budget` belongs under `steps`
    ");
}

#[test]
fn a_budget_of_shells_and_a_template_in_a_question_have_no_effect() {
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\nbudget: 2")), @"
    p.procedure.card:6:5: warning: `budget` does nothing: the step has neither agents nor a judge
      6 |     budget: 2
        |     ^^^^^^
    ");
    insta::assert_snapshot!(findings(&step("run: {shells: [ls]}\napprove: 'Ship ${{ inputs.a }}?'")), @"
    p.procedure.card:6:20: warning: `${{ … }}` is not replaced here: it works in prompts, `env` and `when`
      6 |     approve: 'Ship ${{ inputs.a }}?'
        |                    ^^^
    ");
}

#[test]
fn mistakes_in_questions_and_budgets_stand_in_the_same_place_whatever_ends_a_line() {
    let text = step("approve: no\nbudget: 1e3\nrun:\n  agents:\n    - prompt: |\n        one\n        two");

    assert_eq!(findings(&text.replace('\n', "\r\n")), findings(&text));
    assert_eq!(findings(&text).matches("error").count(), 2);
}
