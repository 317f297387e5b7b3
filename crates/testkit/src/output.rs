//! What a program printed and how it ended.

use std::fmt;
use std::path::PathBuf;

use crate::redact;

/// What a program printed and how it ended.
#[must_use = "look at how it ended"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to stdout; what is not UTF-8 is replaced.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
    /// The world's root, which differs from run to run.
    pub(crate) root: PathBuf,
}

impl Output {
    /// The same, if it ended with this exit code; panics with what it printed otherwise.
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "it ended otherwise:\n{self}");
        self
    }

    /// The one JSON object on stdout; panics when there is none or anything beside it.
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("stdout is not one JSON object: {error}\n{self}"),
        }
    }

    /// Exit code and both streams, with everything replaced that differs from run to run.
    pub fn snapshot(&self) -> String {
        redact(&self.to_string(), &self.root)
    }
}

impl fmt::Display for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(formatter, "exit {code}")?,
            (None, Some(signal)) => write!(formatter, "signal {signal}")?,
            (None, None) => write!(formatter, "no end")?,
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(formatter, "\n--- {name}\n{}", text.trim_end_matches('\n'))?;
            }
        }
        Ok(())
    }
}
