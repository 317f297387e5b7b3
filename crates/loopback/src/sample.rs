//! A value that fits a schema, for the requests that clients make of their own, such as which model is to answer.
//!
//! They ask again and again, for minutes, when the answer is no JSON of theirs.

use serde_json::{Map, Value};

use crate::conversation::list;

/// Some value that fits `schema`, as far as types, properties and enumerations go.
pub(crate) fn sample(schema: &Value) -> Value {
    if let Some(first) = list(&schema["enum"]).first() {
        return first.clone();
    }
    let kind = schema["type"].as_str().or_else(|| list(&schema["type"]).first()?.as_str());
    // Google writes the types in capitals.
    match kind.map(str::to_ascii_lowercase).as_deref() {
        Some("string") => Value::from("scripted"),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| Value::from(0)),
        Some("boolean") => Value::Bool(false),
        Some("array") => Value::Array(Vec::new()),
        Some("null") => Value::Null,
        _ => Value::Object(properties(schema)),
    }
}

fn properties(schema: &Value) -> Map<String, Value> {
    let known = schema["properties"].as_object();
    known.into_iter().flatten().map(|(name, property)| (name.clone(), sample(property))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_each_type_is_made() {
        let schema = json!({
            "type": "OBJECT",
            "properties": {
                "why": {"type": "STRING"}, "which": {"type": "string", "enum": ["flash", "pro"]}, "many": {"type": "array"},
                "number": {"type": "integer", "minimum": 1}, "sure": {"type": "boolean"}, "maybe": {"type": ["null", "string"]},
                "deep": {"properties": {"x": {"type": "number"}}},
            },
        });

        let expected = json!({
            "why": "scripted", "which": "flash", "many": [], "number": 1, "sure": false, "maybe": null, "deep": {"x": 0},
        });
        assert_eq!(sample(&schema), expected);
        assert_eq!(sample(&Value::Null), json!({}));
    }
}
