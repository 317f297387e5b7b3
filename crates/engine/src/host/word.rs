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
    /// Whoever said it is of a session, and no person.
    NoPerson,
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
    say_within(folder, text, PATIENCE)
}

/// All of it within this time: a host that is stopped takes in a short text as well as none of a long one.
fn say_within(folder: &Path, text: &str, patience: Duration) -> io::Result<Option<Said>> {
    let folder = SessionFolder::new(folder);
    let begun = Instant::now();
    let mut line = match Line::connect(&folder) {
        Ok(line) => line,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(Some(Said::Over)),
        Err(error) => return Err(error),
    };
    match line.say(text, patience) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
        // It hung up, and what it may have said before that is still to be read.
        Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
        Err(error) => return Err(error),
    }
    while begun.elapsed() < patience {
        let is_over = folder.has_report();
        // It fails when a signal arrives, and then it is looked again.
        let _ = rustix::event::poll(&mut [PollFd::new(&line, PollFlags::IN)], Some(&LOOK_AGAIN));
        let heard = line.hear();
        if heard.said.is_some() {
            return Ok(heard.said);
        }
        // A host that is done hangs up after its report; one that has too many connections, or that died, has none.
        if is_over || (heard.closed && folder.has_report()) {
            return Ok(Some(Said::Over));
        }
        if heard.closed {
            return Ok(None);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::super::files::CONTROL_SOCKET;
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn a_host_that_is_stopped_does_not_answer_whatever_the_length_of_the_text() {
        let folder = tempfile::tempdir().unwrap();
        // What connects waits for a host that never takes it.
        let _stopped = UnixListener::bind(folder.path().join(CONTROL_SOCKET)).unwrap();

        for text in ["short", &"\u{1}".repeat(LONGEST_WORD)] {
            assert_eq!(say_within(folder.path(), text, SHORT).unwrap(), None, "{}", text.len());
        }
    }

    #[test]
    fn a_host_that_hangs_up_while_its_session_goes_on_does_not_answer() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(CONTROL_SOCKET)).unwrap();

        let said = std::thread::scope(|scope| {
            scope.spawn(|| drop(listener.accept().unwrap()));
            say_within(folder.path(), "Hello?", PATIENCE).unwrap()
        });

        assert_eq!(said, None);
    }
}
