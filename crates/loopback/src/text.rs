//! Cutting and filling in texts, never inside a character.

/// How much of a prompt or of a tool's output a placeholder is replaced by: its end.
const MOST_BYTES: usize = 4_000;

/// Characters in one event of a stream: few, so that a short text is several events.
pub(crate) const DELTA: usize = 24;

/// What the placeholders of a turn stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placeholders<'a> {
    pub(crate) prompt: &'a str,
    pub(crate) last_tool_output: &'a str,
}

impl Placeholders<'_> {
    /// Fills `text` in one pass, so that a placeholder inside a prompt stays what it is.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let known = [("{{prompt}}", self.prompt), ("{{last_tool_output}}", self.last_tool_output)];
            let (taken, value) =
                known.into_iter().find(|(name, _)| rest.starts_with(name)).map_or(("{{", "{{"), |(name, value)| (name, end_of(value)));
            filled.push_str(value);
            rest = &rest[taken.len()..];
        }
        filled.push_str(rest);
        filled
    }

    /// Fills every string of `value`; names of keys stay.
    pub(crate) fn fill_value(&self, value: &serde_json::Value) -> serde_json::Value {
        use serde_json::Value;
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(entries) => entries.iter().map(|(key, entry)| (key.clone(), self.fill_value(entry))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

fn end_of(text: &str) -> &str {
    let start = text.len().saturating_sub(MOST_BYTES);
    let start = (start..=text.len()).find(|&index| text.is_char_boundary(index)).unwrap_or(text.len());
    &text[start..]
}

/// Parts of `text` of at most `length` characters; none of an empty text.
pub(crate) fn chunks(text: &str, length: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(length).map_or(rest.len(), |(index, _)| index);
        let (chunk, after) = rest.split_at(end);
        rest = after;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_in_a_prompt_are_not_filled_again() {
        let placeholders = Placeholders { prompt: "say {{last_tool_output}}", last_tool_output: "ok" };

        assert_eq!(
            placeholders.fill("{{prompt}}: {{last_tool_output}} {{other}} {{{prompt"),
            "say {{last_tool_output}}: ok {{other}} {{{prompt"
        );
        assert_eq!(placeholders.fill("{{{{prompt}}"), "{{say {{last_tool_output}}");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(chunks("aäöüb", 2).collect::<Vec<_>>(), ["aä", "öü", "b"]);
        assert_eq!(chunks("", 2).count(), 0);

        let long = "ä".repeat(MOST_BYTES);

        assert_eq!(end_of(&format!("{long}x")).len(), MOST_BYTES - 1);
    }
}
