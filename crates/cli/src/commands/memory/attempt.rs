//! `proctor memory try`

use proctor_domain::{Clock, ExitCode};
use proctor_orchestrator::SystemClock;
use proctor_recall::advice::{Advice, render};
use proctor_recall::matching::{Approach, Bars, Fingerprint, Hit, Index, Place};
use proctor_recall::stale::{Versions, stale};
use proctor_recall::{Contents, Entry, Polarity};
use serde::Serialize;

use super::places::{Named, Places};
use super::shown::RecordDocument;
use crate::Invocation;
use crate::args::memory::TryArgs;
use crate::report::{Kind, Report};

/// How many dead ends, and how many procedures, are worth somebody's while.
const MOST_FAILS: usize = 6;
const MOST_WORKS: usize = 4;

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
    let places = Places::find(invocation, args.place)?;
    let contents = places.read()?;
    let candidates = candidates(&contents);
    let files: Vec<&str> = args.files.iter().map(String::as_str).collect();
    let dependencies: Vec<&str> = args.dependencies.iter().map(String::as_str).collect();
    let approach = Approach { text: &args.approach, files: &files, dependencies: &dependencies, project: places.project.as_deref() };
    let hits = search(&candidates, &approach, args.most);
    let versions = places.card_root.as_deref().map(Versions::read).unwrap_or_default();
    let now = SystemClock.now();
    let found: Vec<(Advice<'_>, &Candidate<'_>)> = hits
        .iter()
        .filter_map(|hit| Some((hit, candidates.get(usize::try_from(hit.number).ok()?)?)))
        .map(|(hit, candidate)| {
            let record = &candidate.entry.record;
            let stale = stale(record, &versions, now);
            (Advice { record, is_elsewhere: hit.is_elsewhere, stale, why: hit.decision.to_string() }, candidate)
        })
        .collect();
    if args.json {
        let of = |polarity: Polarity| found.iter().filter(|(advice, _)| advice.record.polarity == polarity).map(document).collect();
        invocation.printer.json(&Answer { version: 1, approach: &args.approach, fails: of(Polarity::Fails), works: of(Polarity::Works) });
    } else {
        let advice: Vec<Advice<'_>> = found.into_iter().map(|(advice, _)| advice).collect();
        invocation.printer.text(&render(&args.approach, &advice, now));
    }
    Ok(ExitCode::Done)
}

/// A record that may be shown, and the folder that it is in.
struct Candidate<'contents> {
    entry: &'contents Entry,
    place: &'static str,
}

fn candidates<'contents>(contents: &'contents [(&Named, Contents)]) -> Vec<Candidate<'contents>> {
    let of = |named: &Named, contents: &'contents Contents| {
        let place = named.name;
        contents.active().map(move |entry| Candidate { entry, place })
    };
    contents.iter().flat_map(|(named, contents)| of(named, contents)).collect()
}

fn search(candidates: &[Candidate<'_>], approach: &Approach<'_>, most: Option<u16>) -> Vec<Hit> {
    // The index is made of what was just read, and is gone with this command.
    let nowhere = Place { source: 0, offset: 0, length: 0 };
    let index = Index::of_records(Fingerprint::default(), candidates.iter().map(|candidate| (nowhere, &candidate.entry.record)));
    let limit = |polarity: Polarity| match polarity {
        Polarity::Fails => most.map_or(MOST_FAILS, usize::from),
        Polarity::Works => most.map_or(MOST_WORKS, usize::from),
    };
    let of = |hits: &[Hit], polarity: Polarity| {
        hits.iter().filter(|hit| hit.polarity == polarity).take(limit(polarity)).cloned().collect::<Vec<_>>()
    };
    let hits = index.search(approach, &Bars::default(), None, limit(Polarity::Fails));
    [of(&hits, Polarity::Fails), of(&hits, Polarity::Works)].concat()
}

fn document((advice, candidate): &(Advice<'_>, &Candidate<'_>)) -> AdviceDocument {
    AdviceDocument {
        record: RecordDocument::of(candidate.entry, candidate.place),
        elsewhere: advice.is_elsewhere,
        stale: advice.stale.as_ref().map(ToString::to_string),
        why: advice.why.clone(),
    }
}
