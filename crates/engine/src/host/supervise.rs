//! Running the shells of a session one after the other: limits, output, interruptions, and what they leave behind.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proctor_domain::procedure::output_variable;
use proctor_domain::session::{Lingering, SessionEnd, ShellEnd};
use proctor_process::family::{self, Ending};
use proctor_process::killpoint::reach_in_host;
use proctor_process::lock::HeldLock;
use proctor_process::{Child, Program, ProgramError, Signal, Signals};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::assignment::Assignment;
use super::control::Control;
use super::files::SessionFolder;
use super::outputs;
use super::serve::millis;
use super::streams::StreamLog;

/// Between asking processes to end and making them.
const GRACE: Duration = Duration::from_secs(5);
/// How often the lock file is touched while a session runs.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// What is read from a pipe at once: as much as one usually holds.
const CHUNK: usize = 64 * 1024;

/// What a host holds while it runs a session, and needs again after it.
pub(super) struct Held<'a> {
    pub(super) lock: HeldLock,
    pub(super) control: Control,
    pub(super) signals: &'a Signals,
}

/// Watches over the processes of one session.
///
/// INVARIANT: this process has one thread and is a subreaper. All its descendants are therefore found below it, and
/// all of its children that are not the shell are orphans of a session.
pub(super) struct Supervisor<'a> {
    folder: SessionFolder,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    linger: Vec<String>,
    deadline: Instant,
    held: Held<'a>,
    beaten: Instant,
    streams: [StreamLog; 2],
    pipes: [Option<OwnedFd>; 2],
    buffer: Vec<u8>,
    /// Why the session is to end before its time, once it is.
    due: Option<SessionEnd>,
    signalled: bool,
    ended_orphans: u32,
    survivors: Vec<String>,
}

/// What became of one shell.
pub(super) struct ShellRun {
    /// How it ended; `None` when it could not be ended.
    pub(super) shell: Option<ShellEnd>,
    /// Why it was made to end.
    pub(super) cut_short: Option<SessionEnd>,
}

/// What a session leaves when its last shell is over.
pub(super) struct Left<'a> {
    pub(super) streams: [StreamLog; 2],
    pub(super) held: Held<'a>,
    pub(super) ended_orphans: u32,
    pub(super) lingering: Vec<Lingering>,
    /// One sentence for each process that could not be ended.
    pub(super) survivors: Vec<String>,
    /// Whether the host was asked to end by a signal.
    pub(super) signalled: bool,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(assignment: &Assignment, folder: &SessionFolder, held: Held<'a>, streams: [StreamLog; 2]) -> Self {
        let now = Instant::now();
        let output = ("PROCTOR_OUTPUT".into(), folder.output().into_os_string());
        Self {
            folder: folder.clone(),
            directory: assignment.spec.directory(),
            environment: assignment.environment().chain([output]).collect(),
            linger: assignment.spec.linger.clone(),
            // A limit beyond what the clock can hold is none.
            deadline: now.checked_add(assignment.spec.wall_limit()).unwrap_or(now + Duration::from_secs(u64::from(u32::MAX))),
            held,
            beaten: now,
            streams,
            pipes: [None, None],
            buffer: vec![0; CHUNK],
            due: None,
            signalled: false,
            ended_orphans: 0,
            survivors: Vec::new(),
        }
    }

    /// Why the session must end now, if so.
    pub(super) fn due(&mut self) -> Option<SessionEnd> {
        if self.due.is_none() {
            if self.signalled || self.held.control.is_interrupted() {
                self.due = Some(SessionEnd::Interrupted);
            } else if Instant::now() >= self.deadline {
                self.due = Some(SessionEnd::Timeout);
            }
        }
        self.due.clone()
    }

    /// Runs one shell and ends what it leaves behind. The error is one sentence about why it could not be run.
    pub(super) fn run_shell(&mut self, number: usize) -> Result<ShellRun, String> {
        let begun = Instant::now();
        reach_in_host("before-spawn");
        let mut child = self.spawn(number).map_err(|error| format!("failed to {error}"))?;
        reach_in_host("after-spawn");
        self.pipes = [child.stdout.take(), child.stderr.take()];
        for pipe in self.pipes.iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|errno| format!("failed to read from shell {number}: {errno}"))?;
        }
        let (ended, cut_short) = self.watch(&mut child).map_err(|error| format!("failed to watch shell {number}: {error}"))?;
        reach_in_host("after-child-exit");
        drop(child);
        self.drain();
        self.sweep();
        // What came while the rest was being ended. Whatever lingers may hold the pipes open for ever.
        self.drain();
        self.pipes = [None, None];
        let shell = ended.map(|exit_code| ShellEnd { exit_code, duration_ms: millis(begun) });
        Ok(ShellRun { shell, cut_short })
    }

    /// What the shells before this one wrote to `$PROCTOR_OUTPUT`, as the variables by which later shells read it.
    /// Outputs that can't be used fail the phase when it is over; no shell gets them.
    fn outputs_so_far(&self, number: usize) -> Vec<(OsString, OsString)> {
        let step = self.environment.iter().find(|(name, _)| name == "PROCTOR_STEP").and_then(|(_, step)| step.to_str());
        let (Some(step), true) = (step, number > 1) else { return Vec::new() };
        let outputs = outputs::read(&self.folder.output()).unwrap_or_default();
        outputs.into_iter().map(|(name, value)| (output_variable(step, &name).into(), value.into())).collect()
    }

    fn spawn(&self, number: usize) -> Result<Child, ProgramError> {
        let written = self.outputs_so_far(number);
        let earlier = self.environment.iter().filter(|(name, _)| written.iter().all(|(newer, _)| newer != name)).cloned();
        // The text is a file, so that its size does not matter and errors name its lines.
        Program::new("bash")
            .args(["-euo", "pipefail"])
            .arg(self.folder.shell(number))
            .dir(&self.directory)
            .env(earlier.chain(written.iter().cloned()))
            // Our own session has no terminal, so a group is enough to signal the shell and its pipeline as one.
            .own_group()
            .spawn()
    }

    /// Waits for the shell's end; its exit code, and why it was made to end, if it was.
    fn watch(&mut self, child: &mut Child) -> std::io::Result<(Option<i32>, Option<SessionEnd>)> {
        loop {
            let remaining = self.deadline.saturating_duration_since(Instant::now());
            self.turn(&[child.as_fd()], remaining);
            if let Some(status) = child.try_wait()? {
                return Ok((Some(status.shell_code()), None));
            }
            if let Some(end) = self.due() {
                self.end_all(Some(child));
                // One that can't be killed is in the notes; its exit code nobody will know.
                return Ok((child.try_wait()?.map(proctor_process::ExitState::shell_code), Some(end)));
            }
        }
    }

    /// Ends what the shell left behind.
    fn sweep(&mut self) {
        // Nearly always there is nothing, and one system call says so.
        if !family::has_children() {
            return;
        }
        family::reap_orphans();
        if family::has_children() {
            let ended = self.end_all(None);
            self.ended_orphans = self.ended_orphans.saturating_add(ended);
            family::reap_orphans();
        }
    }

    /// Ends every descendant but those that may linger; returns how many.
    ///
    /// The search is by descent and not by the marker in the environment: it finds also those that have no
    /// environment left, and it reads a few files instead of those of every process of the machine. The marker
    /// is for the time after a host was killed.
    fn end_all(&mut self, first: Option<&Child>) -> u32 {
        let own = std::process::id();
        let linger = self.linger.clone();
        // What a lingering program started is its own affair: a build server without its workers is of no use.
        let mut find = || family::descendants_if(own, &mut |identity| family::program_among(identity, &linger).is_none());
        let ended = family::end(&mut find, Ending { grace: GRACE, first, wait: &mut |pidfds, limit| self.turn(pidfds, limit) });
        for survivor in ended.survivors {
            self.survivors.push(format!("process {} of the session could not be ended", survivor.pid));
        }
        u32::try_from(ended.ended.len()).unwrap_or(u32::MAX)
    }

    /// Waits until one of `watched` is readable, something else happened, or the time is over, and sees to
    /// everything else meanwhile: pipes, requests, signals, the sign of life.
    fn turn(&mut self, watched: &[BorrowedFd<'_>], limit: Duration) {
        let now = Instant::now();
        let mut wake = (self.beaten + HEARTBEAT).min(now + limit.min(HEARTBEAT));
        if let Some(next) = self.held.control.tell_followers(now) {
            wake = wake.min(next);
        }
        self.poll(watched, wake.saturating_duration_since(now));
        for index in 0..self.pipes.len() {
            self.read(index);
        }
        self.held.control.take_requests();
        // The hangup of a terminal is nothing to a host; it only must not end it.
        if self.held.signals.pending().iter().any(|signal| matches!(signal, Signal::Terminate | Signal::Interrupt)) {
            self.signalled = true;
        }
        if self.beaten.elapsed() >= HEARTBEAT {
            self.beaten = Instant::now();
            // A lock file that can't be touched (a disk gone read-only) makes a resume look further back.
            let _ = self.held.lock.touch();
            family::reap_orphans();
        }
    }

    fn poll(&self, watched: &[BorrowedFd<'_>], limit: Duration) {
        let sources = watched.iter().copied().chain([self.held.signals.fd()]).chain(self.held.control.sources());
        let sources = sources.chain(self.pipes.iter().flatten().map(AsFd::as_fd));
        let mut polled: Vec<PollFd<'_>> = sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)).collect();
        let limit = Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(limit.subsec_nanos()) };
        // It fails when a signal arrives, which has its own descriptor, or for lack of memory, which passes.
        let _ = rustix::event::poll(&mut polled, Some(&limit));
    }

    /// Reads once from a pipe that may have something; returns how much.
    fn read(&mut self, index: usize) -> usize {
        let Some(pipe) = &self.pipes[index] else { return 0 };
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(0) => {
                self.pipes[index] = None;
                0
            }
            Ok(read) => {
                self.streams[index].push(&self.buffer[..read]);
                self.held.control.note_growth();
                read
            }
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => {
                self.pipes[index] = None;
                0
            }
        }
    }

    /// Reads what is in the pipes now. Processes that the shell left behind may hold them open, and even go on writing,
    /// so neither their end is waited for nor more read than they can have held.
    fn drain(&mut self) {
        for index in 0..self.pipes.len() {
            let held = self.pipes[index].as_ref().map_or(0, |pipe| rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(CHUNK));
            let mut left = held;
            while left > 0 {
                let read = self.read(index);
                if read == 0 {
                    break;
                }
                left = left.saturating_sub(read);
            }
        }
    }

    /// Looks what lingers, and gives back everything that the report needs.
    pub(super) fn finish(self) -> Left<'a> {
        let mut lingering = Vec::new();
        if !self.linger.is_empty() && family::has_children() {
            family::descendants_if(std::process::id(), &mut |identity| {
                let program = family::program_among(identity, &self.linger);
                lingering.extend(program.map(|program| Lingering { program: program.to_owned(), pid: identity.pid }));
                program.is_none()
            });
        }
        Left {
            streams: self.streams,
            held: self.held,
            ended_orphans: self.ended_orphans,
            lingering,
            survivors: self.survivors,
            signalled: self.signalled,
        }
    }
}
