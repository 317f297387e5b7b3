//! What is wrong with a text, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The card can't be used.
    Error,
    /// The card can be used, but probably does not do what its author thinks.
    Warning,
}

impl Level {
    /// The word used in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One thing that is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// The file, as shown to people.
    pub path: PathBuf,
    /// From 1; 0 when the finding is about the file as a whole.
    pub line: usize,
    /// In characters, from 1; 0 when the finding is about the file as a whole.
    pub column: usize,
    /// One sentence without a full stop.
    pub message: String,
    /// The line it is on, control characters replaced. Of a long line only the part around `column`, between
    /// `…`, so that a card of one huge line can't fill the memory with findings. Empty without a line.
    pub source_line: String,
    /// How many characters of `source_line` it is about, from [`Finding::caret`] on.
    pub span_len: usize,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Finding {
    /// An error about a file as a whole.
    pub(crate) fn of_file(path: &Path, message: impl Into<String>) -> Self {
        Self {
            level: Level::Error,
            path: path.to_path_buf(),
            line: 0,
            column: 0,
            message: message.into(),
            source_line: String::new(),
            span_len: 0,
            hint: None,
        }
    }

    /// What is wrong with the bytes `range` of `text`.
    pub fn in_text(level: Level, path: &Path, text: &str, range: std::ops::Range<usize>, message: impl Into<String>) -> Self {
        Located::new(path, text).finding(level, At::new(range.start, range.end), message)
    }

    /// How many characters of `source_line` come before `column`.
    pub fn caret(&self) -> usize {
        let before = self.column.saturating_sub(1);
        if before > SHOWN_BEFORE && self.source_line.starts_with(CUT) { SHOWN_BEFORE + 1 } else { before }
    }

    /// The same finding with a hint.
    pub(crate) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Finding {
    /// `path:line:column: error: message`, the line with a caret below, the hint. No line break at the end.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.path.display())?;
        if self.line > 0 {
            write!(formatter, "{}:{}:", self.line, self.column)?;
        }
        write!(formatter, " {}: {}", self.level.name(), self.message)?;
        if self.line > 0 {
            let number = self.line.to_string();
            let (margin, carets) = (" ".repeat(number.len()), "^".repeat(self.span_len.max(1)));
            write!(formatter, "\n  {number} | {}", self.source_line)?;
            write!(formatter, "\n  {margin} | {}{carets}", " ".repeat(self.caret()))?;
        }
        match &self.hint {
            Some(hint) => write!(formatter, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Finding {}

/// A range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl At {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end.max(start)) }
    }

    pub(crate) fn start(self) -> usize {
        usize::try_from(self.start).unwrap_or(usize::MAX)
    }

    pub(crate) fn end(self) -> usize {
        usize::try_from(self.end).unwrap_or(usize::MAX)
    }
}

/// A text whose byte offsets can be turned into lines and columns.
pub(crate) struct Located<'t> {
    pub(crate) path: &'t Path,
    pub(crate) text: &'t str,
    /// Offsets at which lines begin; 32 bits, since a text of 8 MiB may hold as many lines.
    line_starts: Vec<u32>,
}

impl<'t> Located<'t> {
    pub(crate) fn new(path: &'t Path, text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| At::new(offset + 1, 0).start);
        Self { path, text, line_starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The line, from 1, that holds the byte at `offset`.
    pub(crate) fn line(&self, offset: usize) -> usize {
        let offset = At::new(offset, 0).start;
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// The first and last line that `at` touches; blank space at its end does not count.
    pub(crate) fn lines(&self, at: At) -> (usize, usize) {
        let covered = self.text.get(at.start()..at.end()).unwrap_or("").trim_end();
        let last = at.start() + covered.len().saturating_sub(1);
        (self.line(at.start()), self.line(last))
    }

    pub(crate) fn finding(&self, level: Level, at: At, message: impl Into<String>) -> Finding {
        let offset = floor_char(self.text, at.start());
        let line = self.line(offset);
        let line_start = self.line_starts.get(line - 1).map_or(0, |start| At { start: *start, end: *start }.start());
        let rest = self.text.get(line_start..).unwrap_or("");
        let whole = rest.split('\n').next().unwrap_or("").trim_end_matches('\r');
        let before = floor_char(whole, offset - line_start);
        let length = floor_char(whole, at.end().saturating_sub(line_start)).saturating_sub(before);
        let column = whole[..before].chars().count() + 1;
        let source_line = window(whole, before);
        let room = source_line.chars().count().saturating_sub(column.min(SHOWN_BEFORE + 2) - 1);
        let span_len = whole[before..before + length].chars().take(room.max(1)).count().max(1);
        Finding { level, path: self.path.to_path_buf(), line, column, message: message.into(), source_line, span_len, hint: None }
    }
}

/// The largest character boundary of `text` that is not beyond `offset`.
fn floor_char(text: &str, offset: usize) -> usize {
    let mut boundary = offset.min(text.len());
    while !text.is_char_boundary(boundary) {
        boundary -= 1;
    }
    boundary
}

/// How many characters of a long line are shown before and after a finding.
const SHOWN_BEFORE: usize = 60;
const SHOWN_AFTER: usize = 100;

/// Stands where a part of a line is left out.
const CUT: char = '…';

/// The part of `line` around the byte `offset`.
fn window(line: &str, offset: usize) -> String {
    let (before, after) = line.split_at(offset);
    let start = before.char_indices().rev().nth(SHOWN_BEFORE - 1).map_or(0, |(start, _)| start);
    let end = after.char_indices().nth(SHOWN_AFTER).map_or(line.len(), |(end, _)| offset + end);
    let mut shown = String::new();
    shown.extend((start > 0).then_some(CUT));
    shown.extend(line[start..end].chars().map(printable));
    shown.extend((end < line.len()).then_some(CUT));
    shown
}

/// What stands for a character on a terminal: cards come from outside, and a control character could
/// move the cursor or change what was printed before.
fn printable(letter: char) -> char {
    match letter {
        '\t' => ' ',
        letter if letter.is_control() || is_direction(letter) => '\u{fffd}',
        letter => letter,
    }
}

/// Characters that reorder the text around them.
fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` as a message may show it: one line, at most sixty characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(60).map(printable).collect();
    if text.chars().nth(60).is_some() {
        shown.push(CUT);
    }
    shown
}

/// The findings about one text, in the making.
pub(crate) struct Findings<'t> {
    pub(crate) located: Located<'t>,
    found: Vec<Finding>,
    errors: usize,
    dropped: usize,
}

impl<'t> Findings<'t> {
    /// More would help nobody, and a card of 8 MiB can have a million.
    const MOST: usize = 100;

    pub(crate) fn new(located: Located<'t>) -> Self {
        Self { located, found: Vec::new(), errors: 0, dropped: 0 }
    }

    pub(crate) fn error(&mut self, at: At, message: impl Into<String>) {
        self.add(Level::Error, at, message, None);
    }

    pub(crate) fn error_hint(&mut self, at: At, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Error, at, message, Some(hint.into()));
    }

    pub(crate) fn warning(&mut self, at: At, message: impl Into<String>) {
        self.add(Level::Warning, at, message, None);
    }

    pub(crate) fn warning_hint(&mut self, at: At, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Level::Warning, at, message, Some(hint.into()));
    }

    pub(crate) fn add(&mut self, level: Level, at: At, message: impl Into<String>, hint: Option<String>) {
        self.errors += usize::from(level == Level::Error);
        if self.is_full() {
            self.dropped += 1;
            return;
        }
        let finding = self.located.finding(level, at, message);
        self.found.push(match hint {
            Some(hint) => finding.hinted(hint),
            None => finding,
        });
    }

    /// Whether further findings are only counted, so that work on their wording is wasted.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= Self::MOST
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All of them, in the order of the text.
    pub(crate) fn into_vec(mut self) -> Vec<Finding> {
        self.found.sort_by_key(|finding| (finding.line, finding.column));
        if self.dropped > 0 {
            let level = if self.found.iter().any(|finding| finding.level == Level::Error) || self.errors == 0 {
                Level::Warning
            } else {
                Level::Error
            };
            let message = format!("{} more findings are not shown", self.dropped);
            self.found.push(Finding { level, ..Finding::of_file(self.located.path, message) });
        }
        self.found
    }
}
