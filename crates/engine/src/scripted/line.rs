//! The lines that a scripted agent prints: one JSON object each.

use proctor_domain::session::{Spending, Usage};
use proctor_domain::{Cost, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ear::word;
use crate::agent::{AgentEvent, Finish, Opening, Reader, Stop};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum Line {
    Started { conversation: String, model: Option<String> },
    Text { text: String },
    Thinking { text: String },
    ToolCall { id: String, name: String, input: Value },
    ToolResult { id: String, failed: bool, text: String },
    Turn { usage: Usage, cost: Cost },
    Retrying { attempt: u32, status: Option<u16>, wait_ms: Option<u64> },
    Limit { until: Option<Timestamp>, reached: bool },
    Heartbeat,
    Result(Box<Closing>),
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Closing {
    pub(super) stop: StopWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<u32>,
    #[serde(default)]
    pub(super) spent: Vec<Spending>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
}

/// How a session stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StopWord {
    Done,
    TurnLimit,
    Budget,
    RateLimited,
    UsageLimit,
    Refused,
    NoResult,
    Interrupted,
    Failed,
}

/// What every line has that is one of ours, now or in a later version.
#[derive(Debug, Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

/// The kinds that this version knows; of these, a line that can't be read is garbage.
const KINDS: [&str; 10] = ["started", "text", "thinking", "tool-call", "tool-result", "turn", "retrying", "limit", "heartbeat", "result"];

impl Closing {
    /// How the session stopped, in the words of the seam.
    pub(super) fn stop(&self) -> Stop {
        let reason = || self.reason.clone().unwrap_or_default();
        match self.stop {
            StopWord::Done => Stop::Done,
            StopWord::TurnLimit => Stop::TurnLimit,
            StopWord::Budget => Stop::Budget,
            StopWord::RateLimited => Stop::RateLimited { until: self.until },
            StopWord::UsageLimit => Stop::UsageLimit { until: self.until },
            StopWord::Refused => Stop::Refused(reason()),
            StopWord::NoResult => Stop::NoResult(reason()),
            StopWord::Interrupted => Stop::Interrupted,
            StopWord::Failed => Stop::Failed(reason()),
        }
    }

    /// Of a session that stopped so; what it spent and said is added by the caller.
    pub(super) fn of(stop: Stop) -> Self {
        let (stop, reason, until) = match stop {
            Stop::Done => (StopWord::Done, None, None),
            Stop::TurnLimit => (StopWord::TurnLimit, None, None),
            Stop::Budget => (StopWord::Budget, None, None),
            Stop::RateLimited { until } => (StopWord::RateLimited, None, until),
            Stop::UsageLimit { until } => (StopWord::UsageLimit, None, until),
            Stop::Refused(reason) => (StopWord::Refused, Some(reason), None),
            Stop::NoResult(reason) => (StopWord::NoResult, Some(reason), None),
            Stop::Interrupted => (StopWord::Interrupted, None, None),
            Stop::Failed(reason) => (StopWord::Failed, Some(reason), None),
        };
        Self { stop, reason, until, turns: None, spent: Vec::new(), text: None, result: None }
    }
}

/// Reads the lines of one session, and says what is said.
#[derive(Default)]
pub(super) struct ScriptedReader {
    words: Vec<u8>,
}

impl ScriptedReader {
    /// Of a session that begins so; of one that is over, only lines are left, and nothing is said.
    pub(super) fn new(opening: &Opening) -> Self {
        let is_over = opening.directory.as_os_str().is_empty();
        Self { words: if is_over { Vec::new() } else { word(&opening.prompt) } }
    }
}

impl Reader for ScriptedReader {
    fn take_words(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.words)
    }

    fn say(&mut self, text: &str) -> bool {
        self.words.extend_from_slice(&word(text));
        true
    }

    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if line.trim_ascii().is_empty() {
            return;
        }
        events.push(match serde_json::from_slice(line) {
            Ok(line) => event(line),
            Err(_) => match serde_json::from_slice::<Kind>(line) {
                Ok(Kind { kind }) if !KINDS.contains(&kind.as_str()) => AgentEvent::Unknown(kind),
                Ok(_) | Err(_) => AgentEvent::Garbage,
            },
        });
    }
}

fn event(line: Line) -> AgentEvent {
    match line {
        Line::Started { conversation, model } => AgentEvent::Started { conversation, model },
        Line::Text { text } => AgentEvent::Text(text),
        Line::Thinking { text } => AgentEvent::Thinking(text),
        Line::ToolCall { id, name, input } => AgentEvent::ToolCall { id, name, input: input.to_string() },
        Line::ToolResult { id, failed, text } => AgentEvent::ToolResult { id, failed, text },
        Line::Turn { .. } => AgentEvent::Turn,
        Line::Retrying { attempt, status, wait_ms } => AgentEvent::Retrying { attempt, status, wait_ms },
        Line::Limit { until, reached } => AgentEvent::Limit { until, reached },
        Line::Heartbeat => AgentEvent::Nothing,
        Line::Result(closing) => {
            let stop = closing.stop();
            let Closing { turns, spent, text, result, .. } = *closing;
            AgentEvent::Finished(Box::new(Finish { stop, turns, spent, text, result: result.map(|result| result.to_string()) }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        ScriptedReader::default().read(line.as_bytes(), &mut events);
        events
    }

    #[test]
    fn what_no_agent_prints_is_garbage_and_what_a_later_one_prints_is_unknown() {
        for line in ["{\"type\":\"te", "hello", "[]", "{}", "{\"type\":5}", "{\"type\":\"text\"}", "\u{0}"] {
            assert_eq!(read(line), [AgentEvent::Garbage], "{line}");
        }
        assert_eq!(read(r#"{"type":"novelty","text":"x"}"#), [AgentEvent::Unknown("novelty".to_owned())]);
        assert_eq!(read("  "), []);
    }

    #[test]
    fn every_kind_of_line_reads_as_what_it_says() {
        let cases = [
            (r#"{"type":"started","conversation":"c","model":null}"#, AgentEvent::Started { conversation: "c".to_owned(), model: None }),
            (r#"{"type":"text","text":"a","later":1}"#, AgentEvent::Text("a".to_owned())),
            (r#"{"type":"thinking","text":"a"}"#, AgentEvent::Thinking("a".to_owned())),
            (
                r#"{"type":"tool-call","id":"1","name":"run","input":{"command":"ls"}}"#,
                AgentEvent::ToolCall { id: "1".to_owned(), name: "run".to_owned(), input: r#"{"command":"ls"}"#.to_owned() },
            ),
            (
                r#"{"type":"tool-result","id":"1","failed":true,"text":"no"}"#,
                AgentEvent::ToolResult { id: "1".to_owned(), failed: true, text: "no".to_owned() },
            ),
            (r#"{"type":"turn","usage":{"input":1,"output":2,"cache_read":0,"cache_write":0},"cost":{"known":5}}"#, AgentEvent::Turn),
            (
                r#"{"type":"retrying","attempt":1,"status":529,"wait_ms":10}"#,
                AgentEvent::Retrying { attempt: 1, status: Some(529), wait_ms: Some(10) },
            ),
            (r#"{"type":"limit","until":7,"reached":false}"#, AgentEvent::Limit { until: Some(Timestamp(7)), reached: false }),
            (r#"{"type":"heartbeat"}"#, AgentEvent::Nothing),
        ];
        for (line, event) in cases {
            assert_eq!(read(line), [event], "{line}");
        }
    }

    #[test]
    fn a_known_kind_with_wrong_fields_is_garbage() {
        for kind in KINDS.into_iter().filter(|kind| *kind != "heartbeat") {
            assert_eq!(read(&format!(r#"{{"type":"{kind}","text":5}}"#)), [AgentEvent::Garbage], "{kind}");
        }
    }

    #[test]
    fn every_stop_reads_back_as_it_was_written() {
        let until = Some(Timestamp(5));
        let reason = || "why".to_owned();
        for stop in [
            Stop::Done,
            Stop::TurnLimit,
            Stop::Budget,
            Stop::RateLimited { until },
            Stop::UsageLimit { until: None },
            Stop::Refused(reason()),
            Stop::NoResult(reason()),
            Stop::Interrupted,
            Stop::Failed(reason()),
        ] {
            let line = serde_json::to_string(&Line::Result(Box::new(Closing::of(stop.clone())))).unwrap();

            let finish = Finish { stop, turns: None, spent: Vec::new(), text: None, result: None };
            assert_eq!(read(&line), [AgentEvent::Finished(Box::new(finish))], "{line}");
        }
    }
}
