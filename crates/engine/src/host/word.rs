//! A word of a person to a session at work.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use serde::{Deserialize, Serialize};

use super::files::SessionFolder;
use super::line::Line;

/// A longer word is none, in bytes.
pub const LONGEST_WORD: usize = 64 * 1024;
/// How long a host may take to answer: it does nothing that takes long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the session is over meanwhile: its host may wait for the next one, and hears nobody then.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What became of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// It was handed to the agent's program.
    Passed,
    /// The agent's engine hears nothing while it works.
    Deaf,
    /// The session runs shells.
    NoAgent,
    /// The agent is done, or is being ended, or its session is over.
    Over,
}

/// Says something to the session with this folder. `None` when its host does not answer.
///
/// # Errors
/// Its host can't be reached.
pub fn say(folder: &Path, text: &str) -> io::Result<Option<Said>> {
    let folder = SessionFolder::new(folder);
    let mut line = match Line::connect(&folder) {
        Ok(line) => line,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(Some(Said::Over)),
        Err(error) => return Err(error),
    };
    line.say(text)?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let is_over = folder.has_report();
        // It fails when a signal arrives, and then it is looked again.
        let _ = rustix::event::poll(&mut [PollFd::new(&line, PollFlags::IN)], Some(&LOOK_AGAIN));
        let heard = line.hear();
        if heard.said.is_some() {
            return Ok(heard.said);
        }
        if heard.closed || is_over {
            return Ok(Some(Said::Over));
        }
    }
    Ok(None)
}
