//! `proctor procedure gc`: removes runs whose time has come.

use std::collections::BTreeMap;

use proctor_domain::retention::{KeepReason, RemoveReason};
use proctor_domain::{ExitCode, RunId};
use proctor_journal::{JournalStore, RunFilter, SkippedRuns};
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{GcReport, collect_garbage, plan_garbage};
use serde::Serialize;

use crate::Invocation;
use crate::archive::Archive;
use crate::args::Format;
use crate::args::procedure::GcArgs;
use crate::printer::visible_line;
use crate::report::Report;
use crate::run_text::counted;

#[derive(Serialize)]
struct Collected<'a> {
    version: u32,
    dry_run: bool,
    removed: Vec<Decided<'a>>,
    kept: Vec<Decided<'a>>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Decided<'a> {
    run: &'a RunId,
    procedure: Option<&'a str>,
    reason: &'static str,
}

/// Removes them, or says what would be removed.
pub(super) fn run(invocation: &Invocation, args: &GcArgs) -> Result<ExitCode, Report> {
    let opened = if args.dry_run { Archive::open(invocation)? } else { Archive::open_to_change(invocation)? };
    let (report, procedures) = match opened {
        None => (GcReport::default(), BTreeMap::new()),
        Some(mut archive) => {
            let rows = archive.journal.runs(&RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() })?;
            let procedures = rows.into_iter().map(|row| (row.run, row.procedure)).collect();
            let report = if args.dry_run {
                plan_garbage(&archive.site, &archive.journal, &SystemClock)?
            } else {
                collect_garbage(&archive.site, &mut archive.journal, &SystemClock)?
            };
            (report, procedures)
        }
    };
    let collected = describe(args, &report, &procedures);
    match Format::from_flag(args.json) {
        Format::Json => invocation.printer.json(&collected),
        Format::Text => print(invocation, &collected),
    }
    for warning in &collected.warnings {
        invocation.printer.warn(&visible_line(warning));
    }
    Ok(ExitCode::Done)
}

fn describe<'a>(args: &GcArgs, report: &'a GcReport, procedures: &'a BTreeMap<RunId, String>) -> Collected<'a> {
    let decided = |run: &'a RunId, reason| Decided { run, procedure: procedures.get(run).map(String::as_str), reason };
    Collected {
        version: 1,
        dry_run: args.dry_run,
        removed: report.plan.remove.iter().map(|(run, reason)| decided(run, remove_reason(*reason))).collect(),
        kept: report.plan.keep.iter().map(|(run, reason)| decided(run, keep_reason(*reason))).collect(),
        warnings: report
            .unreadable
            .iter()
            .map(|(run, text)| format!("{run} stays: its card says `expires: {text}`, which is neither a time nor `never`"))
            .collect(),
    }
}

fn print(invocation: &Invocation, collected: &Collected<'_>) {
    let printer = &invocation.printer;
    let (verb, keep) = if collected.dry_run { ("would remove", "would keep") } else { ("removed", "kept") };
    for removed in &collected.removed {
        printer.line(&format!("{verb} {} {} ({})", removed.run, visible_line(removed.procedure.unwrap_or("?")), removed.reason));
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for kept in &collected.kept {
        *reasons.entry(kept.reason).or_default() += 1;
    }
    let reasons: Vec<String> = reasons.into_iter().map(|(reason, count)| format!("{count} {}", reason.replace('-', " "))).collect();
    let kept = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    let (gone, stay) = (counted(collected.removed.len(), "run"), counted(collected.kept.len(), "run"));
    printer.say(&format!("{verb} {gone}, {keep} {stay}{kept}"));
}

fn remove_reason(reason: RemoveReason) -> &'static str {
    match reason {
        RemoveReason::Expired => "expired",
        RemoveReason::TooMany => "too-many",
    }
}

fn keep_reason(reason: KeepReason) -> &'static str {
    match reason {
        KeepReason::Running => "running",
        KeepReason::Newest => "newest",
        KeepReason::Never => "pinned",
        KeepReason::Unreadable => "unreadable",
        KeepReason::NotYet => "not-due",
    }
}
