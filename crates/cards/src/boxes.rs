//! What a box's own settings say that matters here.

use std::path::Path;

use serde::Deserialize;

use crate::finding::{At, Level, Located};
use crate::{Finding, Source};

const SETTINGS: &str = "_config/box.json";

/// What `_config/box.json` says that matters here. The file belongs to another program, so keys
/// that mean nothing to us are fine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BoxDefaults {
    /// `version`, whether it is written as a text or a number.
    #[serde(deserialize_with = "text_or_number")]
    pub version: Option<String>,
    /// `timezone`: an IANA name.
    pub timezone: Option<String>,
    /// `agentEngine`.
    pub agent_engine: Option<String>,
    /// `agentModel`: used by agents whose card names no model.
    pub agent_model: Option<String>,
    /// `publicUrl`.
    pub public_url: Option<String>,
}

fn text_or_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) => Ok(Some(text)),
        serde_json::Value::Number(number) => Ok(Some(number.to_string())),
        serde_json::Value::Bool(_) | serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            Err(serde::de::Error::custom("`version` is neither a text nor a number"))
        }
    }
}

/// Reads the text of `_config/box.json`.
///
/// # Errors
/// It is no JSON object, or a setting that matters here has another type than a text.
pub fn read_box_json(text: &str) -> Result<BoxDefaults, Finding> {
    let path = Path::new(SETTINGS);
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = text.len() - json.len();
    let located = Located::new(path, text);
    // A list would be read too, by position.
    if !json.trim_start().starts_with('{') {
        return Err(located.finding(Level::Error, At::new(mark, mark), "the settings of the box are no JSON object"));
    }
    serde_json::from_str(json).map_err(|error| {
        let line_start: usize = json.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let offset = mark + line_start + error.column().saturating_sub(1);
        let sentence = error.to_string();
        // serde_json appends the place, which the finding shows anyway.
        let message = sentence.rsplit_once(" at line ").map_or(sentence.as_str(), |(message, _)| message);
        located.finding(Level::Error, At::new(offset, offset + 1), format!("the settings of the box can't be read: {message}"))
    })
}

/// Reads `_config/box.json` below `root`; the defaults of no box when it is not there.
///
/// # Errors
/// It is there and can't be read.
pub fn load_box_defaults(root: &Path) -> Result<BoxDefaults, Finding> {
    let path = root.join(SETTINGS);
    if !path.exists() {
        return Ok(BoxDefaults::default());
    }
    read_box_json(&Source::load(&path, Path::new(SETTINGS))?.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_kept_and_the_rest_is_left_alone() {
        let text = r#"{"version": 3, "shapeVersion": 3, "timezone": "Europe/Oslo", "agentEngine": "claude", "agentModel": null, "x": [1]}"#;

        let defaults = read_box_json(text).unwrap();

        assert_eq!(
            defaults,
            BoxDefaults {
                version: Some("3".to_owned()),
                timezone: Some("Europe/Oslo".to_owned()),
                agent_engine: Some("claude".to_owned()),
                ..BoxDefaults::default()
            }
        );
    }

    #[test]
    fn what_is_no_json_or_has_the_wrong_type_is_named_with_its_place() {
        insta::assert_snapshot!(read_box_json("{\n  \"timezone\": 7\n}").unwrap_err(), @r#"
        _config/box.json:2:15: error: the settings of the box can't be read: invalid type: integer `7`, expected a string
          2 |   "timezone": 7
            |               ^
        "#);
        insta::assert_snapshot!(read_box_json("{\n  \"timezone\": \"x\",\n}").unwrap_err(), @"
        _config/box.json:3:1: error: the settings of the box can't be read: trailing comma
          3 | }
            | ^
        ");
        insta::assert_snapshot!(read_box_json("").unwrap_err(), @"
        _config/box.json:1:1: error: the settings of the box are no JSON object
          1 | 
            | ^
        ");
        insta::assert_snapshot!(read_box_json("[]").unwrap_err(), @"
        _config/box.json:1:1: error: the settings of the box are no JSON object
          1 | []
            | ^
        ");
    }
}
