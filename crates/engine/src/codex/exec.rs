//! Reads the lines of `codex exec --json`.

use jiff::tz::TimeZone;
use serde::Deserialize;

use super::ending::{Failure, attempt, status, stop};
use super::item::ItemHead;
use super::line::{Head, Line};
use super::spending::{Counted, Spent};
use super::talk::{Stage, Talk};
use crate::agent::{AgentEvent, Opening, Reader, Stop};

/// What stands for the model where nobody has said which: `codex exec` does not tell which one it took.
const UNNAMED: &str = "default";
/// There is one conversation.
const CONVERSATION: &str = "";

/// Reads one session.
pub(super) struct ExecReader {
    opening: Opening,
    /// The clock on the wall of whoever runs Codex, which is the one that it tells times by.
    zone: TimeZone,
    talk: Talk,
}

impl ExecReader {
    pub(super) fn new(opening: &Opening, zone: TimeZone) -> Self {
        Self { opening: opening.clone(), zone, talk: Talk::default() }
    }
}

impl Reader for ExecReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if let Some(event) = AgentEvent::at_sight(line) {
            return events.push(event);
        }
        let before = events.len();
        if parsed::<Line<'_>>(line).and_then(|read| self.read_line(&read, events)).is_none() {
            events.truncate(before);
            events.push(strange(line));
        }
    }
}

impl ExecReader {
    /// `None` when the line is of an unknown kind, or not what its kind promises.
    fn read_line(&mut self, line: &Line<'_>, events: &mut Vec<AgentEvent>) -> Option<()> {
        match line.kind.as_ref() {
            "thread.started" => {
                let conversation = line.thread_id.clone()?;
                events.push(AgentEvent::Started { conversation, model: self.opening.model.clone() });
            }
            "turn.started" => {
                self.talk.begin_turn();
                events.push(AgentEvent::Nothing);
            }
            "turn.completed" => events.push(self.completed(line.usage?)),
            "turn.failed" => events.push(self.failed(&line.error.as_ref()?.message)),
            "error" => events.push(complained(line.message.as_ref()?)),
            "item.started" => self.talk.item(line.item?.get(), Stage::Begun, events)?,
            "item.updated" => self.talk.item(line.item?.get(), Stage::Changed, events)?,
            "item.completed" => self.talk.item(line.item?.get(), Stage::Over, events)?,
            // A part of a plan, which comes whole later.
            "item.plan.delta" => events.push(AgentEvent::Working),
            // Nobody can answer here; the client goes on without.
            "request_user_input" => events.push(AgentEvent::Nothing),
            _ => return None,
        }
        Some(())
    }

    /// Codex counts on from where the conversation was, and that has been paid.
    fn completed(&mut self, counted: Counted) -> AgentEvent {
        let mut spent = Spent::default();
        spent.paid(CONVERSATION, self.opening.used_before);
        spent.add(CONVERSATION, counted.usage(), self.opening.model.as_deref().unwrap_or(UNNAMED));
        self.talk.finish(Stop::Done, spent.by_model(), self.opening.schema.is_some())
    }

    fn failed(&mut self, message: &str) -> AgentEvent {
        let stop = stop(&Failure::said(message), self.opening.begun, &self.zone);
        // What it used is not said then.
        self.talk.finish(stop, Vec::new(), false)
    }
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
