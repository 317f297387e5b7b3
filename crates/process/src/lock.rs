//! Kernel locks: held by a living process, free the moment it dies, whatever killed it.
//!
//! They are `flock` locks on close-on-exec descriptors. The file stays when the lock goes: removing
//! it would let two processes hold "the" lock on two files of the same name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

/// Why a lock could be neither taken nor seen to be held.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file can't be opened, read or written.
    #[error("use the lock file {}", path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file system has no locks.
    #[error("lock {}: this file system has no locks", path.display())]
    Unsupported {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What an attempt to take a lock gave.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours until the value is dropped or the process dies.
    Acquired(HeldLock),
    /// Somebody else has it.
    Held {
        /// What the holder wrote into the file; empty when it has not written yet.
        holder: String,
    },
}

/// A lock that is held; dropping it releases it, and the file stays.
#[derive(Debug)]
pub struct HeldLock {
    file: File,
    path: PathBuf,
}

/// A holder's text is short; a file that somebody filled is not read whole.
const HOLDER_LIMIT: u64 = 4096;

/// How long an attempt is repeated that met nothing but readers (see [`try_acquire`]). They hold the file for
/// microseconds, so this is for a crowd of them.
const PATIENCE_WITH_READERS: Duration = Duration::from_secs(5);

impl HeldLock {
    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the file's modification time to now: a sign of life that outlasts the holder.
    ///
    /// # Errors
    /// The file system refuses (read-only meanwhile).
    pub fn touch(&self) -> Result<(), LockError> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        rustix::fs::futimens(&self.file, &Timestamps { last_access: now, last_modification: now })
            .map_err(|errno| file_error(&self.path, errno.into()))
    }

    /// When the file was last written or touched, by the clock of its file system.
    pub fn touched(&self) -> Option<SystemTime> {
        self.file.metadata().and_then(|metadata| metadata.modified()).ok()
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread is starting has a copy of the descriptor until
        // its exec, and the lock would stay with it that long.
        let _ = self.file.unlock();
    }
}

fn file_error(path: &Path, source: io::Error) -> LockError {
    LockError::File { path: path.to_owned(), source }
}

fn lock_error(path: &Path, source: io::Error) -> LockError {
    // ENOLCK and EOPNOTSUPP come from network and user-space file systems without a lock daemon.
    let unsupported = source.kind() == io::ErrorKind::Unsupported || source.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error());
    let path = path.to_owned();
    if unsupported { LockError::Unsupported { path, source } } else { LockError::File { path, source } }
}

/// Tries to take the lock and, when that works, writes `holder` into the file.
///
/// Those who only ask ([`holder_if_held`]) take a shared lock for a moment. An attempt that meets one of
/// them must not report that the lock is held, or a look at the list of runs could make a host give
/// up; so it looks whether a shared lock can be had, which means that nobody holds the exclusive one,
/// and tries again.
///
/// # Errors
/// The file can't be made or the file system has no locks.
pub fn try_acquire(path: &Path, holder: &str) -> Result<Attempt, LockError> {
    attempt(path, Some(holder))
}

/// Tries to take the lock and leaves the file as it is: what a dead holder wrote, and when it last gave a sign of life.
///
/// # Errors
/// As [`try_acquire`].
pub fn try_take_over(path: &Path) -> Result<Attempt, LockError> {
    attempt(path, None)
}

/// Tries to lock a folder itself, for files in it that are replaced as a whole: among files that git tracks, a lock file would
/// be one too many. Nobody can say in it who holds it.
///
/// # Errors
/// There is no such folder, or the file system has no locks.
pub fn try_acquire_folder(path: &Path) -> Result<Attempt, LockError> {
    let file = File::open(path).map_err(|source| file_error(path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(Attempt::Acquired(HeldLock { file, path: path.to_owned() })),
        Err(TryLockError::WouldBlock) => Ok(Attempt::Held { holder: String::new() }),
        Err(TryLockError::Error(source)) => Err(lock_error(path, source)),
    }
}

fn attempt(path: &Path, holder: Option<&str>) -> Result<Attempt, LockError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|source| file_error(path, source))?;
    let begun = Instant::now();
    let mut pause = u64::from(std::process::id() % 7);
    while begun.elapsed() < PATIENCE_WITH_READERS {
        match file.try_lock() {
            Ok(()) => {
                if let Some(holder) = holder {
                    write_holder(&mut file, holder).map_err(|source| file_error(path, source))?;
                }
                return Ok(Attempt::Acquired(HeldLock { file, path: path.to_owned() }));
            }
            Err(TryLockError::Error(source)) => return Err(lock_error(path, source)),
            Err(TryLockError::WouldBlock) => {}
        }
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map_err(|source| lock_error(path, source))?,
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(source)) => return Err(lock_error(path, source)),
        }
        // Two attempts that take turns in finding the other's shared lock part after an uneven pause.
        pause = (pause + 3) % 32;
        thread::sleep(Duration::from_micros(pause));
    }
    let holder = read_holder(&mut file).map_err(|source| file_error(path, source))?;
    Ok(Attempt::Held { holder })
}

/// Takes the lock, waiting as long as it is held, and writes `holder` into the file.
///
/// # Errors
/// The file can't be made or the file system has no locks.
pub fn acquire(path: &Path, holder: &str) -> Result<HeldLock, LockError> {
    loop {
        if let Attempt::Acquired(held) = try_acquire(path, holder)? {
            return Ok(held);
        }
        // The kernel wakes us when it is free. Another may be quicker, so it is tried like any other time.
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|source| file_error(path, source))?;
        file.lock().map_err(|source| lock_error(path, source))?;
    }
}

/// The holder's text when somebody holds the lock; `None` when it is free or its file is not there.
///
/// # Errors
/// The file can't be read or the file system has no locks.
pub fn holder_if_held(path: &Path) -> Result<Option<String>, LockError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(file_error(path, source)),
    };
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| None).map_err(|source| lock_error(path, source)),
        Err(TryLockError::WouldBlock) => read_holder(&mut file).map(Some).map_err(|source| file_error(path, source)),
        Err(TryLockError::Error(source)) => Err(lock_error(path, source)),
    }
}

/// Whether locks in `dir` keep a second one out: the file systems of some network mounts and container
/// bind mounts accept every lock.
///
/// # Errors
/// No file can be made there.
pub fn locks_work(dir: &Path) -> Result<bool, LockError> {
    let probe = tempfile::Builder::new().prefix(".proctor-lock-").tempfile_in(dir).map_err(|source| file_error(dir, source))?;
    let again = probe.reopen().map_err(|source| file_error(probe.path(), source))?;
    match probe.as_file().try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Ok(false),
    }
    Ok(matches!(again.try_lock(), Err(TryLockError::WouldBlock)))
}

/// When the holder of a lock, living or dead, last gave a sign of life; `None` when the file is not there.
pub fn last_touched(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Waits until nobody holds the lock, and leaves the file as it is. A lock that was never taken is free.
///
/// # Errors
/// The file can't be opened or the file system has no locks.
pub fn wait_until_free(path: &Path) -> Result<(), LockError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(file_error(path, source)),
    };
    file.lock_shared().and_then(|()| file.unlock()).map_err(|source| lock_error(path, source))
}

fn write_holder(file: &mut File, holder: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(holder.as_bytes())
}

fn read_holder(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(HOLDER_LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
