//! `proctor procedure lint`

use proctor_cards::{Finding, Level, find_procedure, list_procedures, read_procedure};
use proctor_domain::ExitCode;
use serde::Serialize;

use super::FindingObject;
use crate::Invocation;
use crate::args::procedure::LintArgs;
use crate::place::Place;
use crate::printer::visible;
use crate::report::Report;
use crate::run_text::counted;

/// A card that was looked at.
struct Checked {
    card: String,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct LintObject<'card> {
    version: u32,
    exit_code: u8,
    cards: Vec<CardObject<'card>>,
}

#[derive(Serialize)]
struct CardObject<'card> {
    card: &'card str,
    findings: Vec<FindingObject<'card>>,
}

/// Checks the named cards, or all of them, and prints every finding.
pub(super) fn run(invocation: &Invocation, args: &LintArgs) -> Result<ExitCode, Report> {
    let place = Place::find(invocation)?;
    let checked = if args.procedures.is_empty() { check_all(&place) } else { check_named(&place, &args.procedures)? };
    let clean = checked.iter().all(|card| card.findings.is_empty());
    let code = if clean { ExitCode::Done } else { ExitCode::Failed };
    if args.json {
        let card = |checked| CardObject::from(checked);
        invocation.printer.json(&LintObject { version: 1, exit_code: code.code(), cards: checked.iter().map(card).collect() });
        return Ok(code);
    }
    for (position, finding) in checked.iter().flat_map(|card| &card.findings).enumerate() {
        if position > 0 {
            invocation.printer.line("");
        }
        invocation.printer.line(&visible(&finding.to_string()));
    }
    invocation.printer.say(&summary(&checked));
    Ok(code)
}

impl<'card> From<&'card Checked> for CardObject<'card> {
    fn from(checked: &'card Checked) -> Self {
        Self { card: &checked.card, findings: checked.findings.iter().map(FindingObject::from).collect() }
    }
}

fn check_all(place: &Place) -> Vec<Checked> {
    let cards = list_procedures(&place.card_root, place.layout.value);
    let check = |listed: proctor_cards::ListedCard| Checked {
        card: listed.path.display().to_string(),
        findings: listed.result.map_or_else(|findings| findings, |card| card.warnings),
    };
    cards.into_iter().map(check).collect()
}

fn check_named(place: &Place, names: &[String]) -> Result<Vec<Checked>, Report> {
    let box_defaults = place.box_defaults()?;
    let check = |name: &String| {
        let source = find_procedure(&place.card_root, place.layout.value, name)?;
        let result = read_procedure(&source, place.layout.value, &box_defaults);
        let findings = result.map_or_else(|findings| findings, |card| card.warnings);
        Ok(Checked { card: source.path.display().to_string(), findings })
    };
    names.iter().map(check).collect()
}

fn summary(checked: &[Checked]) -> String {
    let count = |level: Level| checked.iter().flat_map(|card| &card.findings).filter(|finding| finding.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let cards = format!("{} checked", counted(checked.len(), "card"));
    if errors + warnings == 0 {
        return format!("{cards}, no findings");
    }
    format!("\n{cards}: {}, {}", counted(errors, "error"), counted(warnings, "warning"))
}
