//! What the host hears.

use std::fs::File;
use std::io::{self, Write};

use serde_json::Value;

/// Our standard output: what the agent says, and between its lines what we add.
#[derive(Debug)]
pub(super) struct Out {
    file: File,
    /// Whether the agent has begun a line and not ended it.
    is_in_line: bool,
    notes: Vec<u8>,
}

impl Out {
    pub(super) fn open() -> io::Result<Self> {
        // Not the library's: that one looks for line ends and keeps what comes after the last.
        let file = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?.into();
        Ok(Self { file, is_in_line: false, notes: Vec::new() })
    }

    /// Passes on what the agent says.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.is_in_line = bytes.last().map_or(self.is_in_line, |&last| last != b'\n');
        self.write_notes()
    }

    /// Adds a message of ours, when the agent is at the end of a line.
    pub(super) fn note(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.notes, "{message}")?;
        self.write_notes()
    }

    fn write_notes(&mut self) -> io::Result<()> {
        if self.is_in_line || self.notes.is_empty() {
            return Ok(());
        }
        self.file.write_all(&std::mem::take(&mut self.notes))
    }
}
