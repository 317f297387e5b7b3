//! `proctor runs`: one line for each run, newest first.

use proctor_domain::procedure::{HaltReason, Position, Records, StepId};
use proctor_domain::retention::Expires;
use proctor_domain::{Clock, ExitCode, Timestamp};
use proctor_journal::{JournalStore, RunFilter, RunRow, RunsWanted, SkippedRuns, Standing};
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{LoadedRun, is_alive, load_run};
use proctor_process::lock;
use serde::Serialize;

use crate::Invocation;
use crate::archive::Archive;
use crate::args::Format;
use crate::args::runs::RunsArgs;
use crate::printer::{Stream, visible_line};
use crate::report::Report;
use crate::run_text::{LocalClock, counted, lasted, mark, utc_time};
use crate::standing::{is_answered, waits_for};

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
    /// Whether it is completed although a check of one of its steps said no.
    with_warnings: bool,
    /// What a parked run waits for: `answer`, `resume` (it was answered), `reset` or `merge`.
    waits_for: Option<&'static str>,
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
    let found = match &archive {
        Some(archive) => find(archive, args)?,
        None => Vec::new(),
    };
    let now = SystemClock.now();
    match Format::from_flag(args.json) {
        Format::Json => {
            let runs = found.iter().map(|(row, word)| listed(row, word, now)).collect();
            invocation.printer.json(&Listing { version: 1, runs });
        }
        Format::Text => {
            print(invocation, &found, now);
            if found.is_empty() && args.parked {
                invocation.printer.say("no run waits for anything");
            } else if found.is_empty() {
                invocation.printer.say("nothing has run here yet; `proctor procedure run NAME` runs a procedure");
            }
        }
    }
    Ok(ExitCode::Done)
}

fn find(archive: &Archive, args: &RunsArgs) -> Result<Vec<(RunRow, Word)>, Report> {
    let skipped = if args.all { SkippedRuns::Shown } else { SkippedRuns::Hidden };
    // Which of the runs that have not ended are parked, only a look at each of them says.
    let (wanted, limit) = if args.parked { (RunsWanted::Unended, None) } else { (RunsWanted::Any, args.limit) };
    let rows = archive.journal.runs(&RunFilter { skipped, wanted, limit, ..RunFilter::default() })?;
    let with_words = rows.into_iter().map(|row| {
        let word = word(archive, &row);
        (row, word)
    });
    let meant = with_words.filter(|(_, word)| !args.parked || word.waits_for.is_some());
    Ok(meant.take(args.limit.unwrap_or(usize::MAX)).collect())
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word {
    outcome: &'static str,
    /// What a parked one waits for.
    waits_for: Option<&'static str>,
}

fn word(archive: &Archive, row: &RunRow) -> Word {
    let plain = |outcome| Word { outcome, waits_for: None };
    match &row.standing {
        Standing::Ended { outcome, .. } => plain(outcome.name()),
        Standing::Open | Standing::Halted(_) if has_driver(archive, row) => plain("running"),
        Standing::Open | Standing::Halted(_) => match load_run(&archive.journal, &row.run) {
            Ok(loaded) => word_of_loaded(archive, &loaded),
            // A damaged record can't say what the run is in; `doctor` names it.
            Err(_) => plain("interrupted"),
        },
    }
}

/// Whether the driver of a run is alive. Most that have not ended have one, which one look at its lock tells.
fn has_driver(archive: &Archive, row: &RunRow) -> bool {
    lock::holder_if_held(&archive.site.state.run_lock(&row.run)).is_ok_and(|holder| holder.is_some())
}

fn word_of_loaded(archive: &Archive, loaded: &LoadedRun) -> Word {
    let plain = |outcome| Word { outcome, waits_for: None };
    // It may have ended between the reading of the list and the look at its lock.
    match (&loaded.run.position, &loaded.run.halt) {
        (Position::Ended(outcome), _) => plain(outcome.name()),
        _ if is_alive(&archive.site, loaded).unwrap_or(false) => plain("running"),
        (_, Some(reason)) if reason.is_parked() => {
            Word { outcome: "parked", waits_for: waits_for(reason, is_answered(&loaded.run, reason)) }
        }
        (Position::Between | Position::InStep(..) | Position::Closing { .. }, _) => plain("interrupted"),
    }
}

fn duration(row: &RunRow, outcome: &str, now: Timestamp) -> Option<u64> {
    // When one that was interrupted stopped, only its events say.
    let until = row.ended_at().or_else(|| (outcome == "running").then_some(now))?;
    Some(until.millis_since(row.started_at))
}

fn listed<'row>(row: &'row RunRow, word: &Word, now: Timestamp) -> Listed<'row> {
    Listed {
        run: row.run.as_str(),
        procedure: &row.procedure,
        outcome: word.outcome,
        with_warnings: row.has_warnings(),
        waits_for: word.waits_for,
        started_at: utc_time(row.started_at),
        ended_at: row.ended_at().map(utc_time),
        duration_ms: duration(row, word.outcome, now),
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
fn print(invocation: &Invocation, found: &[(RunRow, Word)], now: Timestamp) {
    let printer = &invocation.printer;
    let clock = LocalClock::new();
    let width = found.iter().map(|(row, _)| visible_line(&row.procedure).chars().count()).max().unwrap_or(0);
    let mut line = String::new();
    for (row, word) in found {
        if printer.reader_left() {
            return;
        }
        let outcome = word.outcome;
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
        if row.has_warnings() {
            line.push_str(", with warnings");
        }
        line.push_str(match word.waits_for {
            Some("answer") => ", asks",
            Some("resume") => ", answered",
            Some("reset") => ", at a limit",
            Some("merge") => ", not merged",
            Some(_) | None => "",
        });
        if let Some(HaltReason::Limited { until: Some(until), .. }) = row.halted().filter(|_| word.waits_for.is_some()) {
            line.push_str(" until ");
            clock.push(&mut line, *until);
        }
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
        line.push_str(&lasted(outcome, duration));
    }
}
