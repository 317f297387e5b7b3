//! A scripted model on this machine: an HTTP server on 127.0.0.1 that speaks Anthropic's Messages API, OpenAI's
//! Responses and Chat Completions, and Google's Gemini API.
//!
//! The real programs of agents, pointed at it, do what a script says, so that cards and tests run without a bill.
//! [`Script`] is the parsed script file, [`Server`] answers from it. It listens on the loopback address only, writes
//! nothing to the disk, and never calls anyone.
//!
//! A request of any format is read into one conversation, the script answers that, and the answer is written in the
//! format of the request. Only `messages`, `responses`, `chat` and `gemini` know formats, and only `tools` knows how
//! clients call their tools.

mod answer;
mod chat;
mod closing;
mod connection;
mod conversation;
mod faults;
mod format;
mod gemini;
mod http;
mod messages;
mod models;
mod openai;
mod request_log;
mod responses;
mod sample;
mod script;
mod server;
mod text;
mod tools;

pub use request_log::{Exchange, RecordedRequest};
pub use script::{Script, ScriptError};
pub use server::{Server, ServerError};
