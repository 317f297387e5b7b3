//! What an agent's engine printed, as a text that can be read.

use proctor_domain::procedure::RunEngine;
use proctor_domain::session::{SessionRecord, Work};
use proctor_domain::{Cost, Timestamp};
use proctor_engine::agent::{AgentEvent, EngineKind, Finish, Opening, PlanEntry, PlanState, Reader, Stop, engine, read_said};

use crate::printer::{Printer, Stream, Style, visible, visible_line};
use crate::progress::seconds;
use crate::run_text::{counted, local_time, server_failed, short_line};

/// How many lines of a tool's answer are shown.
const SHOWN_LINES: usize = 4;
/// How much of a line is shown.
const SHOWN: usize = 160;

/// The lines of one transcript, put together from pieces and read.
pub(super) struct Transcript {
    /// Known from the session's report, or found at the first line that only one engine prints.
    reader: Option<Box<dyn Reader>>,
    /// Whether it has a name of the user's own, so that lines which no engine prints are those of any program: its answer.
    is_own: bool,
    line: Vec<u8>,
}

impl Transcript {
    /// That of a session, which has no report while it runs; `chosen` is what its run was started with.
    pub(super) fn of(record: Option<&SessionRecord>, chosen: Option<&RunEngine>) -> Self {
        let reported = record.and_then(|record| Some(&record.report.as_ref()?.agent.as_ref()?.engine));
        let judges = record.is_some_and(|record| matches!(record.work, Work::Judge(_)));
        let name = reported.or_else(|| chosen.map(|chosen| chosen.judge.as_ref().filter(|_| judges).unwrap_or(&chosen.name)));
        let is_own = name.is_some_and(|name| EngineKind::built_in(name).is_none());
        Self { reader: reported.and_then(EngineKind::built_in).map(reader), is_own, line: Vec::new() }
    }

    /// What the next piece says.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.read(&mut events);
            }
        }
        events
    }

    /// What a last line without its end says.
    pub(super) fn finish(&mut self) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        self.read(&mut events);
        events
    }

    fn read(&mut self, events: &mut Vec<AgentEvent>) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return;
        }
        if let Some(reader) = &mut self.reader {
            match read_said(line) {
                Some(text) => events.push(AgentEvent::Said(text)),
                None => reader.read(line, events),
            }
            return;
        }
        let strange = |event: &AgentEvent| matches!(event, AgentEvent::Unknown(_) | AgentEvent::Garbage);
        let mut read = Vec::new();
        // Any line could be one of a program of the user's own, so that is not found out by its lines.
        for kind in EngineKind::ALL.into_iter().filter(|kind| *kind != EngineKind::Command) {
            let mut reader = reader(kind);
            read.clear();
            reader.read(line, &mut read);
            if !read.is_empty() && !read.iter().any(strange) {
                self.reader = Some(reader);
                break;
            }
        }
        if self.reader.is_none() && self.is_own {
            read.clear();
            reader(EngineKind::Command).read(line, &mut read);
        }
        events.append(&mut read);
    }
}

fn reader(kind: EngineKind) -> Box<dyn Reader> {
    engine(kind).reader(&Opening::default())
}

/// Writes events for people. Everything that is not ours is harmless on a screen and can't pass for a line of ours: what
/// goes on over several lines is indented.
pub(super) struct Writer<'a> {
    pub(super) printer: &'a Printer,
    /// Who speaks: `agent`, `judge`, `repair`.
    pub(super) speaker: &'static str,
}

impl Writer<'_> {
    /// The text of one event; `None` for what nobody wants to read.
    pub(super) fn text(&self, event: &AgentEvent) -> Option<String> {
        Some(match event {
            AgentEvent::Started { conversation, model } => {
                let model = model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
                self.paint(Style::Dim, &visible_line(&format!("conversation {conversation}{model}")))
            }
            AgentEvent::Said(text) => format!("{} {}", self.paint(Style::Strong, "person:"), indented(text)),
            AgentEvent::Text(text) => format!("{} {}", self.paint(Style::Strong, &format!("{}:", self.speaker)), indented(text)),
            AgentEvent::Thinking(text) => self.paint(Style::Dim, &format!("thinks: {}", indented(text))),
            AgentEvent::ToolCall { name, input, .. } => {
                format!("  → {} {}", visible_line(name), self.paint(Style::Dim, &short_line(input, SHOWN)))
            }
            AgentEvent::ToolResult { failed: false, text, .. } => self.paint(Style::Dim, &format!("  ← {}", shortened(text))),
            AgentEvent::ToolResult { failed: true, text, .. } => {
                format!("  {} {}", self.paint(Style::Bad, "✗ failed:"), shortened(text))
            }
            AgentEvent::Plan(entries) => self.paint(Style::Dim, &plan(entries)),
            AgentEvent::Retrying { attempt, status, wait_ms } => self.paint(Style::Doubtful, &retry(*attempt, *status, *wait_ms)),
            AgentEvent::Limit { until, reached: true } => self.paint(Style::Doubtful, &format!("  ! limit reached{}", until_text(*until))),
            AgentEvent::ServerFailed { name, reason } => {
                self.paint(Style::Doubtful, &format!("  ! {}", server_failed(name, reason.as_deref())))
            }
            AgentEvent::Finished(finish) => format!("{} {}", self.paint(Style::Strong, "end:"), finish_text(finish)),
            AgentEvent::Unknown(kind) => {
                self.paint(Style::Dim, &format!("  (a line of a kind that is not known here: {})", short_line(kind, SHOWN)))
            }
            AgentEvent::Garbage => self.paint(Style::Dim, "  (a line that the engine's format has no place for)"),
            AgentEvent::Turn | AgentEvent::Spent(_) | AgentEvent::Working | AgentEvent::Nothing => return None,
            AgentEvent::Limit { reached: false, .. } => return None,
        })
    }

    /// How the session ended, as its host saw it; that is a fact, while the engine's own end is a claim.
    pub(super) fn closing(&self, record: &SessionRecord) -> String {
        let Some(report) = &record.report else {
            return self.paint(Style::Doubtful, "-- its host died without a report");
        };
        let mut text = format!("-- {} after {}", report.end.name(), seconds(report.duration_ms));
        if let Some(agent) = &report.agent {
            text.push_str(&format!(": {}, {}", counted(agent.turns as usize, "turn"), cost_text(agent.cost())));
        }
        self.paint(Style::Strong, &text)
    }

    fn paint(&self, style: Style, text: &str) -> String {
        self.printer.paint(Stream::Out, style, text).into_owned()
    }
}

fn cost_text(cost: Cost) -> String {
    match cost {
        Cost::Known(_) => cost.to_string(),
        Cost::Unknown => "unknown cost".to_owned(),
    }
}

fn indented(text: &str) -> String {
    visible(text.trim_end()).replace('\n', "\n  ")
}

/// The first lines of a text, each cut, and how many there are beyond them.
fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    if lines.is_empty() {
        return "(nothing)".to_owned();
    }
    let mut shown: Vec<String> = lines.iter().take(SHOWN_LINES).map(|line| short_line(line, SHOWN)).collect();
    if lines.len() > SHOWN_LINES {
        shown.push(format!("… {}", counted(lines.len() - SHOWN_LINES, "more line")));
    }
    shown.join("\n    ")
}

fn plan(entries: &[PlanEntry]) -> String {
    let mark = |state| match state {
        PlanState::Pending => ' ',
        PlanState::InProgress => '>',
        PlanState::Completed => 'x',
    };
    let lines = entries.iter().map(|entry| format!("\n    [{}] {}", mark(entry.state), short_line(&entry.text, SHOWN)));
    format!("  plan:{}", lines.collect::<String>())
}

fn retry(attempt: u32, status: Option<u16>, wait_ms: Option<u64>) -> String {
    let answer = status.map_or_else(|| "did not answer".to_owned(), |status| format!("answered {status}"));
    let wait = wait_ms.map(|wait| format!(" in {}", seconds(wait))).unwrap_or_default();
    format!("  ! the provider {answer}; attempt {attempt}{wait}")
}

fn until_text(until: Option<Timestamp>) -> String {
    until.map(|until| format!(" until {}", local_time(until))).unwrap_or_default()
}

fn finish_text(finish: &Finish) -> String {
    let how = match &finish.stop {
        Stop::Done => "done".to_owned(),
        Stop::TurnLimit => "out of turns".to_owned(),
        Stop::Budget => "out of money".to_owned(),
        Stop::RateLimited { until } => format!("rate limited{}", until_text(*until)),
        Stop::UsageLimit { until } => format!("at the account's limit{}", until_text(*until)),
        Stop::Refused(reason) => format!("refused: {}", short_line(reason, SHOWN)),
        Stop::NoResult(reason) => format!("no result: {}", short_line(reason, SHOWN)),
        Stop::Interrupted => "interrupted".to_owned(),
        Stop::Failed(reason) => format!("failed: {}", short_line(reason, SHOWN)),
    };
    let turns = finish.turns.map(|turns| format!(", {}", counted(turns as usize, "turn"))).unwrap_or_default();
    let cost: Option<Cost> = (!finish.spent.is_empty()).then(|| finish.spent.iter().map(|spending| spending.cost).sum());
    let cost = cost.map(|cost| format!(", {}", cost_text(cost))).unwrap_or_default();
    let result = finish.result.as_ref().map(|result| format!("\n  result: {}", short_line(result, 4 * SHOWN))).unwrap_or_default();
    format!("{how}{turns}{cost}{result}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str =
        "{\"type\":\"started\",\"conversation\":\"scripted-1\",\"model\":\"strong\"}\n{\"type\":\"text\",\"text\":\"a\\nb\"}\nnoise\n";

    #[test]
    fn a_transcript_reads_the_same_wherever_it_is_cut() {
        let whole = Transcript::of(None, None).feed(LINES.as_bytes());
        assert_eq!(whole[1..], [AgentEvent::Text("a\nb".to_owned()), AgentEvent::Garbage]);

        for cut in 0..=LINES.len() {
            let mut transcript = Transcript::of(None, None);
            let mut events = transcript.feed(&LINES.as_bytes()[..cut]);
            events.extend(transcript.feed(&LINES.as_bytes()[cut..]));
            events.extend(transcript.finish());

            assert_eq!(events, whole, "{cut}");
        }
    }

    #[test]
    fn all_that_a_program_of_the_users_own_prints_is_its_answer() {
        let chosen = |name: &str| RunEngine { name: name.parse().unwrap(), script: None, judge: None };

        let own = Transcript::of(None, Some(&chosen("mine"))).feed(b"It is\ndone.\n");
        let built_in = Transcript::of(None, Some(&chosen("claude"))).feed(b"noise\n");

        let text = |text: &str| AgentEvent::Text(text.to_owned());
        assert_eq!(own, [AgentEvent::Turn, text("It is"), AgentEvent::Turn, text("done.")]);
        assert_eq!(built_in, [AgentEvent::Garbage]);
    }

    #[test]
    fn a_provider_that_answered_is_not_said_to_be_silent() {
        assert_eq!(retry(2, Some(401), None), "  ! the provider answered 401; attempt 2");
        assert_eq!(retry(2, None, Some(500)), format!("  ! the provider did not answer; attempt 2 in {}", seconds(500)));
    }

    #[test]
    fn half_a_line_is_read_at_the_end() {
        let mut transcript = Transcript::of(None, None);
        let _ = transcript.feed(LINES.as_bytes());

        assert_eq!(transcript.feed(b"{\"type\":\"te"), []);
        assert_eq!(transcript.finish(), [AgentEvent::Garbage]);
        assert_eq!(transcript.finish(), []);
    }
}
