//! Reads the lines of `opencode run --format json`, and what the witness tells beside them.

use std::collections::{HashMap, HashSet};

use proctor_domain::Timestamp;
use proctor_domain::session::Spending;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::ending::{Totals, stop};
use super::line::{DelegateLine, ErrorLine, ExitLine, Head, MessageLine, Part, PartLine, RetryLine, ToolState};
use crate::agent::{AgentEvent, Finish, Opening, Reader, Stop};

/// The model of answers of which nobody said whose they are.
const NAMELESS: &str = "unknown";

/// Reads one session.
pub(super) struct OpenCodeReader {
    /// The conversation that it was to go on with.
    resume: Option<String>,
    /// The model that was asked for.
    model: Option<String>,
    has_started: bool,
    /// The answer that the last turn was.
    turn: String,
    /// What is known of answers before they come.
    answers: HashMap<String, Answer>,
    /// Calls that were told when they began: the program itself tells them when they are over.
    calls: HashSet<String>,
    /// The answer that asked for the last tool.
    calling: String,
    totals: Totals,
}

/// What the witness tells about an answer.
struct Answer {
    model: String,
    is_summary: bool,
}

impl OpenCodeReader {
    pub(super) fn new(opening: &Opening) -> Self {
        Self {
            resume: opening.resume.clone(),
            model: opening.model.clone(),
            has_started: false,
            turn: String::new(),
            answers: HashMap::new(),
            calls: HashSet::new(),
            calling: String::new(),
            totals: Totals::default(),
        }
    }
}

impl Reader for OpenCodeReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if let Some(event) = AgentEvent::at_sight(line) {
            return events.push(event);
        }
        let before = events.len();
        let Some(Head { kind }) = parsed(line) else { return events.push(AgentEvent::Garbage) };
        if self.read_kind(&kind, line, events).is_none() {
            events.truncate(before);
            // Whole, but not built as it was when this was written: that is something new, not something broken.
            let whole = parsed::<IgnoredAny>(line).is_some();
            events.push(if whole { AgentEvent::Unknown(kind.into_owned()) } else { AgentEvent::Garbage });
        }
    }
}

impl OpenCodeReader {
    /// `None` when the line is not what its kind promises, or its kind is not known.
    fn read_kind(&mut self, kind: &str, line: &[u8], events: &mut Vec<AgentEvent>) -> Option<()> {
        match kind {
            "step_start" => self.step(&parsed(line)?, events),
            "text" => self.text(parsed(line)?, AgentEvent::Text, events),
            "reasoning" => self.text(parsed(line)?, AgentEvent::Thinking, events),
            "tool_use" => self.tool(&parsed(line)?, events),
            "step_finish" => self.finish_step(&parsed(line)?, events),
            "error" => self.error(&parsed(line)?, events),
            "proctor_message" => self.message(parsed(line)?, events),
            "proctor_call" => self.call(&parsed(line)?, events),
            "proctor_delegate_step" => self.delegate_step(&parsed(line)?, events),
            "proctor_retry" => events.push(retrying(&parsed(line)?)),
            "proctor_gave_up" => self.error(&parsed(line)?, events),
            "proctor_exit" => self.exit(&parsed(line)?, events),
            _ => return None,
        }
        Some(())
    }

    fn message(&mut self, line: MessageLine, events: &mut Vec<AgentEvent>) {
        if line.delegate {
            return events.push(AgentEvent::Working);
        }
        self.model = Some(line.model.clone());
        self.start(&line.session, events);
        self.answers.insert(line.message, Answer { model: line.model, is_summary: line.summary });
        events.push(AgentEvent::Nothing);
    }

    /// The first line of a session is what tells its id.
    fn start(&mut self, session: &str, events: &mut Vec<AgentEvent>) {
        if !self.has_started {
            self.has_started = true;
            events.push(AgentEvent::Started { conversation: session.to_owned(), model: self.model.clone() });
        }
    }

    /// Every part of an answer may be the first that comes of it. One that is asked for again has two beginnings.
    fn begin(&mut self, line: &PartLine<'_>, events: &mut Vec<AgentEvent>) {
        self.start(&line.session, events);
        if self.turn != line.part.message && !self.is_summary(&line.part) {
            self.turn.clone_from(&line.part.message);
            events.push(AgentEvent::Turn);
        }
    }

    fn step(&mut self, line: &PartLine<'_>, events: &mut Vec<AgentEvent>) {
        self.begin(line, events);
        events.push(AgentEvent::Working);
    }

    fn is_summary(&self, part: &Part<'_>) -> bool {
        self.answers.get(&part.message).is_some_and(|answer| answer.is_summary)
    }

    fn text(&mut self, line: PartLine<'_>, said: fn(String) -> AgentEvent, events: &mut Vec<AgentEvent>) {
        self.begin(&line, events);
        let is_summary = self.is_summary(&line.part);
        events.push(if is_summary { AgentEvent::Working } else { said(line.part.text.unwrap_or_default()) });
    }

    fn call(&mut self, line: &PartLine<'_>, events: &mut Vec<AgentEvent>) {
        self.begin(line, events);
        self.calling.clone_from(&line.part.message);
        let id = line.part.call.clone().unwrap_or_default();
        if self.calls.insert(id.clone()) {
            let input = line.part.state.as_ref().and_then(|state| state.input);
            let input = input.map_or_else(|| "{}".to_owned(), |input| input.get().to_owned());
            events.push(AgentEvent::ToolCall { id, name: line.part.tool.clone().unwrap_or_default(), input });
        }
    }

    fn tool(&mut self, line: &PartLine<'_>, events: &mut Vec<AgentEvent>) {
        self.call(line, events);
        let Some(state) = &line.part.state else { return };
        let text = state.output.as_ref().or(state.error.as_ref()).cloned().unwrap_or_default();
        events.push(AgentEvent::ToolResult { id: line.part.call.clone().unwrap_or_default(), failed: has_failed(state), text });
    }

    fn finish_step(&mut self, line: &PartLine<'_>, events: &mut Vec<AgentEvent>) {
        self.begin(line, events);
        let model = match self.answers.get(&line.part.message) {
            Some(answer) => answer.model.clone(),
            None => self.model.clone().unwrap_or_else(|| NAMELESS.to_owned()),
        };
        self.spend(&model, &line.part, events);
        // Some providers call an answer finished that asks for tools.
        let goes_on = self.calling == line.part.message || self.is_summary(&line.part);
        let reason = line.part.reason.as_deref().unwrap_or_default();
        if reason != "tool-calls" && !goes_on {
            events.push(finished(how_it_stopped(reason), self.totals.spent()));
        }
    }

    fn delegate_step(&mut self, line: &DelegateLine<'_>, events: &mut Vec<AgentEvent>) {
        let model = line.model.clone().unwrap_or_else(|| NAMELESS.to_owned());
        self.spend(&model, &line.part, events);
    }

    fn spend(&mut self, model: &str, step: &Part<'_>, events: &mut Vec<AgentEvent>) {
        self.totals.add(model, step);
        events.push(AgentEvent::Spent(self.totals.spent()));
    }

    fn error(&mut self, line: &ErrorLine, events: &mut Vec<AgentEvent>) {
        self.start(&line.session, events);
        events.push(finished(stop(&line.error, Timestamp(line.timestamp)), self.totals.spent()));
    }

    /// What went wrong before a conversation was there is told in words only.
    fn exit(&self, line: &ExitLine, events: &mut Vec<AgentEvent>) {
        if self.has_started || line.code == 0 {
            return events.push(AgentEvent::Nothing);
        }
        let what = match &self.resume {
            Some(conversation) => format!("went on with the conversation {conversation}"),
            None => "began a conversation".to_owned(),
        };
        let reason = format!("the engine ended with exit code {} before it {what}", line.code);
        events.push(finished(Stop::Failed(reason), Vec::new()));
    }
}

fn parsed<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

fn retrying(line: &RetryLine) -> AgentEvent {
    AgentEvent::Retrying { attempt: line.attempt, status: line.error.data.status_code, wait_ms: Some(line.wait_ms) }
}

fn has_failed(state: &ToolState<'_>) -> bool {
    let exit = state.metadata.as_ref().and_then(|metadata| metadata.exit.as_ref()?.as_i64());
    state.status == "error" || exit.is_some_and(|code| code != 0)
}

/// Why the model stopped, where it asks for no tool.
fn how_it_stopped(reason: &str) -> Stop {
    match reason {
        "length" => Stop::Failed("the last answer was cut off at the number of tokens that the model may say".to_owned()),
        "content-filter" => Stop::Refused("the provider cut off the last answer for what it holds".to_owned()),
        "error" => Stop::Failed("the last answer ended with an error".to_owned()),
        _ => Stop::Done,
    }
}

fn finished(stop: Stop, spent: Vec<Spending>) -> AgentEvent {
    AgentEvent::Finished(Box::new(Finish { stop, turns: None, spent, text: None, result: None }))
}
