//! JSON as text: where its values stand, so that a few bytes can be put in or taken out and all others stay.

use std::ops::Range;

use serde_json::Value;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What kind of value it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    Other,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) key: String,
    /// Where the key begins.
    pub(super) start: usize,
    pub(super) value: Node,
}

impl Node {
    /// Reads a text that is JSON; `None` if it isn't.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Its rules are those of the language; what follows needs to know only where things are.
        serde_json::from_str::<Value>(text).ok()?;
        Parser { text, position: 0 }.value()
    }

    /// The value of a key. Of several of the same name the last counts, as it does for the programs that read the file.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.members().iter().rfind(|member| member.key == key).map(|member| &member.value)
    }

    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            Kind::Array(_) | Kind::Text(_) | Kind::Other => &[],
        }
    }

    pub(super) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::Array(items) => items,
            Kind::Object(_) | Kind::Text(_) | Kind::Other => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Object(_) | Kind::Array(_) | Kind::Other => None,
        }
    }

    /// Where the things in it stand, keys included.
    pub(super) fn parts(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|member| member.start..member.value.span.end).collect(),
            Kind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
            Kind::Text(_) | Kind::Other => Vec::new(),
        }
    }
}

struct Parser<'text> {
    text: &'text str,
    position: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.position..];
        self.position += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.position).copied()
    }

    fn value(&mut self) -> Option<Node> {
        let first = self.peek()?;
        let start = self.position;
        let kind = match first {
            b'{' => Kind::Object(self.series(b'}', |parser| {
                parser.peek()?;
                let start = parser.position;
                let key = parser.string()?;
                parser.peek()?;
                parser.position += 1;
                Some(Member { key, start, value: parser.value()? })
            })?),
            b'[' => Kind::Array(self.series(b']', Self::value)?),
            b'"' => Kind::Text(self.string()?),
            _ => {
                let rest = &self.text.as_bytes()[start..];
                self.position += rest.iter().take_while(|byte| !byte.is_ascii_whitespace() && !b",]}".contains(byte)).count();
                Kind::Other
            }
        };
        Some(Node { span: start..self.position, kind })
    }

    fn series<T>(&mut self, end: u8, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = Vec::new();
        self.position += 1;
        while self.peek()? != end {
            found.push(one(self)?);
            if self.peek()? == b',' {
                self.position += 1;
            }
        }
        self.position += 1;
        Some(found)
    }

    fn string(&mut self) -> Option<String> {
        let start = self.position;
        let mut bytes = self.text.as_bytes()[start + 1..].iter();
        let mut length = 1;
        loop {
            length += 1;
            match bytes.next()? {
                b'"' => break,
                b'\\' => {
                    bytes.next()?;
                    length += 1;
                }
                _ => {}
            }
        }
        self.position = start + length;
        serde_json::from_str(&self.text[start..self.position]).ok()
    }
}

/// The text with one thing more at the end of what stands at `container`: an item, or a member if it has a key.
pub(super) fn append(text: &str, container: &Node, key: Option<&str>, value: &Value) -> String {
    let parts = container.parts();
    let is_compact = !text.trim_end().contains('\n') && text.trim_end().len() > 2;
    let lead = key.map(|key| format!("{}:{}", Value::from(key), if is_compact { "" } else { " " })).unwrap_or_default();
    if is_compact {
        let comma = if parts.is_empty() { "" } else { "," };
        let at = parts.last().map_or(container.span.end - 1, |part| part.end);
        return format!("{}{comma}{lead}{value}{}", &text[..at], &text[at..]);
    }
    let unit = unit(text);
    let outer = indent_at(text, container.span.start);
    let inner = format!("{outer}{unit}");
    let said = format!("\n{inner}{lead}{}", pretty(value, &inner, &unit));
    let end = container.span.end - 1;
    match parts.last() {
        Some(part) => format!("{},{said}{}", &text[..part.end], &text[part.end..]),
        None => format!("{}{said}\n{outer}{}", &text[..=container.span.start], &text[end..]),
    }
}

/// The text without the part at this position of what stands at `container`.
pub(super) fn remove(text: &str, container: &Node, position: usize) -> String {
    let parts = container.parts();
    let cut = match (position.checked_sub(1).and_then(|before| parts.get(before)), parts.get(position + 1)) {
        (Some(before), _) => before.end..parts[position].end,
        (None, Some(after)) => parts[position].start..after.start,
        (None, None) => container.span.start + 1..container.span.end - 1,
    };
    format!("{}{}", &text[..cut.start], &text[cut.end..])
}

/// What the file is indented with.
fn unit(text: &str) -> String {
    let indent = |line: &str| line.chars().take_while(|letter| matches!(letter, ' ' | '\t')).collect::<String>();
    text.lines().skip(1).map(indent).find(|indent| !indent.is_empty()).unwrap_or_else(|| "  ".to_owned())
}

fn indent_at(text: &str, position: usize) -> String {
    let line = &text[text[..position].rfind('\n').map_or(0, |at| at + 1)..];
    line.chars().take_while(|letter| matches!(letter, ' ' | '\t')).collect()
}

fn pretty(value: &Value, indent: &str, unit: &str) -> String {
    let inner = format!("{indent}{unit}");
    let joined =
        |parts: Vec<String>, open: char, close: char| format!("{open}\n{inner}{}\n{indent}{close}", parts.join(&format!(",\n{inner}")));
    match value {
        Value::Object(members) if !members.is_empty() => {
            let member = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), pretty(value, &inner, unit));
            joined(members.iter().map(member).collect(), '{', '}')
        }
        Value::Array(items) if !items.is_empty() => joined(items.iter().map(|item| pretty(item, &inner, unit)).collect(), '[', ']'),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_appended_fits_in_and_nothing_else_changes() {
        for (text, expected) in [
            ("{}", "{\n  \"k\": [\n    1\n  ]\n}"),
            ("{\n}\n", "{\n  \"k\": [\n    1\n  ]\n}\n"),
            ("{\"a\":1}", "{\"a\":1,\"k\":[1]}"),
            ("{\n\t\"a\" : [ 1,2 ] \n}\n", "{\n\t\"a\" : [ 1,2 ],\n\t\"k\": [\n\t\t1\n\t] \n}\n"),
            ("{\n    \"b\": \"}\\\"{\"\n}", "{\n    \"b\": \"}\\\"{\",\n    \"k\": [\n        1\n    ]\n}"),
        ] {
            let node = Node::parse(text).unwrap();

            assert_eq!(append(text, &node, Some("k"), &json!([1])), expected);
        }
    }

    #[test]
    fn what_was_appended_can_be_removed_again() {
        for text in ["{\n  \"a\": [1, 2], \"é\": null\n}\n", "{\"a\":[1,2]}", "{ \"a\": 1 }"] {
            let with = append(text, &Node::parse(text).unwrap(), Some("k"), &json!({"x": [1]}));

            let node = Node::parse(&with).unwrap();
            let position = node.members().len() - 1;

            assert_eq!(remove(&with, &node, position), text);
        }
        let text = "[1, 2 ,3]";
        let node = Node::parse(text).unwrap();
        assert_eq!((0..3).map(|at| remove(text, &node, at)).collect::<Vec<_>>(), ["[2 ,3]", "[1 ,3]", "[1, 2]"]);
        assert_eq!(remove("[ 1 ]", &Node::parse("[ 1 ]").unwrap(), 0), "[]");
    }

    #[test]
    fn what_is_no_json_is_not_read() {
        for text in ["", "{", "{\"a\":1,}", "// x\n{}", "{} {}", "\u{feff}{}"] {
            assert_eq!(Node::parse(text), None, "{text:?}");
        }
    }
}
