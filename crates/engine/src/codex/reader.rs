//! Reads the lines of `codex exec --json`.

use jiff::tz::TimeZone;
use proctor_domain::session::{Spending, Usage};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::answer::{Answer, Part};
use super::ending::{attempt, status, stop};
use super::item;
use super::line::{Counted, Head, ItemHead, Line};
use crate::agent::{AgentEvent, Finish, Opening, Reader, Stop, list_cost};

/// What stands for the model where nobody has said which: Codex does not tell which one it took.
const UNNAMED: &str = "default";

/// Reads one session.
pub(super) struct CodexReader {
    opening: Opening,
    /// The clock on the wall of whoever runs Codex, which is the one that it tells times by.
    zone: TimeZone,
    answer: Answer,
    /// Calls whose beginning was told: one that fails at once is told at its end only.
    begun: Vec<String>,
    /// The agent's last words, in which a result is given.
    words: Option<String>,
}

impl CodexReader {
    pub(super) fn new(opening: &Opening, zone: TimeZone) -> Self {
        Self { opening: opening.clone(), zone, answer: Answer::default(), begun: Vec::new(), words: None }
    }
}

impl Reader for CodexReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if line.trim_ascii().is_empty() {
            return events.push(AgentEvent::Nothing);
        }
        if !line.trim_ascii_end().ends_with(b"}") {
            // Half a line, as a killed session leaves it, or one that was cut: that needs no parser.
            return events.push(AgentEvent::Garbage);
        }
        let before = events.len();
        if parsed::<Line<'_>>(line).and_then(|read| self.read_line(&read, events)).is_none() {
            events.truncate(before);
            events.push(strange(line));
        }
    }
}

impl CodexReader {
    /// `None` when the line is of an unknown kind, or not what its kind promises.
    fn read_line(&mut self, line: &Line<'_>, events: &mut Vec<AgentEvent>) -> Option<()> {
        match line.kind.as_ref() {
            "thread.started" => {
                let conversation = line.thread_id.clone()?;
                events.push(AgentEvent::Started { conversation, model: self.opening.model.clone() });
            }
            "turn.started" => {
                self.answer = Answer::default();
                events.push(AgentEvent::Nothing);
            }
            "turn.completed" => events.push(self.completed(line.usage?)),
            "turn.failed" => events.push(self.failed(&line.error.as_ref()?.message)),
            "error" => events.push(complained(line.message.as_ref()?)),
            "item.started" => self.item(line.item?.get(), Stage::Begun, events)?,
            "item.updated" => self.item(line.item?.get(), Stage::Changed, events)?,
            "item.completed" => self.item(line.item?.get(), Stage::Over, events)?,
            // A part of a plan, which comes whole later.
            "item.plan.delta" => events.push(AgentEvent::Working),
            // Nobody can answer here; the client goes on without.
            "request_user_input" => events.push(AgentEvent::Nothing),
            _ => return None,
        }
        Some(())
    }

    fn item(&mut self, item: &str, stage: Stage, events: &mut Vec<AgentEvent>) -> Option<()> {
        let head: ItemHead = serde_json::from_str(item).ok()?;
        match head.kind.as_str() {
            "agent_message" | "plan" if stage == Stage::Over => {
                let text = item::text(item)?;
                self.begins(Part::Words, events);
                self.words = Some(text.clone());
                events.push(AgentEvent::Text(text));
            }
            "reasoning" if stage == Stage::Over => {
                let text = item::text(item)?;
                self.begins(Part::Thought, events);
                events.push(AgentEvent::Thinking(text));
            }
            "agent_message" | "plan" | "reasoning" => events.push(AgentEvent::Working),
            // What it is to do is told again when it has changed, and at the end of the turn.
            "todo_list" => {
                if stage != Stage::Over {
                    self.begins(Part::Call, events);
                    self.answer.has_been_answered();
                }
                events.push(AgentEvent::Working);
            }
            // A warning: an unknown model, a setting that is not one.
            "error" => events.push(AgentEvent::Nothing),
            kind => self.call(kind, &head.id, item, stage, events)?,
        }
        Some(())
    }

    fn call(&mut self, kind: &str, id: &str, item: &str, stage: Stage, events: &mut Vec<AgentEvent>) -> Option<()> {
        let call = item::call(kind, item)?;
        let is_known = self.begun.iter().any(|begun| begun == id);
        if !is_known {
            self.begins(Part::Call, events);
            events.push(AgentEvent::ToolCall { id: id.to_owned(), name: call.name, input: call.input });
        }
        match stage {
            Stage::Begun | Stage::Changed if is_known => events.push(AgentEvent::Working),
            Stage::Begun | Stage::Changed => self.begun.push(id.to_owned()),
            Stage::Over => {
                self.begun.retain(|begun| begun != id);
                if call.is_answered_here {
                    self.answer.has_been_answered();
                }
                events.push(AgentEvent::ToolResult { id: id.to_owned(), failed: call.failed, text: call.output });
            }
        }
        Some(())
    }

    /// Notes what the model says or does; a first part of an answer is a turn.
    fn begins(&mut self, part: Part, events: &mut Vec<AgentEvent>) {
        if self.answer.begins_with(part) {
            events.push(AgentEvent::Turn);
        }
    }

    fn completed(&mut self, counted: Counted) -> AgentEvent {
        let words = self.words.take();
        let result = words.clone().filter(|words| self.opening.schema.is_some() && serde_json::from_str::<IgnoredAny>(words).is_ok());
        AgentEvent::Finished(Box::new(Finish {
            stop: Stop::Done,
            turns: None,
            spent: vec![self.spending(counted)],
            text: words,
            result: result.map(|result| result.trim().to_owned()),
        }))
    }

    fn failed(&self, message: &str) -> AgentEvent {
        let stop = stop(message, self.opening.begun, &self.zone);
        // What it used is not said then.
        AgentEvent::Finished(Box::new(Finish { stop, turns: None, spent: Vec::new(), text: None, result: None }))
    }

    /// Codex counts on from where the conversation was, and that has been paid.
    fn spending(&self, counted: Counted) -> Spending {
        let before = self.opening.used_before;
        let cached = counted.cached_input_tokens.saturating_add(counted.cache_write_input_tokens);
        let usage = Usage {
            input: counted.input_tokens.saturating_sub(cached).saturating_sub(before.input),
            output: counted.output_tokens.saturating_sub(before.output),
            cache_read: counted.cached_input_tokens.saturating_sub(before.cache_read),
            cache_write: counted.cache_write_input_tokens.saturating_sub(before.cache_write),
        };
        let model = self.opening.model.clone().unwrap_or_else(|| UNNAMED.to_owned());
        Spending { cost: list_cost(&model, &usage), model, usage }
    }
}

/// Where in its life an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Changed,
    Over,
}

fn parsed<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// `error`: it tries again, or says why it gives up, which the end of the turn repeats.
fn complained(message: &str) -> AgentEvent {
    match attempt(message) {
        Some(attempt) => AgentEvent::Retrying { attempt, status: status(message), wait_ms: None },
        None => AgentEvent::Nothing,
    }
}

/// A line that could not be read. One that is whole, but not built as it was when this was written, is something new and
/// not something broken.
fn strange(line: &[u8]) -> AgentEvent {
    #[derive(Deserialize)]
    struct OfItem {
        item: ItemHead,
    }

    let Some(head) = parsed::<Head<'_>>(line) else { return AgentEvent::Garbage };
    let item = parsed::<OfItem>(line).map(|line| format!("/{}", line.item.kind)).unwrap_or_default();
    AgentEvent::Unknown(format!("{}{item}", head.kind))
}
