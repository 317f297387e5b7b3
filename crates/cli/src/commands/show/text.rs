//! Runs and sessions as text, complete.

use proctor_domain::Oid;
use proctor_domain::procedure::{CheckResult, Records, StepRecord, StepState};
use proctor_domain::session::{Phase, SessionRecord, SessionReport};
use proctor_orchestrator::procedure::Standing;

use super::View;
use super::document::end_detail;
use crate::printer::{Printer, Stream, Style, visible, visible_line};
use crate::progress::seconds;
use crate::report::procedure::halt_sentence;
use crate::run_document::{outcome, precheck_name, step_state};
use crate::run_text::{local_time, mark};

/// Prints lines of the form `name  value`, indented.
struct Fields<'a> {
    printer: &'a Printer,
    indent: &'static str,
}

impl Fields<'_> {
    fn line(&self, name: &str, value: &str) {
        self.printer.line(&format!("{}{name:<12} {}", self.indent, visible_line(value)));
    }

    fn list<'v>(&self, name: &str, values: impl IntoIterator<Item = &'v str>) {
        values.into_iter().enumerate().for_each(|(position, value)| self.line(if position == 0 { name } else { "" }, value));
    }

    fn some(&self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.line(name, value);
        }
    }
}

/// A run with all its steps and sessions.
pub(super) fn run(printer: &Printer, view: &View<'_>) {
    let loaded = &view.seen.loaded;
    let (run, standing) = (&loaded.run, &view.seen.standing);
    let started = &run.started;
    title(printer, &started.procedure, outcome(standing), loaded.run_id.as_str());
    let fields = Fields { printer, indent: "  " };
    fields.line("started", &local_time(run.started_at));
    match run.ended_at {
        Some(ended) => fields.line("ended", &format!("{}, after {}", local_time(ended), seconds(ended.millis_since(run.started_at)))),
        None => fields.line("last event", &local_time(loaded.newest_event)),
    }
    if let Standing::Halted(reason) = standing {
        fields.line("stopped", &halt_sentence(reason));
    }
    fields.line("exit code", &standing.exit_code().code().to_string());
    if run.ended_at.is_some() {
        fields.line("kept until", &run.expires.map_or_else(|| "it is unpinned".to_owned(), local_time));
    }
    fields.line("card", &started.card.to_string());
    fields.line("definition", &started.snapshot);
    fields.line(
        "records",
        &match (started.records, &started.folder) {
            (Records::Git, Some(folder)) => format!("git, in {folder}"),
            (Records::Git, None) => "git".to_owned(),
            (Records::State, _) => "state".to_owned(),
        },
    );
    fields.line("work tree", &started.worktree.to_string());
    fields.line("branch", &started.branch.to_string());
    fields.some("began at", started.head.as_ref().map(Oid::short));
    fields.some("is at", run.head.as_ref().map(Oid::short));
    fields.some("directive", started.directive.as_deref());
    fields.list(
        "inputs",
        started.inputs.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().iter().map(String::as_str),
    );
    fields.some("only step", started.only.as_ref().map(proctor_domain::procedure::StepId::as_str));
    paths(&fields, "foreign", &started.foreign);
    if let Some(left) = &run.left {
        paths(&fields, "left", &left.paths);
    }
    commits(&fields, "commits", &run.commits);
    for step in &run.steps {
        print_step(printer, view, step);
    }
}

fn title(printer: &Printer, what: &str, word: &str, id: &str) {
    let (sign, style) = mark(word);
    let title = format!("{sign} {}: {word}", visible_line(what));
    printer.line(&format!("{}  {id}", printer.paint(Stream::Out, style, &title)));
}

fn paths(fields: &Fields<'_>, name: &str, paths: &[proctor_domain::RepoPath]) {
    let texts: Vec<String> = paths.iter().map(ToString::to_string).collect();
    fields.list(name, texts.iter().map(String::as_str));
}

fn commits(fields: &Fields<'_>, name: &str, commits: &[Oid]) {
    fields.list(name, commits.iter().map(|commit| commit.0.as_str()));
}

fn print_step(printer: &Printer, view: &View<'_>, step: &StepRecord) {
    let word = step_state(step, &view.seen.standing);
    let (sign, style) = mark(word);
    let reason = match &step.state {
        StepState::Skipped(reason) => format!(" ({})", reason.name()),
        StepState::Failed(failure) | StepState::Failing(failure) => format!(": {failure}"),
        StepState::Pending | StepState::Running | StepState::Skipping | StepState::Completed => String::new(),
    };
    printer.line("");
    let heading = format!("{sign} {} {word}", step.plan.id);
    printer.line(&format!("{}{}", printer.paint(Stream::Out, style, &heading), visible_line(&reason)));
    let fields = Fields { printer, indent: "    " };
    if let Some(started) = step.started_at {
        fields.line("began", &local_time(started));
    }
    if let Some(worked) = step.ended_at.and_then(|ended| step.worked_millis(ended)) {
        fields.line("took", &seconds(worked));
    }
    if step.attempts > 0 {
        fields.line("attempts", &step.attempts.to_string());
    }
    fields.some("precheck", step.precheck.as_ref().map(precheck_name));
    fields.some("validate", step.validate.map(CheckResult::name));
    fields.some("warning", step.warning.as_ref().map(ToString::to_string).as_deref());
    for failure in &step.earlier_failures {
        fields.line("earlier", &failure.to_string());
    }
    fields.list(
        "outputs",
        step.outputs.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().iter().map(String::as_str),
    );
    paths(&fields, "changed", &step.changed);
    commits(&fields, "commits", &step.commits);
    fields.list("salvaged", step.salvaged.iter().map(String::as_str));
    for session in &step.sessions {
        print_session_line(printer, view, session);
    }
}

fn print_session_line(printer: &Printer, view: &View<'_>, session: &SessionRecord) {
    let mut text = format!("    {} {}, attempt {}: {}", session.id, session.phase.name(), session.attempt, view.session_end(session));
    if let Some(report) = &session.report {
        text.push_str(&ending(report));
        text.push_str(&format!(" in {}", seconds(report.duration_ms)));
    }
    printer.line(&text);
    if let Some(report) = &session.report {
        print_facts(&Fields { printer, indent: "      " }, report);
    }
}

/// The exit codes of all shells, in order.
fn ending(report: &SessionReport) -> String {
    let detail = end_detail(&report.end).map(|detail| format!(" ({})", visible_line(&detail))).unwrap_or_default();
    let codes: Vec<String> = report.shells.iter().map(|shell| format!("exit {}", shell.exit_code)).collect();
    if codes.is_empty() { detail } else { format!("{detail}, {}", codes.join(", ")) }
}

/// What a person would want to know beyond the end.
fn print_facts(fields: &Fields<'_>, report: &SessionReport) {
    fields.some("outputs", report.output_error.as_deref());
    fields.some("log", report.log_note.as_deref());
    if report.ended_orphans > 0 {
        fields.line("orphans", &format!("{} ended after their shell", report.ended_orphans));
    }
    for lingering in &report.lingering {
        fields.line("lingering", &format!("{} (pid {})", lingering.program, lingering.pid));
    }
}

/// One session: what it ran and how it ended.
pub(super) fn session(printer: &Printer, view: &View<'_>, step: &StepRecord, session: &SessionRecord) {
    let loaded = &view.seen.loaded;
    let word = view.session_end(session);
    let style = match &session.report {
        Some(report) if report.exit_code() == Some(0) => Style::Good,
        Some(_) => Style::Bad,
        None => Style::Doubtful,
    };
    printer.line(&format!("{}  {}", printer.paint(Stream::Out, style, &format!("session: {word}")), session.id));
    let fields = Fields { printer, indent: "  " };
    fields.line("run", &format!("{} of {}", loaded.run_id, loaded.run.started.procedure));
    fields.line("step", &format!("{}, {}, attempt {}", step.plan.id, session.phase.name(), session.attempt));
    if let Some(report) = &session.report {
        fields.some("end", end_detail(&report.end).as_deref());
        fields.line("took", &seconds(report.duration_ms));
        for (position, shell) in report.shells.iter().enumerate() {
            fields.line(&format!("shell {}", position + 1), &format!("exit {} in {}", shell.exit_code, seconds(shell.duration_ms)));
        }
        for (name, value) in report.outputs.iter().filter(|_| session.phase == Phase::Run) {
            fields.line("output", &format!("{name} = {value}"));
        }
        print_facts(&fields, report);
    }
    fields.line("files", &view.archive.site.state.session(&session.id).display().to_string());
    for (position, text) in view.shells(&session.id).iter().enumerate() {
        block(printer, &format!("shell {}", position + 1), text);
    }
    if let Some(report) = &session.report {
        block(printer, "stdout", &report.stdout.text());
        block(printer, "stderr", &report.stderr.text());
    }
}

/// Text of others, indented so that it can't pass for ours.
fn block(printer: &Printer, name: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    printer.line("");
    printer.line(&format!("  {}", printer.paint(Stream::Out, Style::Dim, &format!("{name}:"))));
    for line in visible(text).lines() {
        printer.line(&format!("  {} {line}", printer.paint(Stream::Out, Style::Dim, "|")));
    }
}
