//! Hosts that have run a session of this process and wait for the next one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use proctor_process::{Child, ProcessIdentity};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::line::Line;

/// A host that this process started, with the leash by which it is told what to do.
#[derive(Debug)]
pub(super) struct LeashedHost {
    program: PathBuf,
    /// The sessions that this process was in when it started the host.
    around: OsString,
    line: Line,
    child: Child,
    identity: Option<ProcessIdentity>,
}

impl LeashedHost {
    pub(super) fn new(program: &Path, around: OsString, line: Line, child: Child) -> Self {
        let identity = child.identity();
        Self { program: program.to_owned(), around, line, child, identity }
    }

    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    pub(super) fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }

    pub(super) fn child(&self) -> &Child {
        &self.child
    }

    pub(super) fn identity(&self) -> Option<&ProcessIdentity> {
        self.identity.as_ref()
    }

    fn suits(&self, program: &Path, around: &OsStr) -> bool {
        self.program == program && self.around == around
    }

    /// Whether it waits: alive, and silent at the other end of the leash.
    fn is_waiting(&self) -> bool {
        let mut polled = [PollFd::new(&self.child, PollFlags::IN), PollFd::new(&self.line, PollFlags::IN)];
        matches!(rustix::event::poll(&mut polled, Some(&Timespec::default())), Ok(0))
    }
}

static WAITING: Mutex<Vec<LeashedHost>> = Mutex::new(Vec::new());

/// Each waiting host is a process; more than these of a kind are let go.
const MOST: usize = 4;

/// A waiting host of this program, for a session with these sessions around it.
pub(super) fn take(program: &Path, around: &OsStr) -> Option<LeashedHost> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    // Those that died or hung up while they waited.
    waiting.retain(LeashedHost::is_waiting);
    let index = waiting.iter().position(|host| host.suits(program, around))?;
    Some(waiting.swap_remove(index))
}

/// Keeps a host that has said that its session is over.
pub(super) fn keep(host: LeashedHost) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.iter().filter(|other| other.suits(&host.program, &host.around)).count() < MOST {
        waiting.push(host);
    }
}

/// Lets the waiting hosts go, and waits until they are gone: when a command has ended, nothing of it is left.
pub fn dismiss_hosts() {
    let waiting = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    let going: Vec<Child> = waiting
        .into_iter()
        .map(|LeashedHost { line, child, .. }| {
            drop(line);
            child
        })
        .collect();
    for child in going {
        // It has nothing to do but to end. Should it not, it is no worse than a host whose driver was killed.
        let _ = rustix::event::poll(&mut [PollFd::new(&child, PollFlags::IN)], Some(&PATIENCE));
    }
}

/// How long a host that was let go may take to end.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
