//! Naming a process so that nobody else can be taken for it.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use crate::proc_files::{Stat, read_small};
use crate::signals::Signal;

/// A process: its pid, when it was started, and in which boot. Pids are used again; the three together are not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessIdentity {
    /// Its process id.
    pub pid: u32,
    /// Its start in clock ticks since the boot, from `/proc/<pid>/stat`.
    pub start_ticks: u64,
    /// The kernel's random id of the boot.
    pub boot_id: String,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEnd {
    /// It was sent to exactly this process.
    Sent,
    /// The process is no more; whoever has its pid now got nothing.
    Gone,
}

/// Why a process can't be named or signalled.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// There is no usable `/proc`.
    #[error("read {path}: is /proc mounted?")]
    Proc {
        /// The file.
        path: &'static str,
    },
    /// The process belongs to another user.
    #[error("signal process {pid}, which belongs to another user")]
    NotPermitted {
        /// Which.
        pid: u32,
    },
    /// The system refuses for another reason: no descriptors left.
    #[error("signal process {pid}")]
    System {
        /// Which.
        pid: u32,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A text that is not a [`ProcessIdentity`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a process as pid:start:boot")]
pub struct InvalidIdentity(pub String);

impl ProcessIdentity {
    /// This process.
    ///
    /// # Errors
    /// There is no usable `/proc`.
    pub fn current() -> Result<Self, IdentityError> {
        boot_id().ok_or(IdentityError::Proc { path: "/proc/sys/kernel/random/boot_id" })?;
        Self::of(std::process::id()).ok_or(IdentityError::Proc { path: "/proc/self/stat" })
    }

    /// The living process that has this pid now.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = Stat::of(pid)?;
        if stat.is_dead() { None } else { Some(Self { pid, start_ticks: stat.start_ticks, boot_id: boot_id()?.to_owned() }) }
    }

    /// Whether it still runs. A zombie does not.
    pub fn is_alive(&self) -> bool {
        self.stat().is_some_and(|stat| !stat.is_dead())
    }

    /// Sends a signal to this process and to no other.
    ///
    /// # Errors
    /// It belongs to another user, or the system is out of descriptors.
    pub fn signal(&self, signal: Signal) -> Result<SignalEnd, IdentityError> {
        match self.open()? {
            Some((_, stat)) if stat.is_dead() => Ok(SignalEnd::Gone),
            Some((pidfd, _)) => send(self.pid, &pidfd, signal),
            None => Ok(SignalEnd::Gone),
        }
    }

    /// A descriptor that becomes readable when the process ends; `None` when it is already gone.
    ///
    /// # Errors
    /// The system is out of descriptors.
    pub fn pidfd(&self) -> Result<Option<OwnedFd>, IdentityError> {
        Ok(self.open()?.map(|(pidfd, _)| pidfd))
    }

    /// Waits until the process has ended, at most for `limit`; whether it has.
    ///
    /// # Errors
    /// The system is out of descriptors or can't wait.
    pub fn wait_for_end(&self, limit: std::time::Duration) -> Result<bool, IdentityError> {
        let Some(pidfd) = self.pidfd()? else { return Ok(true) };
        crate::descriptors::wait_readable(pidfd.as_fd(), limit).map_err(|source| IdentityError::System { pid: self.pid, source })
    }

    /// The state of the process, where it still exists.
    pub(crate) fn stat(&self) -> Option<Stat> {
        if boot_id() != Some(self.boot_id.as_str()) {
            return None;
        }
        Stat::of(self.pid).filter(|stat| stat.start_ticks == self.start_ticks)
    }

    /// A descriptor of exactly this process.
    ///
    /// The descriptor is opened before the start time is read: when the process with this pid is the
    /// right one *afterwards*, it was the right one when the descriptor was made, because a pid that is
    /// taken is not given away. The other order would leave a gap.
    pub(crate) fn open(&self) -> Result<Option<(OwnedFd, Stat)>, IdentityError> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // EINVAL: the pid is that of a thread by now.
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(errno) => return Err(IdentityError::System { pid: self.pid, source: errno.into() }),
        };
        Ok(self.stat().map(|stat| (pidfd, stat)))
    }
}

/// The present moment in the unit of [`ProcessIdentity::start_ticks`]: what is started from now on has at least as many.
pub fn ticks_now() -> u64 {
    // The kernel shows times to programs in hundredths of a second, whatever it counts in itself.
    const TICKS_PER_SECOND: u64 = 100;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let part = u64::try_from(now.tv_nsec).unwrap_or(0) * TICKS_PER_SECOND / 1_000_000_000;
    u64::try_from(now.tv_sec).unwrap_or(0) * TICKS_PER_SECOND + part
}

pub(crate) fn send(pid: u32, pidfd: &OwnedFd, signal: Signal) -> Result<SignalEnd, IdentityError> {
    match rustix::process::pidfd_send_signal(pidfd, signal.to_rustix()) {
        Ok(()) => Ok(SignalEnd::Sent),
        Err(Errno::SRCH) => Ok(SignalEnd::Gone),
        Err(Errno::PERM) => Err(IdentityError::NotPermitted { pid }),
        Err(errno) => Err(IdentityError::System { pid, source: errno.into() }),
    }
}

/// The id of this boot; read once, it can't change under a process.
pub(crate) fn boot_id() -> Option<&'static str> {
    static BOOT_ID: OnceLock<Option<String>> = OnceLock::new();
    BOOT_ID
        .get_or_init(|| {
            let mut buffer = [0; 64];
            let bytes = read_small("/proc/sys/kernel/random/boot_id", &mut buffer)?;
            Some(std::str::from_utf8(bytes).ok()?.trim().to_owned())
        })
        .as_deref()
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.pid, self.start_ticks, self.boot_id)
    }
}

impl FromStr for ProcessIdentity {
    type Err = InvalidIdentity;

    fn from_str(text: &str) -> Result<Self, InvalidIdentity> {
        let invalid = || InvalidIdentity(text.to_owned());
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().ok_or_else(invalid);
        let pid = next()?.parse().map_err(|_| invalid())?;
        let start_ticks = next()?.parse().map_err(|_| invalid())?;
        let boot_id = next()?.to_owned();
        if pid == 0 || boot_id.is_empty() { Err(invalid()) } else { Ok(Self { pid, start_ticks, boot_id }) }
    }
}
