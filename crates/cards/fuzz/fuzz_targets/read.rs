//! Whatever the bytes, every reader ends with a value or with findings, and what is written reads back.
//!
//! `cargo +nightly fuzz run read`, from the folder above this one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proctor_cards::{
    BoxDefaults, Layout, Level, Source, read_box_json, read_procedure, read_run_card, render_run_card, set_expires,
    template::{Values, check_condition, check_template, evaluate_when, render},
};

fuzz_target!(|text: &str| {
    let source = Source { path: "x.procedure.card".into(), text: text.to_owned() };
    for layout in [Layout::Proctor, Layout::BeeBox] {
        match read_procedure(&source, layout, &BoxDefaults::default()) {
            Ok(card) => assert!(card.warnings.iter().all(|finding| finding.level == Level::Warning)),
            Err(findings) => assert!(findings.iter().any(|finding| finding.level == Level::Error)),
        }
    }
    if let Ok(card) = read_run_card(text) {
        assert_eq!(read_run_card(&render_run_card(&card)), Ok(card));
    }
    let _ = set_expires(text, "never");
    let _ = read_box_json(text);
    check_condition(text);
    check_template(text).for_each(drop);
    let _ = evaluate_when(text, &Values::default());
    let _ = render(text, &Values::default());
});
