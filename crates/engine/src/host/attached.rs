//! A driver's connection to a living session.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_domain::session::SessionReport;
use proctor_process::{ProcessIdentity, Signal, family};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::HostError;
use super::driver::{TakeOver, take_over};
use super::files::{SessionFolder, read_report};
use super::kennel::{self, LeashedHost};
use super::line::{Heard, Line, Request};

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
    /// Standard output; of an agent its transcript.
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
    host: Host,
    followed: Option<[Followed; 2]>,
}

/// The host at the other end.
#[derive(Debug)]
enum Host {
    /// This process started it, and handed it the session at the moment `since`.
    Leashed { host: LeashedHost, since: u64, has_hung_up: bool },
    /// Another driver did. `line` is `None` when the host can't be reached by its socket.
    Stranger { pidfd: OwnedFd, identity: ProcessIdentity, line: Option<Line> },
    /// The session is over, and the host waits for the next one.
    Over,
}

impl Host {
    fn identity(&self) -> Option<&ProcessIdentity> {
        match self {
            Self::Leashed { host, .. } => host.identity(),
            Self::Stranger { identity, .. } => Some(identity),
            Self::Over => None,
        }
    }

    /// Readable when the host has died.
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Leashed { host, .. } => Some(host.child().as_fd()),
            Self::Stranger { pidfd, .. } => Some(pidfd.as_fd()),
            Self::Over => None,
        }
    }

    fn line(&self) -> Option<&Line> {
        match self {
            Self::Leashed { host, has_hung_up: false, .. } => Some(host.line()),
            Self::Stranger { line, .. } => line.as_ref(),
            Self::Leashed { has_hung_up: true, .. } | Self::Over => None,
        }
    }

    /// Whether it lives and can't say when the session is over, because its socket was removed or could not be made.
    fn is_out_of_reach(&self) -> bool {
        matches!(self, Self::Stranger { line: None, .. })
    }

    fn hear(&mut self) -> Heard {
        let heard = match self {
            Self::Leashed { host, has_hung_up: false, .. } => host.line_mut().hear(),
            Self::Stranger { line: Some(line), .. } => line.hear(),
            Self::Leashed { .. } | Self::Stranger { .. } | Self::Over => Heard::default(),
        };
        if heard.closed {
            match self {
                Self::Leashed { has_hung_up, .. } => *has_hung_up = true,
                Self::Stranger { line, .. } => *line = None,
                Self::Over => {}
            }
        }
        heard
    }
}

/// How long a host may take to die after it closed its connection without a report, and a lock to become free after that.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the report of a host is looked for that is out of reach.
const OUT_OF_REACH_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What became readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ready {
    woken: bool,
    line: bool,
    dead: bool,
}

impl Attached {
    pub(super) fn to_leashed(folder: SessionFolder, lock: &Path, host: LeashedHost, since: u64) -> Self {
        Self { folder, lock: lock.to_owned(), host: Host::Leashed { host, since, has_hung_up: false }, followed: None }
    }

    /// `None` when the host has ended meanwhile.
    pub(super) fn to_stranger(folder: SessionFolder, lock: &Path, identity: ProcessIdentity, line: Option<Line>) -> Option<Self> {
        let pidfd = identity.pidfd().ok().flatten()?;
        Some(Self { folder, lock: lock.to_owned(), host: Host::Stranger { pidfd, identity, line }, followed: None })
    }

    /// The host; `None` when it was gone before it could be looked at, or the session is over.
    pub fn host(&self) -> Option<&ProcessIdentity> {
        self.host.identity()
    }

    /// Asks for [`Progress`], starting with what the session printed so far.
    ///
    /// Nobody looks at the files until the host says that they have grown: a driver that waits costs nothing.
    pub fn follow(&mut self) {
        if self.followed.is_none() {
            let follow = |paths, stream| Followed { paths, file: None, stream };
            let out = vec![self.folder.stdout(), self.folder.transcript()];
            self.followed = Some([follow(out, Stream::Out), follow(vec![self.folder.stderr()], Stream::Err)]);
            if let Some(line) = self.host.line() {
                line.ask(Request::Follow);
            }
        }
    }

    /// Asks the host to end the session; it does so within ten seconds.
    pub fn interrupt(&mut self) {
        match (self.host.line(), self.host.identity()) {
            (Some(line), _) => line.ask(Request::Interrupt),
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
            if ready.line {
                let heard = self.host.hear();
                if heard.grown {
                    self.read_output(on_output);
                }
                if heard.done || heard.closed {
                    // This is the fast way. A host that died has closed the connection as well, and then its end
                    // decides.
                    if let Some(report) = read_report(&self.folder)? {
                        self.read_output(on_output);
                        self.let_host_wait(heard);
                        return Ok(Waited::Ended(report));
                    }
                }
            }
            if ready.dead {
                self.read_output(on_output);
                return self.conclude();
            }
            if self.host.is_out_of_reach()
                && let Some(report) = read_report(&self.folder)?
            {
                self.read_output(on_output);
                return Ok(Waited::Ended(report));
            }
            if ready.woken {
                return Ok(Waited::Woken);
            }
        }
    }

    /// A host that says that it is done may be handed the next session; one that has closed the connection is going.
    fn let_host_wait(&mut self, heard: Heard) {
        if let Host::Leashed { host, .. } = std::mem::replace(&mut self.host, Host::Over)
            && heard.done
            && !heard.closed
        {
            kennel::keep(host);
        }
    }

    fn poll(&self, wake: BorrowedFd<'_>) -> Ready {
        let watched = [Some(wake), self.host.pidfd(), self.host.line().map(AsFd::as_fd)];
        let mut polled: Vec<PollFd<'_>> = watched.iter().flatten().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)).collect();
        // It fails when a signal arrives, which wakes the caller by its own descriptor.
        let limit = self.host.is_out_of_reach().then_some(&OUT_OF_REACH_PAUSE);
        let _ = rustix::event::poll(&mut polled, limit);
        let mut ready = polled.iter().map(|entry| !entry.revents().is_empty());
        let [woken, dead, line] = watched.map(|source| source.is_some() && ready.next() == Some(true));
        Ready { woken, line, dead }
    }

    fn read_output(&mut self, on_output: &mut dyn FnMut(Progress<'_>)) {
        for followed in self.followed.iter_mut().flatten() {
            followed.read(on_output);
        }
    }

    /// The host's process has ended; what has it left?
    fn conclude(&mut self) -> Result<Waited, HostError> {
        let begun = Instant::now();
        let handed_over_since = match &self.host {
            Host::Leashed { since, .. } => Some(*since),
            Host::Stranger { .. } | Host::Over => None,
        };
        loop {
            if let Some(report) = read_report(&self.folder)? {
                return Ok(Waited::Ended(report));
            }
            match take_over(&self.folder, &self.lock, handed_over_since)? {
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
            Ok(reason) => Err(HostError::Failed { session: self.folder.session(), reason: said(&reason).to_owned() }),
            Err(_) => Ok(Waited::Lost),
        }
    }
}

/// A host that made the file and could not fill it met a disk that something else had filled: the report was the first
/// thing that it could not write, and its own logs were too short to give way.
fn said(trouble: &str) -> &str {
    match trouble.trim() {
        "" => "no space left for its report, nor for more than this",
        reason => reason,
    }
}

/// A log that is read as it grows.
#[derive(Debug)]
struct Followed {
    /// Where it may be: shells have one name for it and agents another.
    paths: Vec<PathBuf>,
    file: Option<File>,
    stream: Stream,
}

impl Followed {
    fn read(&mut self, on_output: &mut dyn FnMut(Progress<'_>)) {
        if self.file.is_none() {
            self.file = self.paths.iter().find_map(|path| File::open(path).ok());
        }
        let Some(file) = &mut self.file else { return };
        let mut buffer = vec![0; 64 * 1024];
        // A log that can't be read is only not shown; the report has its excerpt.
        while let Ok(read @ 1..) = file.read(&mut buffer) {
            on_output(Progress { stream: self.stream, bytes: &buffer[..read] });
        }
    }
}
