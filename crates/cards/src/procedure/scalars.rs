//! Single values: texts, numbers, durations, words.

use proctor_domain::{CardDuration, Expiry, MicroDollars};

use super::fields::{Field, Reader};
use crate::finding::{At, shown};
use crate::nearest::nearest;
use crate::yaml::{Meaning, Node, Scalar, Value};

impl Reader<'_> {
    fn scalar<'n>(&mut self, field: &Field<'n>, wanted: &str) -> Option<&'n Scalar> {
        let scalar = field.node.scalar();
        match scalar {
            None => self.wrong_kind(field, wanted),
            Some(scalar) if scalar.meaning() == Meaning::Null => {
                self.findings.error(field.at(), format!("{} is empty; it must be {wanted}", field.label));
                return None;
            }
            Some(_) => {}
        }
        scalar
    }

    /// A text, and nothing that YAML takes for a number or truth value.
    pub(super) fn text(&mut self, field: &Field<'_>) -> Option<String> {
        let scalar = self.scalar(field, "a text")?;
        if scalar.meaning() != Meaning::Text {
            let message = format!("{} must be a text, and is {}", field.label, field.node.kind());
            self.findings.error_hint(field.at(), message, format!("write it in quotes: '{}'", shown(&scalar.text)));
            return None;
        }
        self.without_nul(field, &scalar.text)
    }

    /// One value, kept as it is written: `8080` and `true` are texts here.
    pub(super) fn loose_text(&mut self, field: &Field<'_>) -> Option<String> {
        let wanted = "one value";
        if field.node.is_null() {
            let message = format!("{} is empty; it must be {wanted}", field.label);
            self.findings.error_hint(field.at(), message, "write '' for an empty text");
            return None;
        }
        let scalar = self.scalar(field, wanted)?;
        self.without_nul(field, &scalar.text)
    }

    fn without_nul(&mut self, field: &Field<'_>, text: &str) -> Option<String> {
        if text.contains('\0') {
            self.findings.error(field.at(), format!("{} holds a NUL character, which no program can be given", field.label));
            return None;
        }
        Some(text.to_owned())
    }

    /// A text that says something.
    pub(super) fn filled_text(&mut self, field: &Field<'_>) -> Option<String> {
        let text = self.loose_text(field)?;
        if text.trim().is_empty() {
            self.findings.error(field.at(), format!("{} is empty", field.label));
            return None;
        }
        Some(text)
    }

    pub(super) fn truth(&mut self, field: &Field<'_>) -> Option<bool> {
        let scalar = self.scalar(field, "`true` or `false`")?;
        if let Meaning::Bool(truth) = scalar.meaning() {
            return Some(truth);
        }
        let message = format!("{} must be `true` or `false`, and is `{}`", field.label, shown(&scalar.text));
        self.findings.error(field.at(), message);
        None
    }

    /// A whole number from `least` to `most`.
    pub(super) fn count(&mut self, field: &Field<'_>, least: u32, most: u32) -> Option<u32> {
        let wanted =
            if most == u32::MAX { format!("a whole number of at least {least}") } else { format!("a whole number from {least} to {most}") };
        let scalar = self.scalar(field, &wanted)?;
        let number = if scalar.meaning() == Meaning::Int { scalar.text.parse::<u32>().ok() } else { None };
        let fitting = number.filter(|number| (least..=most).contains(number));
        if fitting.is_none() {
            self.findings.error(field.at(), format!("{} must be {wanted}, and is `{}`", field.label, shown(&scalar.text)));
        }
        fitting
    }

    pub(super) fn duration(&mut self, field: &Field<'_>) -> Option<CardDuration> {
        let scalar = self.scalar(field, "a duration such as 90s or 1.5h")?;
        match scalar.text.parse() {
            Ok(duration) => Some(duration),
            Err(_) => {
                self.not_a_duration(field, &scalar.text, "a duration");
                None
            }
        }
    }

    pub(super) fn expiry(&mut self, field: &Field<'_>) -> Option<Expiry> {
        let scalar = self.scalar(field, "a duration such as 30d, or `never`")?;
        match scalar.text.parse() {
            Ok(expiry) => Some(expiry),
            Err(_) => {
                self.not_a_duration(field, &scalar.text, "a duration or `never`");
                None
            }
        }
    }

    pub(super) fn dollars(&mut self, field: &Field<'_>) -> Option<MicroDollars> {
        let scalar = self.scalar(field, "an amount of dollars such as 2 or 0.25")?;
        let amount = scalar.text.parse().ok();
        if amount.is_none() {
            let message = format!("{} must be an amount of dollars, and is `{}`", field.label, shown(&scalar.text));
            self.findings.error_hint(field.at(), message, "write it like 2 or 0.25, with at most six digits after the point");
        }
        amount
    }

    fn not_a_duration(&mut self, field: &Field<'_>, text: &str, wanted: &str) {
        let message = format!("{} must be {wanted}, and is `{}`", field.label, shown(text));
        self.findings.error_hint(field.at(), message, "write a number and one of s, m, h, d, w, as in 90s, 1.5h or 2w");
    }

    /// One of a few words, and what it stands for.
    pub(super) fn word<T: Copy>(&mut self, field: &Field<'_>, words: &[(&'static str, T)]) -> Option<T> {
        let names: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let wanted = match names.as_slice() {
            [only] => only.clone(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
            [] => return None,
        };
        let scalar = self.scalar(field, &wanted)?;
        if let Some((_, meant)) = words.iter().find(|(word, _)| **word == *scalar.text) {
            return Some(*meant);
        }
        let message = format!("{} must be {wanted}, and is `{}`", field.label, shown(&scalar.text));
        match nearest(&scalar.text, words.iter().map(|(word, _)| *word)) {
            Some(nearest) => self.findings.error_hint(field.at(), message, format!("did you mean `{nearest}`?")),
            None => self.findings.error(field.at(), message),
        }
        None
    }

    /// The entries of a list; none, and a finding, when it is something else.
    pub(super) fn list<'n>(&mut self, field: &Field<'n>) -> Vec<Field<'n>> {
        match &field.node.value {
            Value::Sequence(_) => field.entries().collect(),
            Value::Mapping(_) => {
                self.wrong_kind(field, "a list");
                Vec::new()
            }
            Value::Scalar(scalar) => {
                if scalar.meaning() == Meaning::Null {
                    self.findings.error_hint(
                        field.at(),
                        format!("{} is empty; it must be a list", field.label),
                        "write [] for an empty list",
                    );
                } else {
                    self.findings.error_hint(
                        field.at(),
                        format!("{} must be a list, and is {}", field.label, field.node.kind()),
                        "put `- ` before it",
                    );
                }
                Vec::new()
            }
        }
    }

    /// A list of texts that each say something.
    pub(super) fn texts(&mut self, field: Option<Field<'_>>) -> Vec<String> {
        let Some(field) = field else { return Vec::new() };
        self.list(&field).iter().filter_map(|entry| self.filled_text(entry)).collect()
    }

    /// A name that becomes part of a variable's name.
    pub(super) fn name(&mut self, field: &Field<'_>) -> Option<String> {
        let name = self.text(field)?;
        let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if letters && name.len() <= 64 && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            return Some(name);
        }
        let message = format!("`{}` can't be a name here", shown(&name));
        self.findings.error_hint(field.at(), message, "use letters, digits, `-` and `_`, beginning with a letter, at most 64");
        None
    }
}

/// A part of a scalar's text.
#[derive(Clone, Copy)]
pub(super) struct Part<'n> {
    pub(super) node: &'n Node,
    /// Where it begins in what the scalar means.
    pub(super) offset: usize,
    pub(super) text: &'n str,
}

impl Reader<'_> {
    /// Where a part of a scalar stands in the card.
    ///
    /// Quotes, folding and indentation make the card's text and the scalar's differ, so occurrences are
    /// counted instead of bytes. What is folded over lines is not found; then the scalar as a whole is it.
    pub(super) fn place(&self, part: Part<'_>) -> At {
        // What is only counted needs no place, and the search takes time.
        if self.findings.is_full() || part.text.is_empty() {
            return part.node.at;
        }
        let meaning = part.node.scalar().map_or("", |scalar| &*scalar.text);
        let start = part.node.at.start();
        let raw = self.findings.located.text.get(start..part.node.at.end()).unwrap_or("");
        let before = meaning.get(..part.offset).unwrap_or("").matches(part.text).count();
        raw.match_indices(part.text).nth(before).map_or(part.node.at, |(found, _)| At::new(start + found, start + found + part.text.len()))
    }
}
