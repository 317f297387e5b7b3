//! Which turn of the script answers a conversation, and of what blocks the answer consists.

use crate::conversation::{Conversation, Form};
use crate::sample::sample;
use crate::script::{Audience, OnDemand, Scenario, Script, Turn, Usage};
use crate::text::Placeholders;
use crate::tools::{self, Input, ToolCall};

/// The tool that clients offer when they want an answer by a schema and can't ask for it otherwise.
const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// The turn that answers. It depends on the conversation alone, so that any number of sessions can talk to one
/// server, and a session that is resumed, even on another server, goes on where it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'script> {
    pub(crate) scenario: &'script Scenario,
    pub(crate) turn: &'script Turn,
    pub(crate) place: Place,
}

/// Where in the script a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) scenario: usize,
    pub(crate) turn: usize,
}

/// `None` can't happen with a script that was parsed: its last scenarios match everything.
pub(crate) fn choose<'script>(script: &'script Script, conversation: &Conversation) -> Option<Choice<'script>> {
    let audience = if conversation.tools.is_empty() { Audience::Side } else { Audience::Session };
    let matches = |scenario: &Scenario| {
        scenario.audience == audience && scenario.prompt.as_ref().is_none_or(|prompt| prompt.is_match(&conversation.prompt))
    };
    let (index, scenario) = script.scenarios.iter().enumerate().find(|(_, scenario)| matches(scenario))?;
    let turn_index = conversation.answers.min(scenario.turns.len().saturating_sub(1));
    let turn = scenario.turns.get(turn_index)?;
    Some(Choice { scenario, turn, place: Place { scenario: index, turn: turn_index } })
}

/// A part of an answer. Ids are bare: each format has its own prefix for them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Thinking { id: String, text: String },
    Text { id: String, text: String },
    ToolUse { id: String, call: ToolCall },
}

/// Why an answer ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All is said.
    End,
    /// Tools are to run first.
    ToolUse,
    MaxTokens,
    Refusal,
    /// Whatever the script says, as it says it.
    Other(String),
}

/// An answer, ready to be written.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) model: String,
    /// INVARIANT: never empty; a client takes an empty answer for a broken one.
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Stop,
    pub(crate) usage: Usage,
}

impl Usage {
    /// What the model read, for the formats that count what was cached as read too.
    pub(crate) fn read(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    pub(crate) fn total(self) -> u64 {
        self.read().saturating_add(self.output)
    }
}

/// Builds the answer of `turn`; `new_id` makes ids that no other answer has.
pub(crate) fn compose(turn: &Turn, conversation: &Conversation, mut new_id: impl FnMut() -> String) -> Answer {
    let placeholders = Placeholders { prompt: &conversation.prompt, last_tool_output: &conversation.last_tool_output };
    let mut blocks = Vec::new();
    blocks.extend(turn.thinking.as_deref().map(|text| Block::Thinking { id: new_id(), text: placeholders.fill(text) }));
    let structured = structured(turn, conversation, placeholders);
    // Where JSON is wanted, a sentence before it would spoil it.
    let spoils = matches!(structured, Some(Structured::Text(_))) && conversation.form != Form::Free;
    if let Some(text) = turn.text.as_deref().filter(|_| !spoils) {
        blocks.push(Block::Text { id: new_id(), text: placeholders.fill(text) });
    }
    blocks.extend(structured.map(|structured| match structured {
        Structured::Call(call) => Block::ToolUse { id: new_id(), call },
        Structured::Text(text) => Block::Text { id: new_id(), text },
    }));
    for call in &turn.calls {
        blocks.push(match tools::resolve(call, &conversation.tools, placeholders) {
            Some(call) => Block::ToolUse { id: new_id(), call },
            None => said("[loopback model: the client offers no tool for the next scripted call]", &mut new_id),
        });
    }
    if blocks.is_empty() {
        blocks.push(said("ok", &mut new_id));
    }
    let stop = stop(turn, &blocks);
    Answer { id: new_id(), model: conversation.model.clone(), blocks, stop, usage: turn.usage }
}

fn said(text: &str, new_id: &mut impl FnMut() -> String) -> Block {
    Block::Text { id: new_id(), text: text.to_owned() }
}

enum Structured {
    Call(ToolCall),
    Text(String),
}

fn structured(turn: &Turn, conversation: &Conversation, placeholders: Placeholders) -> Option<Structured> {
    let value = match (&turn.structured, turn.on_demand, &conversation.form) {
        (Some(value), _, _) => placeholders.fill_value(value),
        (None, OnDemand::Sample, Form::Json(schema)) => sample(schema),
        (None, OnDemand::Sample | OnDemand::Scripted, Form::Free | Form::Json(_)) => return None,
    };
    let offered = tools::find(&conversation.tools, STRUCTURED_OUTPUT).is_some();
    Some(if offered && value.is_object() {
        Structured::Call(ToolCall { namespace: None, name: STRUCTURED_OUTPUT.to_owned(), input: Input::Json(value) })
    } else {
        Structured::Text(value.to_string())
    })
}

fn stop(turn: &Turn, blocks: &[Block]) -> Stop {
    let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    match turn.stop_reason.as_deref() {
        None => {
            if calls {
                Stop::ToolUse
            } else {
                Stop::End
            }
        }
        Some("end_turn") => Stop::End,
        Some("tool_use") => Stop::ToolUse,
        Some("max_tokens") => Stop::MaxTokens,
        Some("refusal") => Stop::Refusal,
        Some(other) => Stop::Other(other.to_owned()),
    }
}
