//! What is wrong with a card, where, and what to do: each kind of mistake as people see it.

use super::{card, findings, read, step};

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
      hint: the keys here are name, description, type, run-expiry, failed-run-expiry, records, isolation, memory, inputs, steps
    ");
}

#[test]
fn more_findings_than_anybody_reads_are_only_counted() {
    let findings = read(&card(&format!("steps:\n{}", "  - {}\n".repeat(300)))).unwrap_err();

    assert_eq!(findings.len(), 101);
    assert_eq!(findings[100].to_string(), "p.procedure.card: warning: 200 more findings are not shown");
}
