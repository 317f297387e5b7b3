//! `proctor memory import`

use proctor_domain::ExitCode;
use proctor_recall::logos::{Skipped, import};
use proctor_recall::{Added, Line};
use serde::Serialize;

use super::receipt::{Done, MaskedDocument, auxiliary, effect};
use super::shown::legible_line;
use crate::Invocation;
use crate::args::memory::ImportArgs;
use crate::commands::question::refuse_under_session;
use crate::memory::{Places, mask};
use crate::report::Report;

#[derive(Serialize)]
struct Imported {
    version: u32,
    dry_run: bool,
    place: &'static str,
    added: Vec<Done>,
    /// How many were there already.
    known: usize,
    skipped: Vec<SkippedLine>,
    /// Memories of other kinds.
    foreign: usize,
    /// Entries that said that there is nothing to say.
    placeholders: usize,
    masked: MaskedDocument,
}

#[derive(Serialize)]
struct SkippedLine {
    place: String,
    text: String,
    why: String,
}

/// Takes records in.
pub(super) fn run(invocation: &Invocation, args: &ImportArgs) -> Result<ExitCode, Report> {
    if !args.output.dry_run {
        refuse_under_session(invocation)?;
    }
    let places = Places::find(invocation, args.place)?;
    let named = places.first()?;
    let mut found = import(&invocation.directory.join(&args.path), args.polarity.map(|choice| choice.polarity()))?;
    let mut masked = MaskedDocument::default();
    let mask = mask(invocation)?;
    for line in &mut found.found {
        masked.add(line.mask(&mask));
    }
    let all = named.folder.change(effect(args.output), |contents| {
        found.found.iter().map(|line| contents.add(line.clone())).collect::<Result<Vec<Added>, _>>()
    })?;
    let pairs = || all.iter().zip(&found.found);
    let added: Vec<Done> = pairs().filter_map(|(added, line)| done(added, line, named.name)).collect();
    let report = Imported {
        version: 1,
        dry_run: args.output.dry_run,
        place: named.name,
        known: all.len() - added.len(),
        added,
        skipped: found.skipped.into_iter().map(|Skipped { place, text, why }| SkippedLine { place, text, why }).collect(),
        foreign: found.foreign,
        placeholders: found.placeholders,
        masked,
    };
    if args.output.json {
        invocation.printer.json(&report);
    } else {
        for (line, remark) in found.found.iter().flat_map(|line| line.remarks.iter().map(move |remark| (line, remark))) {
            invocation.printer.warn(&legible_line(&format!("{}: {remark}", line.record.route)));
        }
        tell(invocation, args, &report);
    }
    Ok(ExitCode::Done)
}

fn done(added: &Added, line: &Line, place: &'static str) -> Option<Done> {
    match added {
        Added::New(id) => Some(Done {
            id: id.to_string(),
            what: "added",
            place,
            polarity: line.record.polarity.word(),
            approval: line.record.approval.word(),
            route: line.record.route.clone(),
        }),
        Added::Known(..) => None,
    }
}

fn tell(invocation: &Invocation, args: &ImportArgs, report: &Imported) {
    let printer = &invocation.printer;
    for skipped in &report.skipped {
        printer.warn(&legible_line(&format!("{} is not taken in: {}", skipped.place, skipped.why)));
    }
    report.masked.tell(invocation);
    let count = |number: usize, what: &str| if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") };
    let auxiliary = if report.added.len() == 1 {
        auxiliary(args.output)
    } else if args.output.dry_run {
        "would be"
    } else {
        "are"
    };
    printer.say(&format!("{} {auxiliary} taken into the {} memory", count(report.added.len(), "record"), report.place));
    if report.known > 0 {
        printer.say(&format!("{} there already", if report.known == 1 { "1 was".to_owned() } else { format!("{} were", report.known) }));
    }
    if report.foreign > 0 {
        printer.say(&format!("{} of other kinds left alone", count(report.foreign, "record")));
    }
}
