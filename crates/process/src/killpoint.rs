//! Fault injection for the crash tests: ends the driver, its host or both at a chosen point.
//!
//! It is always compiled in, because a test of another binary than the one that ships proves little;
//! unused it costs one relaxed load per point. Variables:
//!
//! * `PROCTOR_KILLPOINT=driver:<n>|host:<n>|both:<n>`: what dies at the driver's n-th point, from 1.
//! * `PROCTOR_KILLPOINT_LOG=<file>`: gets a line `<n> <name>` for each point reached, so that an
//!   undisturbed run tells a test how many points there are.
//! * `PROCTOR_HOST_KILLPOINT=<session>:<name>`: the host of the driver's n-th session, from 1, dies at
//!   its own point of that name.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::identity::ProcessIdentity;
use crate::signals::Signal;

/// Names the point of the driver at which something dies.
pub const VARIABLE: &str = "PROCTOR_KILLPOINT";
/// Names the file that lists the points reached.
pub const LOG_VARIABLE: &str = "PROCTOR_KILLPOINT_LOG";
/// Names the point of a host at which it dies.
pub const HOST_VARIABLE: &str = "PROCTOR_HOST_KILLPOINT";

const UNKNOWN: u8 = 0;
const UNUSED: u8 = 1;
const USED: u8 = 2;

static USE: AtomicU8 = AtomicU8::new(UNKNOWN);
static REACHED: AtomicU64 = AtomicU64::new(0);
static SESSIONS: AtomicU64 = AtomicU64::new(0);
static HOST: Mutex<Option<ProcessIdentity>> = Mutex::new(None);
static HOST_POINT: Mutex<Option<String>> = Mutex::new(None);
static PLAN: OnceLock<Plan> = OnceLock::new();

/// How long the death of a host is waited for, so that what follows a point sees it dead.
const HOST_DEATH: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Driver,
    Host,
    Both,
}

#[derive(Debug)]
struct Plan {
    death: Option<(Victim, u64)>,
    log: Option<PathBuf>,
}

impl Plan {
    fn from_environment() -> Self {
        let death = std::env::var(VARIABLE).ok().and_then(|text| parse_death(&text));
        Self { death, log: std::env::var_os(LOG_VARIABLE).map(PathBuf::from) }
    }
}

fn parse_death(text: &str) -> Option<(Victim, u64)> {
    let (victim, point) = text.split_once(':')?;
    let victim = match victim {
        "driver" => Victim::Driver,
        "host" => Victim::Host,
        "both" => Victim::Both,
        _ => return None,
    };
    Some((victim, point.parse().ok()?))
}

/// Marks a point of the driver: before and after each append to the journal and each external effect.
pub fn reach(name: &str) {
    if USE.load(Ordering::Relaxed) == UNUSED {
        return;
    }
    reach_planned(name);
}

#[cold]
fn reach_planned(name: &str) {
    let plan = PLAN.get_or_init(Plan::from_environment);
    if plan.death.is_none() && plan.log.is_none() {
        USE.store(UNUSED, Ordering::Relaxed);
        return;
    }
    USE.store(USED, Ordering::Relaxed);
    let number = REACHED.fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(path) = &plan.log
        && let Ok(mut log) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        // A log that can't be written makes the test that reads it fail, which is where it belongs.
        let _ = log.write_all(format!("{number} {name}\n").as_bytes());
    }
    match plan.death {
        Some((Victim::Driver, point)) if point == number => end_ourselves(),
        Some((Victim::Host, point)) if point == number => end_host(),
        Some((Victim::Both, point)) if point == number => {
            end_host();
            end_ourselves();
        }
        Some(_) | None => {}
    }
}

/// Tells which host is the current one; `None` after its session.
pub fn set_host(identity: Option<ProcessIdentity>) {
    if USE.load(Ordering::Relaxed) != UNUSED {
        *HOST.lock().unwrap_or_else(PoisonError::into_inner) = identity;
    }
}

/// The point at which the host of the driver's next session is to die, for the driver to tell it. Counts the sessions, so it
/// is called once for each.
pub fn for_next_session() -> Option<String> {
    let session = SESSIONS.fetch_add(1, Ordering::Relaxed) + 1;
    let wanted = std::env::var(HOST_VARIABLE).ok()?;
    let (ordinal, point) = wanted.split_once(':')?;
    (ordinal.parse() == Ok(session)).then(|| point.to_owned())
}

/// In a host: the point at which it is to die in the session that it begins.
pub fn arm_host(point: Option<String>) {
    *HOST_POINT.lock().unwrap_or_else(PoisonError::into_inner) = point;
}

/// Marks a point of a host.
pub fn reach_in_host(name: &str) {
    if HOST_POINT.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(name) {
        end_ourselves();
    }
}

fn end_ourselves() {
    // SIGKILL and not an exit: nothing may be flushed, unlocked or cleaned up on the way.
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::Kill.to_rustix());
}

fn end_host() {
    let host = HOST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(host) = host else {
        return;
    };
    if let (Ok(Some(pidfd)), Ok(_)) = (host.pidfd(), host.signal(Signal::Kill)) {
        let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
        let _ = rustix::event::poll(&mut polled, Some(&HOST_DEATH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_death_means_none() {
        assert_eq!(parse_death("driver:3"), Some((Victim::Driver, 3)));
        assert_eq!(parse_death("both:12"), Some((Victim::Both, 12)));
        for text in ["", "driver", "driver:", "driver:x", "somebody:1"] {
            assert_eq!(parse_death(text), None, "{text}");
        }
    }
}
