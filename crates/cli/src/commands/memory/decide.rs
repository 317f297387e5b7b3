//! `proctor memory approve`, `reject` and `forget`

use proctor_domain::ExitCode;
use proctor_recall::{Approval, Entry, Shelf, StoreError};

use super::receipt::{Done, MaskedDocument, Receipt, effect};
use super::shown::print_short;
use crate::Invocation;
use crate::args::memory::DecideArgs;
use crate::commands::question::refuse_under_session;
use crate::memory::Places;
use crate::report::Report;

/// What a person says of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Approve,
    Reject,
    Forget,
}

impl Decision {
    fn word(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Forget => "forgotten",
        }
    }

    fn approval(self) -> Option<Approval> {
        match self {
            Self::Approve => Some(Approval::Active),
            Self::Reject => Some(Approval::Rejected),
            Self::Forget => None,
        }
    }
}

/// Carries out a decision on each record. All of them are looked up first, so that a slip in the last id changes nothing.
pub(super) fn run(invocation: &Invocation, decision: Decision, args: &DecideArgs) -> Result<ExitCode, Report> {
    if !args.output.dry_run {
        refuse_under_session(invocation)?;
    }
    let places = Places::find(invocation, args.place)?;
    let mut found: Vec<(&Shelf, Entry)> = Vec::new();
    for id in &args.ids {
        let (named, entry) = places.find_record(id)?;
        // Two words for one record, say its id and the beginning of it, are one decision.
        if !found.iter().any(|(other, before)| other.name == named.name && before.record.id == entry.record.id) {
            found.push((named, entry));
        }
    }
    for (_, entry) in found.iter().filter(|_| decision == Decision::Approve) {
        entry.record.check().map_err(StoreError::from)?;
    }
    let mut records = Vec::new();
    for (named, entry) in &found {
        carry_out(decision, named, entry, args)?;
        records.push(Done {
            id: entry.record.id.to_string(),
            what: decision.word(),
            place: named.name,
            polarity: entry.record.polarity.word(),
            approval: decision.approval().unwrap_or(entry.record.approval).word(),
            route: entry.record.route.clone(),
        });
    }
    if args.output.json {
        invocation.printer.json(&Receipt { version: 1, dry_run: args.output.dry_run, records, masked: MaskedDocument::default() });
        return Ok(ExitCode::Done);
    }
    for (named, entry) in &found {
        let (id, word) = (&entry.record.id, decision.word());
        if args.output.dry_run {
            invocation.printer.say(&format!("{id} would be {word}:"));
            print_short(invocation, entry, named.name);
        } else {
            invocation.printer.say(&format!("{id} is {word}"));
        }
    }
    Ok(ExitCode::Done)
}

fn carry_out(decision: Decision, named: &Shelf, entry: &Entry, args: &DecideArgs) -> Result<(), StoreError> {
    let id = &entry.record.id;
    named.folder.change(effect(args.output), |contents| match decision.approval() {
        Some(approval) => contents.set_approval(id, approval),
        None => contents.remove(id).map(|_| ()).ok_or_else(|| StoreError::NoRecord { text: id.to_string() }),
    })
}
