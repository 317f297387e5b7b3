//! A card's text and where it came from.

use std::path::{Path, PathBuf};

use crate::Finding;

/// A card's text and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As shown to people.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// No larger card is read.
    pub const LARGEST: u64 = 8 * 1024 * 1024;

    /// Reads the file at `path`, which findings will call `shown`.
    pub fn load(_path: &Path, _shown: &Path) -> Result<Self, Finding> {
        todo!()
    }
}
