//! What an agent says and does in its turns, whichever way its program tells it.

use serde::de::IgnoredAny;

use super::answer::{Answer, Part};
use super::item::{self, ItemHead, Kind};
use crate::agent::{AgentEvent, Finish, Stop};
use proctor_domain::session::Spending;

/// Where in its life an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Begun,
    Changed,
    Over,
}

/// The talk so far.
#[derive(Debug, Default)]
pub(super) struct Talk {
    answer: Answer,
    /// Calls whose beginning was told: one that fails at once is told at its end only.
    begun: Vec<String>,
    /// The agent's last words, in which a result is given.
    words: Option<String>,
}

impl Talk {
    /// A turn begins: what comes now is no part of an answer before it.
    pub(super) fn begin_turn(&mut self) {
        self.answer.end();
    }

    /// Takes in an item. `None` when it is of an unknown kind, or not what its kind promises.
    pub(super) fn item(&mut self, item: &str, stage: Stage, events: &mut Vec<AgentEvent>) -> Option<()> {
        let head: ItemHead = serde_json::from_str(item).ok()?;
        let kind = Kind::of(&head.kind)?;
        match kind {
            Kind::Words if stage == Stage::Over => {
                let text = item::text(item)?;
                self.begins(Part::Words, events);
                self.words = Some(text.clone());
                events.push(AgentEvent::Text(text));
            }
            Kind::Thought if stage == Stage::Over => {
                let text = item::text(item)?;
                self.begins(Part::Thought, events);
                // Most thoughts are told to the provider alone.
                events.push(if text.is_empty() { AgentEvent::Working } else { AgentEvent::Thinking(text) });
            }
            Kind::Words | Kind::Thought | Kind::Work => events.push(AgentEvent::Working),
            // What it is to do is told again when it has changed, and at the end of the turn.
            Kind::Plan if stage == Stage::Over => events.push(AgentEvent::Working),
            Kind::Plan => self.plan(events),
            Kind::Note => events.push(AgentEvent::Nothing),
            Kind::Command | Kind::FileChange | Kind::ToolCall | Kind::Collaboration | Kind::Search => {
                self.call(kind, &head.id, item, stage, events)?;
            }
        }
        Some(())
    }

    /// It has written down what it is to do, which is a call that is told in another way.
    pub(super) fn plan(&mut self, events: &mut Vec<AgentEvent>) {
        self.begins(Part::Call, events);
        self.answer.has_been_answered();
        events.push(AgentEvent::Working);
    }

    fn call(&mut self, kind: Kind, id: &str, item: &str, stage: Stage, events: &mut Vec<AgentEvent>) -> Option<()> {
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

    /// The provider has told what an answer used, which is then over. Of some answers nothing else is told.
    pub(super) fn counted(&mut self, events: &mut Vec<AgentEvent>) {
        if self.answer.is_counted() {
            events.push(AgentEvent::Turn);
        }
    }

    /// The end of what was asked: the last words, and the result that they are where one is owed.
    pub(super) fn finish(&mut self, stop: Stop, spent: Vec<Spending>, owes_result: bool) -> AgentEvent {
        let text = self.words.take().filter(|_| stop == Stop::Done);
        let result = text.as_deref().map(str::trim).filter(|words| owes_result && serde_json::from_str::<IgnoredAny>(words).is_ok());
        let result = result.map(str::to_owned);
        AgentEvent::Finished(Box::new(Finish { stop, turns: None, spent, text, result }))
    }
}
