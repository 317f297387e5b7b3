//! A YAML text as a tree in which every key and value knows where it stands, and the way back to text.
//!
//! Cards are read from this tree by hand rather than through serde: a derive stops at its first error,
//! can't name the nearest key, and loses where a key stands.

mod emit;
mod parse;

pub(crate) use emit::{Emitter, flow_scalar};
pub(crate) use parse::parse;

use crate::finding::At;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

/// One text, with what is needed to know what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) text: Box<str>,
    pub(crate) style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes: may mean null, a truth value or a number.
    Plain,
    /// In quotes, as a block, or tagged as text.
    Text,
}

/// What an unquoted scalar means by YAML's core schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Null,
    Bool(bool),
    Int,
    Float,
    Text,
}

impl Scalar {
    pub(crate) fn meaning(&self) -> Meaning {
        match self.style {
            Style::Text => Meaning::Text,
            Style::Plain => plain_meaning(&self.text),
        }
    }
}

pub(crate) fn plain_meaning(text: &str) -> Meaning {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Meaning::Null,
        "true" | "True" | "TRUE" => return Meaning::Bool(true),
        "false" | "False" | "FALSE" => return Meaning::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Meaning::Float,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Meaning::Float;
    }
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if digits(unsigned) {
        return Meaning::Int;
    }
    let radix = |prefix: &str, allowed: fn(&u8) -> bool| {
        text.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| allowed(&byte)))
    };
    if radix("0o", |byte| (b'0'..=b'7').contains(byte)) || radix("0x", u8::is_ascii_hexdigit) {
        return Meaning::Int;
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(left, right)| (left, Some(right)));
    let exponent_fits = exponent.is_none_or(|part| digits(part.strip_prefix(['-', '+']).unwrap_or(part)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let empty_or_digits = |part: &str| part.is_empty() || digits(part);
    let mantissa_fits = empty_or_digits(whole) && empty_or_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    if exponent_fits && mantissa_fits { Meaning::Float } else { Meaning::Text }
}

impl Node {
    /// What the value is, with its article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
            Value::Scalar(scalar) => match scalar.meaning() {
                Meaning::Null => "empty",
                Meaning::Bool(_) => "a truth value",
                Meaning::Int | Meaning::Float => "a number",
                Meaning::Text => "a text",
            },
        }
    }

    pub(crate) fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.scalar().is_some_and(|scalar| scalar.meaning() == Meaning::Null)
    }

    /// The value under a key of a mapping.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => {
                entries.iter().find(|(key, _)| key.scalar().is_some_and(|key| &*key.text == name)).map(|(_, value)| value)
            }
            Value::Scalar(_) | Value::Sequence(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_the_core_schema_says() {
        for (text, meaning) in [
            ("", Meaning::Null),
            ("~", Meaning::Null),
            ("nUll", Meaning::Text),
            ("true", Meaning::Bool(true)),
            ("yes", Meaning::Text),
            ("0", Meaning::Int),
            ("-12", Meaning::Int),
            ("+1", Meaning::Int),
            ("0x1F", Meaning::Int),
            ("0o17", Meaning::Int),
            ("0o8", Meaning::Text),
            ("1.5", Meaning::Float),
            (".5", Meaning::Float),
            ("1.", Meaning::Float),
            ("1e3", Meaning::Float),
            ("-.inf", Meaning::Float),
            (".", Meaning::Text),
            ("e3", Meaning::Text),
            ("1e", Meaning::Text),
            ("1.2.3", Meaning::Text),
            ("-", Meaning::Text),
            ("12-3", Meaning::Text),
        ] {
            assert_eq!(plain_meaning(text), meaning, "{text}");
        }
    }
}
