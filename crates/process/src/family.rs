//! Finding and ending the processes that belong together: the descendants of one, or those that carry a marker.
//!
//! A subreaper finds every descendant by walking down from itself: orphans are handed to it, whatever they
//! did to their session, group, streams, directory or environment. That walk costs a few reads. The search for a
//! marker reads the environment of every process of the machine; it is for those whose subreaper
//! was killed.
//!
//! Nothing here signals a process that it did not find itself, with its start time, a moment before.

mod ending;
mod walk;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};

pub use ending::{EndedProcesses, Ending, end};
pub use walk::{ancestors, children, descendants, descendants_if, descends_from, program_among, variable_of};

use crate::ProcessIdentity;
use crate::child::{self, to_timespec};
use crate::proc_files::{self, Environment, Stat};

/// Makes this process the one that orphaned descendants are handed to.
///
/// # Errors
/// The kernel has no subreapers.
pub fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Whether this process has any child, living or dead.
///
/// For a subreaper that has reaped what it started, "no" means that it has no descendant left at all:
/// one system call instead of a walk, and nothing can slip through, because only a descendant could
/// start another.
pub fn has_children() -> bool {
    !matches!(
        rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT),
        Err(Errno::CHILD)
    )
}

/// Reaps dead children that this process did not start itself: orphans that were handed to it.
///
/// By pid, one after the other: a wait for "any child" would take the end of a child from whoever
/// started it and waits for it.
pub fn reap_orphans() {
    for pid in walk::child_pids(std::process::id()) {
        reap_orphan(pid);
    }
}

/// Reaps this dead child, unless this process started it through [`crate::Program`].
fn reap_orphan(pid: u32) {
    if !child::is_own(pid) {
        // Not dead yet, or not our child: both are for the next time.
        let _ = child::reap(pid, WaitIdOptions::NOHANG);
    }
}

/// Whether this process started the child with this pid through [`crate::Program`] and has not reaped it.
pub fn is_own_child(pid: u32) -> bool {
    child::is_own(pid)
}

/// All processes whose variable `variable` has a value that `has` accepts.
///
/// The environment is the one that a process was started with. One that wrote over that memory, as
/// some daemons do to show a title, is not found.
pub fn marked(variable: &str, has: impl Fn(&[u8]) -> bool) -> Vec<ProcessIdentity> {
    let mut environment = Vec::new();
    let mut found = Vec::new();
    // With how often in a row each had an empty environment.
    let mut open: Vec<(u32, u32)> = proc_files::all_pids().into_iter().map(|pid| (pid, 0)).collect();
    let begun = Instant::now();
    loop {
        open.retain_mut(|(pid, empty)| match mark_of(*pid, &mut environment, variable, &has) {
            Mark::Carried(identity) => {
                found.push(identity);
                false
            }
            Mark::Missing => false,
            Mark::NotYet => {
                *empty = 0;
                true
            }
            Mark::Empty => {
                *empty += 1;
                *empty < EMPTY_FOR_GOOD
            }
        });
        if open.is_empty() || begun.elapsed() >= LONGEST_EXEC {
            return found;
        }
        wait_for_end(&[], IN_AN_EXEC);
    }
}

/// What one look at a process says of a marker.
enum Mark {
    Carried(ProcessIdentity),
    Missing,
    /// It is in the middle of an exec, in which a process has no environment.
    NotYet,
    /// It has an empty environment, or is at the end of an exec.
    Empty,
}

fn mark_of(pid: u32, environment: &mut Vec<u8>, variable: &str, has: impl Fn(&[u8]) -> bool) -> Mark {
    let path = format!("/proc/{pid}/environ");
    let mut carries = || {
        let is_read = proc_files::read_whole(&path, environment);
        (is_read && proc_files::value_in(environment, variable).is_some_and(&has), is_read && environment.is_empty())
    };
    // Nearly all are passed over after one read. For the few that match, the environment is read again
    // between two looks at the identity, so that a pid that changed hands is not mistaken.
    match carries() {
        (true, _) => match ProcessIdentity::of(pid) {
            Some(identity) if carries().0 && identity.is_alive() => Mark::Carried(identity),
            Some(identity) if identity.is_alive() => Mark::NotYet,
            Some(_) | None => Mark::Missing,
        },
        (false, true) => match Stat::of(pid).map(|stat| stat.environment) {
            Some(Environment::Unread) => Mark::NotYet,
            Some(Environment::Empty) => Mark::Empty,
            Some(Environment::None) | None => Mark::Missing,
        },
        (false, false) => Mark::Missing,
    }
}

/// As [`marked`], without this process and its ancestors: a person may clean up from a terminal that the dead
/// session had started.
pub fn marked_others(variable: &str, has: impl Fn(&[u8]) -> bool) -> Vec<ProcessIdentity> {
    let spared = ancestors();
    let mut found = marked(variable, has);
    found.retain(|identity| identity.pid != std::process::id() && !spared.contains(identity));
    found
}

/// Ends all processes whose variable `variable` has a value that `has` accepts, but never this process or
/// its ancestors.
pub fn end_marked(variable: &str, has: impl Fn(&[u8]) -> bool, grace: Duration) -> EndedProcesses {
    end(&mut || marked_others(variable, &has), Ending { grace, first: None, wait: &mut wait_for_end })
}

/// Before a process in the middle of an exec is looked at again.
const IN_AN_EXEC: Duration = Duration::from_millis(1);
/// An exec takes microseconds; what is still without an environment then is none of ours.
const LONGEST_EXEC: Duration = Duration::from_secs(2);

/// An environment that is empty at so many looks in a row is not just being filled. Looks and not time are counted: on a
/// busy machine this process may have had none meanwhile.
const EMPTY_FOR_GOOD: u32 = 20;

/// Waits until one of the processes ends or the time is over.
pub fn wait_for_end(pidfds: &[BorrowedFd<'_>], limit: Duration) {
    let mut polled: Vec<PollFd<'_>> = pidfds.iter().map(|pidfd| PollFd::from_borrowed_fd(*pidfd, PollFlags::IN)).collect();
    // An interrupted wait is a short one; callers look again anyway.
    let _ = rustix::event::poll(&mut polled, Some(&to_timespec(limit)));
}
