//! What is wrong with a card, and where.

use std::fmt;
use std::path::PathBuf;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The card can't be used.
    Error,
    /// The card can be used, but probably does not do what its author thinks.
    Warning,
}

/// One thing that is wrong with a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// The card, as shown to people.
    pub path: PathBuf,
    /// From 1; 0 when the finding is about the file as a whole.
    pub line: usize,
    /// In characters, from 1; 0 when the finding is about the file as a whole.
    pub column: usize,
    /// One sentence without a full stop.
    pub message: String,
    /// The line it is on; empty when the finding is about the file as a whole.
    pub source_line: String,
    /// How many characters from `column` on it is about.
    pub span_len: usize,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}: {}", self.path.display(), self.line, self.column, self.message)
    }
}

impl std::error::Error for Finding {}
