//! What a request says, whatever its format: the last prompt, how far the answer to it has got, the tools on offer.

use serde_json::Value;

use crate::tools::Tool;

/// A request, read.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    /// Whose request it is, by a header or by the request itself; empty when neither says.
    pub(crate) session: String,
    /// What the person said last, without what the client adds of its own.
    pub(crate) prompt: String,
    /// Answers since then.
    pub(crate) answers: usize,
    /// Messages in all.
    pub(crate) messages: usize,
    pub(crate) last_tool_output: String,
    /// The tools on offer.
    pub(crate) tools: Vec<Tool>,
    pub(crate) delivery: Delivery,
    pub(crate) form: Form,
    /// Who spoke last, for `hear` alone.
    pub(crate) last: Option<Speaker>,
}

/// How the client wants its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Delivery {
    /// As one object.
    #[default]
    Whole,
    /// As server-sent events.
    Streamed,
}

/// What the client wants for an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Form {
    #[default]
    Free,
    /// JSON by this schema, which is null where none is given.
    Json(Value),
}

/// Something that was said in a conversation.
#[derive(Debug)]
pub(crate) enum Said {
    /// By the person, or by the client in the person's place; empty when only the client spoke.
    Prompt(String),
    /// By a tool.
    Output(String),
    /// By the model: an answer, or a part of one.
    Answer,
    /// By anybody else, such as the client's instructions.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    Model,
    Anybody,
}

/// How clients mark what they put beside a person's words.
const ASIDES: [&str; 8] = [
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<session_context>",
    "<turn_aborted>",
    "<skills_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
];
/// How the prompt begins by which `claude` demands a structured answer. Nobody said that either.
const DEMAND: &str = "[structured-output-enforce]";

impl Conversation {
    /// Goes on with what was said next.
    pub(crate) fn hear(&mut self, said: Said) {
        self.last = Some(match said {
            Said::Answer => {
                // A client may send the parts of one answer as several messages.
                if self.last != Some(Speaker::Model) {
                    self.answers += 1;
                }
                Speaker::Model
            }
            Said::Prompt(prompt) => {
                if !prompt.is_empty() && !prompt.starts_with(DEMAND) {
                    self.prompt = prompt;
                    self.answers = 0;
                }
                Speaker::Anybody
            }
            Said::Output(output) => {
                self.last_tool_output = output;
                Speaker::Anybody
            }
            Said::Other => Speaker::Anybody,
        });
    }
}

/// How a request asks for its answer by `"stream": true`.
pub(crate) fn delivery(body: &Value) -> Delivery {
    if body["stream"] == true { Delivery::Streamed } else { Delivery::Whole }
}

/// The name of the model that is asked for.
pub(crate) fn model(body: &Value) -> String {
    text_at(body, "model").unwrap_or("loopback-model").to_owned()
}

pub(crate) fn text_at<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a message's content, without what the client put in. A client gives a lone text as a part or as a bare
/// string, and changes that from one request to the next.
pub(crate) fn joined(content: &Value) -> String {
    let texts: Vec<&str> = match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| text_at(part, "text")).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    texts.into_iter().filter(|text| !is_aside(text)).collect::<Vec<_>>().join("\n")
}

fn is_aside(text: &str) -> bool {
    let text = text.trim_start();
    ASIDES.iter().any(|mark| text.starts_with(mark))
}
