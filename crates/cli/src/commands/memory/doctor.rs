//! `proctor memory doctor`

use proctor_domain::{Clock, ExitCode};
use proctor_orchestrator::SystemClock;
use proctor_recall::{Problem, Shelf, Weight};
use serde::Serialize;

use super::shown::legible_line;
use crate::Invocation;
use crate::args::memory::MemoryDoctorArgs;
use crate::memory::Places;
use crate::printer::{Stream, Style};
use crate::report::Report;

#[derive(Serialize)]
struct Diagnosis {
    version: u32,
    /// `ok`, or the weight of the worst problem.
    verdict: &'static str,
    folders: Vec<FolderDocument>,
}

#[derive(Serialize)]
struct FolderDocument {
    place: &'static str,
    path: String,
    problems: Vec<ProblemDocument>,
}

#[derive(Serialize)]
struct ProblemDocument {
    weight: &'static str,
    path: String,
    line: Option<usize>,
    id: Option<String>,
    sentence: String,
    remedy: Option<String>,
}

fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Damage => "damage",
        Weight::Wrong => "wrong",
        Weight::Note => "note",
    }
}

/// Names what is wrong. Notes alone are no failure.
pub(super) fn run(invocation: &Invocation, args: &MemoryDoctorArgs) -> Result<ExitCode, Report> {
    let places = Places::find(invocation, args.place)?;
    let now = SystemClock.now();
    let mut found = Vec::new();
    for named in &places.shelves {
        found.push((named, named.folder.diagnose(now)?));
    }
    let worst = found.iter().flat_map(|(_, problems)| problems).map(|problem| problem.weight).min();
    if args.json {
        let folder = |(named, problems): &(&Shelf, Vec<Problem>)| FolderDocument {
            place: named.name,
            path: named.folder.path().display().to_string(),
            problems: problems.iter().map(document).collect(),
        };
        invocation.printer.json(&Diagnosis { version: 1, verdict: worst.map_or("ok", word), folders: found.iter().map(folder).collect() });
    } else {
        for (named, problems) in &found {
            print(invocation, named, problems);
        }
    }
    Ok(match worst {
        Some(Weight::Damage | Weight::Wrong) => ExitCode::Failed,
        Some(Weight::Note) | None => ExitCode::Done,
    })
}

fn document(problem: &Problem) -> ProblemDocument {
    ProblemDocument {
        weight: word(problem.weight),
        path: problem.path.display().to_string(),
        line: problem.line,
        id: problem.id.as_ref().map(ToString::to_string),
        sentence: problem.sentence.clone(),
        remedy: problem.remedy.clone(),
    }
}

fn print(invocation: &Invocation, named: &Shelf, problems: &[Problem]) {
    let printer = &invocation.printer;
    if problems.is_empty() {
        printer.line(&format!("{}: no problem in {}", named.name, legible_line(&named.folder.path().display().to_string())));
    }
    for problem in problems {
        let style = match problem.weight {
            Weight::Damage | Weight::Wrong => Style::Bad,
            Weight::Note => Style::Dim,
        };
        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
        let id = problem.id.as_ref().map(|id| format!("{id}: ")).unwrap_or_default();
        let weight = printer.paint(Stream::Out, style, word(problem.weight)).into_owned();
        let path = problem.path.display().to_string();
        printer.line(&format!("{}{line}: {weight}: {id}{}", legible_line(&path), legible_line(&problem.sentence)));
        if let Some(remedy) = &problem.remedy {
            printer.line(&format!("  → {remedy}"));
        }
    }
}
