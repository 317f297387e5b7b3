//! What we say to it: one JSON object a line.

use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What an agent that may not do something is told.
const MAY_ONLY_LOOK: &str = "This was not done: you may only look in this session.";
const NOBODY_TO_ASK: &str = "This was not done: it would need somebody's leave, and nobody can be asked in this session. Do what you can \
                             without it, and say what you could not do.";

/// A message of a person. Its last part is empty: what begins with a slash there would be taken for a command of the client,
/// and `@` would have a file read and sent along, and a prompt is a text.
pub(super) fn message(id: &str, text: &str) -> Value {
    let content = [text, ""].map(|text| json!({ "type": "text", "text": text }));
    json!({ "type": "user", "uuid": id, "message": { "role": "user", "content": content } })
}

/// Asks it to break off.
pub(super) fn interrupt() -> Value {
    json!({ "type": "control_request", "request_id": fresh_id(), "request": { "subtype": "interrupt" } })
}

/// Lets it use a tool in the way that it asked for.
pub(super) fn allow(request: &str, input: Option<&RawValue>) -> Value {
    // It wants the input back, since whoever allows may change it.
    let input: Value = input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_else(|| json!({}));
    answer(request, &json!({ "behavior": "allow", "updatedInput": input }))
}

/// Does not.
pub(super) fn deny(request: &str, may_only_look: bool) -> Value {
    let message = if may_only_look { MAY_ONLY_LOOK } else { NOBODY_TO_ASK };
    answer(request, &json!({ "behavior": "deny", "message": message }))
}

/// To what it asks for that we don't have.
pub(super) fn refuse(request: &str, what: &str) -> Value {
    let response = json!({ "subtype": "error", "request_id": request, "error": format!("`{what}` is not served") });
    json!({ "type": "control_response", "response": response })
}

fn answer(request: &str, answer: &Value) -> Value {
    json!({ "type": "control_response", "response": { "subtype": "success", "request_id": request, "response": answer } })
}

/// An id as of a random UUID: the client passes over a message whose id it has seen in the conversation, whichever session
/// that was in. The seed of a hash is the randomness that is at hand.
pub(super) fn fresh_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    let (version, variant) = (0x4000 | (high & 0xfff), 0x8000 | (low >> 48 & 0x3fff));
    format!("{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}", high >> 32, high >> 16 & 0xffff, low & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_id_is_built_as_a_random_one_and_never_the_same() {
        let id = fresh_id();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();

        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert!(id[14..].starts_with('4') && id[19..].starts_with(['8', '9', 'a', 'b']), "{id}");
        assert_ne!(id, fresh_id());
    }

    #[test]
    fn no_text_is_the_last_part_of_its_message() {
        let message = message("id", "/compact");

        let parts: Vec<&str> =
            message["message"]["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
        assert_eq!(parts, ["/compact", ""]);
    }

    #[test]
    fn what_is_allowed_is_what_was_asked_for() {
        let input: Box<RawValue> = serde_json::from_str(r#"{"command":"ls","n":[1,{"a":null}]}"#).unwrap();

        let allowed = allow("r", Some(&input));

        assert_eq!(allowed["response"]["response"]["updatedInput"], json!({ "command": "ls", "n": [1, { "a": null }] }));
        assert_eq!(allow("r", None)["response"]["response"]["updatedInput"], json!({}));
    }
}
