//! What a person sees while a run goes on: a live line on a terminal, plain lines otherwise.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use proctor_domain::procedure::{CheckResult, Proposal, Reception, StepRecord, StepState};
use proctor_engine::agent::AgentEvent;
use proctor_orchestrator::procedure::{Conversation, GoingOn, Notice, Stop};

use crate::printer::{Printer, Stream, Style, Talk, visible_line};
use crate::run_text::{counted, cut_off_text, server_failed, work_name};

/// How often the live line shows that time passes.
const TICK: Duration = Duration::from_millis(200);
/// No more of an output line is shown.
const SHOWN: usize = 60;

/// Follows one run.
pub struct Progress<'a> {
    printer: &'a Printer,
    bar: Option<ProgressBar>,
    /// `[2/5] build`, the step that is at work.
    step: String,
    phase: &'static str,
}

impl<'a> Progress<'a> {
    /// A view that prints through `printer`.
    pub fn new(printer: &'a Printer) -> Self {
        let live = printer.is_terminal(Stream::Err) && printer.talk() == Talk::Normal;
        Self { printer, bar: live.then(spinner), step: String::new(), phase: "" }
    }

    /// Takes the live line away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Shows one thing that happened.
    pub fn tell(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Waiting { holder } => self.say(&format!("waiting: {} works in this working tree", visible_line(holder))),
            Notice::Started { run, procedure, steps, isolated } => {
                let place = match isolated {
                    Some(isolated) => format!("works in a worktree of its own, made for {}", visible_line(&isolated.into.to_string())),
                    None => "what changes here while a step runs counts as the step's".to_owned(),
                };
                self.say(&format!("{run}: {}, {}; {place}", visible_line(procedure), counted(*steps, "step")));
            }
            Notice::Resumed { run, procedure } => self.say(&format!("{run}: going on with {}", visible_line(procedure))),
            Notice::GoesOn { at, task, how } => {
                self.step = format!("[{}/{}] {}", at.number, at.of, at.step);
                self.show("", "");
                let who = task.map(|task| work_name(task.phase, task.work));
                self.say(&format!("{}, attempt {}: {}", self.step, at.attempt, going_on(*how, who.as_deref())));
            }
            Notice::EndedOrphans { count } => {
                self.say(&format!("  {} that its dead host had left: ended", counted(*count as usize, "process")));
            }
            Notice::LookingForCommit { patience } => {
                self.say(&format!("looking for the commit that was being made; its git and hooks have {} s to end", patience.as_secs()));
            }
            Notice::StepBegan { at } => {
                let again = if at.attempt > 1 { format!(", attempt {}", at.attempt) } else { String::new() };
                self.step = format!("[{}/{}] {}", at.number, at.of, at.step);
                self.show("", "");
                self.say_plain(&format!("{}{again}", self.step));
            }
            Notice::TaskBegan(task) => {
                self.phase = if task.work.needs_engine() { task.work.name() } else { task.phase.name() };
                self.show(self.phase, "");
                if task.work.needs_engine() {
                    self.say_plain(&format!("  {}", self.phase));
                }
            }
            Notice::Confined { kind: "none", .. } => self.say(
                "warning: agents work outside of any box, with your permissions: what you may read and write, they may; `proctor doctor` says why",
            ),
            Notice::Confined { kind, net: "none" } => self.say(&format!("agents are held in a {kind} box, without the network")),
            Notice::Confined { kind, .. } => self.say(&format!("agents are held in a {kind} box")),
            Notice::NotKnown { reason } => {
                self.say(&format!("warning: memory can't be asked, and agents start without it: {}", visible_line(reason)));
            }
            Notice::Proposed { records, obstacle } => self.tell_proposed(records, *obstacle),
            Notice::Agent(event) => self.show_agent(event),
            Notice::Merged { commit } => self.say(&format!("merged; the branch it came from is at {}", commit.short())),
            Notice::Output(bytes) => self.show_output(bytes),
            Notice::StepSkipped { step, reason } => {
                self.say(&format!("{} {step}: skipped ({})", self.paint(Style::Dim, "○"), reason.name()));
            }
            Notice::StepDecided(record) => self.say(&self.decided(record)),
            Notice::Retrying { failure, pause } => self.say(&format!("  {}; trying again in {pause}", visible_line(&failure.to_string()))),
            Notice::Restored { salvage, paths } => self.say(&restored(*salvage, paths.len())),
            Notice::Committed { .. } => {}
            Notice::Heeded(stop) => self.say(heeded(*stop)),
        }
    }

    /// What memory made of what the run taught.
    fn tell_proposed(&self, records: &[Proposal], obstacle: Option<&str>) {
        for (reception, ways_on) in [
            (Reception::Proposed, "`proctor memory list --proposed`"),
            (Reception::Corroborated, "nobody approved them; `proctor memory show` says who met the same, `reject` takes them back"),
        ] {
            let ids: Vec<&str> = records.iter().filter(|one| one.reception == reception).map(|one| one.record.as_str()).collect();
            if !ids.is_empty() {
                self.say(&format!("memory: {} {} ({}); {ways_on}", counted(ids.len(), "record"), reception.name(), ids.join(", ")));
            }
        }
        if let Some(obstacle) = obstacle {
            self.say(&format!("warning: memory could not be told what this run taught: {}", visible_line(obstacle)));
        }
    }

    fn decided(&self, record: &StepRecord) -> String {
        let id = &record.plan.id;
        let worked = record.ended_at.and_then(|ended| record.worked_millis(ended));
        let time = worked.map(|millis| format!(" in {}", seconds(millis))).unwrap_or_default();
        match &record.state {
            StepState::Skipped(reason) => format!("{} {id}: skipped ({})", self.paint(Style::Dim, "○"), reason.name()),
            StepState::Failed(failure) => {
                format!("{} {id}: failed{time}: {}", self.paint(Style::Bad, "✗"), visible_line(&failure.to_string()))
            }
            StepState::Completed | StepState::Pending | StepState::Running | StepState::Failing(_) | StepState::Skipping => {
                let commit = record.commits.last().map(|commit| format!(", commit {}", commit.short())).unwrap_or_default();
                let warned = match (&record.warning, record.validate) {
                    (Some(warning), Some(CheckResult::Warn)) => format!(" (warning: {})", visible_line(&warning.to_string())),
                    _ => String::new(),
                };
                let cut_off = cut_off_text(record).map(|ends| format!(" ({ends})")).unwrap_or_default();
                format!("{} {id}: completed{time}{commit}{warned}{cut_off}", self.paint(Style::Good, "✓"))
            }
        }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        self.printer.paint(Stream::Err, style, text).into_owned()
    }

    /// Shows the last whole line of new output on the live line.
    fn show_output(&self, bytes: &[u8]) {
        if self.bar.is_none() {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
            let shown: String = visible_line(line.trim()).chars().take(SHOWN).collect();
            self.show(self.phase, &shown);
        }
    }

    /// Shows what an agent does on the live line.
    fn show_agent(&self, event: &AgentEvent) {
        if let AgentEvent::ServerFailed { name, reason } = event {
            return self.say(&format!("  warning: {}", server_failed(name, reason.as_deref())));
        }
        let (AgentEvent::Text(text) | AgentEvent::ToolCall { input: text, .. }) = event else { return };
        let tool = if let AgentEvent::ToolCall { name, .. } = event { format!("{name} ") } else { String::new() };
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let shown: String = visible_line(&format!("{tool}{}", line.trim())).chars().take(SHOWN).collect();
        self.show(self.phase, &shown);
    }

    fn show(&self, phase: &str, detail: &str) {
        if let Some(bar) = &self.bar {
            let parts: Vec<&str> = [self.step.as_str(), phase, detail].into_iter().filter(|part| !part.is_empty()).collect();
            bar.set_message(parts.join(" · "));
        }
    }

    /// A line that the live line makes unnecessary.
    fn say_plain(&self, line: &str) {
        if self.bar.is_none() {
            self.printer.say(line);
        }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.printer.say(line)),
            None => self.printer.say(line),
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed:.dim}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// Why a step goes on, and with what. `who` is the session that it is about, or that comes next.
fn going_on(how: GoingOn, who: Option<&str>) -> String {
    let it = who.unwrap_or("it");
    let next = |conversation: Conversation| match (conversation, who) {
        (Conversation::GoesOn, _) => "goes on with its conversation",
        (Conversation::Fresh, Some("judge")) => "a fresh one is asked",
        (Conversation::Fresh, _) => "a fresh one is told so and goes on",
    };
    match how {
        GoingOn::Follows => format!("{it} is still at work; following it"),
        GoingOn::TakesReport => format!("{it} has ended meanwhile; going on with what it came to"),
        GoingOn::HostDied { conversation } => format!("the host of {it} died; {}", next(conversation)),
        GoingOn::Killed { signal, conversation } => {
            format!("the program of {it} was killed from outside (signal {signal}); {}", next(conversation))
        }
        GoingOn::Interrupted { conversation } => format!("{it} was interrupted; {}", next(conversation)),
        GoingOn::ForgotConversation => format!("the conversation of {it} is not known any more; a fresh one goes on"),
        GoingOn::AfterLimit => format!("after a limit, going on with {it}"),
        GoingOn::Answered => who.map_or_else(|| "answered; going on".to_owned(), |who| format!("answered; going on with {who}")),
        GoingOn::JudgesAgain => "its judge gave no answer and is asked again; the work is as it was".to_owned(),
        GoingOn::Continues => who.map_or_else(|| "going on".to_owned(), |who| format!("going on with {who}")),
    }
}

fn restored(salvage: Option<&str>, paths: usize) -> String {
    match salvage {
        Some(reference) => {
            format!("  its attempt came to no end: {} saved under {reference} and put back; trying again", counted(paths, "changed path"))
        }
        None => "  its attempt came to no end and left nothing; trying again".to_owned(),
    }
}

fn heeded(stop: Stop) -> &'static str {
    match stop {
        Stop::No => "",
        Stop::AfterStep => "stopping after this step; Ctrl-C again ends it now",
        Stop::Now => "ending the session; the run can be resumed",
        Stop::Leave => "leaving; `proctor procedure resume` goes on with the run",
    }
}

/// A time for people.
pub fn seconds(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}
