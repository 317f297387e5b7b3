//! The host's side: `proctor host <folder>`.
//!
//! A host runs the sessions that its driver hands it, one after the other. That spares every session but the first the
//! start of a process, which would be most of what a short shell costs. Each session has a lock, a folder and a report of
//! its own, so nobody but the driver that holds the leash can tell the difference.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use proctor_domain::session::{AgentReport, Excerpt, SessionEnd, SessionReport};
use proctor_process::durable::DurableError;
use proctor_process::killpoint::{self, reach_in_host};
use proctor_process::lock::{self, Attempt, HeldLock};
use proctor_process::{ProcessIdentity, Signal, Signals, descriptors, family};
use rustix::event::{PollFd, PollFlags};

use super::HostError;
use super::assignment::{Assignment, StoredSpec};
use super::control::{Control, Socket};
use super::files::{SessionFolder, StoredHost, encode_report, write_plainly, write_report};
use super::line::{Line, Next};
use super::outputs;
use super::streams::{self, Hidden, LIMITS, StreamLog};
use super::supervise::{Held, Supervisor};
use super::watch::{AgentWatch, Cut};
use super::work::Worked;
use crate::agent::Account;
use crate::words::causes;

/// The hidden command `proctor host <folder>`: runs the sessions that its driver hands it, the first of which has this
/// folder.
///
/// It must be called first thing, from the only thread, with the leash at standard input: whatever else the program does
/// before delays the first step of every run.
pub fn run_host(folder: &Path) -> ExitCode {
    tell_troubles_in(&SessionFolder::new(folder));
    std::panic::set_hook(Box::new(|panic| tell_trouble(&format!("the session's host met a bug: {panic}"))));
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Trouble::Leash(error)) => {
            let sentence = format!("`proctor host` is for proctor itself: there is no leash at its standard input ({error})\n");
            let _ = std::io::stderr().write_all(sentence.as_bytes());
            ExitCode::from(2)
        }
        Err(trouble) => {
            tell_trouble(&trouble.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Where the host's own troubles are told: beside the session that it is at. Nobody reads a host's output; whoever finds
/// the session without a report reads this.
static TROUBLE: Mutex<Option<PathBuf>> = Mutex::new(None);

fn tell_troubles_in(folder: &SessionFolder) {
    *TROUBLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder.trouble());
}

fn tell_trouble(sentence: &str) {
    if let Some(path) = &*TROUBLE.lock().unwrap_or_else(PoisonError::into_inner) {
        // When even this can't be written, the disk is full or gone, and the driver meets that itself.
        let _ = write_plainly(path, format!("{sentence}\n").as_bytes());
    }
}

/// Why a host could not do its job.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the session's host failed to {0}{cause}", cause = causes(.0))]
    Host(#[from] HostError),
    #[error("the session's host failed to {0}{cause}", cause = causes(.0))]
    Lock(#[from] lock::LockError),
    #[error("the session's host failed to {0}{cause}", cause = causes(.0))]
    Report(#[from] DurableError),
    #[error("the session's host failed to {0}{cause}", cause = causes(.0))]
    Identity(#[from] proctor_process::IdentityError),
    #[error("the session's host failed to {0}{cause}", cause = causes(.0))]
    Signals(#[from] proctor_process::SignalsError),
    #[error("the session's host failed to become the parent of orphans: {0}")]
    Subreaper(std::io::Error),
    #[error("the host has no leash: {0}")]
    Leash(std::io::Error),
    #[error("the session's host failed to write its report as JSON: {0}")]
    Encode(serde_json::Error),
}

fn serve() -> Result<(), Trouble> {
    let mut leash = descriptors::take_stdin().and_then(Line::leash).map_err(Trouble::Leash)?;
    let signals = Signals::listen(&[Signal::Terminate, Signal::Interrupt, Signal::Hangup, Signal::FileSize])?;
    family::become_subreaper().map_err(Trouble::Subreaper)?;
    let mut host = Host { identity: ProcessIdentity::current()?, signals, socket: None };
    while let Some(assignment) = host.next_assignment(&mut leash) {
        match host.serve(&assignment, leash)? {
            Some(kept) => leash = kept,
            None => break,
        }
    }
    Ok(())
}

struct Host {
    identity: ProcessIdentity,
    signals: Signals,
    /// The socket for drivers that do not hold the leash, once there is one.
    socket: Option<Socket>,
}

impl Host {
    /// Waits for the next session; `None` when there will be none.
    ///
    /// It waits without a limit and without waking up: it holds nothing, and it goes when its driver does.
    fn next_assignment(&self, leash: &mut Line) -> Option<Assignment> {
        loop {
            match leash.take_assignment() {
                Next::Session(assignment) => return Some(*assignment),
                Next::End => return None,
                Next::Nothing => {}
            }
            if self.signals.pending().iter().any(|signal| matches!(signal, Signal::Terminate | Signal::Interrupt)) {
                return None;
            }
            let mut polled = [PollFd::new(leash, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            // It fails when a signal arrives, which is looked at next.
            let _ = rustix::event::poll(&mut polled, None);
        }
    }

    /// Runs one session. Gives the leash back when the host is good for another one.
    fn serve(&mut self, assignment: &Assignment, leash: Line) -> Result<Option<Line>, Trouble> {
        killpoint::arm_host(assignment.killpoint.clone());
        reach_in_host("before-lock");
        let folder = SessionFolder::new(&assignment.folder());
        tell_troubles_in(&folder);
        let Some(lock) = take_lock(&folder, &assignment.spec, &self.identity)? else {
            return Ok(None);
        };
        reach_in_host("after-lock");
        let control = Control::open(&folder, leash, self.socket.take());
        StoredHost::new(&self.identity, lock.touched(), &assignment.spec.linger).write(&folder)?;
        let secrets = Hidden::new(assignment.secrets());
        let out = if assignment.agent.is_some() { folder.transcript() } else { folder.stdout() };
        let streams = [out, folder.stderr()].map(|path| StreamLog::new(path, LIMITS, &secrets));
        let held = Held { lock, control, signals: &self.signals };
        let begun = Instant::now();
        let mut supervisor = Supervisor::new(assignment, &folder, held, streams);
        let worked = supervisor.run_work(assignment.spec.shells, assignment.agent.as_ref());
        let left = supervisor.finish();
        let (mut report, mut notes) = told(worked, left.agent, left.streams);
        if let Some(agent) = &mut report.agent {
            clean(agent, &secrets);
        }
        (report.outputs, report.output_error) = match outputs::read_for_report(&folder.output(), &secrets) {
            Ok(outputs) => (outputs, None),
            Err(reason) => (BTreeMap::new(), Some(reason)),
        };
        (report.ended_orphans, report.lingering, report.duration_ms) = (left.ended_orphans, left.lingering, millis(begun));
        let has_survivors = !left.survivors.is_empty();
        notes.splice(0..0, left.survivors);
        reach_in_host("before-report");
        leave_report(&folder, report, notes)?;
        reach_in_host("after-report");
        // Who hears that the session is over may look at its lock next.
        drop(left.held.lock);
        let (leash, socket) = left.held.control.close();
        self.socket = socket;
        if let Some(leash) = &leash {
            leash.tell_done();
        }
        // What it could not end must not be found among the processes of another session.
        Ok(leash.filter(|_| !left.signalled && !has_survivors))
    }
}

/// Takes the session's lock; `None` when there is nothing to do here.
///
/// A session runs at most once. Another host may live (its lock is held), may have died (it left its identity),
/// or somebody may have given the session up while this host was on its way (a fence).
fn take_lock(folder: &SessionFolder, spec: &StoredSpec, identity: &ProcessIdentity) -> Result<Option<HeldLock>, Trouble> {
    match lock::try_acquire(&spec.lock(), &identity.to_string())? {
        Attempt::Acquired(_) if folder.is_fenced() || folder.has_traces() => Ok(None),
        Attempt::Acquired(lock) => Ok(Some(lock)),
        Attempt::Held { .. } => Ok(None),
    }
}

/// Takes secrets out of what an agent said: its reader may have put together what came in pieces, each of them harmless.
fn clean(agent: &mut AgentReport, secrets: &Hidden) {
    let texts = [&mut agent.claim, &mut agent.result, &mut agent.error];
    texts.into_iter().flatten().for_each(|text| *text = secrets.clean(text));
}

/// How the work ended and what was printed, as a report that lacks the rest, and sentences about what was not kept.
fn told(worked: Worked, mut agent: Option<AgentWatch>, streams: [StreamLog; 2]) -> (SessionReport, Vec<String>) {
    let [stdout, stderr] = streams;
    let stdout = match &mut agent {
        Some(agent) => agent.printed_all(stdout),
        None => stdout.finish(&mut |_| {}),
    };
    let stderr = stderr.finish(&mut |_| {});
    let complaint = last_complaint(&stderr.excerpt);
    let notes = [&stdout, &stderr].into_iter().filter_map(streams::Finished::note).collect();
    let signal = worked.exit_code.map(|code| code - 128).filter(|signal| (1..=64).contains(signal) && worked.cut.is_none());
    let (end, agent) = match (agent, worked.cut) {
        (Some(agent), cut) => {
            let (mut end, mut report) = agent.close(worked.exit_code, cut);
            explain(&mut end, &mut report, complaint.as_deref());
            (end, Some(Box::new(report)))
        }
        (None, Some(Cut::By(end))) => (end, None),
        (None, Some(Cut::Done) | None) => (SessionEnd::Completed, None),
    };
    let report = SessionReport {
        // Its children and the program that makes its box say by such a code that a signal ended it.
        killed_by: signal.filter(|_| agent.is_some() && matches!(end, SessionEnd::Crashed { .. })),
        end,
        shells: worked.shells,
        // An agent's lines are no text for a person; who wants to see them reads the transcript.
        stdout: if agent.is_some() { Excerpt::default() } else { stdout.excerpt },
        stderr: stderr.excerpt,
        outputs: BTreeMap::new(),
        output_error: None,
        ended_orphans: 0,
        lingering: Vec::new(),
        log_note: None,
        duration_ms: 0,
        agent,
    };
    (report, notes)
}

/// The last words on a standard error that are an error, or else the last ones.
fn last_complaint(stderr: &Excerpt) -> Option<String> {
    let lines = || stderr.head.lines().chain(stderr.tail.lines()).map(str::trim).filter(|line| !line.is_empty());
    let error = lines().rfind(|line| line.to_ascii_lowercase().starts_with("error"));
    error.or_else(|| lines().next_back()).map(|line| line.chars().take(LONGEST_COMPLAINT).collect())
}

/// Adds what a program complained of to the report of one that said nothing at its end: there are engines that tell no
/// more than that.
fn explain(end: &mut SessionEnd, report: &mut AgentReport, complaint: Option<&str>) {
    let Some(complaint) = complaint else { return };
    if let (SessionEnd::Crashed { reason }, Some(error)) = (end, &mut report.error)
        && *reason == *error
        && Account::is_unexplained(reason)
    {
        *reason = format!("{reason}: {complaint}");
        error.clone_from(reason);
    }
}

pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Letters that are kept of a complaint.
const LONGEST_COMPLAINT: usize = 500;
/// Bytes that a log gives up when there is no other space for the report.
const ROOM: u64 = 1024 * 1024;

/// Writes the report, by which the session is over.
///
/// The disk is often full *because* of what the session printed. The report says how the session ended and holds
/// the excerpts, so the logs give way to it.
fn leave_report(folder: &SessionFolder, mut report: SessionReport, mut notes: Vec<String>) -> Result<(), Trouble> {
    let mut encode = |notes: &[String]| {
        report.log_note = (!notes.is_empty()).then(|| notes.join("; "));
        encode_report(&report).map_err(Trouble::Encode)
    };
    match write_report(folder, &encode(&notes)?) {
        Err(DurableError::NoSpace { .. }) => {
            notes.extend([folder.stdout(), folder.transcript(), folder.stderr()].iter().filter_map(|path| shorten(path)));
            write_report(folder, &encode(&notes)?)?;
        }
        other => other?,
    }
    Ok(())
}

/// Cuts the end off a log; returns a sentence about it.
fn shorten(path: &Path) -> Option<String> {
    let file = File::options().write(true).open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let cut = length.min(ROOM);
    if cut == 0 {
        return None;
    }
    file.set_len(length - cut).ok()?;
    Some(format!("{}: {cut} bytes removed from its end, because the disk is full and the report needs room", path.file_name()?.display()))
}
