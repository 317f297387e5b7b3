//! `proctor runs`: one line for each run, newest first.

use proctor_domain::procedure::{Outcome, Records, StepId};
use proctor_domain::retention::Expires;
use proctor_domain::{Clock, ExitCode, Timestamp};
use proctor_journal::{JournalStore, RunFilter, RunRow, SkippedRuns, Standing};
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{is_alive, load_run};
use proctor_process::lock;
use serde::Serialize;

use crate::Invocation;
use crate::archive::Archive;
use crate::args::Format;
use crate::args::runs::RunsArgs;
use crate::printer::{Stream, visible_line};
use crate::progress::seconds;
use crate::report::Report;
use crate::run_text::{LocalClock, counted, mark, utc_time};

#[derive(Serialize)]
struct Listing<'row> {
    version: u32,
    runs: Vec<Listed<'row>>,
}

#[derive(Serialize)]
struct Listed<'row> {
    run: &'row str,
    procedure: &'row str,
    outcome: &'static str,
    started_at: String,
    ended_at: Option<String>,
    duration_ms: Option<u64>,
    steps: usize,
    latest_step: Option<&'row str>,
    records: Records,
    folder: Option<String>,
    worktree: String,
    /// A time, `never`, or null where nothing is said.
    expires: Option<String>,
}

/// Lists them. Only the journal's list is read: what happened inside a run is not needed, however many there are.
pub fn run(invocation: &Invocation, args: &RunsArgs) -> Result<ExitCode, Report> {
    let archive = Archive::open(invocation)?;
    let skipped = if args.all { SkippedRuns::Shown } else { SkippedRuns::Hidden };
    let filter = RunFilter { skipped, limit: args.limit, ..RunFilter::default() };
    let rows = match &archive {
        Some(archive) => archive.journal.runs(&filter)?,
        None => Vec::new(),
    };
    let now = SystemClock.now();
    let outcome_of = |row: &RunRow| archive.as_ref().map_or("interrupted", |archive| outcome(archive, row));
    match Format::from_flag(args.json) {
        Format::Json => {
            let runs = rows.iter().map(|row| listed(row, outcome_of(row), now)).collect();
            invocation.printer.json(&Listing { version: 1, runs });
        }
        Format::Text => {
            print(invocation, &rows, &outcome_of, now);
            if rows.is_empty() {
                invocation.printer.say("nothing has run here yet; `proctor procedure run NAME` runs a procedure");
            }
        }
    }
    Ok(ExitCode::Done)
}

fn outcome(archive: &Archive, row: &RunRow) -> &'static str {
    match &row.standing {
        Standing::Ended { outcome, .. } => outcome.name(),
        Standing::Open | Standing::Halted(_) if runs_now(archive, row) => "running",
        Standing::Open | Standing::Halted(_) => ended_since(archive, row).map_or("interrupted", Outcome::name),
    }
}

/// Whether the driver or the host of a run that has not ended is alive. Only those are asked, and most have a driver,
/// which one look at its lock tells.
fn runs_now(archive: &Archive, row: &RunRow) -> bool {
    if lock::holder_if_held(&archive.site.state.run_lock(&row.run)).is_ok_and(|holder| holder.is_some()) {
        return true;
    }
    // A damaged record can't say which session the run is in; `doctor` names it.
    load_run(&archive.journal, &row.run).is_ok_and(|loaded| is_alive(&archive.site, &loaded).unwrap_or(false))
}

/// How a run ended between the reading of the list and the look at its lock.
fn ended_since(archive: &Archive, row: &RunRow) -> Option<Outcome> {
    match load_run(&archive.journal, &row.run).ok()?.run.position {
        proctor_domain::procedure::Position::Ended(outcome) => Some(outcome),
        proctor_domain::procedure::Position::Between
        | proctor_domain::procedure::Position::InStep(..)
        | proctor_domain::procedure::Position::Closing { .. } => None,
    }
}

fn duration(row: &RunRow, outcome: &str, now: Timestamp) -> Option<u64> {
    // When one that was interrupted stopped, only its events say.
    let until = row.ended_at().or_else(|| (outcome == "running").then_some(now))?;
    Some(until.millis_since(row.started_at))
}

fn listed<'row>(row: &'row RunRow, outcome: &'static str, now: Timestamp) -> Listed<'row> {
    Listed {
        run: row.run.as_str(),
        procedure: &row.procedure,
        outcome,
        started_at: utc_time(row.started_at),
        ended_at: row.ended_at().map(utc_time),
        duration_ms: duration(row, outcome, now),
        steps: row.steps,
        latest_step: row.latest_step.as_ref().map(StepId::as_str),
        records: row.records,
        folder: row.folder.as_ref().map(ToString::to_string),
        worktree: row.worktree.to_string(),
        expires: match &row.expires {
            Expires::Never => Some("never".to_owned()),
            Expires::At(at) => Some(utc_time(*at)),
            Expires::Unreadable(text) => Some(text.clone()),
            Expires::Unset => None,
        },
    }
}

/// Prints the lines. Ten thousand of them are nothing special, so one buffer serves them all.
fn print(invocation: &Invocation, rows: &[RunRow], outcome_of: &dyn Fn(&RunRow) -> &'static str, now: Timestamp) {
    let printer = &invocation.printer;
    let clock = LocalClock::new();
    let width = rows.iter().map(|row| visible_line(&row.procedure).chars().count()).max().unwrap_or(0);
    let mut line = String::new();
    for row in rows {
        if printer.reader_left() {
            return;
        }
        let outcome = outcome_of(row);
        let (sign, style) = mark(outcome);
        let state = [sign, " ", outcome].concat();
        let name = visible_line(&row.procedure);
        line.clear();
        line.push_str(row.run.as_str());
        line.push_str("  ");
        line.push_str(&printer.paint(Stream::Out, style, &state));
        pad(&mut line, LONGEST_OUTCOME - outcome.len());
        clock.push(&mut line, row.started_at);
        line.push_str("  ");
        line.push_str(&name);
        pad(&mut line, width - name.chars().count());
        push_progress(&mut line, row, outcome, now);
        printer.line(&line);
    }
}

/// The room that an outcome takes: `inconclusive`.
const LONGEST_OUTCOME: usize = 12;

/// Fills up a column and leaves the gap behind it.
fn pad(line: &mut String, missing: usize) {
    line.extend(std::iter::repeat_n(' ', missing + 2));
}

/// `3 steps in 1.2 s`; for a run that did not get through, where it stands.
fn push_progress(line: &mut String, row: &RunRow, outcome: &str, now: Timestamp) {
    line.push_str(&counted(row.steps, "step"));
    if let (Some(step), false) = (&row.latest_step, matches!(outcome, "completed" | "skipped" | "inconclusive")) {
        line.push_str(", at ");
        line.push_str(step.as_str());
    }
    if let Some(duration) = duration(row, outcome, now) {
        line.push_str(" in ");
        line.push_str(&seconds(duration));
    }
}
