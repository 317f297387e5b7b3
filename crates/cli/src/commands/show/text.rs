//! Runs and sessions as text, complete.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use proctor_domain::procedure::{CheckResult, Confinement, Outcome, Position, Records, Run, StepRecord, StepState, Verdict};
use proctor_domain::session::{AgentReport, Phase, SessionRecord, SessionReport, Usage};
use proctor_domain::{Cost, Oid, RecordId, RepoPath};
use proctor_orchestrator::procedure::Standing;

use super::View;
use super::claims::{ClaimDetails, Said, changed, claims, planted};
use super::document::end_detail;
use crate::printer::{Printer, Stream, Style, visible, visible_line};
use crate::progress::seconds;
use crate::run_document::{outcome, outcome_text, precheck_name, session_cost, step_state};
use crate::run_text::{approval_text, counted, local_time, mark, work_name};
use crate::spending::Tally;
use crate::standing::{state, ways_on, why};

/// No more lines of a claim are shown with its step; `show` of the session has all.
const CLAIMED_LINES: usize = 8;
/// No more paths are named beside a claim.
const NAMED_PATHS: usize = 5;

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
    let words = outcome_text(run, standing);
    title(printer, &started.procedure, (outcome(standing), words), loaded.run_id.as_str());
    let fields = Fields { printer, indent: "  " };
    fields.line("started", &local_time(run.started_at));
    match run.ended_at {
        Some(ended) => fields.line("ended", &format!("{}, after {}", local_time(ended), seconds(ended.millis_since(run.started_at)))),
        None => fields.line("last event", &local_time(loaded.newest_event)),
    }
    if let Some(why) = why(run, standing) {
        fields.line(if state(standing) == "parked" { "waits" } else { "stopped" }, &why);
        fields.list("go on", ways_on(&loaded.run_id, run, standing).iter().map(String::as_str));
    }
    if *standing != Standing::Running {
        fields.line("exit code", &standing.exit_code().code().to_string());
    }
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
    let is_gone = run.merged.is_some() && !absolute(&started.worktree).exists();
    fields.line("work tree", &format!("{}{}", started.worktree, if is_gone { ", removed after the merge" } else { "" }));
    fields.line("branch", &format!("{}{}", started.branch, if is_gone { ", removed after the merge" } else { "" }));
    print_isolation(&fields, run);
    fields.some("box", run.confined.as_ref().map(box_text).as_deref());
    let cost = Tally::of(run.steps.iter().flat_map(|step| &step.sessions));
    if cost.sessions > 0 {
        fields.line("cost", &format!("{}, {}", cost.cost_text(), counted(cost.sessions, "session")));
    }
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
    commits(&fields, "commits", &all_commits(run));
    let proposals = run.proposals.iter().map(|one| format!("{} {}, by step {}", one.record, one.reception.name(), one.step));
    fields.list("memory", proposals.collect::<Vec<_>>().iter().map(String::as_str));
    fields.some("not told", run.proposal_obstacle.as_deref());
    for step in &run.steps {
        print_step(printer, view, step);
    }
}

/// The commits of all steps, then those that hold nothing but the record.
fn all_commits(run: &Run) -> Vec<Oid> {
    let of_steps: Vec<Oid> = run.steps.iter().flat_map(|step| step.commits.iter().cloned()).collect();
    let of_record = run.commits.iter().filter(|commit| !of_steps.contains(commit)).cloned();
    of_steps.iter().cloned().chain(of_record).collect()
}

/// Where the branch of an isolated run is.
fn box_text(confined: &Confinement) -> String {
    if confined.kind == "none" {
        return "none: its agents worked outside of any box, with your permissions".to_owned();
    }
    let network = if confined.net.as_deref() == Some("none") { ", without the network" } else { "" };
    let open = if confined.open.is_empty() { String::new() } else { format!("; it leaves open: {}", confined.open.join(", ")) };
    format!("{}{network}{open}", confined.kind)
}

fn print_isolation(fields: &Fields<'_>, run: &Run) {
    let Some(isolated) = &run.started.isolated else { return };
    fields.line("made for", &format!("{} in {}", isolated.into, isolated.origin));
    match (&run.merged, run.position == Position::Ended(Outcome::Skipped)) {
        (Some(commit), _) => fields.line("merged", &format!("{} was at {} then", isolated.into, commit.short())),
        (None, true) => {}
        (None, false) => fields.line("merged", "not yet"),
    }
}

fn title(printer: &Printer, what: &str, (word, words): (&str, &str), id: &str) {
    let (sign, style) = mark(word);
    let title = format!("{sign} {}: {words}", visible_line(what));
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
    if step.attempts_made() > 0 {
        fields.line("attempts", &step.attempts_made().to_string());
    }
    fields.some("precheck", step.precheck.as_ref().map(precheck_name));
    fields.some("validate", step.validate.map(CheckResult::name));
    if let Some(reason) = step.unjudged {
        fields.line("unjudged", &format!("its review {reason}"));
    }
    fields.some("answer", step.approval.as_ref().map(approval_text).as_deref());
    for told in &step.answers {
        fields.line("answer", &format!("{}: {}", local_time(told.at), told.answer));
    }
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
        print_session_line(printer, view, step, session);
    }
    print_claims(printer, view, step);
}

/// What its agents say beside what was seen. Nothing was decided on the former.
fn print_claims(printer: &Printer, view: &View<'_>, step: &StepRecord) {
    let claims = claims(step);
    for ClaimDetails { by, kind, text, .. } in &claims {
        printer.line(&match kind {
            Said::Note => format!("    note of {by}:"),
            Said::Learned => format!("    {by} says that it learnt:"),
            Said::Question => format!("    {by} asks:"),
            Said::Blocked => format!("    {by} says that it is blocked:"),
            Said::LastWords => format!("    claim of {by}, which nobody checked:"),
        });
        quoted(printer, text, CLAIMED_LINES);
    }
    if !claims.is_empty() {
        let changed = changed(view, step);
        let mut names: Vec<String> = changed.iter().take(NAMED_PATHS).map(ToString::to_string).collect();
        names.extend((changed.len() > NAMED_PATHS).then(|| "…".to_owned()));
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let paths = format!("{}{names}", counted(changed.len(), "changed path"));
        let checks = step.validate.map_or("none", CheckResult::name);
        let seen = format!("{paths}, {}, checks: {checks}", counted(step.commits.len(), "commit"));
        printer.line(&format!("    seen by Proctor: {}", visible_line(&seen)));
    }
}

/// Text of others, indented so that it can't pass for ours.
fn quoted(printer: &Printer, text: &str, most: usize) {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    for line in lines.iter().take(most) {
        printer.line(&format!("    {} {}", printer.paint(Stream::Out, Style::Dim, "|"), visible_line(line)));
    }
    if lines.len() > most {
        printer.line(&format!("    {} … {}", printer.paint(Stream::Out, Style::Dim, "|"), counted(lines.len() - most, "more line")));
    }
}

fn print_session_line(printer: &Printer, view: &View<'_>, step: &StepRecord, session: &SessionRecord) {
    let work = work_name(session.phase, session.work);
    let mut text = format!("    {} {work}, attempt {}: {}", session.id, session.attempt, view.session_end(session));
    if let Some(report) = &session.report {
        text.push_str(&ending(report));
        text.push_str(&format!(" in {}", seconds(report.duration_ms)));
    }
    if session.work.needs_engine() {
        text.push_str(&spent(session));
    }
    printer.line(&text);
    let fields = Fields { printer, indent: "      " };
    fields.some("verdict", verdict_of(step, session).as_deref());
    print_known(&fields, session);
    if let Some(report) = &session.report {
        print_facts(&fields, report);
    }
    print_orphans_of_lost(&fields, session);
    fields.list("planted", planted(view, session).iter().map(String::as_str));
}

/// The records of memory that the session was shown.
fn print_known(fields: &Fields<'_>, session: &SessionRecord) {
    let known: Vec<&str> = session.known.iter().map(RecordId::as_str).collect();
    fields.some("was shown", (!known.is_empty()).then(|| known.join(", ")).as_deref());
}

/// What the judge of this session said: `fail: it is thin`.
fn verdict_of(step: &StepRecord, session: &SessionRecord) -> Option<String> {
    let (_, Verdict { passed, reasoning }) = step.verdicts.iter().find(|(by, _)| *by == session.id)?;
    Some(format!("{}: {}", if *passed { "pass" } else { "fail" }, reasoning.trim()))
}

fn print_orphans_of_lost(fields: &Fields<'_>, session: &SessionRecord) {
    if session.orphans_of_lost > 0 {
        fields.line("orphans", &format!("{} ended after their host had died", session.orphans_of_lost));
    }
}

/// `, 3 turns, 0.25 USD, engine claude, model strong`.
fn spent(session: &SessionRecord) -> String {
    let cost = match session_cost(session) {
        cost @ Cost::Known(_) => cost.to_string(),
        Cost::Unknown => "unknown cost".to_owned(),
    };
    let Some(agent) = session.report.as_ref().and_then(|report| report.agent.as_ref()) else { return format!(", {cost}") };
    let model = agent.model.as_ref().map(|model| format!(", model {}", visible_line(model))).unwrap_or_default();
    format!(", {}, {cost}, engine {}{model}", counted(agent.turns as usize, "turn"), agent.engine)
}

/// The exit codes of all shells, in order.
fn ending(report: &SessionReport) -> String {
    let detail = end_detail(&report.end, local_time).map(|detail| format!(" ({})", visible_line(&detail))).unwrap_or_default();
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
    fields.line("step", &format!("{}, {}, attempt {}", step.plan.id, work_name(session.phase, session.work), session.attempt));
    if let Some(report) = &session.report {
        fields.some("end", end_detail(&report.end, local_time).as_deref());
        fields.line("took", &seconds(report.duration_ms));
        for (position, shell) in report.shells.iter().enumerate() {
            fields.line(&format!("shell {}", position + 1), &format!("exit {} in {}", shell.exit_code, seconds(shell.duration_ms)));
        }
        for (name, value) in report.outputs.iter().filter(|_| session.phase == Phase::Run) {
            fields.line("output", &format!("{name} = {value}"));
        }
        print_facts(&fields, report);
        if let Some(agent) = &report.agent {
            print_agent(&fields, agent);
        }
    } else {
        print_unreported(&fields, view, session);
    }
    fields.some("verdict", verdict_of(step, session).as_deref());
    print_known(&fields, session);
    fields.list("planted", planted(view, session).iter().map(String::as_str));
    fields.line("files", &view.archive.site.state.session(&session.id).display().to_string());
    for (position, text) in view.shells(&session.id).iter().enumerate() {
        block(printer, &format!("shell {}", position + 1), text);
    }
    if session.work.needs_engine() {
        print_words(printer, session);
        return;
    }
    if let Some(report) = &session.report {
        block(printer, "stdout", &report.stdout.text());
        block(printer, "stderr", &report.stderr.text());
    }
}

/// What is known of a session without a report: its host died, or is at work.
fn print_unreported(fields: &Fields<'_>, view: &View<'_>, session: &SessionRecord) {
    fields.line("began", &local_time(session.opened_at));
    if view.session_end(session) == "lost" {
        fields.line("end", "its host died without a report");
        fields.some("found so", session.ended_at.map(local_time).as_deref());
        print_orphans_of_lost(fields, session);
    }
    if let Some(agent) = view.archive.transcribed(&session.id).filter(|_| session.work.needs_engine()) {
        print_agent(fields, &agent);
    }
}

/// What is known of an agent's session.
fn print_agent(fields: &Fields<'_>, agent: &AgentReport) {
    fields.line("engine", agent.engine.as_str());
    fields.some("model", agent.model.as_deref());
    fields.some("conversation", agent.conversation.as_deref());
    fields.line("turns", &agent.turns.to_string());
    fields.line("cost", &agent.cost().to_string());
    for spending in &agent.spent {
        let Usage { input, output, cache_read, cache_write } = spending.usage;
        let tokens = format!("{input} in, {output} out, {cache_read} from the cache, {cache_write} into it");
        fields.line("tokens", &format!("{}: {tokens}", spending.model));
    }
    if !agent.responded {
        fields.line("answer", "the model gave none");
    }
    fields.some("error", agent.error.as_deref());
    if agent.unknown_lines > 0 {
        fields.line("unknown", &format!("{} of a kind that this version does not know", counted_lines(agent.unknown_lines)));
    }
}

fn counted_lines(lines: u64) -> String {
    counted(usize::try_from(lines).unwrap_or(usize::MAX), "line")
}

/// What the agent itself says, and what its engine wrote to standard error.
fn print_words(printer: &Printer, session: &SessionRecord) {
    let Some(report) = &session.report else { return };
    if let Some(agent) = &report.agent {
        agent.told.notes.iter().for_each(|note| block(printer, "note", note));
        let learned = agent.told.learned.as_ref().map(|learned| format!("{}\notherwise: {}", learned.route, learned.trap));
        block(printer, "learnt, as it says", learned.as_deref().unwrap_or_default());
        block(printer, "blocked, as it says", agent.told.blocked.as_deref().unwrap_or_default());
        block(printer, "question to a person", agent.told.question.as_deref().unwrap_or_default());
        block(printer, "claim, which nobody checked", agent.claim.as_deref().unwrap_or_default());
        block(printer, "result, as it was given", agent.result.as_deref().unwrap_or_default());
    }
    block(printer, "stderr", &report.stderr.text());
    printer.say(&format!("`proctor log {}` has the transcript", session.id));
}

fn absolute(path: &RepoPath) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path.as_bytes()))
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
