//! The part of a line that people read: `key: value` parts between ` | `, or free prose.

use proctor_domain::RecordId;

use crate::escape::{escape, unescape};
use crate::record::{Layer, Polarity, Record, Said, Word};

const SEPARATOR: &str = " | ";
/// The key of values that nobody asks for: what follows a foreign key belongs to that.
const NOBODYS: &str = "";

/// The keys of a line, in the order in which they are written.
pub const KEYS: [&str; 10] = ["route", "trap", "observation", "alternative", "verify", "layer", "scope", "evidence", "degree", "action"];

/// Something that a reader should be told about a line. Nothing of the line is lost for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
    /// A word that is not on the list of its key.
    #[error("`{value}` is no {key}: one of {known}")]
    UnknownValue {
        /// The key.
        key: &'static str,
        /// What is written there.
        value: String,
        /// What may be written there.
        known: String,
    },
    /// A key that means nothing.
    #[error("the key `{key}` means nothing here; if it belongs to the text before it, write the pipe as `&#124;`")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// Text in front of the first key.
    #[error("`{text}` stands before the first key, and belongs to none")]
    NoKey {
        /// The text.
        text: String,
    },
    /// The key was there before; the last one counts.
    #[error("`{key}` stands there twice, and the last one counts")]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// Metadata that can't be understood; it is kept as it is.
    #[error("the metadata `{key}={value}` can't be understood")]
    Metadata {
        /// The name.
        key: String,
        /// What is written there.
        value: String,
    },
}

/// A part of a line.
enum Part<'text> {
    Key(&'static str, &'text str),
    /// It looks like a key and is none.
    Foreign(String),
    /// No key: a pipe that belongs to the value before it.
    More,
}

/// Reads a body into a record of which only this much is known.
pub(crate) fn read(id: RecordId, polarity: Polarity, body: &str) -> (Record, Vec<Remark>) {
    let body = body.trim();
    let mut remarks = Vec::new();
    let values = values(body, &mut remarks);
    let value =
        |key: &str| values.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| unescape(value)).filter(|it| !it.is_empty());
    let Some(route) = value("route") else {
        let prose = Record { layer: Some(Said::Known(Layer::Unclassified)), ..Record::new(id, polarity, unescape(body)) };
        return (prose, Vec::new());
    };
    for (index, (key, _)) in values.iter().enumerate() {
        if *key != NOBODYS && values[..index].iter().any(|(earlier, _)| earlier == key) {
            remarks.push(Remark::Twice { key });
        }
    }
    let record = Record {
        trap: value("trap"),
        observation: value("observation"),
        alternative: value("alternative"),
        verify: value("verify"),
        layer: word("layer", value("layer"), &mut remarks),
        scope: word("scope", value("scope"), &mut remarks),
        evidence: word("evidence", value("evidence"), &mut remarks),
        degree: word("degree", value("degree"), &mut remarks),
        action: word("action", value("action"), &mut remarks),
        ..Record::new(id, polarity, route)
    };
    (record, remarks)
}

fn word<T: Word + PartialEq>(key: &'static str, value: Option<String>, remarks: &mut Vec<Remark>) -> Option<Said<T>> {
    let said = Said::of(&value?);
    if let Said::Unknown(value) = &said {
        let known: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        remarks.push(Remark::UnknownValue { key, value: value.clone(), known: known.join(", ") });
    }
    Some(said)
}

/// Keys with their values as they are written. A part without a key goes on with the value before it: whoever writes a shell
/// command by hand does not think of pipes.
fn values(body: &str, remarks: &mut Vec<Remark>) -> Vec<(&'static str, String)> {
    let mut values: Vec<(&'static str, String)> = Vec::new();
    for text in body.split(SEPARATOR) {
        match (part(text), values.last_mut()) {
            (Part::Key(key, value), _) => values.push((key, value.to_owned())),
            (Part::More, Some((_, value))) => {
                value.push_str(SEPARATOR);
                value.push_str(text.trim());
            }
            (Part::More, None) => remarks.push(Remark::NoKey { text: text.trim().to_owned() }),
            (Part::Foreign(key), _) => {
                remarks.push(Remark::UnknownKey { key });
                values.push((NOBODYS, String::new()));
            }
        }
    }
    values
}

fn part(text: &str) -> Part<'_> {
    let (key, value) = match text.split_once(": ") {
        Some((key, value)) => (key, value.trim()),
        // `trap:` and nothing behind it.
        None => match text.trim_end().strip_suffix(':') {
            Some(key) => (key, ""),
            None => return Part::More,
        },
    };
    let key = key.trim().to_lowercase();
    if let Some(known) = KEYS.iter().find(|known| **known == key) {
        return Part::Key(known, value);
    }
    let is_word = key.starts_with(|first: char| first.is_ascii_lowercase())
        && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_'));
    if is_word { Part::Foreign(key) } else { Part::More }
}

/// The body of a record, on one line.
pub(crate) fn write(record: &Record) -> String {
    let prose = escape(record.route.trim());
    if is_bare_prose(record) && !matches!(part(&prose), Part::Key("route", _)) {
        return prose;
    }
    let texts = [
        Some(record.route.as_str()),
        record.trap.as_deref(),
        record.observation.as_deref(),
        record.alternative.as_deref(),
        record.verify.as_deref(),
        record.layer.as_ref().map(Said::word),
        record.scope.as_ref().map(Said::word),
        record.evidence.as_ref().map(Said::word),
        record.degree.as_ref().map(Said::word),
        record.action.as_ref().map(Said::word),
    ];
    let said = KEYS.iter().zip(texts).filter_map(|(key, text)| text.map(|text| (key, text.trim()))).filter(|(_, text)| !text.is_empty());
    said.map(|(key, text)| format!("{key}: {}", escape(text))).collect::<Vec<_>>().join(SEPARATOR)
}

/// Whether it says nothing but its prose, so that the prose alone reads as the same record.
fn is_bare_prose(record: &Record) -> bool {
    let bare = Record { layer: record.layer.clone(), ..Record::new(record.id.clone(), record.polarity, record.route.clone()) };
    let said = |record: &Record| {
        (record.trap.clone(), record.observation.clone(), record.alternative.clone(), record.verify.clone(), record.scope.clone())
    };
    let judged = |record: &Record| (record.evidence.clone(), record.degree.clone(), record.action.clone());
    record.is_prose() && said(record) == said(&bare) && judged(record) == judged(&bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(body: &str) -> (Record, Vec<Remark>) {
        read(RecordId::from_bits(1), Polarity::Works, body)
    }

    fn check(body: &str, route: &str, trap: Option<&str>, is_prose: bool) {
        let (record, _) = record(body);

        assert_eq!((record.route.as_str(), record.trap.as_deref(), record.is_prose()), (route, trap, is_prose), "{body}");
    }

    #[test]
    fn keys_are_read_without_regard_to_case_and_the_last_one_counts() {
        check("route: a | trap: b", "a", Some("b"), false);
        check("Route : a | TRAP: b", "a", Some("b"), false);
        check("trap: c | route: a | trap: b", "a", Some("b"), false);
        assert_eq!(record("trap: c | route: a | trap: b").1, [Remark::Twice { key: "trap" }]);
    }

    #[test]
    fn what_has_no_route_is_prose_as_a_whole() {
        check("route:a | trap: b", "route:a | trap: b", None, true);
        check("just prose: with colon", "just prose: with colon", None, true);
        check("trap: t | verify: v", "trap: t | verify: v", None, true);
        check("route: | trap: t", "route: | trap: t", None, true);
    }

    #[test]
    fn a_value_may_have_colons_and_an_unknown_word_is_reported_and_kept() {
        let (record, remarks) = record("route: x | observation: got 3: 4 | layer: Design");

        assert_eq!((record.observation.as_deref(), &record.layer), (Some("got 3: 4"), &Some(Said::Unknown("Design".to_owned()))));
        assert_eq!(remarks.len(), 1);
        assert_eq!(
            remarks[0].to_string(),
            "`Design` is no layer: one of implementation, design, environment, dependency, requirement, unclassified"
        );
        let again = read(RecordId::from_bits(1), Polarity::Fails, "route: x | layer: Design | layer: design").0;
        assert_eq!(again.layer, Some(Said::Known(Layer::Design)));
    }

    #[test]
    fn a_pipe_in_a_command_that_was_written_by_hand_loses_nothing() {
        check("route: grep a | b | trap: t", "grep a | b", Some("t"), false);
        let (record, remarks) = record("route: r | trap: t | verify: curl -H \"Accept: x\" | grep \"a: b\" | wc -l");

        assert_eq!(record.verify.as_deref(), Some("curl -H \"Accept: x\" | grep \"a: b\" | wc -l"));
        assert_eq!(remarks, []);
    }

    #[test]
    fn what_belongs_to_no_key_is_reported() {
        let (record, remarks) = record("old | route: r | colour: blue | trap: t");

        assert_eq!((record.route.as_str(), record.trap.as_deref()), ("r", Some("t")));
        assert_eq!(remarks, [Remark::NoKey { text: "old".to_owned() }, Remark::UnknownKey { key: "colour".to_owned() }]);
    }
}
