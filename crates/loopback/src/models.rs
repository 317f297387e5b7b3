//! The models that the server says it has.

use serde_json::{Value, json};

/// What a `GET` of this path lists; `None` when nothing is there.
pub(crate) fn listed(ids: &[String], path: &str) -> Option<Value> {
    match path {
        "/v1/models" => {
            let list: Vec<Value> = ids.iter().map(|id| model(id)).collect();
            Some(json!({"object": "list", "data": list, "has_more": false, "first_id": ids.first(), "last_id": ids.last()}))
        }
        "/v1beta/models" => Some(json!({"models": ids.iter().map(|id| gemini_model(id)).collect::<Vec<_>>()})),
        _ => {
            let known = |prefix: &str| path.strip_prefix(prefix).filter(|id| ids.iter().any(|known| known == id));
            known("/v1/models/").map(model).or_else(|| known("/v1beta/models/").map(gemini_model))
        }
    }
}

/// Anthropic's form and OpenAI's in one: they share a path, and neither minds the other's keys.
fn model(id: &str) -> Value {
    json!({
        "id": id, "type": "model", "display_name": id, "created_at": "2026-01-01T00:00:00Z",
        "object": "model", "created": 0, "owned_by": "loopback",
    })
}

fn gemini_model(id: &str) -> Value {
    let methods = ["generateContent", "countTokens"];
    json!({"name": format!("models/{id}"), "displayName": id, "supportedGenerationMethods": methods})
}
