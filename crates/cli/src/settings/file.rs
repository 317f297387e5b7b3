//! Reads a TOML text into keys with places, and turns mistakes into findings.

use std::ops::Range;
use std::path::Path;

use proctor_cards::{Finding, Level};
use toml_edit::{Document, Item, TableLike, Value};

/// A settings text with the places of its keys.
pub(super) struct TomlText<'text> {
    path: &'text Path,
    text: &'text str,
    document: Document<&'text str>,
}

/// One value, or table of them, and where it stands.
pub(super) struct Entry<'document> {
    /// Its key and those of the tables around it, with dots between them.
    pub(super) name: String,
    prefix: usize,
    pub(super) key_span: Range<usize>,
    item: &'document Item,
    span: Range<usize>,
}

/// Something wrong in the text, before its place is counted out.
#[derive(Debug)]
pub(super) struct Mistake {
    span: Range<usize>,
    message: String,
    hint: Option<String>,
}

impl Mistake {
    pub(super) fn at(span: &Range<usize>, message: impl Into<String>) -> Self {
        Self { span: span.clone(), message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl<'text> TomlText<'text> {
    /// Parses the text.
    pub(super) fn parse(path: &'text Path, text: &'text str) -> Result<Self, Vec<Finding>> {
        match Document::parse(text) {
            Ok(document) => Ok(Self { path, text, document }),
            Err(error) => {
                let message = error.message().lines().map(str::trim).collect::<Vec<_>>().join("; ");
                Err(vec![finding(path, text, Mistake::at(&error.span().unwrap_or(0..0), message))])
            }
        }
    }

    /// The entries of the top table.
    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        entries_of(self.document.as_table(), "")
    }

    /// The mistakes as findings, in the order of the text.
    pub(super) fn findings(&self, mut mistakes: Vec<Mistake>) -> Vec<Finding> {
        mistakes.sort_by_key(|mistake| mistake.span.start);
        mistakes.into_iter().map(|mistake| finding(self.path, self.text, mistake)).collect()
    }
}

/// The entries of a table, in no particular order.
fn entries_of<'document>(table: &'document dyn TableLike, prefix: &str) -> Vec<Entry<'document>> {
    let entry = |(key, item): (&str, &'document Item)| {
        let key_span = table.get_key_value(key).and_then(|(key, _)| key.span()).or_else(|| item.span()).unwrap_or(0..0);
        // A key with a dot in quotes is one key, and none that is known.
        let name = if key.contains('.') { format!("{prefix}\"{key}\"") } else { format!("{prefix}{key}") };
        Entry { name, prefix: prefix.len(), span: item.span().unwrap_or_else(|| key_span.clone()), key_span, item }
    };
    table.iter().map(entry).collect()
}

impl<'document> Entry<'document> {
    /// The names of the tables around it, with the dot behind them.
    pub(super) fn prefix(&self) -> &str {
        self.name.get(..self.prefix).unwrap_or_default()
    }

    /// Its own key.
    pub(super) fn word(&self) -> &str {
        self.name.get(self.prefix..).unwrap_or_default()
    }

    /// What is in it, if it is a table.
    pub(super) fn entries(&self) -> Result<Vec<Entry<'document>>, Mistake> {
        let table = self.item.as_table_like().ok_or_else(|| self.wrong_kind("a table"))?;
        Ok(entries_of(table, &format!("{}.", self.name)))
    }

    /// The value as a switch.
    pub(super) fn switch(&self) -> Result<bool, Mistake> {
        self.item.as_bool().ok_or_else(|| self.wrong_kind("true or false"))
    }

    /// The value as text.
    pub(super) fn text(&self) -> Result<&str, Mistake> {
        self.item.as_str().ok_or_else(|| self.wrong_kind("a string"))
    }

    /// The value as a list of texts, each with its place.
    pub(super) fn texts(&self) -> Result<Vec<(String, Range<usize>)>, Mistake> {
        let array = self.item.as_array().ok_or_else(|| self.wrong_kind("a list of strings"))?;
        let text_of = |value: &Value| {
            let span = value.span().unwrap_or_else(|| self.span.clone());
            match value.as_str() {
                Some(text) => Ok((text.to_owned(), span)),
                None => Err(Mistake::at(&span, format!("`{}` wants strings, this is {}", self.name, article(value.type_name())))),
            }
        };
        array.iter().map(text_of).collect()
    }

    /// A mistake in the value.
    pub(super) fn refuse(&self, message: impl Into<String>) -> Mistake {
        Mistake::at(&self.span, message)
    }

    fn wrong_kind(&self, wanted: &str) -> Mistake {
        self.refuse(format!("`{}` wants {wanted}, this is {}", self.name, article(self.item.type_name())))
    }
}

fn article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

fn finding(path: &Path, text: &str, mistake: Mistake) -> Finding {
    let finding = Finding::in_text(Level::Error, path, text, mistake.span, mistake.message);
    Finding { hint: mistake.hint, ..finding }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_toml_is_a_finding_with_its_place() {
        let error = TomlText::parse(Path::new("proctor.toml"), "layout = \"auto\"\nrecords = \n").err().expect("no TOML");

        let [finding] = &error[..] else { panic!("one finding") };
        assert_eq!((finding.line, finding.level), (2, Level::Error));
        assert!(!finding.message.contains('\n'), "{}", finding.message);
    }
}
