//! What a rule has to say.

use std::fmt;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// From 1.
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    pub(crate) weight: Weight,
    pub(crate) sentence: String,
}

/// Whether a finding fails the chore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    Error,
    Warning,
}

impl Finding {
    pub(crate) fn error(path: &str, line: usize, rule: &'static str, sentence: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, weight: Weight::Error, sentence: sentence.into() }
    }

    pub(crate) fn warning(path: &str, line: usize, rule: &'static str, sentence: impl Into<String>) -> Self {
        Self { weight: Weight::Warning, ..Self::error(path, line, rule, sentence) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Error => "",
            Weight::Warning => "warning: ",
        };
        write!(formatter, "{}:{}: {}: {weight}{}", self.path, self.line, self.rule, self.sentence)
    }
}
