//! The signals sent to this process, as a descriptor that a loop can poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A signal that Proctor sends or listens for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// The terminal or the connection went away.
    Hangup,
    /// Ctrl-C.
    Interrupt,
    /// A polite request to end.
    Terminate,
    /// Ends at once; can't be listened for.
    Kill,
    /// Stops the process until [`Signal::Continue`]; can't be listened for.
    Stop,
    /// Lets a stopped process go on.
    Continue,
    /// A write beyond the file size limit; listened for so that the write fails instead.
    FileSize,
    /// The terminal changed its size.
    WindowChange,
}

impl Signal {
    pub(crate) fn raw(self) -> i32 {
        self.to_rustix().as_raw()
    }

    pub(crate) fn to_rustix(self) -> rustix::process::Signal {
        match self {
            Self::Hangup => rustix::process::Signal::HUP,
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Stop => rustix::process::Signal::STOP,
            Self::Continue => rustix::process::Signal::CONT,
            Self::FileSize => rustix::process::Signal::XFSZ,
            Self::WindowChange => rustix::process::Signal::WINCH,
        }
    }
}

/// Why signals can't be listened for.
#[derive(Debug, thiserror::Error)]
pub enum SignalsError {
    /// No pipe could be made: too many open files.
    #[error("make the pipe that signals arrive in")]
    Pipe(#[source] io::Error),
    /// The system refuses a handler for this signal.
    #[error("listen for the signal {signal:?}")]
    Listen {
        /// Which.
        signal: Signal,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// The signals that a process listens for. Dropping it gives them nobody's ear, not their default effect.
#[derive(Debug)]
pub struct Signals {
    reader: std::os::unix::net::UnixStream,
    arrived: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Signals {
    /// Listens for `signals` from now on: none of them has its default effect any more.
    ///
    /// # Errors
    /// No pipe, or a signal that can't be listened for.
    pub fn listen(signals: &[Signal]) -> Result<Self, SignalsError> {
        let (reader, writer) = std::os::unix::net::UnixStream::pair().map_err(SignalsError::Pipe)?;
        reader.set_nonblocking(true).map_err(SignalsError::Pipe)?;
        let mut arrived = Vec::with_capacity(signals.len());
        for &signal in signals {
            let failed = |source| SignalsError::Listen { signal, source };
            if matches!(signal, Signal::Kill | Signal::Stop) {
                // The library below panics on these.
                return Err(failed(io::ErrorKind::InvalidInput.into()));
            }
            let flag = Arc::new(AtomicBool::new(false));
            // The flag first: handlers run in the order of their registration, and whoever is woken
            // by the pipe must find the flag set.
            signal_hook::flag::register(signal.raw(), Arc::clone(&flag)).map_err(failed)?;
            let writer = writer.try_clone().map_err(SignalsError::Pipe)?;
            signal_hook::low_level::pipe::register(signal.raw(), writer).map_err(failed)?;
            arrived.push((signal, flag));
        }
        Ok(Self { reader, arrived })
    }

    /// Readable when a signal has arrived.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Waits until a signal arrives, at most for `limit`; whether one did.
    ///
    /// # Errors
    /// The system can't wait.
    pub fn wait(&self, limit: std::time::Duration) -> Result<bool, SignalsError> {
        crate::descriptors::wait_readable(self.fd(), limit).map_err(SignalsError::Pipe)
    }

    /// The signals that arrived since the last call, each once, in the order they were listened for.
    pub fn pending(&self) -> Vec<Signal> {
        let mut buffer = [0; 64];
        // Emptied before the flags are read: a signal that comes in between leaves a byte, and the
        // next poll wakes for it at the price of one look in vain.
        while matches!(rustix::io::read(&self.reader, &mut buffer), Ok(read) if read > 0) {}
        self.arrived.iter().filter(|(_, flag)| flag.swap(false, Ordering::AcqRel)).map(|(signal, _)| *signal).collect()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
