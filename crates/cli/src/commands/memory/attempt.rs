//! `proctor memory try`

use proctor_domain::{Clock, ExitCode};
use proctor_orchestrator::SystemClock;
use proctor_recall::advice::{Advice, render};
use proctor_recall::matching::Approach;
use proctor_recall::{Found, Most, Polarity};
use serde::Serialize;

use super::shown::RecordDocument;
use crate::Invocation;
use crate::args::memory::TryArgs;
use crate::memory::Places;
use crate::report::{Kind, Report};

#[derive(Serialize)]
struct Answer<'args> {
    version: u32,
    approach: &'args str,
    /// Dead ends, the best first. Where there is none, that is no approval.
    fails: Vec<AdviceDocument>,
    works: Vec<AdviceDocument>,
}

#[derive(Serialize)]
struct AdviceDocument {
    record: RecordDocument,
    elsewhere: bool,
    /// Why it may be out of date.
    stale: Option<String>,
    /// What it was found by.
    why: String,
}

/// Says what memory has to say about an approach.
pub(super) fn run(invocation: &Invocation, args: &TryArgs) -> Result<ExitCode, Report> {
    if args.approach.trim().is_empty() {
        return Err(Report::new(Kind::User, "say what you are about to try"));
    }
    let files: Vec<&str> = args.files.iter().map(String::as_str).collect();
    let dependencies: Vec<&str> = args.dependencies.iter().map(String::as_str).collect();
    let approach = Approach { text: &args.approach, files: &files, dependencies: &dependencies, project: None };
    let most = args.most.map_or_else(Most::default, |most| Most::of_each(usize::from(most)));
    let now = SystemClock.now();
    let found = Places::find(invocation, args.place)?.library().try_approach(&approach, most, now)?;
    if args.json {
        let of = |polarity: Polarity| found.iter().filter(|found| found.entry.record.polarity == polarity).map(document).collect();
        invocation.printer.json(&Answer { version: 1, approach: &args.approach, fails: of(Polarity::Fails), works: of(Polarity::Works) });
    } else {
        let advice: Vec<Advice<'_>> = found.iter().map(Found::advice).collect();
        invocation.printer.text(&render(&args.approach, &advice, now));
    }
    Ok(ExitCode::Done)
}

fn document(found: &Found) -> AdviceDocument {
    AdviceDocument {
        record: RecordDocument::of(&found.entry, found.shelf),
        elsewhere: found.is_elsewhere,
        stale: found.stale.as_ref().map(ToString::to_string),
        why: found.why.clone(),
    }
}
