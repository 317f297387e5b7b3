//! `proctor procedure status`: what happened in a run, and why it failed.

use proctor_domain::procedure::{CheckResult, Failure, Outcome, Records, Run, StepRecord, StepState, Unjudged};
use proctor_domain::session::{Phase, SessionRecord, Work};
use proctor_domain::{Clock, ExitCode, RunId, Timestamp};
use proctor_journal::RunsWanted;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{Standing, newest_run};

use crate::Invocation;
use crate::archive::{Archive, DriverFound, Seen, nothing_like};
use crate::args::Format;
use crate::args::procedure::StatusArgs;
use crate::printer::{Printer, Stream, Style, visible_line};
use crate::progress::seconds;
use crate::report::{Kind, Report};
use crate::run_document::{RunDocument, outcome, outcome_text, step_state};
use crate::run_text::{approval_text, cut_off_text, last_lines, lasted, local_time, mark, work_name};
use crate::spending::Tally;
use crate::standing::{branch_to_merge, login_hint, state, ways_on, why};

/// How many of the last lines of a stream are shown.
const SHOWN_LINES: usize = 20;

/// Shows the newest run of this working tree, or the given one.
pub(super) fn run(invocation: &Invocation, args: &StatusArgs) -> Result<ExitCode, Report> {
    let archive = match (Archive::open(invocation)?, &args.run) {
        (Some(archive), _) => archive,
        (None, Some(text)) => return Err(nothing_like(text)),
        (None, None) => return Err(no_run()),
    };
    let run = match &args.run {
        Some(text) => archive.run(text)?,
        None => newest_run(&archive.site, &archive.journal, RunsWanted::Any)?.ok_or_else(no_run)?,
    };
    let seen = archive.look(&run)?;
    let now = SystemClock.now();
    match Format::from_flag(args.json) {
        Format::Json => {
            // A run that stands still does not get longer by being looked at.
            let until = if seen.standing == Standing::Running { now } else { seen.last_sign };
            invocation.printer.json(&RunDocument::of(&run, &seen.loaded.run, &seen.standing, until).looked_at());
        }
        Format::Text => {
            let view = RunView { run_id: &run, run: &seen.loaded.run, standing: &seen.standing, newest: seen.last_sign, now };
            view.print(&invocation.printer);
            tell_found(&invocation.printer, &archive, &seen);
            match (&seen.standing, seen.driver) {
                (Standing::Running, DriverFound::Gone) => tell_driverless(&invocation.printer, &run),
                (_, DriverFound::Alive | DriverFound::Gone) => view.print_ways_on(&invocation.printer),
            }
        }
    }
    Ok(ExitCode::Done)
}

/// Of a run whose driver died: what its last session came to meanwhile.
fn tell_found(printer: &Printer, archive: &Archive, seen: &Seen) {
    let Some(session) = seen.loaded.run.open_session().filter(|_| seen.standing == Standing::Interrupted) else { return };
    let record = seen.loaded.run.current_step().and_then(|step| step.sessions.last());
    if let (Some(record), true) = (record, archive.site.state.session(session).join("report.json").exists()) {
        let work = work_name(record.phase, record.work);
        printer.line(&format!("    {work} has ended meanwhile ({session}); what it came to counts when the run goes on"));
    }
}

fn tell_driverless(printer: &Printer, run: &RunId) {
    printer.say("");
    let hint = printer.paint(Stream::Err, Style::Strong, "hint:").into_owned();
    printer.say(&format!("{hint} its driver is gone and its session works on; `proctor procedure resume {run}` follows it and goes on"));
    printer.say(&format!("{hint} `proctor stop {run}` ends it"));
}

fn no_run() -> Report {
    Report::new(Kind::User, "there is no run in this working tree yet")
        .hint("`proctor procedure list` names the procedures, `proctor procedure run NAME` runs one")
}

/// No more uncommitted paths are listed; `proctor show` has all.
const LISTED: usize = 10;

/// A run as a person sees it.
pub(crate) struct RunView<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) run: &'a Run,
    pub(crate) standing: &'a Standing,
    /// The last moment at which it is known to have lived, or to have come to where it stands.
    pub(crate) newest: Timestamp,
    pub(crate) now: Timestamp,
}

impl RunView<'_> {
    /// Prints it to stdout.
    pub(crate) fn print(&self, printer: &Printer) {
        let word = outcome(self.standing);
        let (sign, style) = mark(word);
        let words = outcome_text(self.run, self.standing);
        let title = format!("{sign} {}: {words}", visible_line(&self.run.started.procedure));
        printer.line(&format!("{}  {}", printer.paint(Stream::Out, style, &title), self.run_id));
        let field = |name: &str, value: &str| printer.line(&format!("  {name:<10} {}", visible_line(value)));
        field("started", &local_time(self.run.started_at));
        self.print_end(&field);
        match (&self.run.started.records, &self.run.started.folder) {
            (Records::Git, Some(folder)) => field("records", &format!("git, in {folder}")),
            (Records::Git, None) => field("records", "git"),
            (Records::State, _) => field("records", "state"),
        }
        if let Some(directive) = &self.run.started.directive {
            field("directive", directive);
        }
        for (name, value) in &self.run.started.inputs {
            field("input", &format!("{name} = {value}"));
        }
        if let Some(why) = why(self.run, self.standing) {
            field(if state(self.standing) == "parked" { "waits" } else { "stopped" }, &why);
        }
        if let Some(branch) = branch_to_merge(self.run) {
            field("branch", &format!("{branch}, not merged yet"));
        }
        let cost = Tally::of(self.run.steps.iter().flat_map(|step| &step.sessions));
        if cost.sessions > 0 {
            field("cost", &cost.cost_text());
        }
        // At work, what is uncommitted is on its way somewhere.
        if let (Some(left), false) = (&self.run.left, *self.standing == Standing::Running) {
            let paths: Vec<String> = left.paths.iter().take(LISTED).map(ToString::to_string).collect();
            let more = left.paths.len() - paths.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            field("left", &format!("{}{more}, not committed", paths.join(", ")));
        }
        printer.line("");
        let width = self.run.steps.iter().map(|step| step.plan.id.as_str().len()).max().unwrap_or(0);
        for step in &self.run.steps {
            self.print_step(printer, step, width);
        }
    }

    fn print_end(&self, field: &dyn Fn(&str, &str)) {
        let (name, at) = match (self.standing, self.run.ended_at) {
            (Standing::Ended(_), Some(ended)) => ("ended", ended),
            (Standing::Running, _) => return field("so far", &seconds(self.now.millis_since(self.run.started_at))),
            (Standing::Ended(_) | Standing::Interrupted | Standing::Halted(_), _) => ("last sign", self.newest),
        };
        field(name, &format!("{}, after {}", local_time(at), seconds(at.millis_since(self.run.started_at))));
    }

    fn print_step(&self, printer: &Printer, step: &StepRecord, width: usize) {
        let word = step_state(step, self.standing);
        let (sign, style) = mark(word);
        let sign = printer.paint(Stream::Out, style, sign);
        let line = format!("{sign} {:<width$}  {}{}", step.plan.id.as_str(), word, self.remarks(step));
        printer.line(line.trim_end());
        if let Some(cut_off) = cut_off_text(step) {
            printer.line(&format!("    {}", printer.paint(Stream::Out, Style::Doubtful, &cut_off)));
        }
        if let StepState::Failed(failure) | StepState::Failing(failure) = &step.state {
            print_failure(printer, step, failure);
        } else if let Some(warning) = &step.warning {
            printer.line(&format!(
                "    {} {}",
                printer.paint(Stream::Out, Style::Doubtful, "warning:"),
                visible_line(&warning.to_string())
            ));
            print_streams(printer, deciding_session(step, warning));
        } else if step.validate == Some(CheckResult::Inconclusive) {
            let reason = step.unjudged.unwrap_or(Unjudged::Unknown);
            printer.line(&format!("    {} its review {reason}", printer.paint(Stream::Out, Style::Doubtful, "unjudged:")));
        }
        if word == "parked"
            && let Some(said) = last_error(step)
        {
            printer.line(&format!("    it said: {}", visible_line(said)));
        }
        if let Some(approval) = &step.approval {
            printer.line(&format!("    {}", visible_line(&approval_text(approval))));
        }
    }

    /// What stands behind a step's state.
    fn remarks(&self, step: &StepRecord) -> String {
        let mut text = String::new();
        if let StepState::Skipped(reason) = &step.state {
            text.push_str(&format!(" ({})", reason.name()));
        }
        let until = match self.standing {
            Standing::Running => self.now,
            Standing::Ended(_) | Standing::Interrupted | Standing::Halted(_) => self.newest,
        };
        if let Some(worked) = step.worked_millis(until) {
            text.push_str(&lasted(step_state(step, self.standing), worked));
        }
        if step.attempts_made() > 1 {
            text.push_str(&format!(", {} attempts", step.attempts_made()));
        }
        match step.commits.as_slice() {
            [] => {}
            [commit] => text.push_str(&format!(", commit {}", commit.short())),
            commits => {
                let names: Vec<&str> = commits.iter().map(proctor_domain::Oid::short).collect();
                text.push_str(&format!(", commits {}", names.join(" ")));
            }
        }
        text
    }

    /// Says on stderr how to go on.
    pub(crate) fn print_ways_on(&self, printer: &Printer) {
        let run = self.run_id;
        let hints = match self.standing {
            Standing::Ended(Outcome::Failed) if self.run.steps.iter().any(touched_foreign) => vec![
                format!("what those files held before is kept: `git show refs/proctor/salvage/{run}/foreign:PATH`"),
                "commit or remove them, then start a new run: this one leaves them alone for good".to_owned(),
            ],
            Standing::Ended(Outcome::Failed) => {
                let mut hints = vec![
                    format!("`proctor procedure resume {run}` tries again from the failed step"),
                    format!("`proctor log {run}` has everything it printed"),
                ];
                hints.splice(0..0, login_hint(self.run));
                hints
            }
            Standing::Ended(Outcome::Completed | Outcome::Skipped) => return,
            Standing::Interrupted => vec![format!("`proctor procedure resume {run}` goes on with it")],
            Standing::Ended(Outcome::Inconclusive) | Standing::Halted(_) => ways_on(run, self.run, self.standing),
            Standing::Running => vec![
                format!("`proctor log {run} --follow` watches it, `proctor stop {run}` ends it"),
                format!("if its driver has died, `proctor procedure resume {run}` takes its place"),
            ],
        };
        printer.say("");
        for hint in hints {
            printer.say(&format!("{} {}", printer.paint(Stream::Err, Style::Strong, "hint:"), visible_line(&hint)));
        }
    }
}

fn print_failure(printer: &Printer, step: &StepRecord, failure: &Failure) {
    printer.line(&format!("    {}", printer.paint(Stream::Out, Style::Bad, &visible_line(&failure.to_string()))));
    for earlier in &step.earlier_failures {
        printer.line(&format!("    before that: {}", visible_line(&earlier.to_string())));
    }
    print_streams(printer, deciding_session(step, failure));
}

/// The session whose end decided: the last one that did what failed, else the last one at all.
fn deciding_session<'a>(step: &'a StepRecord, failure: &Failure) -> Option<&'a SessionRecord> {
    let is_of_a_judge = |work: Work| matches!(work, Work::Judge(_));
    let decided = |session: &SessionRecord| match failure {
        Failure::Exit { phase, .. } | Failure::Timeout { phase } | Failure::Crashed { phase, .. } => {
            session.phase == *phase && session.work == Work::Shells
        }
        Failure::PrecheckChanged { .. } => session.phase == Phase::Precheck,
        Failure::Judged { .. } => is_of_a_judge(session.work),
        Failure::NoResponse { work, .. } => session.work == *work || (is_of_a_judge(*work) && is_of_a_judge(session.work)),
        Failure::Agent { agent, .. } => session.work == Work::Agent(*agent),
        Failure::Blocked { .. } => matches!(session.work, Work::Agent(_) | Work::Repair),
        Failure::Rejected { .. }
        | Failure::ChangedGit { .. }
        | Failure::Outputs { .. }
        | Failure::Template { .. }
        | Failure::TouchedForeign { .. }
        | Failure::Uncommittable { .. }
        | Failure::HookRefused { .. }
        | Failure::Signing { .. }
        | Failure::Git { .. } => true,
    };
    step.sessions.iter().rev().filter(|session| session.report.is_some()).find(|session| decided(session))
}

/// What the engine of the step's last session said about an error.
fn last_error(step: &StepRecord) -> Option<&str> {
    step.sessions.last()?.report.as_ref()?.agent.as_ref()?.error.as_deref()
}

fn print_streams(printer: &Printer, session: Option<&SessionRecord>) {
    let Some((session, report)) = session.and_then(|session| Some((session, session.report.as_ref()?))) else { return };
    for (name, excerpt) in [("stdout", &report.stdout), ("stderr", &report.stderr)] {
        let lines = last_lines(excerpt, SHOWN_LINES);
        if lines.is_empty() {
            continue;
        }
        printer.line(&format!("    {}", printer.paint(Stream::Out, Style::Dim, &format!("{name} of {}:", session.id))));
        for line in lines {
            printer.line(&format!("    {} {line}", printer.paint(Stream::Out, Style::Dim, "|")));
        }
    }
    // What the engine of an agent prints is its transcript.
    if session.work.needs_engine() {
        let where_to_look = format!("`proctor log {}` has the transcript", session.id);
        printer.line(&format!("    {}", printer.paint(Stream::Out, Style::Dim, &where_to_look)));
    } else if report.stdout.is_empty() && report.stderr.is_empty() {
        printer.line(&format!("    {}", printer.paint(Stream::Out, Style::Dim, &format!("{} printed nothing", session.id))));
    }
}

fn touched_foreign(step: &StepRecord) -> bool {
    matches!(step.state, StepState::Failed(Failure::TouchedForeign { .. }))
}
