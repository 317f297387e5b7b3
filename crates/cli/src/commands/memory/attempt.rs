//! `proctor memory try`

use std::time::Duration;

use proctor_domain::{Clock, ExitCode};
use proctor_orchestrator::SystemClock;
use proctor_recall::advice::{Advice, render};
use proctor_recall::matching::Approach;
use proctor_recall::{Found, Most, Polarity, Vectored};
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
    /// How it was searched: whether there was a model of meaning, and how many records it has no vector of.
    meaning: MeaningDocument,
}

#[derive(Serialize)]
struct MeaningDocument {
    /// There is a model.
    model: bool,
    /// Records that could be found by their words alone.
    lexical_only: usize,
    /// All records that may be shown; known where there is a model.
    records: Option<usize>,
    /// Why the model could not be asked.
    problem: Option<String>,
}

/// How long a search waits for vectors of records that have none yet. The rest is made by later searches.
const VECTORS: Duration = Duration::from_millis(400);

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
    let library = Places::find(invocation, args.place)?.library();
    let vectored = library.make_vectors(VECTORS)?;
    let found = library.try_approach(&approach, most, now)?;
    if args.json {
        let of = |polarity: Polarity| found.iter().filter(|found| found.entry.record.polarity == polarity).map(document).collect();
        let (fails, works, meaning) = (of(Polarity::Fails), of(Polarity::Works), MeaningDocument::of(vectored));
        invocation.printer.json(&Answer { version: 1, approach: &args.approach, fails, works, meaning });
    } else {
        let advice: Vec<Advice<'_>> = found.iter().map(Found::advice).collect();
        invocation.printer.text(&render(&args.approach, &advice, now));
        if let Some(sentence) = vectored.as_ref().and_then(lexical_only) {
            invocation.printer.say(&sentence);
        }
    }
    Ok(ExitCode::Done)
}

impl MeaningDocument {
    fn of(vectored: Option<Vectored>) -> Self {
        match vectored {
            None => Self { model: false, lexical_only: 0, records: None, problem: None },
            Some(Vectored { records, lexical_only, problem }) => Self { model: true, lexical_only, records: Some(records), problem },
        }
    }
}

/// What somebody has to know who reads what was found by words alone.
fn lexical_only(vectored: &Vectored) -> Option<String> {
    match (&vectored.problem, vectored.lexical_only) {
        (Some(problem), _) => Some(format!("searched by words alone: {problem}")),
        (None, 0) => None,
        (None, left) => {
            Some(format!("{left} of {} records were searched by words alone; the next searches make their vectors", vectored.records))
        }
    }
}

fn document(found: &Found) -> AdviceDocument {
    AdviceDocument {
        record: RecordDocument::of(&found.entry, found.shelf),
        elsewhere: found.is_elsewhere,
        stale: found.stale.as_ref().map(ToString::to_string),
        why: found.why.clone(),
    }
}
