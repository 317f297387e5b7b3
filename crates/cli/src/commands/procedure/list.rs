//! `proctor procedure list`

use proctor_cards::{ListedCard, list_procedures};
use proctor_domain::ExitCode;
use serde::Serialize;

use super::FindingObject;
use crate::Invocation;
use crate::args::procedure::ListArgs;
use crate::place::Place;
use crate::printer::{Stream, Style, visible_line};
use crate::report::Report;
use crate::run_text::counted;

#[derive(Serialize)]
struct Listing<'card> {
    version: u32,
    procedures: Vec<Listed<'card>>,
}

#[derive(Serialize)]
struct Listed<'card> {
    name: &'card str,
    card: String,
    readable: bool,
    description: Option<&'card str>,
    steps: Option<usize>,
    needs_agents: Option<bool>,
    findings: Vec<FindingObject<'card>>,
}

impl<'card> From<&'card ListedCard> for Listed<'card> {
    fn from(listed: &'card ListedCard) -> Self {
        let definition = listed.result.as_ref().ok().map(|card| &card.definition);
        let findings = match &listed.result {
            Ok(card) => &card.warnings,
            Err(findings) => findings,
        };
        Self {
            name: &listed.name,
            card: listed.path.display().to_string(),
            readable: definition.is_some(),
            description: definition.map(|definition| definition.description.as_str()),
            steps: definition.map(|definition| definition.steps.len()),
            needs_agents: definition.map(proctor_domain::procedure::Definition::needs_agents),
            findings: findings.iter().map(FindingObject::from).collect(),
        }
    }
}

/// Lists every card; one that can't be read never hides another.
pub(super) fn run(invocation: &Invocation, args: &ListArgs) -> Result<ExitCode, Report> {
    let place = Place::find(invocation)?;
    let cards = list_procedures(&place.card_root, place.layout.value);
    if args.json {
        invocation.printer.json(&Listing { version: 1, procedures: cards.iter().map(Listed::from).collect() });
        return Ok(ExitCode::Done);
    }
    let width = cards.iter().map(|listed| visible_line(&listed.name).chars().count()).max().unwrap_or(0);
    for listed in &cards {
        let name = visible_line(&listed.name);
        let gap = " ".repeat(width - name.chars().count());
        let name = invocation.printer.paint(Stream::Out, Style::Strong, &name);
        let text = match &listed.result {
            Ok(card) => visible_line(&card.definition.description).into_owned(),
            Err(findings) => {
                let text = format!("can't be read: {}", counted(findings.len(), "finding"));
                invocation.printer.paint(Stream::Out, Style::Bad, &text).into_owned()
            }
        };
        invocation.printer.line(format!("{name}{gap}  {text}").trim_end());
    }
    if cards.is_empty() {
        invocation.printer.say(&format!("there are no procedures in {}", place.layout.value.procedures_dir()));
        invocation.printer.say("\nhint: `proctor init` makes an example");
    } else if cards.iter().any(|listed| listed.result.is_err()) {
        invocation.printer.say("\nhint: `proctor procedure lint` shows what is wrong with cards");
    }
    Ok(ExitCode::Done)
}
