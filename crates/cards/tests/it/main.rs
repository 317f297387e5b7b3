//! The crate as its callers see it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a fixture that can't be made is a failed test")]

mod expressions;
mod folders;
mod limits;
mod mistakes;
mod mistakes_in_inputs;
mod mistakes_in_keys;
mod mistakes_in_steps;
mod record;
mod run_cards;
mod valid;

use std::path::PathBuf;

use proctor_cards::{BoxDefaults, Card, Finding, Layout, Source, read_procedure};

fn read_in(layout: Layout, text: &str) -> Result<Card, Vec<Finding>> {
    let source = Source { path: PathBuf::from("p.procedure.card"), text: text.to_owned() };
    read_procedure(&source, layout, &BoxDefaults::default())
}

fn read(text: &str) -> Result<Card, Vec<Finding>> {
    read_in(Layout::Proctor, text)
}

/// A card with these lines after its name.
fn card(lines: &str) -> String {
    format!("---\nname: p\n{lines}---\n")
}

/// A card with one step that has these lines, indented as keys of the step.
fn step(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    card(&format!("steps:\n  - id: a\n{lines}"))
}

/// Every finding of a card that has errors, or the warnings of one that has none.
fn findings_in(layout: Layout, text: &str) -> String {
    let findings = match read_in(layout, text) {
        Ok(card) => card.warnings,
        Err(findings) => findings,
    };
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn findings(text: &str) -> String {
    findings_in(Layout::Proctor, text)
}
