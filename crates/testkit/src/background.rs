//! Programs that run while the test goes on.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::Output;

/// A program that runs while the test goes on. Dropping it kills it.
///
/// Its streams go to files, not to pipes: what it leaves behind may keep a pipe open for ever.
#[must_use = "dropping it kills it"]
#[derive(Debug)]
pub struct Background {
    pub(crate) child: Child,
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
    pub(crate) root: PathBuf,
}

impl Background {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to stdout so far.
    pub fn stdout_so_far(&self) -> String {
        read(&self.stdout)
    }

    /// What it has written to stderr so far.
    pub fn stderr_so_far(&self) -> String {
        read(&self.stderr)
    }

    /// Writes a line to its standard input.
    pub fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("it was not started to be spoken with");
        input.write_all(format!("{line}\n").as_bytes()).expect("it listens");
    }

    /// Ends its standard input.
    pub fn hang_up(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Sends it a signal; does nothing when it is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        // The child is not reaped before `wait`, so the pid is still its own.
        let _ = kill_process(pid, signal);
    }

    /// Kills it and waits for its end.
    pub fn kill(self) -> Output {
        self.signal(Signal::KILL);
        self.wait(Duration::from_secs(10))
    }

    /// Waits for its end; kills it and panics when it does not end within `limit`.
    pub fn wait(mut self, limit: Duration) -> Output {
        if !self.ends_within(limit) {
            self.signal(Signal::KILL);
            panic!(
                "it did not end within {} s\n--- stdout\n{}\n--- stderr\n{}",
                limit.as_secs(),
                self.stdout_so_far(),
                self.stderr_so_far()
            );
        }
        let status = self.child.wait().expect("its end");
        Output {
            code: status.code(),
            signal: std::os::unix::process::ExitStatusExt::signal(&status),
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
            root: self.root.clone(),
        }
    }

    /// Whether it ends within `limit`. Does not collect it.
    pub fn ends_within(&self, limit: Duration) -> bool {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
        let started = Instant::now();
        loop {
            let left = limit.saturating_sub(started.elapsed());
            let timeout = Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(left.subsec_nanos()) };
            let mut watched = [PollFd::new(&process, PollFlags::IN)];
            match poll(&mut watched, Some(&timeout)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("poll: {error}"),
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn read(path: &PathBuf) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("what it printed")).into_owned()
}
