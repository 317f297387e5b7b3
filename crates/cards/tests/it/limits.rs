//! Whatever the text, reading it ends soon, in little memory, and never in a panic.

use std::time::{Duration, Instant};

use proctor_cards::template::{Values, check_condition, check_template, evaluate_when, render};
use proctor_cards::{Layout, Source, read_box_json, read_run_card, set_expires};
use proptest::prelude::*;

use super::{card, findings, read, read_in, step};

/// Generous, since tests run without optimisation and beside others; the same takes a few seconds at most.
const SOON: Duration = Duration::from_secs(60);

fn soon<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    result
}

#[test]
fn a_card_of_five_megabytes_is_read() {
    let steps: String = (0..20_000)
        .map(|number| {
            let condition = if number > 0 { format!("\n    when: steps.s{}.outputs.x == 'y'", number - 1) } else { String::new() };
            format!("  - id: s{number}{condition}\n    env: {{A: 'v${{{{ inputs.version }}}}'}}\n    run:\n      shells:\n        - |\n          echo {}\n          echo done\n", "word ".repeat(24))
        })
        .collect();
    let text = card(&format!("inputs: [{{name: version}}]\nsteps:\n{steps}"));
    assert!(text.len() > 5_000_000, "{}", text.len());

    let card = soon(|| read(&text)).unwrap();

    assert_eq!(card.definition.steps.len(), 20_000);
    assert_eq!(card.definition.steps[19_999].lines.1, text.lines().count() - 1);
}

#[test]
fn one_shell_of_five_megabytes_is_read() {
    let line = format!("      echo {}\n", "x".repeat(90));
    let text = step(&format!("run:\n  shells:\n    - |\n{}", line.repeat(51_000)));

    assert_eq!(soon(|| read(&text)).unwrap().definition.steps.len(), 1);
}

#[test]
fn a_card_that_is_too_large_is_refused_unread() {
    let text = card(&format!("description: {}\nsteps: []\n", "x".repeat(usize::try_from(Source::LARGEST).unwrap())));

    insta::assert_snapshot!(findings(&text), @"p.procedure.card: error: is larger than 8 MiB, and no card that large is read");
}

#[test]
fn texts_made_to_explode_end_in_findings() {
    let mut bomb = String::from("description: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        bomb.push_str(&format!("k{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", ")));
    }
    let opening = "[".repeat(1_000_000);
    let dashes = "- ".repeat(1_000_000);
    let many_keys: String = (0..200_000).map(|number| format!("key{number}: x\n")).collect();
    let same_keys = "name: x\n".repeat(200_000);
    let open_expressions = "'${{ ' ".repeat(100_000);
    let conditions: String = (0..20_000).map(|number| format!("  - {{id: s{number}, when: steps.t{number}.outputs.x}}\n")).collect();
    let expressions = step(&format!("run: {{shells: [ls]}}\nenv:\n  A: \"{}\"", "${{ inputs.nothing }} ".repeat(50_000)));
    let outputs =
        step(&format!("run: {{shells: [ls]}}\noutputs: [{}]", (0..50_000).map(|number| format!("o{number},")).collect::<String>()));
    let line = format!("{{{}}}\n", "a: b, ".repeat(100_000));

    for text in [bomb, opening, dashes, many_keys, same_keys, line, format!("steps:\n{conditions}")] {
        assert!(soon(|| read(&card(&text))).is_err(), "{}…", &text[..20]);
    }
    assert!(soon(|| read(&expressions)).is_err());
    assert!(soon(|| read(&outputs)).is_ok());
    assert!(soon(|| read(&step(&format!("run: {{shells: [\"{open_expressions}\"]}}")))).is_err());
}

/// A finding holds only a part of its line, or a hundred of them would hold a hundred copies.
#[test]
fn findings_about_a_huge_line_stay_small() {
    let text = format!("---\n{{name: p, steps: [], {}}}\n---\n", (0..50_000).map(|number| format!("k{number}: x, ")).collect::<String>());

    let findings = read(&text).unwrap_err();

    assert!(findings.iter().all(|finding| finding.source_line.chars().count() < 170));
}

/// Text that looks like a card often enough to get past the first checks.
fn card_like() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("name"),
        Just("steps"),
        Just("id"),
        Just("run"),
        Just("shells"),
        Just("validate"),
        Just("precheck"),
        Just("when"),
        Just("env"),
        Just("inputs"),
        Just("type"),
        Just("choices"),
        Just("default"),
        Just("retry"),
        Just("outputs"),
        Just("agents"),
        Just("prompt"),
        Just("choice"),
        Just("inputs.a"),
        Just("steps.a.outputs.b"),
        Just("${{ inputs.a }}"),
        Just("${{"),
        Just("}}"),
        Just("a"),
        Just("5"),
        Just("true"),
        Just("~"),
        Just("''"),
        Just("\"\\0\""),
        Just("é"),
        Just("&x"),
        Just("*x"),
        Just("!t"),
        Just("|"),
        Just(">-"),
    ];
    let glue = prop_oneof![
        Just(": "),
        Just(":\n  "),
        Just("\n"),
        Just("\n  - "),
        Just("\n    "),
        Just(", "),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just("- "),
        Just("\r\n"),
        Just("\t"),
        Just(" # "),
        Just("---\n"),
    ];
    proptest::collection::vec((word, glue), 0..60).prop_map(|pairs| {
        let inner: String = pairs.into_iter().map(|(word, glue)| format!("{word}{glue}")).collect();
        format!("---\n{inner}\n---\n")
    })
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "(?s).{0,200}", yaml in "[-a-z0-9:{}\\[\\]&*!|>'\"#%@` \t\r\n]{0,120}") {
        for text in [text.clone(), format!("---\n{text}\n---\n"), format!("---\n{yaml}\n---\n"), yaml] {
            for layout in [Layout::Proctor, Layout::BeeBox] {
                if let Err(findings) = read_in(layout, &text) {
                    prop_assert!(!findings.is_empty());
                }
            }
            let _ = read_run_card(&text);
            let _ = set_expires(&text, "never");
            let _ = read_box_json(&text);
        }
    }

    #[test]
    fn any_text_like_a_card_is_read_without_a_panic(text in card_like()) {
        match read(&text) {
            Ok(card) => prop_assert!(card.warnings.iter().all(|finding| finding.line <= text.lines().count())),
            Err(findings) => prop_assert!(findings.iter().any(|finding| finding.level == proctor_cards::Level::Error)),
        }
    }

    #[test]
    fn any_cut_or_changed_card_is_read_without_a_panic(cut in 0_usize..1_400, byte in any::<char>()) {
        let whole = include_str!("whole.procedure.card");
        let cut = (0..=cut.min(whole.len())).rev().find(|cut| whole.is_char_boundary(*cut)).unwrap_or(0);

        let _ = read(&whole[..cut]);
        let _ = read(&format!("{}{byte}{}", &whole[..cut], &whole[cut..]));
    }

    #[test]
    fn any_expression_is_evaluated_without_a_panic(text in r#"(inputs\.[a-z]{1,3}|steps\.[a-z]\.outputs\.[a-z]|[-a-z0-9.'"\[\](){}|~%*/+<>=!, ]){0,30}"#) {
        check_condition(&text);
        prop_assert!(check_template(&text).count() <= text.len());
        let _ = evaluate_when(&text, &Values::default());
        let _ = render(&format!("${{{{{text}}}}}"), &Values::default());
    }
}
