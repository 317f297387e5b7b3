//! Running the children of a session one after the other: limits, output, interruptions, and what they leave behind.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_domain::session::{Lingering, SessionEnd};
use proctor_process::family::{self, Ending};
use proctor_process::killpoint::reach_in_host;
use proctor_process::lock::HeldLock;
use proctor_process::{Child, Program, Signal, Signals};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::assignment::{Agent, Assignment};
use super::control::Control;
use super::door::Door;
use super::files::SessionFolder;
use super::input::Input;
use super::serve::millis;
use super::streams::StreamLog;
use super::watch::{AgentWatch, Cut};
use super::word::Said;
use crate::agent::Opening;
use crate::words::in_words;

/// Between asking processes to end and making them.
const GRACE: Duration = Duration::from_secs(5);
/// How long the process that made a box may take to end when what ran in it has.
const BOX_END: Duration = Duration::from_millis(200);
/// How often that is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
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

/// What there is to see to after a wait. Who asks only what is ready saves an agent's host most of its system calls.
#[derive(Debug, Clone, Copy)]
struct Ready {
    watched: bool,
    signals: bool,
    /// One of the sockets of drivers and of tools.
    sockets: bool,
    pipes: [bool; 2],
}

impl Ready {
    /// When the wait itself failed, everything is looked at.
    const ALL: Self = Self { watched: true, signals: true, sockets: true, pipes: [true; 2] };
}

/// Watches over the processes of one session.
///
/// INVARIANT: this process has one thread and is a subreaper. All its descendants are therefore found below it, and
/// all of its children that are not the one that it runs are orphans of a session.
pub(super) struct Supervisor<'a> {
    folder: SessionFolder,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    linger: Vec<String>,
    deadline: Instant,
    held: Held<'a>,
    beaten: Instant,
    streams: [StreamLog; 2],
    /// What the agent reads, where it is spoken to.
    input: Option<Input>,
    /// Who watches over the agent, where the child is one.
    agent: Option<AgentWatch>,
    /// Where the agent's tools are called, where it has some.
    door: Option<Door>,
    pipes: [Option<OwnedFd>; 2],
    buffer: Vec<u8>,
    /// Why the session is to end before its time, once it is.
    due: Option<SessionEnd>,
    signalled: bool,
    ended_orphans: u32,
    survivors: Vec<String>,
}

/// What became of one child.
#[derive(Debug)]
pub(super) struct ChildRun {
    /// How it ended; `None` when it could not be ended.
    pub(super) exit_code: Option<i32>,
    /// Why it was made to end.
    pub(super) cut: Option<Cut>,
    pub(super) duration_ms: u64,
}

/// What a session leaves when its last child is over.
pub(super) struct Left<'a> {
    pub(super) streams: [StreamLog; 2],
    pub(super) agent: Option<AgentWatch>,
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
            agent: None,
            door: None,
            input: None,
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

    pub(super) fn folder(&self) -> &SessionFolder {
        &self.folder
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Takes what the next child prints for that of an agent.
    pub(super) fn watch_agent(&mut self, agent: &Agent, opening: &Opening) {
        self.agent = Some(AgentWatch::new(agent, opening));
        // A session whose socket can't be made is one without tools, which its agent's client says.
        self.door = opening.tools.as_ref().and_then(|_| Door::open(&self.folder, self.streams[0].hidden()).ok());
    }

    /// Answers what the agent calls.
    fn answer_calls(&mut self) {
        if let (Some(door), Some(agent)) = (&mut self.door, &mut self.agent) {
            agent.answer(door);
        }
    }

    /// Lets in this child alone, and what it starts, from now on.
    fn let_in(&mut self, child: Option<u32>) {
        if let Some(door) = &mut self.door {
            door.let_in(child);
        }
    }

    /// Takes in that the agent's program has ended.
    pub(super) fn agent_ended(&mut self, exit_code: Option<i32>) {
        if let Some(agent) = &mut self.agent {
            agent.ended(exit_code, &mut self.streams[0]);
        }
    }

    pub(super) fn agent_mut(&mut self) -> Option<&mut AgentWatch> {
        self.agent.as_mut()
    }

    /// Opens what the agent reads; what is said to it is written there.
    pub(super) fn open_input(&mut self) -> std::io::Result<OwnedFd> {
        let (input, reads) = Input::open()?;
        self.input = Some(input);
        self.speak();
        Ok(reads)
    }

    /// Says what is to be said to the agent, as far as it is read; when it is done, that was all.
    fn speak(&mut self) {
        let (Some(input), Some(agent)) = (&mut self.input, &mut self.agent) else { return };
        input.push(&agent.take_words());
        if !input.write() || (agent.is_finished() && input.is_empty()) {
            self.input = None;
        }
    }

    /// Passes on to the agent what people say to it.
    fn hear_words(&mut self) {
        let (is_spoken_to, agent, log) = (self.input.is_some(), &mut self.agent, &mut self.streams[0]);
        let mut answer = |text: &str| match agent {
            None => Said::NoAgent,
            Some(agent) if !agent.can_be_steered() => Said::Deaf,
            Some(agent) => {
                let is_heard = is_spoken_to && agent.hear(text, log);
                if is_heard { Said::Passed } else { Said::Over }
            }
        };
        if self.held.control.answer_words(&mut answer) {
            self.held.control.note_growth();
            self.speak();
        }
    }

    /// Runs one child and ends what it leaves behind. The error is one sentence about why it could not be run.
    pub(super) fn run(&mut self, program: Program) -> Result<ChildRun, String> {
        let begun = Instant::now();
        reach_in_host("before-spawn");
        // Our own session has no terminal, so a group is enough to signal a shell and its pipeline as one.
        let mut child = program.own_group().spawn().map_err(|error| format!("failed to {}", in_words(&error)))?;
        self.let_in(Some(child.pid()));
        reach_in_host("after-spawn");
        self.pipes = [child.stdout.take(), child.stderr.take()];
        for pipe in self.pipes.iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|errno| format!("failed to read what the session prints: {errno}"))?;
        }
        let (exit_code, cut) = self.watch(&mut child).map_err(|error| format!("failed to watch the session's child: {error}"))?;
        reach_in_host("after-child-exit");
        drop(child);
        self.input = None;
        self.drain();
        // What was said last and not waited for.
        self.answer_calls();
        self.let_in(None);
        self.sweep();
        // What came while the rest was being ended. Whatever lingers may hold the pipes open for ever.
        self.drain();
        self.pipes = [None, None];
        Ok(ChildRun { exit_code, cut, duration_ms: millis(begun) })
    }

    /// Waits for the child's end; its exit code, and why it was made to end, if it was.
    fn watch(&mut self, child: &mut Child) -> std::io::Result<(Option<i32>, Option<Cut>)> {
        loop {
            let remaining = self.deadline.saturating_duration_since(Instant::now());
            if self.turn(&[child.as_fd()], remaining)
                && let Some(status) = child.try_wait()?
            {
                // Whoever ends this host together with its child means the session: the child's end is no failure of its own.
                self.hear_signals();
                let cut = Cut::By(SessionEnd::Interrupted);
                return Ok((Some(status.shell_code()), (self.signalled && status.signal.is_some()).then_some(cut)));
            }
            if let Some(cut) = self.cut() {
                self.end_all(Some(child));
                // One that can't be killed is in the notes; its exit code nobody will know.
                return Ok((child.try_wait()?.map(proctor_process::ExitState::shell_code), Some(cut)));
            }
        }
    }

    /// Why the child must end now, if so.
    fn cut(&mut self) -> Option<Cut> {
        let due = self.due();
        let cut = match &mut self.agent {
            Some(agent) => agent.due(due),
            None => due.map(Cut::By),
        };
        self.speak();
        cut
    }

    /// Ends what the child left behind.
    fn sweep(&mut self) {
        // Nearly always there is nothing, and one system call says so.
        if !family::has_children() {
            return;
        }
        family::reap_orphans();
        if self.agent.is_some() {
            self.let_box_end();
        }
        if family::has_children() {
            let ended = self.end_all(None);
            self.ended_orphans = self.ended_orphans.saturating_add(ended);
            family::reap_orphans();
        }
    }

    /// Waits a moment for what ends by itself: the process that made a box outlives what ran in it, and was left by nobody.
    fn let_box_end(&mut self) {
        let begun = Instant::now();
        while family::has_children() && begun.elapsed() < BOX_END {
            self.turn(&[], LOOK_AGAIN);
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
        let mut wait = |pidfds: &[BorrowedFd<'_>], limit| {
            self.turn(pidfds, limit);
        };
        let ended = family::end(&mut find, Ending { grace: GRACE, first, wait: &mut wait });
        for survivor in ended.survivors {
            self.survivors.push(format!("process {} of the session could not be ended", survivor.pid));
        }
        u32::try_from(ended.ended.len()).unwrap_or(u32::MAX)
    }

    /// Waits until one of `watched` is readable, something else happened, or the time is over, and sees to
    /// everything else meanwhile: pipes, requests, signals, the sign of life. Whether one of `watched` may be readable.
    fn turn(&mut self, watched: &[BorrowedFd<'_>], limit: Duration) -> bool {
        let now = Instant::now();
        let mut wake = (self.beaten + HEARTBEAT).min(now + limit.min(HEARTBEAT));
        if let Some(next) = self.held.control.tell_followers(now) {
            wake = wake.min(next);
        }
        let ready = self.poll(watched, wake.saturating_duration_since(now));
        for index in (0..self.pipes.len()).filter(|index| ready.pipes[*index]) {
            self.read(index);
        }
        self.speak();
        if ready.sockets {
            self.held.control.take_requests();
            self.hear_words();
            self.answer_calls();
        }
        if ready.signals {
            self.hear_signals();
        }
        if self.beaten.elapsed() >= HEARTBEAT {
            self.beaten = Instant::now();
            // A lock file that can't be touched (a disk gone read-only) makes a resume look further back.
            let _ = self.held.lock.touch();
            family::reap_orphans();
            if let Some(agent) = &mut self.agent {
                agent.look();
            }
        }
        ready.watched
    }

    /// The hangup of a terminal is nothing to a host; it only must not end it.
    fn hear_signals(&mut self) {
        self.signalled |= self.held.signals.pending().iter().any(|signal| matches!(signal, Signal::Terminate | Signal::Interrupt));
    }

    fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.held.control.sources().chain(self.door.iter().flat_map(Door::sources))
    }

    fn poll(&self, watched: &[BorrowedFd<'_>], limit: Duration) -> Ready {
        let sources = watched.iter().copied().chain([self.held.signals.fd()]).chain(self.sockets());
        let sources = sources.chain(self.pipes.iter().flatten().map(AsFd::as_fd));
        let unread = self.input.as_ref().and_then(Input::unread).map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::OUT));
        let mut polled: Vec<PollFd<'_>> = sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)).chain(unread).collect();
        let limit = Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(limit.subsec_nanos()) };
        // It fails when a signal arrives, which has its own descriptor, or for lack of memory, which passes.
        if rustix::event::poll(&mut polled, Some(&limit)).is_err() {
            return Ready::ALL;
        }
        let mut are_ready = polled.iter().map(|entry| !entry.revents().is_empty());
        let mut any_of = |count| are_ready.by_ref().take(count).fold(false, |any, is_ready| any | is_ready);
        Ready {
            watched: any_of(watched.len()),
            signals: any_of(1),
            sockets: any_of(self.sockets().count()),
            pipes: [0, 1].map(|index| any_of(usize::from(self.pipes[index].is_some()))),
        }
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
                self.keep(index, read);
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

    /// Keeps the first `length` bytes of the buffer, which came from this pipe.
    fn keep(&mut self, index: usize, length: usize) {
        let (bytes, log) = (&self.buffer[..length], &mut self.streams[index]);
        match &mut self.agent {
            Some(agent) if index == 0 => agent.printed(bytes, log),
            agent => {
                log.push(bytes, &mut |_| {});
                agent.iter_mut().for_each(AgentWatch::complained);
            }
        }
    }

    /// Reads what is in the pipes now. Processes that the child left behind may hold them open, and even go on writing,
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
            agent: self.agent,
            held: self.held,
            ended_orphans: self.ended_orphans,
            lingering,
            survivors: self.survivors,
            signalled: self.signalled,
        }
    }
}
