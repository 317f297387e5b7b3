//! What a person says to an agent at work, as a line of its transcript: the host's own, among those of the engine.

use serde::{Deserialize, Serialize};

/// How the line begins, and no engine's does.
const BEGINNING: &[u8] = br#"{"type":"proctor/said","#;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Line {
    #[serde(rename = "proctor/said")]
    Said { text: String },
}

/// The line, with its end.
pub(crate) fn said_line(text: &str) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Line::Said { text: text.to_owned() }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// What was said, where this is such a line. It never comes before the first line of an engine that can be steered.
pub fn read_said(line: &[u8]) -> Option<String> {
    if !line.starts_with(BEGINNING) {
        return None;
    }
    let Line::Said { text } = serde_json::from_slice(line).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_read_back_and_nothing_else_is() {
        let text = "Leave \"main\" alone:\n\t\u{1}é";
        let line = said_line(text);

        assert_eq!(read_said(&line).as_deref(), Some(text));
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        for other in [&b"{\"type\":\"text\",\"text\":\"proctor/said\"}"[..], b"", b"{\"type\":\"proctor/said\",\"te"] {
            assert_eq!(read_said(other), None);
        }
    }
}
