//! What both sides hear: the words of the other, as they are, and between the lines what is said here.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;

use serde_json::Value;

use crate::host::input::Input;

/// What is to be said between two lines of somebody else.
#[derive(Debug, Default)]
struct Added {
    /// Whether a line was begun and not ended.
    is_in_line: bool,
    lines: Vec<u8>,
}

impl Added {
    fn add(&mut self, message: &Value) {
        self.lines.extend_from_slice(message.to_string().as_bytes());
        self.lines.push(b'\n');
    }

    /// Takes it that these words of the other were passed on.
    fn passed(&mut self, bytes: &[u8]) {
        self.is_in_line = bytes.last().map_or(self.is_in_line, |&last| last != b'\n');
    }

    /// What can be said now.
    fn take(&mut self) -> Vec<u8> {
        if self.is_in_line { Vec::new() } else { std::mem::take(&mut self.lines) }
    }
}

/// What the host hears: our standard output.
#[derive(Debug)]
pub(super) struct ToHost {
    file: File,
    added: Added,
}

impl ToHost {
    pub(super) fn open() -> io::Result<Self> {
        // Not the library's: that one looks for line ends and keeps what comes after the last.
        let file = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?.into();
        Ok(Self { file, added: Added::default() })
    }

    /// Passes on what the agent says.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.added.passed(bytes);
        self.file.write_all(&self.added.take())
    }

    pub(super) fn add(&mut self, message: &Value) -> io::Result<()> {
        self.added.add(message);
        self.file.write_all(&self.added.take())
    }
}

/// What the agent hears, until it reads no more or has heard all.
pub(super) struct ToAgent {
    input: Option<Input>,
    added: Added,
}

impl ToAgent {
    pub(super) fn new(input: Input) -> Self {
        Self { input: Some(input), added: Added::default() }
    }

    /// Passes on what the host says.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.added.passed(bytes);
        if let Some(input) = &mut self.input {
            input.push(bytes);
            input.push(&self.added.take());
        }
    }

    pub(super) fn add(&mut self, message: &Value) {
        self.added.add(message);
        if let Some(input) = &mut self.input {
            input.push(&self.added.take());
        }
    }

    /// What to wait for, while there is something that it has not read.
    pub(super) fn unread(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().and_then(Input::unread)
    }

    pub(super) fn unread_length(&self) -> usize {
        self.input.as_ref().map_or(0, |input| input.unread_length() + self.added.lines.len())
    }

    /// Writes as much as it reads now; its input ends where that was all.
    pub(super) fn write(&mut self, is_all: bool) {
        if let Some(input) = &mut self.input
            && (!input.write() || (is_all && input.is_empty()))
        {
            self.input = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_added_never_stands_within_a_line() {
        let (input, reads) = Input::open().unwrap();
        let mut agent = ToAgent::new(input);

        agent.pass(b"one\ntw");
        agent.add(&json!("first"));
        agent.pass(b"o");
        agent.add(&json!("second"));
        agent.pass(b"\n");
        agent.add(&json!("third"));
        agent.pass(b"four");
        agent.write(true);

        let mut heard = String::new();
        File::from(reads).read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "one\ntwo\n\"first\"\n\"second\"\n\"third\"\nfour");
    }
}
