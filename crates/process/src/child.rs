//! A child that runs: waiting for it, reading what it prints, ending it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};

use crate::identity::{IdentityError, ProcessIdentity, SignalEnd, send};
use crate::signals::Signal;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitState {
    /// Its exit code, when it exited.
    pub code: Option<i32>,
    /// The signal that ended it, when one did.
    pub signal: Option<i32>,
}

impl ExitState {
    /// Whether it exited with 0.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }

    /// The number a shell would show: the exit code, or 128 and the signal.
    pub fn shell_code(self) -> i32 {
        self.code.or(self.signal.map(|signal| 128 + signal)).unwrap_or(-1)
    }
}

/// What [`crate::Program::run`] saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How the program ended.
    pub status: ExitState,
    /// What it wrote to standard output, where that was captured.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, where that was captured.
    pub stderr: Vec<u8>,
    /// Whether it was ended because the limit was reached.
    pub timed_out: bool,
}

/// What may end the wait for a program before its end. It goes on then.
pub struct Watch<'a> {
    /// When this is readable, `patience` is asked again.
    pub wake: BorrowedFd<'a>,
    /// How much longer is waited, from now on; `None` for as long as it takes. Asked before the first wait, and not any
    /// more once it has set a time.
    pub patience: &'a mut dyn FnMut() -> Option<Duration>,
}

/// A child of this process. Dropping one that still runs leaves it running; it is reaped later.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    pidfd: OwnedFd,
    leads_group: bool,
    ended: Option<ExitState>,
    /// The write end of its standard input, where it was promised bytes.
    pub stdin: Option<OwnedFd>,
    /// The read end of its standard output, where that is captured.
    pub stdout: Option<OwnedFd>,
    /// The read end of its standard error, where that is captured.
    pub stderr: Option<OwnedFd>,
}

/// Our ends of a child's streams.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) leads_group: bool,
}

/// The children that this process started and has not reaped.
///
/// A process that is a subreaper also gets children that it did not start; whoever looks for those
/// must be able to tell them apart.
static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Children that were dropped while they ran.
static LEFT: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Between asking a program to end and making it end, when its limit is reached: long enough for git to
/// remove its lock files.
const GRACE: Duration = Duration::from_secs(2);

/// Whether this process started the child with this pid and has not reaped it.
pub(crate) fn is_own(pid: u32) -> bool {
    OWN.lock().unwrap_or_else(PoisonError::into_inner).contains(&pid)
}

/// Starts a child by `spawn` and enters it into the list of our own.
///
/// The list is locked meanwhile, so that nobody sees a child that is not on it yet.
pub(crate) fn start(spawn: impl FnOnce() -> io::Result<u32>, started: Started) -> io::Result<Child> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = spawn()?;
    own.insert(pid);
    drop(own);
    let id = to_pid(pid)?;
    // A child that is not reaped keeps its pid, so the descriptor can't be another process's.
    let pidfd = match rustix::process::pidfd_open(id, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => {
            // It runs and nobody could watch it. Not reaped either, so the pid is safe to use.
            let _ = rustix::process::kill_process(id, Signal::Kill.to_rustix());
            let _ = reap(pid, WaitIdOptions::empty());
            return Err(errno.into());
        }
    };
    let Started { stdin, stdout, stderr, leads_group } = started;
    Ok(Child { pid, pidfd, leads_group, ended: None, stdin, stdout, stderr })
}

/// Reaps what was dropped while it ran and has ended since.
pub(crate) fn reap_left() {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|&pid| matches!(reap(pid, WaitIdOptions::NOHANG), Ok(None)));
}

fn to_pid(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

pub(crate) fn reap(pid: u32, options: WaitIdOptions) -> io::Result<Option<ExitState>> {
    let id = to_pid(pid)?;
    let status = loop {
        match rustix::process::waitid(WaitId::Pid(id), WaitIdOptions::EXITED | options) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    if !matches!(status, Ok(None)) {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
    }
    Ok(status?.map(|status| ExitState { code: status.exit_status(), signal: status.terminating_signal() }))
}

impl Child {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its identity; `None` once it has ended.
    pub fn identity(&self) -> Option<ProcessIdentity> {
        if self.ended.is_some() { None } else { ProcessIdentity::of(self.pid) }
    }

    /// How it ended, when it has.
    ///
    /// # Errors
    /// Somebody else reaped it, which nothing here does.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitState>> {
        if self.ended.is_none() {
            self.ended = reap(self.pid, WaitIdOptions::NOHANG)?;
        }
        Ok(self.ended)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Somebody else reaped it, which nothing here does.
    pub fn wait(&mut self) -> io::Result<ExitState> {
        loop {
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            self.ended = reap(self.pid, WaitIdOptions::empty())?;
        }
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It changed its user.
    pub fn signal(&self, signal: Signal) -> Result<SignalEnd, IdentityError> {
        if self.ended.is_some() { Ok(SignalEnd::Gone) } else { send(self.pid, &self.pidfd, signal) }
    }

    /// Sends a signal to its whole group at once, or to it alone when it has no group of its own.
    ///
    /// # Errors
    /// All of the group changed their user.
    pub fn signal_group(&self, signal: Signal) -> Result<SignalEnd, IdentityError> {
        if self.ended.is_some() {
            return Ok(SignalEnd::Gone);
        }
        if !self.leads_group {
            return self.signal(signal);
        }
        let failed = |source| IdentityError::System { pid: self.pid, source };
        // INVARIANT: it is not reaped, so its pid, and with it the group's number, is still its own.
        match rustix::process::kill_process_group(to_pid(self.pid).map_err(failed)?, signal.to_rustix()) {
            Ok(()) => Ok(SignalEnd::Sent),
            Err(Errno::SRCH) => Ok(SignalEnd::Gone),
            Err(Errno::PERM) => Err(IdentityError::NotPermitted { pid: self.pid }),
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// Whether it leads a process group, whose number is its pid.
    pub fn leads_group(&self) -> bool {
        self.leads_group
    }

    /// Writes `input`, reads both streams and waits for the end; `None` when the watch broke off before.
    pub(crate) fn finish(
        mut self,
        input: &[u8],
        limit: Option<Duration>,
        mut watch: Option<&mut Watch<'_>>,
    ) -> io::Result<Option<Finished>> {
        let mut exchange = Exchange::new(&mut self, input)?;
        let begun = Instant::now();
        let mut deadline = limit.map(|limit| begun + limit);
        let mut leave = None;
        let mut asked = false;
        loop {
            if let Some(watch) = &mut watch
                && leave.is_none()
            {
                leave = (watch.patience)().map(|patience| Instant::now() + patience);
            }
            let patience = leave.map(|leave| leave.saturating_duration_since(Instant::now()));
            if patience == Some(Duration::ZERO) {
                return Ok(None);
            }
            let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if remaining == Some(Duration::ZERO) {
                let signal = if asked { Signal::Kill } else { Signal::Terminate };
                // One that changed its user can't be ended; it is waited for, as it would be by a shell.
                let _ = self.signal_group(signal);
                deadline = if asked { None } else { Some(Instant::now() + GRACE) };
                asked = true;
                continue;
            }
            // Once it is decided to leave, nothing that arrives can hasten it.
            let wake = watch.as_ref().filter(|_| leave.is_none()).map(|watch| watch.wake);
            exchange.wait(&self, wake, remaining.into_iter().chain(patience).min())?;
            if let Some(status) = self.try_wait()? {
                exchange.read_rest()?;
                let [stdout, stderr] = exchange.streams.map(|stream| stream.bytes);
                return Ok(Some(Finished { status, stdout, stderr, timed_out: asked }));
            }
        }
    }
}

impl AsFd for Child {
    /// Readable when the child has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.try_wait(), Ok(None)) {
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(self.pid);
        }
    }
}

/// The pipes between us and a child that is run to its end.
#[derive(Debug)]
struct Exchange<'a> {
    input: &'a [u8],
    sink: Option<OwnedFd>,
    streams: [Captured; 2],
}

#[derive(Debug)]
struct Captured {
    source: Option<OwnedFd>,
    bytes: Vec<u8>,
}

/// What is read from a pipe at once: as much as one holds.
const CHUNK: usize = 64 * 1024;

impl Captured {
    fn new(source: Option<OwnedFd>) -> io::Result<Self> {
        if let Some(source) = &source {
            set_nonblocking(source)?;
        }
        Ok(Self { source, bytes: Vec::new() })
    }

    /// Reads once; false when there is nothing to read now or ever.
    fn read(&mut self) -> io::Result<bool> {
        let Some(source) = &self.source else {
            return Ok(false);
        };
        let before = self.bytes.len();
        self.bytes.resize(before + CHUNK, 0);
        let read = rustix::io::read(source, &mut self.bytes[before..]);
        self.bytes.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => {
                self.source = None;
                Ok(false)
            }
            Ok(_) | Err(Errno::INTR) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl<'a> Exchange<'a> {
    fn new(child: &mut Child, input: &'a [u8]) -> io::Result<Self> {
        let sink = child.stdin.take();
        if let Some(sink) = &sink {
            set_nonblocking(sink)?;
        }
        let streams = [Captured::new(child.stdout.take())?, Captured::new(child.stderr.take())?];
        let mut exchange = Self { input, sink, streams };
        exchange.write()?;
        Ok(exchange)
    }

    /// Waits until the child ends, `wake` is readable, the time is over or bytes can be moved, and moves them.
    fn wait(&mut self, child: &Child, wake: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> io::Result<()> {
        let mut polled = vec![PollFd::new(child, PollFlags::IN)];
        polled.extend(wake.map(|wake| PollFd::from_borrowed_fd(wake, PollFlags::IN)));
        polled.extend(self.streams.iter().filter_map(|stream| stream.source.as_ref()).map(|source| PollFd::new(source, PollFlags::IN)));
        polled.extend(self.sink.as_ref().map(|sink| PollFd::new(sink, PollFlags::OUT)));
        match rustix::event::poll(&mut polled, limit.map(to_timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        drop(polled);
        self.write()?;
        for stream in &mut self.streams {
            stream.read()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(sink) = &self.sink {
            if self.input.is_empty() {
                self.sink = None;
                break;
            }
            match rustix::io::write(sink, self.input) {
                Ok(written) => self.input = &self.input[written..],
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                // A child that reads no further is within its rights.
                Err(Errno::PIPE) => self.sink = None,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Reads what the child left in its pipes. Their ends may be open in processes that it left behind,
    /// even ones that go on writing, so this stops when a pipe is empty or one pipe's content was read.
    fn read_rest(&mut self) -> io::Result<()> {
        for stream in &mut self.streams {
            let held = stream.source.as_ref().map_or(0, |source| rustix::pipe::fcntl_getpipe_size(source).unwrap_or(CHUNK));
            let enough = stream.bytes.len() + held;
            while stream.bytes.len() < enough && stream.read()? {}
        }
        Ok(())
    }
}

pub(crate) fn to_timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(duration.subsec_nanos()) }
}

fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    Ok(rustix::fs::fcntl_setfl(descriptor, flags | OFlags::NONBLOCK)?)
}
