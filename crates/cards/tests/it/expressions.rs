//! What is wrong with conditions, templates, and expressions where none can stand.

use super::{card, findings, read, step};

#[test]
fn an_expression_in_a_shell_text_says_what_to_read_instead() {
    let text = card(
        r#"inputs: [{name: dry-run, type: bool}]
steps:
  - id: build-app
    run:
      shells:
        - |
          echo start
          ./deploy --tag ${{ steps.tag.outputs.image-name }} ${{inputs.dry-run}}
        - "echo ${{ inputs.dry-run | string }}"
        - >-
          echo ${{ inputs.dry-run
          }} ${{
"#,
    );
    insta::assert_snapshot!(findings(&text), @r#"
    p.procedure.card:10:26: error: `${{ … }}` can't stand in a shell text: what it yields comes from outside, and pasted into a script it would be run as one
      10 |           ./deploy --tag ${{ steps.tag.outputs.image-name }} ${{inputs.dry-run}}
         |                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      hint: read the variable instead: "$STEP_TAG_IMAGE_NAME"
    p.procedure.card:10:62: error: `${{ … }}` can't stand in a shell text: what it yields comes from outside, and pasted into a script it would be run as one
      10 | …         ./deploy --tag ${{ steps.tag.outputs.image-name }} ${{inputs.dry-run}}
         |                                                              ^^^^^^^^^^^^^^^^^^^
      hint: read the variable instead: "$INPUT_DRY_RUN"
    p.procedure.card:11:17: error: `${{ … }}` can't stand in a shell text: what it yields comes from outside, and pasted into a script it would be run as one
      11 |         - "echo ${{ inputs.dry-run | string }}"
         |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      hint: put it under `env`, as in `VALUE: ${{ … }}`, and read "$VALUE"
    p.procedure.card:13:16: error: `${{ … }}` can't stand in a shell text: what it yields comes from outside, and pasted into a script it would be run as one
      13 |           echo ${{ inputs.dry-run
         |                ^^^
      hint: read the variable instead: "$INPUT_DRY_RUN"
    p.procedure.card:14:14: error: `${{ … }}` can't stand in a shell text: what it yields comes from outside, and pasted into a script it would be run as one
      14 |           }} ${{
         |              ^^^
      hint: put it under `env`, as in `VALUE: ${{ … }}`, and read "$VALUE"
    "#);
}

#[test]
fn conditions_and_templates_are_checked_against_inputs_and_earlier_steps() {
    let text = card(
        r#"inputs:
  - {name: version}
  - {name: count, type: int}
steps:
  - id: build
    outputs: [image-tag]
    run: {shells: [make]}
    when: inputs.versoin == '1' and steps.build.outputs.image-tag == 'x'
  - id: ship-it
    when: steps.biuld.outputs.x == 'y' or steps.build.outputs.image_tag == 'z'
    env:
      OK: v${{ inputs.version }}-${{ steps.build.outputs.image-tag | upper }}
      LATER: "${{ steps.last.outputs.x }}"
      FREE: ${{ env.HOME }}
      OPEN: ${{ inputs.version
    run:
      agents:
        - prompt: |
            First line.
            Ship ${{ inputs.vresion }} and ${{ steps.nowhere.outputs.x | uper }}
  - id: last
    when: inputs.count > 3 and steps.build.outputs.image-tag > 3
    run: {shells: [ls]}
"#,
    );
    insta::assert_snapshot!(findings(&text), @r#"
    p.procedure.card:10:11: error: there is no input `versoin`
      10 |     when: inputs.versoin == '1' and steps.build.outputs.image-tag == 'x'
         |           ^^^^^^^^^^^^^^
      hint: did you mean `version`?
    p.procedure.card:10:37: error: the step `build` can't use its own outputs here: they are written while it runs
      10 |     when: inputs.versoin == '1' and steps.build.outputs.image-tag == 'x'
         |                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    p.procedure.card:12:11: error: there is no step `biuld`
      12 |     when: steps.biuld.outputs.x == 'y' or steps.build.outputs.image_tag == 'z'
         |           ^^^^^^^^^^^^^^^^^^^^^
      hint: did you mean `build`?
    p.procedure.card:12:43: error: the step `build` does not declare the output `image_tag`
      12 |     when: steps.biuld.outputs.x == 'y' or steps.build.outputs.image_tag == 'z'
         |                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      hint: did you mean `image-tag`?
    p.procedure.card:15:19: error: the step `last` comes later, so its outputs are not known here
      15 |       LATER: "${{ steps.last.outputs.x }}"
         |                   ^^^^^^^^^^^^^^^^^^^^
    p.procedure.card:16:17: error: `env` means nothing here
      16 |       FREE: ${{ env.HOME }}
         |                 ^^^
      hint: an expression sees `inputs.NAME` and `steps.ID.outputs.NAME`; a text needs quotes
    p.procedure.card:17:13: error: this `${{` has no `}}`
      17 |       OPEN: ${{ inputs.version
         |             ^^^
    p.procedure.card:22:22: error: there is no input `vresion`
      22 |             Ship ${{ inputs.vresion }} and ${{ steps.nowhere.outputs.x | uper }}
         |                      ^^^^^^^^^^^^^^
      hint: did you mean `version`?
    p.procedure.card:22:48: error: there is no step `nowhere`
      22 |             Ship ${{ inputs.vresion }} and ${{ steps.nowhere.outputs.x | uper }}
         |                                                ^^^^^^^^^^^^^^^^^^^^^^^
      hint: only outputs of earlier steps can be used
    p.procedure.card:22:74: error: there is no filter `uper`
      22 | …hip ${{ inputs.vresion }} and ${{ steps.nowhere.outputs.x | uper }}
         |                                                              ^^^^
      hint: did you mean `upper`?
    p.procedure.card:24:32: error: `steps.build.outputs.image-tag` is a text, and here it is compared with a number
      24 |     when: inputs.count > 3 and steps.build.outputs.image-tag > 3
         |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      hint: write `steps.build.outputs.image-tag | int`
    "#);
}

#[test]
fn a_condition_that_can_never_decide_is_an_error() {
    for condition in ["steps.a.outputs.x", "''", "inputs.s", "inputs.n", "${{ inputs.s }}", "inputs.b and", "a ${{ inputs.b }}", "[x"] {
        let text = card(&format!(
            "inputs: [{{name: s}}, {{name: n, type: int}}, {{name: b, type: bool}}]\nsteps:\n  - id: a\n    run: {{shells: [ls]}}\n  - id: b\n    when: \"{condition}\"\n    run: {{shells: [ls]}}\n"
        ));
        assert!(read(&text).is_err(), "{condition}");
    }
    insta::assert_snapshot!(findings(&step("when: inputs.a\nrun: {shells: [ls]}").replace("steps:", "inputs: [{name: a, type: int}]\nsteps:")), @"
    p.procedure.card:6:11: error: `inputs.a` is a number, which is neither true nor false
      6 |     when: inputs.a
        |           ^^^^^^^^
      hint: compare it with something, as in `inputs.a > 0`
    ");
}

#[test]
fn a_comparison_that_yields_the_same_whatever_the_values_are_is_an_error() {
    let text = card(
        "inputs: [{name: s}, {name: n, type: int}, {name: b, type: bool}]\nsteps:\n  - id: a\n    run: {shells: [ls]}\n    when: inputs.s == 1 or inputs.n == '1' or inputs.b == 'true' or 1 < inputs.b or inputs.n > 1 or inputs.s > 'a'\n",
    );
    insta::assert_snapshot!(findings(&text), @"
    p.procedure.card:7:11: error: `inputs.s` is a text, and here it is compared with a number
      7 |     when: inputs.s == 1 or inputs.n == '1' or inputs.b == 'true' or 1 < inputs.b or inputs.n > 1 or inputs.s >…
        |           ^^^^^^^^
      hint: write `inputs.s | int`
    p.procedure.card:7:28: error: `inputs.n` is a number, and here it is compared with a text
      7 |     when: inputs.s == 1 or inputs.n == '1' or inputs.b == 'true' or 1 < inputs.b or inputs.n > 1 or inputs.s > 'a'
        |                            ^^^^^^^^
      hint: leave the quotes out
    p.procedure.card:7:47: error: `inputs.b` is true or false by itself
      7 |     when: inputs.s == 1 or inputs.n == '1' or inputs.b == 'true' or 1 < inputs.b or inputs.n > 1 or inputs.s > 'a'
        |                                               ^^^^^^^^
      hint: write `inputs.b` or `not inputs.b`
    p.procedure.card:7:73: error: `inputs.b` is true or false by itself
      7 | …puts.s == 1 or inputs.n == '1' or inputs.b == 'true' or 1 < inputs.b or inputs.n > 1 or inputs.s > 'a'
        |                                                              ^^^^^^^^
      hint: write `inputs.b` or `not inputs.b`
    ");
}
