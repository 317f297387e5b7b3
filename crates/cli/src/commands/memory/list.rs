//! `proctor memory list` and `show`

use proctor_domain::ExitCode;
use proctor_recall::{Approval, Entry};
use serde::Serialize;

use super::shown::{RecordDocument, print_short, print_whole};
use crate::Invocation;
use crate::args::memory::{ListArgs, ShowRecordArgs};
use crate::memory::Places;
use crate::report::Report;

#[derive(Serialize)]
struct List {
    version: u32,
    records: Vec<RecordDocument>,
    /// How many there are that are not listed: proposed, rejected or replaced.
    not_listed: usize,
    /// How many lines are no records.
    incomplete: usize,
}

#[derive(Serialize)]
struct Shown {
    version: u32,
    record: RecordDocument,
}

/// Lists records.
pub(super) fn run(invocation: &Invocation, args: &ListArgs) -> Result<ExitCode, Report> {
    let places = Places::find(invocation, args.place)?;
    let contents = places.read()?;
    let mut list = List { version: 1, records: Vec::new(), not_listed: 0, incomplete: 0 };
    let mut shown: Vec<(&Entry, &'static str)> = Vec::new();
    for (named, contents) in &contents {
        let replaced = contents.replaced();
        let of_polarity = |entry: &&Entry| args.polarity.is_none_or(|choice| choice.polarity() == entry.record.polarity);
        for entry in contents.entries().filter(of_polarity) {
            let counts = entry.record.approval == Approval::Active && !replaced.contains(&entry.record.id);
            let is_wanted = if args.proposed { entry.record.approval == Approval::Proposed } else { counts || args.all };
            match (entry.is_complete(), is_wanted) {
                (false, _) => list.incomplete += 1,
                (true, true) => shown.push((entry, named.name)),
                (true, false) => list.not_listed += 1,
            }
        }
    }
    if args.json {
        list.records = shown.iter().map(|(entry, place)| RecordDocument::of(entry, place)).collect();
        invocation.printer.json(&list);
        return Ok(ExitCode::Done);
    }
    for (entry, place) in &shown {
        print_short(invocation, entry, place);
    }
    if shown.is_empty() {
        invocation.printer.say("no records");
    }
    if list.not_listed > 0 && !args.proposed {
        let more = if list.not_listed == 1 { "1 more is".to_owned() } else { format!("{} more are", list.not_listed) };
        invocation.printer.say(&format!("{more} proposed, rejected or replaced: `proctor memory list --all`"));
    }
    if list.incomplete > 0 {
        let lines =
            if list.incomplete == 1 { "1 line is no record".to_owned() } else { format!("{} lines are no records", list.incomplete) };
        invocation.printer.warn(&format!("{lines}: `proctor memory doctor`"));
    }
    Ok(ExitCode::Done)
}

/// Shows all of one record.
pub(super) fn show(invocation: &Invocation, args: &ShowRecordArgs) -> Result<ExitCode, Report> {
    let places = Places::find(invocation, args.place)?;
    let (named, entry) = places.find_record(&args.id)?;
    if args.json {
        invocation.printer.json(&Shown { version: 1, record: RecordDocument::of(&entry, named.name) });
    } else {
        print_whole(invocation, &entry, named.name);
    }
    Ok(ExitCode::Done)
}
