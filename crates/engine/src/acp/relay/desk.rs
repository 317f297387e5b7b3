//! What an agent's requests come to.

use std::ffi::OsString;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::speech::{self, Asked, FAILED, NO_SUCH_METHOD, WRONG_PARAMETERS};
use super::super::wire::{Line, parsed};
use super::files::{self, Missing};
use super::rights::Rights;
use super::terminals::Terminals;

/// Takes an error of its client for nothing that it knows, seen with its version 0.61.
const TAKES_NO_ERROR: &str = "gemini-cli";

/// What a request comes to that is not done: a code and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn failed(message: String) -> Self {
        Self { code: FAILED, message }
    }

    pub(super) fn wrong(message: String) -> Self {
        Self { code: WRONG_PARAMETERS, message }
    }

    pub(super) fn not_served(message: &str) -> Self {
        Self { code: NO_SUCH_METHOD, message: message.to_owned() }
    }
}

/// The parameters of a request. Nothing of it is passed over that can't be read: it would be another file or command then.
pub(super) fn taken<'a, T: Deserialize<'a>>(params: &'a str) -> Result<T, Refusal> {
    serde_json::from_str(params).map_err(|error| Refusal::wrong(format!("failed to read the parameters: {error}")))
}

/// An answer, now or when there is one.
pub(super) enum Served {
    Now(Result<Value, Refusal>),
    Later,
}

/// Who the agent says it is, in its answer to `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Introduced {
    agent_info: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Serves one agent.
pub(super) struct Desk {
    rights: Rights,
    missing: Missing,
    pub(super) terminals: Terminals,
}

impl Desk {
    pub(super) fn new(rights: Rights, environment: Vec<(OsString, OsString)>) -> Self {
        Self { rights, missing: Missing::IsRefused, terminals: Terminals::new(environment) }
    }

    /// What is to be answered to this line of the agent, if it is one that is served here.
    pub(super) fn hear(&mut self, line: &[u8]) -> Option<Value> {
        match Line::of(line)? {
            Line::Request { id, method, params } => match self.serve(id, &method, params)? {
                Served::Now(outcome) => Some(answer(id, outcome)),
                Served::Later => None,
            },
            Line::Answer { id, outcome: Ok(result) } if id == Some(Asked::Initialize.id()) => {
                if parsed::<Introduced>(result).is_some_and(|agent| agent.agent_info.name == TAKES_NO_ERROR) {
                    self.missing = Missing::IsEmpty;
                }
                None
            }
            Line::Answer { .. } | Line::Note { .. } | Line::Other => None,
        }
    }

    fn serve(&mut self, id: &RawValue, method: &str, params: &str) -> Option<Served> {
        if !Rights::concern(method) {
            return None;
        }
        if let Err(refusal) = self.rights.allow(method) {
            return Some(Served::Now(Err(refusal)));
        }
        Some(match method {
            "fs/read_text_file" => Served::Now(files::read(params, self.missing)),
            "fs/write_text_file" => Served::Now(files::write(params)),
            "terminal/create" => Served::Now(self.terminals.create(params)),
            "terminal/output" => Served::Now(self.terminals.output(params)),
            "terminal/kill" => Served::Now(self.terminals.kill(params)),
            "terminal/release" => Served::Now(self.terminals.release(params)),
            "terminal/wait_for_exit" => self.terminals.wait_for_exit(id, params),
            _ => return None,
        })
    }
}

pub(super) fn answer(id: &RawValue, outcome: Result<Value, Refusal>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Refusal { code, message }) => speech::refuse(id, code, &message),
    }
}
