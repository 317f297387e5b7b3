//! The schema of a result as the provider takes it: only a strict one, in which objects are closed and all their properties
//! are there. What is valid by that is valid by the schema that was given, too.

use serde_json::{Map, Value};

/// Keys below which there is one schema.
const ONE: [&str; 3] = ["items", "additionalItems", "not"];
/// Keys below which there is a list of schemas.
const SOME: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keys below which there are schemas by name.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];

/// The strict form of a schema. What is no schema at all stays as it is: the provider says what is wrong with it.
pub(super) fn strict(schema: &str) -> String {
    match serde_json::from_str(schema) {
        Ok(mut value) => {
            tighten(&mut value);
            value.to_string()
        }
        Err(_) => schema.to_owned(),
    }
}

fn tighten(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    close(fields);
    for (key, value) in fields.iter_mut() {
        if ONE.contains(&key.as_str()) {
            tighten(value);
        } else if SOME.contains(&key.as_str()) {
            value.as_array_mut().into_iter().flatten().for_each(tighten);
        } else if NAMED.contains(&key.as_str()) {
            value.as_object_mut().into_iter().flatten().for_each(|(_, value)| tighten(value));
        }
    }
}

/// Closes an object that names its properties.
fn close(fields: &mut Map<String, Value>) {
    let Some(names) =
        fields.get("properties").and_then(Value::as_object).map(|properties| properties.keys().cloned().map(Value::String).collect())
    else {
        return;
    };
    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    fields.insert("required".to_owned(), Value::Array(names));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_object_in_it_is_closed_and_whole() {
        let given = json!({
            "type": "object",
            "required": ["passed"],
            "properties": {
                "passed": {"type": "boolean"},
                "findings": {"type": "array", "items": {"type": "object", "properties": {"title": {"type": "string"}}}},
                "properties": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]},
            },
            "$defs": {"place": {"type": "object", "properties": {}, "additionalProperties": true}},
        });

        let strict: Value = serde_json::from_str(&strict(&given.to_string())).unwrap();

        let expected = json!({
            "type": "object",
            "required": ["findings", "passed", "properties"],
            "additionalProperties": false,
            "properties": {
                "passed": {"type": "boolean"},
                "findings": {"type": "array", "items": {
                    "type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"], "additionalProperties": false,
                }},
                "properties": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]},
            },
            "$defs": {"place": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}},
        });
        assert_eq!(strict, expected);
    }

    #[test]
    fn what_is_no_schema_stays_as_it_is() {
        assert_eq!([strict("{"), strict("true"), strict(r#"{"type":"string"}"#)], ["{", "true", r#"{"type":"string"}"#]);
    }
}
