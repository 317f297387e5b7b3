//! The keys of a mapping, checked against the table of keys.

use std::collections::HashMap;
use std::fmt;

use crate::Layout;
use crate::finding::{At, Findings, shown};
use crate::keys;
use crate::nearest::nearest;
use crate::yaml::{Node, Value};

/// What reads a card: where findings go, and what depends on the layout.
pub(super) struct Reader<'t> {
    pub(super) findings: Findings<'t>,
    pub(super) layout: Layout,
}

/// One value and what to call it.
#[derive(Clone, Copy)]
pub(super) struct Field<'n> {
    pub(super) label: Label,
    /// Where its key stands; a value that is empty stands nowhere.
    pub(super) key_at: At,
    pub(super) node: &'n Node,
}

/// What a message calls a value.
#[derive(Clone, Copy)]
pub(super) enum Label {
    Whole,
    Key(&'static str),
    EntryOf(&'static str),
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => formatter.write_str("the front matter"),
            Self::Key(key) => write!(formatter, "`{key}`"),
            Self::EntryOf(key) => write!(formatter, "an entry of `{key}`"),
        }
    }
}

impl<'n> Field<'n> {
    pub(super) fn whole(node: &'n Node) -> Self {
        Self { label: Label::Whole, key_at: node.at, node }
    }

    /// Where a finding about the value points.
    pub(super) fn at(&self) -> At {
        if self.node.at.start == self.node.at.end { self.key_at } else { self.node.at }
    }

    /// The entries of a list, and nothing when it is none.
    pub(super) fn entries(&self) -> impl Iterator<Item = Field<'n>> + use<'n> {
        let label = match self.label {
            Label::Key(key) | Label::EntryOf(key) => Label::EntryOf(key),
            Label::Whole => Label::Whole,
        };
        let items = match &self.node.value {
            Value::Sequence(items) => items.as_slice(),
            Value::Scalar(_) | Value::Mapping(_) => &[],
        };
        items.iter().map(move |node| Field { label, key_at: node.at, node })
    }
}

/// The known keys that a mapping has.
pub(super) struct Fields<'n> {
    at: At,
    found: Vec<(&'static str, Field<'n>)>,
    /// Whether there are other keys too, each with a finding of its own.
    pub(super) has_unknown: bool,
}

impl<'n> Fields<'n> {
    /// Opens the mapping at `path`: everything that is wrong with its keys becomes a finding.
    /// `None` when it is no mapping, which is a finding too.
    pub(super) fn open(reader: &mut Reader<'_>, field: &Field<'n>, path: &'static str) -> Option<Self> {
        let entries = reader.mapping(field)?;
        let known = keys::children(path);
        let mut found: Vec<(&'static str, Field<'n>)> = Vec::with_capacity(entries.len().min(known.len()));
        let mut unknown: HashMap<&str, At> = HashMap::new();
        for (key, node) in entries {
            let Some(name) = key.scalar().map(|scalar| &*scalar.text) else {
                reader.findings.error(key.at, "a key must be a text");
                continue;
            };
            let Some(known_name) = known.iter().copied().find(|known| *known == name) else {
                match unknown.insert(name, key.at) {
                    Some(first) => reader.duplicate_key(key.at, name, first),
                    None => reader.unknown_key(key.at, name, path),
                }
                continue;
            };
            match found.iter().find(|(earlier, _)| *earlier == known_name) {
                Some((_, first)) => reader.duplicate_key(key.at, name, first.key_at),
                None => found.push((known_name, Field { label: Label::Key(known_name), key_at: key.at, node })),
            }
        }
        Some(Self { at: field.at(), found, has_unknown: !unknown.is_empty() })
    }

    pub(super) fn get(&self, name: &'static str) -> Option<Field<'n>> {
        self.found.iter().find(|(found, _)| *found == name).map(|(_, field)| *field)
    }

    /// A key that can't be left out. `owner` says from what it is missing.
    pub(super) fn need(&self, reader: &mut Reader<'_>, name: &'static str, owner: &str) -> Option<Field<'n>> {
        let field = self.get(name);
        if field.is_none() {
            reader.findings.error(At { end: self.at.start, ..self.at }, format!("{owner} has no `{name}`"));
        }
        field
    }
}

impl Reader<'_> {
    pub(super) fn mapping<'n>(&mut self, field: &Field<'n>) -> Option<&'n [(Node, Node)]> {
        match &field.node.value {
            Value::Mapping(entries) => Some(entries),
            Value::Scalar(_) | Value::Sequence(_) => {
                self.wrong_kind(field, "a mapping");
                None
            }
        }
    }

    /// `field` is not `wanted`, which comes with its article.
    pub(super) fn wrong_kind(&mut self, field: &Field<'_>, wanted: &str) {
        self.findings.error(field.at(), format!("{} must be {wanted}, and is {}", field.label, field.node.kind()));
    }

    pub(super) fn duplicate_key(&mut self, at: At, name: &str, first: At) {
        let line = self.findings.located.line(first.start());
        self.findings.error(at, format!("duplicate key `{}`: it is already on line {line}", shown(name)));
    }

    fn unknown_key(&mut self, at: At, name: &str, path: &'static str) {
        let of_boxes = path.is_empty() && self.layout == Layout::BeeBox;
        if of_boxes && keys::box_keys().any(|key| key == name) {
            return;
        }
        if let Some(reason) = keys::refusal(path, name) {
            return self.findings.error(at, format!("`{name}` can't work here: {reason}"));
        }
        let message = format!("unknown key `{}`", shown(name));
        if self.findings.is_full() {
            return self.findings.error(at, message);
        }
        let known = keys::children(path);
        let more = keys::box_keys().filter(|_| of_boxes);
        let hint = if let Some(key) = keys::synonym(path, name) {
            format!("did you mean `{key}`?")
        } else if let Some(homes) = keys::homes(name) {
            format!("`{name}` belongs under {homes}")
        } else if let Some(nearest) = nearest(name, known.iter().copied().chain(more)) {
            format!("did you mean `{nearest}`?")
        } else if name == "<<" {
            "merge keys are not read: repeat the keys, or use an alias for a whole value".to_owned()
        } else {
            format!("the keys here are {}", known.join(", "))
        };
        self.findings.error_hint(at, message, hint);
    }
}
