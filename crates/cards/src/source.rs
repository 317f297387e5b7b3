//! A card's text and where it came from.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::Finding;
use crate::finding::{At, Level, Located};

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
    ///
    /// # Errors
    /// The file is not there, no regular file, larger than [`Source::LARGEST`], or no UTF-8.
    pub fn load(path: &Path, shown: &Path) -> Result<Self, Finding> {
        let unreadable = |error: io::Error| Finding::of_file(shown, format!("can't be read: {error}"));
        // Opening a named pipe would wait for its writer.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(Finding::of_file(shown, "is no regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(Self::LARGEST + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > Self::LARGEST {
            return Err(Finding::of_file(shown, "is larger than 8 MiB, and no card that large is read"));
        }
        let text = String::from_utf8(bytes).map_err(|error| not_text(shown, error.as_bytes(), error.utf8_error().valid_up_to()))?;
        Ok(Self { path: shown.to_path_buf(), text })
    }
}

fn not_text(shown: &Path, bytes: &[u8], valid: usize) -> Finding {
    let byte = bytes.get(valid).copied().unwrap_or(0);
    // The line is shown up to the byte that is no text, and a little beyond it.
    let end = bytes.len().min(valid + 80);
    let text = String::from_utf8_lossy(&bytes[..end]);
    let message = format!("is no UTF-8 text: the byte 0x{byte:02x} can't stand here");
    Located::new(shown, &text).finding(Level::Error, At::new(valid, valid + 1), message).hinted("save the file as UTF-8")
}
