//! What the model will say: the parsed form of a script file. `docs/loopback-model.md` explains the format.

mod read;
mod shape;

use std::time::Duration;

use regex::Regex;
use serde_json::Value;

/// A script that was read and found to be consistent.
#[derive(Debug, Clone)]
pub struct Script {
    /// Ids that `GET /v1/models` lists.
    pub(crate) models: Vec<String>,
    /// INVARIANT: the last two are the fallbacks, first for requests that offer tools, then for those that offer none;
    /// they match everything.
    pub(crate) scenarios: Vec<Scenario>,
}

/// Why a text is no script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Not TOML, an unknown key, or a value of the wrong kind.
    #[error("line {line}, column {column}: {message}")]
    Form {
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A regular expression that can't be read.
    #[error("{place}: `match` is no regular expression")]
    Match {
        /// Which scenario.
        place: String,
        /// Where and why.
        #[source]
        source: Box<regex::Error>,
    },
    /// Well-formed, but it can't be meant.
    #[error("{place}: {problem}")]
    Meaning {
        /// Which scenario and turn.
        place: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// What is said to the prompts that match.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// Compared with the last prompt; without it every prompt matches.
    pub(crate) prompt: Option<Regex>,
    pub(crate) audience: Audience,
    /// INVARIANT: never empty.
    pub(crate) turns: Vec<Turn>,
}

/// Which requests a scenario answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Those that offer tools: the turns of a session.
    Session,
    /// Those that offer none: titles, probes, and sessions without tools.
    Side,
}

/// One answer of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    pub(crate) thinking: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) structured: Option<Value>,
    /// What is said instead where a client wants JSON.
    pub(crate) on_demand: OnDemand,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) headers: Vec<(String, String)>,
    /// Before the first byte.
    pub(crate) delay: Duration,
    /// Before each event.
    pub(crate) chunk_delay: Duration,
    pub(crate) fault: Option<Fault>,
}

/// What a turn says to a client that wants JSON and gets no scripted value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnDemand {
    /// What it says to everybody.
    #[default]
    Scripted,
    /// Some value that fits the schema.
    Sample,
}

/// A tool call, before it is known which tools the client offers.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Shell(String),
    Write { path: String, content: String },
    Named { name: String, input: Value },
}

/// The tokens that an answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 20, cache_read: 0, cache_write: 0 }
    }
}

/// What goes wrong with a turn, and how often.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// Without it: every time.
    pub(crate) times: Option<u32>,
    pub(crate) count: Count,
}

#[derive(Debug, Clone)]
pub(crate) enum FaultKind {
    /// An HTTP error in place of an answer.
    Refuse(Refusal),
    /// The connection breaks after so many events.
    Cut { after_events: usize },
    /// Nothing more comes after so many events; the connection stays open.
    Hang { after_events: usize },
}

/// Among which requests a fault's `times` are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// Among the attempts of one session at one place in its conversation.
    Session,
    /// Among all requests that this server gets for this turn.
    Server,
}

#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The name of the error; each format has its own for a status.
    pub(crate) kind: Option<String>,
    pub(crate) message: String,
    pub(crate) retry_after: Option<u64>,
    pub(crate) told: Told,
    pub(crate) usage_limit: Option<UsageLimit>,
}

/// How a client is told of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// By the status of the answer.
    ByStatus,
    /// By an event of a stream that began well, where a stream is wanted.
    ByEvent,
}

/// The limit of a plan: it holds until its reset, whoever asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageLimit {
    pub(crate) reset: Reset,
    pub(crate) window: Window,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Reset {
    /// Seconds after the first request that met it.
    After(u64),
    /// Seconds since 1970.
    At(u64),
}

/// Over which time a plan's limit is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    FiveHours,
    SevenDays,
}
