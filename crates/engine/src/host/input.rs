//! What a session's child reads, where it is spoken to while it runs.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The writing end of a pipe, and what did not fit into it yet.
pub(crate) struct Input {
    pipe: io::PipeWriter,
    unread: Vec<u8>,
}

impl Input {
    /// A new one, and the end that the child reads.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let (reads, pipe) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok((Self { pipe, unread: Vec::new() }, reads.into()))
    }

    pub(crate) fn push(&mut self, words: &[u8]) {
        self.unread.extend_from_slice(words);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    /// How much was not written yet.
    pub(crate) fn unread_length(&self) -> usize {
        self.unread.len()
    }

    /// What to wait for, while there is something to be written.
    pub(crate) fn unread(&self) -> Option<BorrowedFd<'_>> {
        (!self.unread.is_empty()).then(|| self.pipe.as_fd())
    }

    /// Writes as much as fits. False when nobody reads any more.
    pub(crate) fn write(&mut self) -> bool {
        while !self.unread.is_empty() {
            match self.pipe.write(&self.unread) {
                Ok(written) => _ = self.unread.drain(..written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    #[test]
    fn more_than_a_pipe_holds_arrives_piece_by_piece_and_whole() {
        let (mut input, reads) = Input::open().unwrap();
        let mut reads = File::from(reads);
        let words: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();

        input.push(&words);
        let mut read = Vec::new();
        while input.write() && !input.is_empty() {
            let mut piece = [0; 4096];
            let length = reads.read(&mut piece).unwrap();
            read.extend_from_slice(&piece[..length]);
        }
        drop(input);
        reads.read_to_end(&mut read).unwrap();

        assert!(read == words);
    }

    #[test]
    fn a_program_that_is_gone_is_told_nothing_more() {
        let (mut input, reads) = Input::open().unwrap();
        drop(reads);

        input.push(b"word\n");

        assert!(!input.write());
    }
}
