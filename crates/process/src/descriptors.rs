//! Descriptors that cross into children, and paths that go through one.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fd::BorrowedFd;

/// A path to `name` in an open folder that is short however deep the folder lies.
///
/// Socket addresses hold 108 bytes, and a state folder may lie deeper than that. The path works as long
/// as `folder` is open, and in this process only.
pub fn short_path(folder: BorrowedFd<'_>, name: &Path) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// Takes what stands at standard input and puts `/dev/null` in its place.
///
/// A host gets the socket to its driver there: a fixed number needs no argument, and unlike a descriptor that
/// is made inheritable for a moment it can't leak into a child that another thread starts meanwhile.
///
/// # Errors
/// Standard input is closed, or no descriptor is left.
pub fn take_stdin() -> io::Result<OwnedFd> {
    let taken = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(null.as_fd())?;
    Ok(taken)
}

/// Makes every descriptor but the standard three close on exec.
///
/// Ours are already. Those that our caller left open (a shell's `exec 9>lock`, a job server) would
/// otherwise live on in detached hosts and build servers, and keep locks held and pipes open.
#[allow(unsafe_code, reason = "neither the standard library nor rustix wraps close_range")]
pub(crate) fn seal() {
    const FIRST: libc::c_uint = 3;
    // SAFETY: `close_range` takes three integers and touches no memory. With CLOSE_RANGE_CLOEXEC it
    // closes nothing, so no descriptor that another part of the program owns becomes invalid.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Waits until `descriptor` can be read, at most for `limit`; whether it can. A signal does not end the wait.
pub(crate) fn wait_readable(descriptor: BorrowedFd<'_>, limit: std::time::Duration) -> io::Result<bool> {
    let deadline = std::time::Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let mut polled = [rustix::event::PollFd::new(&descriptor, rustix::event::PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&crate::child::to_timespec(left))) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
