//! What the formats have in common: each reads a request into a conversation and writes an answer as its own.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::chat::Chat;
use crate::conversation::Conversation;
use crate::gemini::Gemini;
use crate::http::{Event, Request};
use crate::messages::Messages;
use crate::responses::Responses;
use crate::script::Window;

/// A format on the wire. Everything else in this crate is the same for all of them.
pub(crate) trait Format: Sync {
    /// What a `POST` to this path asks for; `None` when the path is none of this format.
    fn asked(&self, path: &str) -> Option<Asked>;

    fn read(&self, request: &Request, body: &Value) -> Conversation;

    /// The answer as one object.
    fn whole(&self, answer: &Answer) -> Value;

    /// The answer as the events of a stream.
    fn streamed(&self, answer: &Answer) -> Vec<Event>;

    /// What a stream that fails says in place of `answer`.
    fn failure(&self, answer: &Answer, refused: &Refused) -> Event;

    /// The answer to a request that counts tokens.
    fn tokens(&self, count: usize) -> Value {
        json!({"input_tokens": count})
    }

    fn refusal(&self, refused: &Refused) -> ErrorAnswer;
}

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Answer,
    TokenCount,
}

/// Why a request gets no answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused<'a> {
    pub(crate) status: u16,
    /// What the script calls the error; the format knows a name otherwise.
    pub(crate) kind: Option<&'a str>,
    pub(crate) message: &'a str,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
    pub(crate) limit: Option<Limit>,
}

/// The limit of a plan that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) window: Window,
    /// Seconds since 1970.
    pub(crate) reset: u64,
    /// Seconds until then.
    pub(crate) seconds: u64,
}

/// A refusal as a format says it.
#[derive(Debug)]
pub(crate) struct ErrorAnswer {
    pub(crate) body: Value,
    /// Beside `retry-after`, which all formats share.
    pub(crate) headers: Vec<(String, String)>,
}

const FORMATS: [&dyn Format; 4] = [&Messages, &Responses, &Chat, &Gemini];

/// The format that a path belongs to, and what is asked for.
pub(crate) fn find(path: &str) -> Option<(&'static dyn Format, Asked)> {
    FORMATS.into_iter().find_map(|format| Some((format, format.asked(path)?)))
}

/// The format for what belongs to none, such as a path that is not known.
pub(crate) fn fallback() -> &'static dyn Format {
    &Messages
}
