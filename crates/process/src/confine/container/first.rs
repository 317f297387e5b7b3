//! The first process in a container: it starts the program, hands it requests to end, and ends with it or with the keeper.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::DumpableBehavior;

use super::super::ConfineError;
use super::own_directory;
use crate::child::to_timespec;
use crate::{Child, Program, ProgramError, Signal, Sink, Stdin, family};

/// How often orphans are reaped, for which nothing wakes this process.
const ROUND: Duration = Duration::from_secs(1);
/// The exit code when the keeper is gone; nobody reads it.
const ABANDONED: u8 = 137;

/// The signals that a keeper hands on, by their place.
pub(super) const REQUESTS: [Signal; 3] = [Signal::Terminate, Signal::Interrupt, Signal::Hangup];

/// Runs `argv` and returns its exit code. `own` is the path of the keeper's socket.
pub(in super::super) fn be_first(own: Vec<OsString>, argv: Vec<OsString>) -> Result<u8, ConfineError> {
    // What runs here has the same user, and must not be able to change what this process does.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|errno| ConfineError::Watch(errno.into()))?;
    let socket = own.into_iter().next().map(PathBuf::from).ok_or(ConfineError::Arguments { missing: "socket" })?;
    let mut keeper = UnixStream::connect(socket).map_err(ConfineError::Watch)?;
    let mut child = start(argv)?;
    loop {
        wait(&child, &keeper)?;
        if let Some(ended) = child.try_wait().map_err(ConfineError::Watch)? {
            return Ok(u8::try_from(ended.shell_code()).unwrap_or(ABANDONED));
        }
        family::reap_orphans();
        if !hand_on(&mut keeper, &child)? {
            // The kernel kills everything in the container with its first process.
            return Ok(ABANDONED);
        }
    }
}

fn start(argv: Vec<OsString>) -> Result<Child, ConfineError> {
    let mut argv = argv.into_iter();
    let name = argv.next().ok_or(ConfineError::Arguments { missing: "program" })?;
    let program = PathBuf::from(&name);
    let unstarted = |source| ConfineError::Start { program: program.clone(), source };
    let ours = |descriptor: rustix::fd::BorrowedFd<'_>| descriptor.try_clone_to_owned().map_err(unstarted);
    let sink = |descriptor: OwnedFd| Sink::File(descriptor.into());
    let started = Program::new(name)
        .args(argv)
        .dir(own_directory().map_err(unstarted)?)
        .env(std::env::vars_os())
        .stdin(Stdin::Descriptor(ours(rustix::stdio::stdin())?))
        .stdout(sink(ours(rustix::stdio::stdout())?))
        .stderr(sink(ours(rustix::stdio::stderr())?))
        .spawn();
    started.map_err(|error| match error {
        ProgramError::NotFound { .. } => unstarted(std::io::ErrorKind::NotFound.into()),
        ProgramError::Spawn { source, .. } => unstarted(source),
        error @ (ProgramError::Directory { .. }
        | ProgramError::TooLong { .. }
        | ProgramError::Invalid { .. }
        | ProgramError::Watch { .. }) => ConfineError::Container(error),
    })
}

fn wait(child: &Child, keeper: &UnixStream) -> Result<(), ConfineError> {
    let mut polled = [PollFd::from_borrowed_fd(child.as_fd(), PollFlags::IN), PollFd::from_borrowed_fd(keeper.as_fd(), PollFlags::IN)];
    match rustix::event::poll(&mut polled, Some(&to_timespec(ROUND))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(ConfineError::Watch(errno.into())),
    }
}

/// Sends the program what the keeper asks for; `false` once the keeper is gone.
fn hand_on(keeper: &mut UnixStream, child: &Child) -> Result<bool, ConfineError> {
    keeper.set_nonblocking(true).map_err(ConfineError::Watch)?;
    let mut asked = [0; 16];
    match keeper.read(&mut asked) {
        Ok(0) => Ok(false),
        Ok(count) => {
            for signal in asked[..count].iter().filter_map(|place| REQUESTS.get(usize::from(*place))) {
                // One that has ended meanwhile is seen in the next round.
                let _ = child.signal(*signal);
            }
            Ok(true)
        }
        Err(error) => Ok(matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)),
    }
}
