//! What is wrong with declared inputs.

use super::{card, findings};

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
