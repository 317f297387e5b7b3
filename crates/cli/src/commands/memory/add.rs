//! `proctor memory add works|fails`

use proctor_domain::{Clock, ExitCode};
use proctor_orchestrator::SystemClock;
use proctor_recall::{Added, Approval, Dependency, Line, Polarity, Record, Said, Word};

use super::receipt::{Done, MaskedDocument, Receipt, auxiliary, effect};
use super::shown::legible_line;
use crate::Invocation;
use crate::args::memory::AddArgs;
use crate::commands::question::refuse_under_session;
use crate::environment;
use crate::memory::{Places, mask};
use crate::report::Report;

/// Records something.
pub(super) fn run(invocation: &Invocation, polarity: Polarity, args: &AddArgs) -> Result<ExitCode, Report> {
    let places = Places::find(invocation, args.place)?;
    let named = places.first()?;
    let mut line = line_of(invocation, &places, polarity, args)?;
    let mut masked = MaskedDocument::default();
    masked.add(line.mask(&mask(invocation)?));
    let added = named.folder.change(effect(args.output), |contents| contents.add(line.clone()))?;
    let (what, approval) = match &added {
        Added::New(_) => ("added", line.record.approval),
        Added::Known(_, approval) => ("known", *approval),
    };
    let id = added.id().to_string();
    if args.output.json {
        let done = Done { id, what, place: named.name, polarity: polarity.word(), approval: approval.word(), route: line.record.route };
        invocation.printer.json(&Receipt { version: 1, dry_run: args.output.dry_run, records: vec![done], masked });
        return Ok(ExitCode::Done);
    }
    let auxiliary = auxiliary(args.output);
    let sentence = match (added, approval) {
        (Added::New(_), Approval::Active) if args.output.dry_run => format!("it would be recorded in the {} memory", named.name),
        (Added::New(_), Approval::Active) => format!("recorded as {id} in the {} memory", named.name),
        (Added::New(_), _) => format!("{id} {auxiliary} proposed; it counts once a person says `proctor memory approve {id}`"),
        (Added::Known(..), Approval::Active) => format!("the same is recorded as {id} already"),
        (Added::Known(..), Approval::Proposed) => {
            format!("the same is proposed as {id} already; `proctor memory approve {id}` makes it count")
        }
        (Added::Known(..), Approval::Rejected) => format!("the same was rejected as {id}; `proctor memory approve {id}` makes it count"),
    };
    masked.tell(invocation);
    for remark in &line.remarks {
        invocation.printer.warn(&legible_line(&remark.to_string()));
    }
    invocation.printer.say(&sentence);
    Ok(ExitCode::Done)
}

fn line_of(invocation: &Invocation, places: &Places, polarity: Polarity, args: &AddArgs) -> Result<Line, Report> {
    let mut line = match &args.line {
        Some(text) => Line::foreign(polarity, text),
        None => Line::of(said(polarity, args)),
    };
    let supersedes = args.supersedes.as_deref().map(|text| places.find_record(text)).transpose()?;
    let under_session = refuse_under_session(invocation).is_err();
    line.record = Record {
        files: args.files.clone(),
        dependencies: args.dependencies.iter().map(|text| Dependency::parse(text)).collect(),
        agent: args.agent.clone(),
        approval: if under_session { Approval::Proposed } else { Approval::Active },
        supersedes: supersedes.map(|(_, entry)| entry.record.id),
        ..made_here(invocation, places, line.record)
    };
    Ok(line)
}

/// The record with what is known of where and when it is made.
pub(in crate::commands) fn made_here(invocation: &Invocation, places: &Places, record: Record) -> Record {
    let repository = places.repository.as_ref();
    let is_linked = |repository: &&proctor_workspace::Repository| repository.git_dir != repository.common_dir;
    let name = |repository: &proctor_workspace::Repository| Some(repository.work_tree.file_name()?.to_string_lossy().into_owned());
    Record {
        session: session(invocation).map(str::to_owned),
        project: places.project.clone(),
        worktree: repository.filter(is_linked).and_then(name),
        commit: repository.and_then(|repository| repository.head().ok()).and_then(|head| head.commit).map(|commit| commit.0),
        created: Some(SystemClock.now()),
        ..record
    }
}

/// The session of Proctor that this process is of, innermost.
pub(in crate::commands) fn session(invocation: &Invocation) -> Option<&str> {
    invocation.environment.get(&environment::SESSION)?.to_str()?.rsplit(':').next()
}

fn said(polarity: Polarity, args: &AddArgs) -> Record {
    let text = |value: &Option<String>| value.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    Record {
        trap: text(&args.trap),
        observation: text(&args.observation),
        alternative: text(&args.alternative),
        verify: text(&args.verify),
        layer: word(args.layer.as_deref()),
        scope: word(args.scope.as_deref()),
        evidence: word(args.evidence.as_deref()),
        degree: word(args.degree.as_deref()),
        action: word(args.action.as_deref()),
        ..Record::draft(polarity, text(&args.route).unwrap_or_default())
    }
}

fn word<T: Word>(text: Option<&str>) -> Option<Said<T>> {
    text.map(Said::of)
}
