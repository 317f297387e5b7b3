//! Structured results, checked by us whatever the engine says about them.

use serde_json::Value;
use serde_json::value::RawValue;

/// Why a result can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// It is not JSON.
    #[error("read the result as JSON: {0}")]
    NotJson(String),
    /// The schema itself is none.
    #[error("use the schema of the result: {0}")]
    Schema(String),
    /// It is not what the schema asks for; the first thing that is wrong.
    #[error("accept the result: {0}")]
    Invalid(String),
}

/// The result, if it is what `schema` (a JSON schema) asks for.
///
/// # Errors
/// It is not, or is no JSON.
pub fn validate_result(schema: &str, result: &str) -> Result<Value, ResultError> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| ResultError::Schema(error.to_string()))?;
    let result: Value = serde_json::from_str(result).map_err(|error| ResultError::NotJson(error.to_string()))?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| ResultError::Schema(error.to_string()))?;
    match validator.validate(&result) {
        Ok(()) => Ok(result),
        Err(error) => Err(ResultError::Invalid(format!("at `{}`: {error}", error.instance_path()))),
    }
}

/// How often an engine that takes no schema is asked for a result, the first time included.
pub const ASKED_AT_MOST: u32 = 5;
/// How many places of a text are tried as the beginning of the result.
const PLACES: usize = 200;

/// The result in an answer of an engine that takes no schema: the whole text, or the last value in it that `schema` accepts.
///
/// # Errors
/// There is none; what is wrong with the value that came closest.
pub fn find_result(schema: &str, text: &str) -> Result<Value, ResultError> {
    let whole = match validate_result(schema, text.trim()) {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let mut closest = whole;
    let places: Vec<usize> = text.char_indices().filter(|(_, letter)| matches!(letter, '{' | '[')).map(|(place, _)| place).collect();
    for place in places.into_iter().rev().take(PLACES) {
        let value = serde_json::Deserializer::from_str(&text[place..]).into_iter::<Box<RawValue>>().next();
        let Some(Ok(value)) = value else { continue };
        match validate_result(schema, value.get()) {
            Ok(result) => return Ok(result),
            // That of the outermost value, which is tried last.
            Err(error) => closest = error,
        }
    }
    Err(closest)
}

/// What an engine that takes no schema is told about the result that it owes.
pub fn demand(schema: &str) -> String {
    format!(
        "End with your result: one JSON value, with nothing behind it, that this JSON schema accepts. Where you have a tool \
         `submit_result`, you can give it the value instead.\n\n{schema}\n"
    )
}

/// What it is told when its answer was none.
pub fn demand_again(schema: &str, error: &ResultError) -> String {
    format!(
        "Your answer can't be used: failed to {error}. Answer with nothing but one JSON value that this JSON schema accepts:\n\n{schema}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_not_what_was_asked_for_is_refused_by_place() {
        let schema = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;

        let invalid = validate_result(schema, r#"{"passed":"yes"}"#).unwrap_err();

        assert!(matches!(&invalid, ResultError::Invalid(reason) if reason.contains("`/passed`")), "{invalid:?}");
        assert!(matches!(validate_result(schema, "passed"), Err(ResultError::NotJson(_))));
        assert!(matches!(validate_result("{", "{}"), Err(ResultError::Schema(_))));
        assert_eq!(validate_result(schema, r#"{"passed":true}"#).unwrap()["passed"], true);
    }

    const VERDICT: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;

    #[test]
    fn a_result_is_found_alone_in_a_fence_and_behind_words() {
        for text in [
            r#" {"passed":true} "#,
            "I looked.\n```json\n{\"passed\": true}\n```\nThat is all.",
            r#"First {"passed":false}, then {"x":{"y":1}}, and at last {"passed":true,"why":{"a":[1]}}."#,
        ] {
            assert_eq!(find_result(VERDICT, text).map(|result| result["passed"] == true), Ok(true), "{text}");
        }
    }

    #[test]
    fn an_answer_without_a_result_says_what_is_wrong_with_the_nearest() {
        assert!(matches!(find_result(VERDICT, "It passed."), Err(ResultError::NotJson(_))));
        assert!(
            matches!(find_result(VERDICT, r#"Here: {"passed":"yes"}"#), Err(ResultError::Invalid(reason)) if reason.contains("/passed"))
        );
        assert!(find_result(VERDICT, &"{[".repeat(100_000)).is_err());
    }
}
