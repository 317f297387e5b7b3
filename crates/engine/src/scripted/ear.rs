//! What is said to a scripted agent: its prompt, and further words while it works. Each is a JSON text, and a line.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

/// Hears what comes at standard input.
#[derive(Debug, Default)]
pub(super) struct Ear {
    unread: Vec<u8>,
}

/// The line that says this.
pub(super) fn word(text: &str) -> Vec<u8> {
    let mut line = serde_json::to_vec(text).unwrap_or_default();
    line.push(b'\n');
    line
}

impl Ear {
    /// The prompt, however long it takes to come. Who calls the agent by hand gives it as it is, and then the end.
    pub(super) fn prompt(&mut self) -> io::Result<String> {
        while !self.unread.contains(&b'\n') {
            if self.read()? == 0 {
                break;
            }
        }
        if let Some(prompt) = self.take_word() {
            return Ok(prompt);
        }
        while self.read()? > 0 {}
        Ok(String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned())
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let read = rustix::io::read(io::stdin(), &mut buffer)?;
        self.unread.extend_from_slice(&buffer[..read]);
        Ok(read)
    }

    /// The first line, where it is a word.
    fn take_word(&mut self) -> Option<String> {
        let end = self.unread.iter().position(|&byte| byte == b'\n')?;
        let word = serde_json::from_slice(&self.unread[..end]).ok()?;
        self.unread.drain(..=end);
        Some(word)
    }

    /// The next word; `None` when none comes within this time, or none will come.
    pub(super) fn hear(&mut self, limit: Duration) -> Option<String> {
        let stdin = io::stdin();
        let begun = Instant::now();
        loop {
            if let Some(word) = self.take_word() {
                return Some(word);
            }
            let left = limit.checked_sub(begun.elapsed())?;
            let left = Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(left.subsec_nanos()) };
            // It fails when a signal arrives, and then the time that is left is looked at again.
            if rustix::event::poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&left)).is_ok_and(|ready| ready > 0) {
                self.read().ok().filter(|read| *read > 0)?;
            }
        }
    }
}
