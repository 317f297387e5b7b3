//! `proctor cost`: what agents, judges and repairs used and cost, from the reports of their sessions.

mod ledger;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use proctor_domain::session::Work;
use proctor_domain::{Clock, ExitCode, Timestamp};
use proctor_journal::{JournalStore, RunFilter, RunRow, SessionsWanted, SkippedRuns};
use proctor_orchestrator::SystemClock;
use serde::Serialize;

use crate::Invocation;
use crate::archive::Archive;
use crate::args::Format;
use crate::args::runs::{CostArgs, CostBy, Since};
use crate::printer::{Printer, Stream, Style, visible_line};
use crate::report::Report;
use crate::run_text::utc_time;
use crate::spending::{Tally, TallyDocument};
use ledger::{Entry, entries};

/// What a line is about; what it was not asked about is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Subject {
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    procedure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

#[derive(Serialize)]
struct Costs<'a> {
    version: u32,
    since: Option<String>,
    by: &'static str,
    groups: Vec<Group<'a>>,
    by_work: BTreeMap<&'static str, TallyDocument>,
    total: TallyDocument,
    /// Runs whose record is damaged; what they cost is in no sum.
    unreadable: &'a [String],
}

#[derive(Serialize)]
struct Group<'a> {
    of: &'a Subject,
    sum: TallyDocument,
}

/// The sums.
#[derive(Default)]
struct Sums {
    groups: BTreeMap<Subject, Tally>,
    by_work: BTreeMap<&'static str, Tally>,
    total: Tally,
}

/// Adds up and prints.
pub fn run(invocation: &Invocation, args: &CostArgs) -> Result<ExitCode, Report> {
    let since = args.since.map(beginning);
    let mut sums = Sums::default();
    let mut unreadable = Vec::new();
    if let Some(archive) = Archive::open(invocation)? {
        let filter = RunFilter { skipped: SkippedRuns::Shown, sessions: SessionsWanted::OfAgents, ..RunFilter::default() };
        let may_count = |row: &RunRow| since.is_none_or(|since| row.ended_at().is_none_or(|ended| ended >= since));
        for row in archive.journal.runs(&filter)?.into_iter().filter(may_count) {
            match entries(&archive, &row.run) {
                Ok(entries) => {
                    let counted = entries.iter().filter(|entry| since.is_none_or(|since| entry.at >= since));
                    counted.for_each(|entry| sums.add(args.by, &row, entry));
                }
                Err(error) => {
                    invocation.printer.warn(&format!("{} is left out, since its record is damaged: {error}", row.run));
                    unreadable.push(row.run.to_string());
                }
            }
        }
    }
    match Format::from_flag(args.json) {
        Format::Json => invocation.printer.json(&sums.document(since, args.by, &unreadable)),
        Format::Text if sums.total.sessions == 0 => invocation.printer.say("no agent has worked here in that time"),
        Format::Text => sums.print(&invocation.printer, args.by),
    }
    Ok(ExitCode::Done)
}

fn beginning(since: Since) -> Timestamp {
    match since {
        Since::Ago(duration) => Timestamp(SystemClock.now().0.saturating_sub_unsigned(duration.millis())),
        Since::Instant(instant) => Timestamp(instant.as_millisecond()),
        Since::Day(day) => {
            let midnight = TimeZone::system().to_timestamp(day.at(0, 0, 0, 0)).map(jiff::Timestamp::as_millisecond);
            // No clock shows a day that far away.
            Timestamp(midnight.unwrap_or(i64::MIN))
        }
    }
}

impl Tally {
    fn take(&mut self, entry: &Entry) {
        if entry.is_free { self.add_free() } else { self.add(entry.report.as_ref()) }
    }
}

impl Sums {
    fn add(&mut self, by: CostBy, row: &RunRow, entry: &Entry) {
        self.total.take(entry);
        self.by_work.entry(entry.work.name()).or_default().take(entry);
        let procedure = Some(row.procedure.clone());
        let subject = match by {
            CostBy::Procedure => Subject { procedure, ..Subject::default() },
            CostBy::Step => Subject { procedure, step: Some(entry.step.clone()), ..Subject::default() },
            CostBy::Day => Subject { day: Some(day_of(entry.at)), ..Subject::default() },
            CostBy::Model => return self.add_by_model(entry),
        };
        self.groups.entry(subject).or_default().take(entry);
    }

    /// A session of several models counts for each of them; its turns are the model's that it was started with.
    fn add_by_model(&mut self, entry: &Entry) {
        let of = |model: &str| Subject { model: Some(model.to_owned()), ..Subject::default() };
        let Some(report) = entry.report.as_ref().filter(|report| !report.spent.is_empty()) else {
            let model = entry.report.as_ref().and_then(|report| report.model.as_deref()).unwrap_or("unknown");
            return self.groups.entry(of(model)).or_default().take(entry);
        };
        let own = report.spent.iter().position(|spending| report.model.as_ref() == Some(&spending.model)).unwrap_or(0);
        for (position, spending) in report.spent.iter().enumerate() {
            let turns = if position == own { report.turns } else { 0 };
            self.groups.entry(of(&spending.model)).or_default().add_part(turns, spending);
        }
    }

    fn document<'a>(&'a self, since: Option<Timestamp>, by: CostBy, unreadable: &'a [String]) -> Costs<'a> {
        Costs {
            version: 1,
            since: since.map(utc_time),
            by: name(by),
            groups: self.groups.iter().map(|(of, tally)| Group { of, sum: tally.document() }).collect(),
            by_work: self.by_work.iter().map(|(work, tally)| (*work, tally.document())).collect(),
            total: self.total.document(),
            unreadable,
        }
    }

    fn print(&self, printer: &Printer, by: CostBy) {
        let title = |subject: &Subject| {
            let Subject { day, procedure, step, model } = subject;
            let parts: Vec<&str> = [day, procedure, step, model].into_iter().flatten().map(String::as_str).collect();
            visible_line(&parts.join(" / ")).into_owned()
        };
        let mut rows = vec![HEADINGS.map(str::to_owned)];
        rows[0][0] = name(by).to_owned();
        rows.extend(self.groups.iter().map(|(subject, tally)| cells(title(subject), tally)));
        let first_of_work = rows.len();
        let words = [Work::Agent(1), Work::Judge(1), Work::Repair].map(Work::name);
        let of_work = |word: &'static str| self.by_work.get(word).map(|tally| cells(format!("by {word}s"), tally));
        rows.extend(words.into_iter().filter_map(of_work));
        let total = rows.len();
        rows.push(cells("total".to_owned(), &self.total));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
        for (position, row) in rows.iter().enumerate() {
            if position == first_of_work || position == total {
                printer.line("");
            }
            let line = laid_out(row, &widths);
            let style = if position == 0 { Style::Dim } else { Style::Strong };
            let painted = position == 0 || position == total;
            printer.line(&if painted { printer.paint(Stream::Out, style, &line) } else { line.as_str().into() });
        }
    }
}

const HEADINGS: [&str; 8] = ["", "sessions", "turns", "in", "out", "cache read", "cache write", "cost"];

fn cells(name: String, tally: &Tally) -> [String; 8] {
    let [input, output, read, written] = tally.token_texts();
    [name, tally.sessions.to_string(), tally.turns.to_string(), input, output, read, written, tally.cost_text()]
}

/// The first and the last column begin at the left, the numbers between them end at the right.
fn laid_out(row: &[String; 8], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        match column {
            0 => line.push_str(&format!("{cell:<width$}")),
            7 => line.push_str(&format!("  {cell}")),
            _ => line.push_str(&format!("  {cell:>width$}")),
        }
    }
    line
}

fn name(by: CostBy) -> &'static str {
    match by {
        CostBy::Procedure => "procedure",
        CostBy::Step => "step",
        CostBy::Model => "model",
        CostBy::Day => "day",
    }
}

fn day_of(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    TimeZone::system().to_datetime(instant).date().to_string()
}
