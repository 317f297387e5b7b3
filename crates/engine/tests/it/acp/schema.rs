//! The protocol's own schema, by which messages of both sides are checked.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Agent,
}

/// In the protocol once, and still the only way that some agents have.
const OLDER: &str = "session/set_model";

/// The schema, and the methods of the requests that an answer is still owed to.
pub(crate) struct Protocol {
    definitions: Value,
    owed: Vec<(Side, Value, String)>,
    validators: BTreeMap<String, jsonschema::Validator>,
}

impl Protocol {
    /// Version 1, which is spoken.
    pub(crate) fn new() -> Self {
        Self::of("schema.json")
    }

    /// The version that is in this file.
    pub(super) fn of(file: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/acp").join(file);
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        Self { definitions: schema["$defs"].clone(), owed: Vec::new(), validators: BTreeMap::new() }
    }

    /// Panics unless this is a message that this side may send now.
    pub(crate) fn check(&mut self, from: Side, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message["method"].is_string() {
            self.note(from, message);
            let wrong = self.wrong_asked(from, message).unwrap_or_else(|| panic!("nobody is asked that: {message}"));
            return assert!(wrong.is_empty(), "{wrong:?}: {message}");
        }
        let owed = self.owed.iter().position(|(side, owed, _)| *side != from && Some(owed) == message.get("id"));
        let (_, _, method) = self.owed.remove(owed.unwrap_or_else(|| panic!("an answer to nothing: {message}")));
        let wrong = match message.get("error") {
            Some(error) => self.wrong("Error", error),
            None if is_apart(&method) => Vec::new(),
            None => {
                let definition = self.definition(from, &method, "Response").unwrap_or_else(|| panic!("nobody answers that: {message}"));
                self.wrong(&definition, &message["result"])
            }
        };
        assert!(wrong.is_empty(), "{wrong:?}: {message}");
    }

    /// Takes in a request of whatever kind, so that it may be answered.
    pub(super) fn note(&mut self, from: Side, message: &Value) {
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            self.owed.push((from, id.clone(), method.to_owned()));
        }
    }

    /// Checks what an agent printed in whole sessions, of which nothing is left that was said to it. What was asked is known by
    /// the ids, which never change.
    pub(crate) fn check_printed(&mut self, transcript: &str, goes_on: bool) {
        for line in transcript.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let sets_option = message["result"].get("configOptions").is_some();
            let asked = match message["id"].as_u64().filter(|_| message.get("method").is_none()) {
                None => None,
                Some(1) => Some("initialize"),
                Some(2) if goes_on => Some("session/resume"),
                Some(2) => Some("session/new"),
                Some(3 | 4) if sets_option => Some("session/set_config_option"),
                Some(3) => Some("session/set_mode"),
                Some(4) => Some(OLDER),
                Some(_) => Some("session/prompt"),
            };
            if let Some(method) = asked {
                self.note(Side::Client, &json!({ "id": message["id"], "method": method }));
            }
            self.check(Side::Agent, &message);
        }
    }

    /// What is wrong with a request or a notification of this side; `None` where there is none of its method.
    pub(super) fn wrong_asked(&mut self, from: Side, message: &Value) -> Option<Vec<String>> {
        let method = message["method"].as_str().unwrap();
        if is_apart(method) {
            return Some(Vec::new());
        }
        let suffix = if message.get("id").is_some() { "Request" } else { "Notification" };
        let definition = self.definition(other(from), method, suffix)?;
        Some(self.wrong(&definition, &message["params"]))
    }

    /// The definition for this method of the side that serves it.
    fn definition(&self, server: Side, method: &str, suffix: &str) -> Option<String> {
        let side = if server == Side::Agent { "agent" } else { "client" };
        let serves =
            |definition: &Value| definition["x-method"] == method && [side, "both"].iter().any(|side| definition["x-side"] == *side);
        let mut found =
            self.definitions.as_object().unwrap().iter().filter(|(name, definition)| serves(definition) && name.ends_with(suffix));
        Some(found.next()?.0.clone())
    }

    /// What is wrong with a value that is to be as this definition has it.
    pub(super) fn wrong(&mut self, name: &str, value: &Value) -> Vec<String> {
        let definitions = &self.definitions;
        let made = || jsonschema::validator_for(&json!({ "$ref": format!("#/$defs/{name}"), "$defs": definitions })).unwrap();
        let validator = self.validators.entry(name.to_owned()).or_insert_with(made);
        validator.iter_errors(value).map(|error| format!("no {name}: {error} at {}", error.instance_path())).collect()
    }
}

/// What an agent has invented for itself has no schema, nor has what is no part of the protocol any more.
fn is_apart(method: &str) -> bool {
    method.starts_with('_') || method == OLDER
}

fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Agent,
        Side::Agent => Side::Client,
    }
}
