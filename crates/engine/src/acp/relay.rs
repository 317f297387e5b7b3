//! The hidden command `proctor acp-relay RIGHTS PROGRAM…`: runs an agent's program inside its session's box, passes on what the
//! agent and the host say to each other, and serves what the agent asks of files and terminals.
//!
//! The host is outside of the box, so what it wrote or started for an agent would have its own rights. This process has those of
//! the session: it is in the same box as the agent, its environment has the session's marker, and what it starts is found by
//! descent and ended with the session like everything else. It decides nothing but whether the session may write.
//!
//! Every byte of the agent goes to the host as it comes, requests that are served here too: so the transcript is whole, and it
//! is the host that takes secrets out of it. The host knows by the same [`Rights`] what it need not answer.

mod desk;
mod files;
mod kept;
mod lines;
mod rights;
mod stream;
mod terminal;
mod terminals;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::Instant;

use proctor_process::{Child, ExitState, Program, Signal, Signals, Sink, Stdin};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::speech::{self, Asked, FAILED};
use crate::host::input::Input;
use crate::words::in_words;
use desk::{Desk, answer};
use lines::Lines;
pub(super) use rights::Rights;
use stream::{ToAgent, ToHost};

/// The command's name.
pub(super) const COMMAND: &str = "acp-relay";

/// What is read from a pipe at once: as much as one usually holds.
const CHUNK: usize = 64 * 1024;
/// What an agent may leave unread of its answers before it is heard no further: it asks for more than it takes.
const UNREAD: usize = 32 * 1024 * 1024;

/// Runs an agent's program and stands beside it until it ends. `arguments` come after the command.
pub fn run_acp_relay(arguments: &[OsString]) -> ExitCode {
    let [rights, argv @ ..] = arguments else { return complain("it is for proctor itself") };
    let Some(rights) = rights.to_str().and_then(Rights::named) else { return complain("it is for proctor itself") };
    let [program, rest @ ..] = argv else { return complain("there is no program to run") };
    match begin(rights, program, rest) {
        Ok(relay) => relay.run().map_or_else(|error| complain(&format!("failed to pass on what is said: {error}")), exit),
        Err(reason) => {
            // So the host hears it in the answer to its first request, and not as an exit code.
            let refusal = speech::refuse_ours(Asked::Initialize, FAILED, &reason);
            let _ = ToHost::open().and_then(|mut host| host.add(&refusal));
            ExitCode::from(127)
        }
    }
}

fn complain(reason: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "proctor acp-relay: {reason}");
    ExitCode::FAILURE
}

fn exit(state: ExitState) -> ExitCode {
    ExitCode::from(u8::try_from(state.shell_code()).unwrap_or(u8::MAX))
}

/// An error with all that caused it, in one sentence.
fn failed(error: &dyn std::error::Error) -> String {
    format!("failed to {}", in_words(error))
}

fn begin(rights: Rights, program: &OsString, arguments: &[OsString]) -> Result<Relay, String> {
    let cannot = |error: io::Error| format!("failed to start {}: {error}", program.display());
    // Who ends the session asks the agent as well, and what it says then is to be passed on.
    let signals = Signals::listen(&[Signal::Terminate, Signal::Interrupt, Signal::Hangup]).map_err(|error| failed(&error))?;
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let (to_agent, reads) = Input::open().map_err(cannot)?;
    let complaints = io::stderr().as_fd().try_clone_to_owned().map_err(cannot)?;
    let mut agent = Program::new(program.clone())
        .args(arguments)
        .dir(".")
        .env(environment.iter().cloned())
        .stdin(Stdin::Descriptor(reads))
        .stderr(Sink::File(complaints.into()))
        .spawn()
        .map_err(|error| failed(&error))?;
    let from_agent = agent.stdout.take();
    if let Some(pipe) = &from_agent {
        rustix::io::ioctl_fionbio(pipe, true).map_err(|errno| cannot(errno.into()))?;
    }
    Ok(Relay {
        agent,
        signals,
        from_host: Some(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(|errno| cannot(errno.into()))?),
        to_host: ToHost::open().map_err(cannot)?,
        to_agent: ToAgent::new(to_agent),
        from_agent,
        lines: Lines::default(),
        desk: Desk::new(rights, environment),
        buffer: vec![0; CHUNK],
    })
}

/// One agent, and what stands between it and the host.
struct Relay {
    agent: Child,
    signals: Signals,
    /// What the host says, until its end.
    from_host: Option<OwnedFd>,
    to_host: ToHost,
    to_agent: ToAgent,
    from_agent: Option<OwnedFd>,
    lines: Lines,
    desk: Desk,
    buffer: Vec<u8>,
}

impl Relay {
    /// Until the agent's program has ended. What that leaves behind, terminals among it, the host ends.
    fn run(mut self) -> io::Result<ExitState> {
        loop {
            let host_speaks = self.wait()?;
            // They are for the agent, which got them too.
            self.signals.pending();
            if host_speaks {
                self.hear_host();
            }
            self.hear_agent(CHUNK);
            self.look_at_terminals();
            self.to_agent.write(self.from_host.is_none());
            if let Some(state) = self.agent.try_wait()? {
                let held = self.from_agent.as_ref().map_or(0, |pipe| rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(CHUNK));
                self.hear_agent(held);
                return Ok(state);
            }
        }
    }

    /// Whether the agent is heard: not while it leaves too much unread of what it was answered.
    fn is_heard(&self) -> bool {
        self.to_agent.unread_length() < UNREAD
    }

    /// Waits until there is something to do; whether the host has said something.
    fn wait(&self) -> io::Result<bool> {
        let sources: Vec<BorrowedFd<'_>> = [self.signals.fd(), self.agent.as_fd()]
            .into_iter()
            .chain(self.from_agent.as_ref().filter(|_| self.is_heard()).map(AsFd::as_fd))
            .chain(self.desk.terminals.sources())
            .chain(self.from_host.as_ref().map(AsFd::as_fd))
            .collect();
        let unread = self.to_agent.unread().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::OUT));
        let read = sources.into_iter().map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN));
        // The host is the last one.
        let mut polled: Vec<PollFd<'_>> = unread.into_iter().chain(read).collect();
        let limit = self.desk.terminals.next_look().map(|at| at.saturating_duration_since(Instant::now()));
        let limit = limit
            .map(|limit| Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: limit.subsec_nanos().into() });
        match rustix::event::poll(&mut polled, limit.as_ref()) {
            Ok(_) => Ok(self.from_host.is_some() && polled.last().is_some_and(|host| !host.revents().is_empty())),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn hear_host(&mut self) {
        let Some(pipe) = &self.from_host else { return };
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(length @ 1..) => self.to_agent.pass(&self.buffer[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => self.from_host = None,
        }
    }

    /// Passes on what the agent has said by now, at most about so much, and serves what it asks for.
    fn hear_agent(&mut self, most: usize) {
        let mut left = most;
        while left > 0 && self.is_heard() {
            let Some(pipe) = &self.from_agent else { return };
            match rustix::io::read(pipe, &mut self.buffer[..]) {
                Ok(length @ 1..) => {
                    left = left.saturating_sub(length);
                    self.pass_on(length);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Ok(_) | Err(_) => self.from_agent = None,
            }
        }
    }

    /// The first `length` bytes of the buffer. Where nobody hears them any more, the agent is to know.
    fn pass_on(&mut self, length: usize) {
        let bytes = &self.buffer[..length];
        if self.to_host.pass(bytes).is_err() {
            self.from_agent = None;
        }
        let (desk, to_agent) = (&mut self.desk, &mut self.to_agent);
        self.lines.push(bytes, &mut |line| desk.hear(line).iter().for_each(|message| to_agent.add(message)));
    }

    fn look_at_terminals(&mut self) {
        let news = self.desk.terminals.look();
        for note in news.notes {
            // Without a host there is nobody who would want to know.
            let _ = self.to_host.add(&note);
        }
        news.answers.into_iter().for_each(|(id, outcome)| self.to_agent.add(&answer(&id, outcome)));
    }
}
