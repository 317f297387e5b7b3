//! A driver's connection to a living session.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_domain::session::SessionReport;
use proctor_process::{Child, ProcessIdentity, Signal, family};
use rustix::event::{PollFd, PollFlags};

use super::HostError;
use super::control::{Line, Request, send_request};
use super::driver::{TakeOver, take_over};
use super::files::{SessionFolder, read_report};

/// What ended a wait.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "made once per session and taken apart at once")]
pub enum Waited {
    /// The host reported.
    Ended(SessionReport),
    /// The host died without a report. The session is fenced, and what it left behind was ended.
    Lost,
    /// The caller's descriptor became readable; the session goes on.
    Woken,
}

/// One of a session's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// New output of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Which stream.
    pub stream: Stream,
    /// The new bytes, not cut at lines or characters.
    pub bytes: &'a [u8],
}

/// A driver's connection to a session. Dropping it leaves the session running.
#[derive(Debug)]
pub struct Attached {
    folder: SessionFolder,
    lock: PathBuf,
    /// The connection; `None` when the host is alive and can't be reached by it.
    line: Option<Line>,
    host: Host,
    followed: Option<[Followed; 2]>,
}

/// How the host's end is noticed.
#[derive(Debug)]
enum Host {
    /// This process started it.
    Child { child: Child, identity: Option<ProcessIdentity> },
    /// Another driver did.
    Stranger { pidfd: OwnedFd, identity: ProcessIdentity },
}

impl Host {
    fn identity(&self) -> Option<&ProcessIdentity> {
        match self {
            Self::Child { identity, .. } => identity.as_ref(),
            Self::Stranger { identity, .. } => Some(identity),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Child { child, .. } => child.as_fd(),
            Self::Stranger { pidfd, .. } => pidfd.as_fd(),
        }
    }
}

/// How long a host may take to die after it closed its connection without a report, and a lock to become free after that.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What became readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ready {
    woken: bool,
    line: bool,
    dead: bool,
}

impl Attached {
    pub(super) fn to_child(folder: SessionFolder, lock: &Path, line: Line, child: Child) -> Self {
        let identity = child.identity();
        Self { folder, lock: lock.to_owned(), line: Some(line), host: Host::Child { child, identity }, followed: None }
    }

    /// `None` when the host has ended meanwhile.
    pub(super) fn to_stranger(folder: SessionFolder, lock: &Path, identity: ProcessIdentity, line: Option<Line>) -> Option<Self> {
        let pidfd = identity.pidfd().ok().flatten()?;
        Some(Self { folder, lock: lock.to_owned(), line, host: Host::Stranger { pidfd, identity }, followed: None })
    }

    /// The host; `None` when it was gone before it could be looked at.
    pub fn host(&self) -> Option<&ProcessIdentity> {
        self.host.identity()
    }

    /// Asks for [`Progress`], starting with what the session printed so far.
    ///
    /// Nobody looks at the files until the host says that they have grown: a driver that waits costs nothing.
    pub fn follow(&mut self) {
        if self.followed.is_none() {
            let follow = |path, stream| Followed { path, file: None, stream };
            self.followed = Some([follow(self.folder.stdout(), Stream::Out), follow(self.folder.stderr(), Stream::Err)]);
            if let Some(line) = &self.line {
                send_request(line.stream(), Request::Follow);
            }
        }
    }

    /// Asks the host to end the session; it does so within ten seconds.
    pub fn interrupt(&mut self) {
        match (&self.line, self.host.identity()) {
            (Some(line), _) => send_request(line.stream(), Request::Interrupt),
            (None, Some(identity)) => {
                // Its socket is gone, as after `rm -rf` in the state folder. It takes the signal the same way.
                let _ = identity.signal(Signal::Terminate);
            }
            (None, None) => {}
        }
    }

    /// Waits until the session is over or `wake` becomes readable. What `wake` has is not read.
    ///
    /// # Errors
    /// The report can't be read or is of a newer version, the host could not do its job, or it is gone and can't be
    /// taken over from.
    pub fn wait(&mut self, wake: BorrowedFd<'_>, on_output: &mut dyn FnMut(Progress<'_>)) -> Result<Waited, HostError> {
        loop {
            let ready = self.poll(wake);
            if ready.line && self.read_line(on_output) {
                self.line = None;
                // It closes the connection when the report is written, and this is the fast way: what is left of it
                // is reaped later. A host that dies closes it as well, and then the end of the process decides.
                if let Some(report) = read_report(&self.folder)? {
                    self.read_output(on_output);
                    return Ok(Waited::Ended(report));
                }
            }
            if ready.dead {
                self.read_output(on_output);
                return self.conclude();
            }
            if ready.woken {
                return Ok(Waited::Woken);
            }
        }
    }

    fn poll(&self, wake: BorrowedFd<'_>) -> Ready {
        let mut polled = vec![PollFd::from_borrowed_fd(wake, PollFlags::IN), PollFd::from_borrowed_fd(self.host.as_fd(), PollFlags::IN)];
        polled.extend(self.line.as_ref().map(|line| PollFd::new(line, PollFlags::IN)));
        let is_ready = |polled: &[PollFd<'_>], index: usize| polled.get(index).is_some_and(|entry| !entry.revents().is_empty());
        // It fails when a signal arrives, which wakes the caller by its own descriptor.
        let _ = rustix::event::poll(&mut polled, None);
        Ready { woken: is_ready(&polled, 0), dead: is_ready(&polled, 1), line: is_ready(&polled, 2) }
    }

    /// Reads what the host says; true when it has closed the connection.
    fn read_line(&mut self, on_output: &mut dyn FnMut(Progress<'_>)) -> bool {
        let mut grown = false;
        let closed = self.line.as_mut().is_none_or(|line| line.is_closed_by_host(&mut || grown = true));
        if grown {
            self.read_output(on_output);
        }
        closed
    }

    fn read_output(&mut self, on_output: &mut dyn FnMut(Progress<'_>)) {
        for followed in self.followed.iter_mut().flatten() {
            followed.read(on_output);
        }
    }

    /// The host's process has ended; what has it left?
    fn conclude(&mut self) -> Result<Waited, HostError> {
        let begun = Instant::now();
        let started_by_us = match &self.host {
            Host::Child { identity, .. } => identity.clone(),
            Host::Stranger { .. } => None,
        };
        loop {
            if let Some(report) = read_report(&self.folder)? {
                return Ok(Waited::Ended(report));
            }
            match take_over(&self.folder, &self.lock, started_by_us.clone())? {
                TakeOver::Reported(report) => return Ok(Waited::Ended(report)),
                TakeOver::Done(_) => return self.explain_loss(),
                // A child of the host that was just being started has its lock until its exec; or somebody else
                // takes over.
                TakeOver::Held(holder) if begun.elapsed() > PATIENCE => {
                    return Err(HostError::StillAlive { session: self.folder.session(), holder });
                }
                TakeOver::Held(_) => family::wait_for_end(&[], LOOK_AGAIN),
            }
        }
    }

    /// A host that was killed left no word. One that could not do its job did, and it would be no better the next time.
    fn explain_loss(&self) -> Result<Waited, HostError> {
        match std::fs::read_to_string(self.folder.trouble()) {
            Ok(reason) => Err(HostError::Failed { session: self.folder.session(), reason: reason.trim().to_owned() }),
            Err(_) => Ok(Waited::Lost),
        }
    }
}

/// A log that is read as it grows.
#[derive(Debug)]
struct Followed {
    path: PathBuf,
    file: Option<File>,
    stream: Stream,
}

impl Followed {
    fn read(&mut self, on_output: &mut dyn FnMut(Progress<'_>)) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        let mut buffer = vec![0; 64 * 1024];
        // A log that can't be read is only not shown; the report has its excerpt.
        while let Ok(read @ 1..) = file.read(&mut buffer) {
            on_output(Progress { stream: self.stream, bytes: &buffer[..read] });
        }
    }
}
