//! What the model says, which comes in parts, and where one of its answers ends and the next begins.
//!
//! The protocol does not tell of answers. One begins with the first word, thought or call after a tool's result, or with a
//! message that has another id than the one before. An agent that tells each call of one answer only after the result of the
//! one before has thus more turns than answers.
//!
//! An answer is told of when a part of it is whole. Some agents say that their provider refused them in the same way as
//! they say what their model answered, so what was said last before a failure may be taken back.

use super::update::Chunk;
use crate::agent::AgentEvent;

/// Bytes kept of one message. What the report keeps of it is far less.
const LONGEST: usize = 256 * 1024;

/// The answer that is being given.
#[derive(Debug, Default)]
pub(super) struct Words {
    is_open: bool,
    /// Whether it was told that there is one.
    is_told: bool,
    message: Option<String>,
    text: String,
    thought: String,
}

impl Words {
    /// Takes in a part of a message.
    pub(super) fn say(&mut self, chunk: Chunk, events: &mut Vec<AgentEvent>) {
        let is_another = chunk.message_id.is_some() && self.message.is_some() && chunk.message_id != self.message;
        if is_another {
            self.end(events);
        }
        self.is_open = true;
        self.end_thought(events);
        append(&mut self.text, chunk.text(), LONGEST);
        self.message = chunk.message_id.or(self.message.take());
    }

    /// Takes in a part of a thought.
    pub(super) fn think(&mut self, chunk: &Chunk, events: &mut Vec<AgentEvent>) {
        self.is_open = true;
        self.end_text(events);
        append(&mut self.thought, chunk.text(), LONGEST);
    }

    /// Takes in that a tool is called.
    pub(super) fn call(&mut self, events: &mut Vec<AgentEvent>) {
        self.is_open = true;
        self.tell(events);
        self.end_thought(events);
        self.end_text(events);
    }

    /// Ends the answer: what comes now is another one.
    pub(super) fn end(&mut self, events: &mut Vec<AgentEvent>) {
        self.tell(events);
        self.end_thought(events);
        self.end_text(events);
        self.forget();
    }

    /// What was said last and not told of yet.
    pub(super) fn untold(&self) -> &str {
        self.text.trim()
    }

    /// Drops what was not told of yet: it was no answer of a model.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    fn tell(&mut self, events: &mut Vec<AgentEvent>) {
        if self.is_open && !self.is_told {
            self.is_told = true;
            events.push(AgentEvent::Turn);
        }
    }

    fn end_text(&mut self, events: &mut Vec<AgentEvent>) {
        if !self.text.is_empty() {
            self.tell(events);
            events.push(AgentEvent::Text(std::mem::take(&mut self.text)));
        }
    }

    fn end_thought(&mut self, events: &mut Vec<AgentEvent>) {
        if !self.thought.is_empty() {
            self.tell(events);
            events.push(AgentEvent::Thinking(std::mem::take(&mut self.thought)));
        }
    }
}

/// Adds a part to a text that is kept to so many bytes.
pub(super) fn append(whole: &mut String, part: &str, most: usize) {
    let room = most.saturating_sub(whole.len());
    let cut = (0..=room.min(part.len())).rev().find(|at| part.is_char_boundary(*at)).unwrap_or(0);
    whole.push_str(&part[..cut]);
}

#[cfg(test)]
mod tests {
    use super::super::wire::parsed;
    use super::*;

    fn chunk(id: Option<&str>, text: &str) -> Chunk {
        let id = id.map_or("null".to_owned(), |id| format!("\"{id}\""));
        parsed(&format!(r#"{{"messageId":{id},"content":{{"type":"text","text":"{text}"}}}}"#)).unwrap()
    }

    fn text(text: &str) -> AgentEvent {
        AgentEvent::Text(text.to_owned())
    }

    #[test]
    fn parts_are_one_text_until_a_thought_a_call_or_another_message() {
        let (mut words, mut events) = (Words::default(), Vec::new());

        words.think(&chunk(None, "Hm."), &mut events);
        words.say(chunk(Some("a"), "One, "), &mut events);
        words.say(chunk(None, "two."), &mut events);
        words.call(&mut events);
        words.say(chunk(Some("a"), "Three."), &mut events);
        words.say(chunk(Some("b"), "Four."), &mut events);
        words.end(&mut events);
        words.say(chunk(Some("b"), "Five."), &mut events);
        words.end(&mut events);

        let thought = AgentEvent::Thinking("Hm.".to_owned());
        let turn = || AgentEvent::Turn;
        let expected = [turn(), thought, text("One, two."), text("Three."), turn(), text("Four."), turn(), text("Five.")];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_message_without_end_is_kept_to_its_first_part() {
        let (mut words, mut events) = (Words::default(), Vec::new());
        for _ in 0..40 {
            words.say(chunk(None, &"ä".repeat(10_000)), &mut events);
        }
        words.end(&mut events);

        let AgentEvent::Text(kept) = &events[1] else { panic!("{events:?}") };
        assert_eq!(kept.len(), LONGEST);
    }
}
