//! A command line that grows.

use std::ffi::OsString;

/// The program, and what it is given.
pub(crate) struct Arguments(pub(crate) Vec<OsString>);

impl Arguments {
    /// Adds these words.
    pub(crate) fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    /// Adds an option and its value.
    pub(crate) fn pair(&mut self, flag: &str, value: impl Into<OsString>) {
        self.0.push(flag.into());
        self.0.push(value.into());
    }
}
