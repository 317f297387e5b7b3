//! From YAML's events to the tree.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, Span, StructureStyle, Tag};

use super::{Node, Scalar, Style, Value};
use crate::finding::{At, shown};

/// A text that is no YAML, or more of it than is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) at: At,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
}

/// Deeper than any card goes; it also bounds every recursion over the tree.
const DEEPEST: usize = 32;
/// A node takes about 70 bytes, so the tree of the worst text stays below 40 MB.
const MOST_NODES: usize = 500_000;
/// Text that aliases may repeat, beyond what stands in the file itself.
const MOST_REPEATED_BYTES: usize = 4 * 1024 * 1024;

/// Reads the YAML document `text`, which stands at the byte `offset` of its file. An empty one is `None`.
pub(crate) fn parse(text: &str, offset: usize) -> Result<Option<Node>, YamlError> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
        disallow_directives: true,
    };
    options.set_emit_comments(false);
    let mut builder = Builder { offset, ..Builder::default() };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.take(event, &span)?,
            Err(error) => {
                let start = offset + error.marker().byte_offset().unwrap_or(0).min(text.len());
                let message = format!("not valid YAML: {}", error.info());
                return Err(YamlError { at: At::new(start, start + 1), message, hint: remedy(error.kind()) });
            }
        }
    }
    Ok(builder.root)
}

/// What to do about the mistakes that people make most.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is foreign and may grow")]
fn remedy(kind: &ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation | ErrorKind::TabAtBlockScalarStart => {
            Some("indent with spaces")
        }
        ErrorKind::UnexpectedCharacter { .. } => Some("a text that begins with this character needs quotes"),
        ErrorKind::UnknownAnchor => Some("a text that begins with `*` needs quotes"),
        ErrorKind::MappingValueNotAllowed => Some("a text with `: ` in it needs quotes"),
        ErrorKind::RecursionLimitExceeded => Some("no card needs to go this deep"),
        _ => None,
    }
}

/// A collection whose end has not come.
struct Open {
    start: usize,
    end: usize,
    anchor: usize,
    style: StructureStyle,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping { entries: Vec<(Node, Node)>, key: Option<Node> },
}

#[derive(Default)]
struct Builder {
    offset: usize,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
    documents: usize,
    nodes: usize,
    repeated_bytes: usize,
}

impl Builder {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is foreign and may grow")]
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlError> {
        let at = self.at(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(YamlError { at, message: "a second YAML document begins here".to_owned(), hint: None });
                }
                Ok(())
            }
            Event::Alias(anchor) => {
                let node = self.repeat(anchor, at)?;
                self.put(node)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let text_tag = check_tag(tag.as_deref(), span, at, self.offset)?;
                let node = Node { at, value: Value::Scalar(scalar(text, style, text_tag, at)) };
                self.remember(anchor, &node)?;
                self.put(node)
            }
            Event::SequenceStart(style, anchor, tag) => {
                check_tag(tag.as_deref(), span, at, self.offset)?;
                self.begin(at, anchor, style, Content::Sequence(Vec::new()));
                Ok(())
            }
            Event::MappingStart(style, anchor, tag) => {
                check_tag(tag.as_deref(), span, at, self.offset)?;
                self.begin(at, anchor, style, Content::Mapping { entries: Vec::new(), key: None });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
            _ => Ok(()),
        }
    }

    fn at(&self, span: &Span) -> At {
        let range = span.byte_range().unwrap_or(0..0);
        At::new(self.offset + range.start, self.offset + range.end)
    }

    fn begin(&mut self, at: At, anchor: usize, style: StructureStyle, content: Content) {
        self.open.push(Open { start: at.start(), end: at.end(), anchor, style, content });
    }

    fn end(&mut self, at: At) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        // The end of a block is only seen where the next thing begins; what it holds says where it really ends.
        let end = if open.style == StructureStyle::Flow { at.end() } else { open.end };
        let value = match open.content {
            Content::Sequence(items) => Value::Sequence(items),
            Content::Mapping { entries, .. } => Value::Mapping(entries),
        };
        let node = Node { at: At::new(open.start, end), value };
        self.remember(open.anchor, &node)?;
        self.put(node)
    }

    fn put(&mut self, node: Node) -> Result<(), YamlError> {
        self.count(1, node.at)?;
        let end = node.at.end();
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(open) => {
                open.end = open.end.max(end);
                match &mut open.content {
                    Content::Sequence(items) => items.push(node),
                    Content::Mapping { entries, key } => match key.take() {
                        Some(name) => entries.push((name, node)),
                        None => *key = Some(node),
                    },
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, at: At) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes <= MOST_NODES {
            return Ok(());
        }
        Err(YamlError { at, message: format!("more than {MOST_NODES} keys and values are not read"), hint: Some("split the card") })
    }

    fn remember(&mut self, anchor: usize, node: &Node) -> Result<(), YamlError> {
        if anchor == 0 {
            return Ok(());
        }
        // An anchor is paid for like an alias: anchors inside anchors would otherwise be free copies.
        self.pay(node, node.at)?;
        self.anchors.insert(anchor, node.clone());
        Ok(())
    }

    /// A copy of what the anchor named, standing where the alias stands as a whole.
    fn repeat(&mut self, anchor: usize, at: At) -> Result<Node, YamlError> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(YamlError { at, message: "this alias stands inside of what it names".to_owned(), hint: None });
        };
        self.pay(&node, at)?;
        Ok(Node { at, ..node })
    }

    fn pay(&mut self, node: &Node, at: At) -> Result<(), YamlError> {
        let (nodes, bytes) = size(node);
        self.repeated_bytes += bytes;
        if self.repeated_bytes > MOST_REPEATED_BYTES {
            return Err(YamlError { at, message: "the aliases up to here repeat more text than is read".to_owned(), hint: None });
        }
        self.count(nodes, at)
    }
}

/// How many nodes and bytes of text a copy makes.
fn size(node: &Node) -> (usize, usize) {
    let add = |(nodes, bytes): (usize, usize), more: (usize, usize)| (nodes + more.0, bytes + more.1);
    match &node.value {
        Value::Scalar(scalar) => (1, scalar.text.len()),
        Value::Sequence(items) => items.iter().map(size).fold((1, 0), add),
        Value::Mapping(entries) => entries.iter().map(|(key, value)| add(size(key), size(value))).fold((1, 0), add),
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, text_tag: TextTag, at: At) -> Scalar {
    // The parser writes `~` for a value that is not there.
    let text = if style == ScalarStyle::Plain && at.start == at.end { Cow::Borrowed("") } else { text };
    let style = if style == ScalarStyle::Plain && text_tag == TextTag::Absent { Style::Plain } else { Style::Text };
    Scalar { text: text.into(), style }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextTag {
    Absent,
    Present,
}

/// Tags that say nothing new are fine (`!!str`, `!!map`); others would mean something that cards don't know.
fn check_tag(tag: Option<&Tag>, span: &Span, at: At, offset: usize) -> Result<TextTag, YamlError> {
    let Some(tag) = tag else { return Ok(TextTag::Absent) };
    if tag.is_yaml_core_schema_tag("str") || (tag.handle() == "!" && tag.suffix().is_empty()) {
        return Ok(TextTag::Present);
    }
    if ["map", "seq", "int", "float", "bool", "null"].iter().any(|known| tag.is_yaml_core_schema_tag(known)) {
        return Ok(TextTag::Absent);
    }
    let at = span.tag_span().and_then(|span| span.byte_range()).map_or(at, |range| At::new(offset + range.start, offset + range.end));
    let message = format!("the YAML tag `{}` means nothing in a card", shown(&tag.original()));
    Err(YamlError { at, message, hint: Some("a text that begins with `!` needs quotes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in a short form that shows what each part covers.
    fn outline(text: &str) -> String {
        fn walk(node: &Node, text: &str, depth: usize, lines: &mut Vec<String>) {
            let covered = text[node.at.start()..node.at.end()].trim_end();
            let pad = "  ".repeat(depth);
            match &node.value {
                Value::Scalar(scalar) => lines.push(format!("{pad}{:?} <- {covered:?}", scalar.text)),
                Value::Sequence(items) => {
                    lines.push(format!("{pad}list <- {covered:?}"));
                    items.iter().for_each(|item| walk(item, text, depth + 1, lines));
                }
                Value::Mapping(entries) => {
                    lines.push(format!("{pad}mapping <- {covered:?}"));
                    for (key, value) in entries {
                        walk(key, text, depth + 1, lines);
                        walk(value, text, depth + 2, lines);
                    }
                }
            }
        }
        let mut lines = Vec::new();
        if let Some(node) = parse(text, 0).unwrap() {
            walk(&node, text, 0, &mut lines);
        }
        lines.join("\n")
    }

    fn refusal(text: &str) -> String {
        parse(text, 0).unwrap_err().message
    }

    #[test]
    fn every_part_knows_what_it_covers() {
        insta::assert_snapshot!(outline("a:\n  - |\n    x\n    y\n\n  - {b: 'it''s'}\nc:\nd: é\n"), @r#"
        mapping <- "a:\n  - |\n    x\n    y\n\n  - {b: 'it''s'}\nc:\nd: é"
          "a" <- "a"
            list <- "- |\n    x\n    y\n\n  - {b: 'it''s'}"
              "x\ny\n" <- "x\n    y"
              mapping <- "{b: 'it''s'}"
                "b" <- "b"
                  "it's" <- "'it''s'"
          "c" <- "c"
            "" <- ""
          "d" <- "d"
            "é" <- "é"
        "#);
    }

    #[test]
    fn an_alias_is_a_copy_that_stands_where_the_alias_stands() {
        insta::assert_snapshot!(outline("a: &x [1]\nb: *x\n"), @r#"
        mapping <- "a: &x [1]\nb: *x"
          "a" <- "a"
            list <- "[1]"
              "1" <- "1"
          "b" <- "b"
            list <- "*x"
              "1" <- "1"
        "#);
    }

    #[test]
    fn texts_that_grow_when_they_are_read_are_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let names = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{names}]\n"));
        }
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), ["*a"; 10].join(", "));

        assert_eq!(refusal(&bomb), "more than 500000 keys and values are not read");
        assert_eq!(refusal(&long), "the aliases up to here repeat more text than is read");
        assert_eq!(refusal("a: &a [*a]"), "this alias stands inside of what it names");
        assert_eq!(refusal(&format!("[{}]", "1,".repeat(600_000))), "more than 500000 keys and values are not read");
    }

    #[test]
    fn deep_nesting_is_refused_in_flow_and_in_block() {
        assert!(refusal(&"[".repeat(100_000)).starts_with("not valid YAML: "));
        assert!(refusal(&"- ".repeat(100_000)).starts_with("not valid YAML: "));
        assert!(refusal(&"{a: ".repeat(100_000)).starts_with("not valid YAML: "));
    }

    #[test]
    fn tags_directives_and_second_documents_are_refused() {
        assert_eq!(refusal("a: !secret x"), "the YAML tag `!secret` means nothing in a card");
        assert_eq!(refusal("a: 1\n...\nb: 2\n"), "a second YAML document begins here");
        assert!(refusal("%YAML 1.2\n---\na: 1").starts_with("not valid YAML: "));
        assert_eq!(parse("a: !!str 5", 0).unwrap().unwrap().get("a").unwrap().kind(), "a text");
    }
}
