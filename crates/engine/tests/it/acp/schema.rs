//! The protocol's own schema, by which messages of both sides are checked.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Agent,
}

/// The schema, and the methods of the requests that an answer is still owed to.
pub(super) struct Protocol {
    definitions: Value,
    owed: Vec<(Side, Value, String)>,
    validators: BTreeMap<String, jsonschema::Validator>,
}

impl Protocol {
    pub(super) fn new() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/acp/schema.json");
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        Self { definitions: schema["$defs"].clone(), owed: Vec::new(), validators: BTreeMap::new() }
    }

    /// Panics unless this is a message that this side may send now.
    pub(super) fn check(&mut self, from: Side, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let id = message.get("id");
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            if let Some(id) = id {
                self.owed.push((from, id.clone(), method.to_owned()));
            }
            // What an agent has invented for itself has no schema.
            if !method.starts_with('_') {
                let suffix = if id.is_some() { "Request" } else { "Notification" };
                self.validate(&self.definition(other(from), method, suffix), &message["params"]);
            }
            return;
        }
        let owed = self.owed.iter().position(|(side, owed, _)| *side != from && Some(owed) == id);
        let (_, _, method) = self.owed.remove(owed.unwrap_or_else(|| panic!("an answer to nothing: {message}")));
        match message.get("error") {
            Some(error) => self.validate("Error", error),
            None => self.validate(&self.definition(from, &method, "Response"), &message["result"]),
        }
    }

    /// The definition for this method of the side that serves it.
    fn definition(&self, server: Side, method: &str, suffix: &str) -> String {
        let side = if server == Side::Agent { "agent" } else { "client" };
        let serves =
            |definition: &Value| definition["x-method"] == method && [side, "both"].iter().any(|side| definition["x-side"] == *side);
        let mut found =
            self.definitions.as_object().unwrap().iter().filter(|(name, definition)| serves(definition) && name.ends_with(suffix));
        found.next().unwrap_or_else(|| panic!("{side} has no {method} ({suffix})")).0.clone()
    }

    fn validate(&mut self, name: &str, value: &Value) {
        let definitions = &self.definitions;
        let made = || jsonschema::validator_for(&json!({ "$ref": format!("#/$defs/{name}"), "$defs": definitions })).unwrap();
        let validator = self.validators.entry(name.to_owned()).or_insert_with(made);
        let wrong: Vec<String> = validator.iter_errors(value).map(|error| format!("{error} at {}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "no {name}: {wrong:?}\n{value}");
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Agent,
        Side::Agent => Side::Client,
    }
}
