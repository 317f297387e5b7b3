//! Files that must not be written to.

/// What is wrong with a file as a whole. Nothing in it is used, and it is not written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Git could not merge it.
    #[error("it has the marks of a merge that git left to you, the first in line {line}")]
    Conflict {
        /// Where the first mark is.
        line: usize,
    },
    /// Its end is not there.
    #[error("it was cut off: the line `<!-- end of memory -->` is not there")]
    CutOff,
    /// A comment does not end.
    #[error("it was cut off, or the comment that begins in line {line} is not closed")]
    OpenComment {
        /// Where it begins.
        line: usize,
    },
    /// There is a file, and nothing in it.
    #[error("it is empty")]
    Empty,
    /// Bytes that are no text.
    #[error("line {line} is not text in UTF-8")]
    NotText {
        /// The first such line.
        line: usize,
    },
    /// A link, a folder, a pipe.
    #[error("it is no ordinary file")]
    NotAFile,
    /// More than memory ever holds.
    #[error("it is longer than 256 MiB")]
    TooLong,
}

impl Damage {
    /// What helps.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Conflict { .. } => "keep the lines of both sides, remove the marks, and `git add` it",
            Self::CutOff => "restore it, say with `git checkout -p`; if nothing is missing, add that line at its end",
            Self::OpenComment { .. } => "restore it, say with `git checkout -p`; if nothing is missing, close the comment",
            Self::Empty => "restore it, say with `git checkout`; if it is to hold nothing, remove it",
            Self::NotText { .. } => "restore it, say with `git checkout -p`, or save it as UTF-8",
            Self::TooLong => "take out what does not belong there",
            Self::NotAFile => "put an ordinary file in its place, or remove it",
        }
    }
}
