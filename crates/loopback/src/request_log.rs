//! The requests that arrived, for tests and curious users. In memory only: bodies hold the prompts of the client's
//! vendor and of the user.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::closing::locked;
use crate::http::Request;

/// How much of bodies is kept; the oldest requests go first.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Headers whose value is a secret even here: a user may point a client with a real key at this server.
const SECRET: [&str; 5] = ["authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"];

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// From 1, in order of arrival.
    pub number: u64,
    /// `POST`, for example.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// Names in lower case; what holds a key is blacked out.
    pub headers: BTreeMap<String, String>,
    /// As it was sent.
    pub body: String,
    /// What the script made of it, where the script was asked.
    pub exchange: Option<Exchange>,
}

/// How a request for an answer met the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Whose request it was, by its header or its body; empty when neither says.
    pub session: String,
    /// The last prompt.
    pub prompt: String,
    /// The names of the tools on offer; of a tool in a group, `GROUP__NAME`.
    pub tools: Vec<String>,
    /// The scenario that answered.
    pub scenario: String,
    /// Its turn, from 1.
    pub turn: usize,
    /// Whether the turn's fault struck.
    pub fault_struck: bool,
}

impl RecordedRequest {
    pub(crate) fn new(request: &Request, exchange: Option<Exchange>) -> Self {
        let shown = |(name, value): &(String, String)| {
            let value = if SECRET.contains(&name.as_str()) { "<redacted>" } else { value };
            (name.clone(), value.to_owned())
        };
        Self {
            number: 0,
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.iter().map(shown).collect(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
            exchange,
        }
    }

    fn to_json(&self) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_else(|_| json!(self.body));
        json!({
            "number": self.number, "method": self.method, "path": self.path, "headers": self.headers, "body": body,
            "exchange": self.exchange.as_ref().map(|exchange| json!({
                "session": exchange.session, "prompt": exchange.prompt, "tools": exchange.tools,
                "scenario": exchange.scenario, "turn": exchange.turn, "fault-struck": exchange.fault_struck,
            })),
        })
    }
}

/// The requests so far.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    requests: VecDeque<RecordedRequest>,
    bytes: usize,
    arrived: u64,
}

impl RequestLog {
    pub(crate) fn add(&self, mut request: RecordedRequest) {
        let mut kept = locked(&self.kept);
        kept.arrived += 1;
        request.number = kept.arrived;
        kept.bytes += cost(&request);
        kept.requests.push_back(request);
        while kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.requests.pop_front() else { return };
            kept.bytes -= cost(&oldest);
        }
    }

    pub(crate) fn all(&self) -> Vec<RecordedRequest> {
        locked(&self.kept).requests.iter().cloned().collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"requests": self.all().iter().map(RecordedRequest::to_json).collect::<Vec<_>>()})
    }
}

/// The body, and a rough figure for the rest: a client that sends no bodies must not fill the memory either.
fn cost(request: &RecordedRequest) -> usize {
    request.body.len() + request.exchange.as_ref().map_or(0, |exchange| exchange.prompt.len()) + 2048
}
