//! One command that an agent had run.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use proctor_process::{Child, ExitState, Program, ProgramError, Signal, Sink};
use rustix::io::Errno;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::CHUNK;
use super::kept::Kept;

/// Between asking a command to end and making it.
const GRACE: Duration = Duration::from_secs(2);

/// Signals that end commands, by their numbers.
const SIGNALS: [(i32, &str); 12] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (25, "SIGXFSZ"),
];

/// A command, and what it printed.
pub(super) struct Terminal {
    child: Child,
    /// Both of its streams, in their order. Whatever it left behind may hold it open.
    pipe: Option<OwnedFd>,
    kept: Kept,
    exit: Option<ExitState>,
    /// Who is to be told of its end.
    pub(super) waiting: Vec<Box<RawValue>>,
    /// When it is made to end.
    kill_at: Option<Instant>,
}

impl Terminal {
    /// Runs this program, and keeps so much of what it prints.
    pub(super) fn start(program: Program, limit: usize) -> Result<Self, ProgramError> {
        let no_pipe = |source| ProgramError::Watch { program: "the command".into(), source };
        let (reads, writes) = io::pipe().map_err(no_pipe)?;
        rustix::io::ioctl_fionbio(&reads, true).map_err(|errno| no_pipe(errno.into()))?;
        let sink = |writes: io::PipeWriter| Sink::File(File::from(OwnedFd::from(writes)));
        let second = writes.try_clone().map_err(no_pipe)?;
        let child = program.own_group().stdout(sink(writes)).stderr(sink(second)).spawn()?;
        Ok(Self { child, pipe: Some(reads.into()), kept: Kept::new(limit), exit: None, waiting: Vec::new(), kill_at: None })
    }

    /// What to wait on.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let end = self.exit.is_none().then(|| self.child.as_fd());
        self.pipe.as_ref().map(AsFd::as_fd).into_iter().chain(end)
    }

    /// When it is made to end, if it was asked to.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.kill_at.filter(|_| self.exit.is_none())
    }

    /// Takes in what it printed and whether it ended; true when it has ended just now.
    pub(super) fn look(&mut self) -> bool {
        self.read(CHUNK);
        if self.exit.is_some() {
            return false;
        }
        if self.kill_at.is_some_and(|at| at <= Instant::now()) {
            // One that changed its user can't be ended; its end is waited for all the same.
            let _ = self.child.signal_group(Signal::Kill);
            self.kill_at = None;
        }
        self.exit = self.child.try_wait().ok().flatten();
        if self.exit.is_some() {
            // All that it printed itself is in the pipe by now.
            let held = self.pipe.as_ref().map_or(0, |pipe| rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(CHUNK));
            self.read(held);
        }
        self.exit.is_some()
    }

    fn read(&mut self, most: usize) {
        let mut buffer = [0; 8 * 1024];
        let mut left = most;
        while let Some(pipe) = &self.pipe
            && left > 0
        {
            match rustix::io::read(pipe, &mut buffer) {
                Ok(length @ 1..) => {
                    left = left.saturating_sub(length);
                    self.kept.push(&buffer[..length]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Ok(_) | Err(_) => self.pipe = None,
            }
        }
    }

    /// Asks it to end, and makes it when it does not.
    pub(super) fn end(&mut self) {
        if self.exit.is_none() && self.kill_at.is_none() {
            let _ = self.child.signal_group(Signal::Terminate);
            self.kill_at = Some(Instant::now() + GRACE);
        }
    }

    /// Takes it that nobody asks for its output any more.
    pub(super) fn forget_output(&mut self) {
        self.pipe = None;
        self.kept = Kept::new(0);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.exit.is_some()
    }

    /// What it printed so far, and how it ended.
    pub(super) fn output(&mut self) -> Value {
        // Its newest words may have come since it was looked at.
        self.read(CHUNK);
        let (output, truncated) = self.kept.text();
        match self.exit {
            Some(_) => json!({ "output": output, "truncated": truncated, "exitStatus": self.exit_status() }),
            None => json!({ "output": output, "truncated": truncated }),
        }
    }

    /// The end of what it printed, of at most so many bytes.
    pub(super) fn last_words(&mut self, most: usize) -> String {
        let (text, _) = self.kept.text();
        let from = (text.len().saturating_sub(most)..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[from..].to_owned()
    }

    /// How it ended; both are unknown while it runs.
    pub(super) fn exit_status(&self) -> Value {
        let signal = self.exit.and_then(|exit| exit.signal).map(signal_name);
        json!({ "exitCode": self.exit.and_then(|exit| exit.code), "signal": signal })
    }
}

fn signal_name(number: i32) -> String {
    let known = SIGNALS.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
