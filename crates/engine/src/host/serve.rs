//! The host's side: `proctor host <folder>`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use proctor_domain::session::{Lingering, SessionEnd, SessionReport, ShellEnd};
use proctor_process::durable::DurableError;
use proctor_process::killpoint::reach_in_host;
use proctor_process::lock::{self, Attempt, HeldLock};
use proctor_process::{ProcessIdentity, Signal, Signals, descriptors, family};

use super::HostError;
use super::control::Control;
use super::files::{SessionFolder, StoredHost, StoredSpec, encode_report, read_json, write_json, write_plainly, write_report};
use super::outputs;
use super::streams::{LIMITS, StreamLog};
use super::supervise::Supervisor;

/// The hidden command `proctor host <folder>`: runs the session whose spec lies in `folder`.
///
/// It must be called first thing, from the only thread, with the control socket at standard input: every further
/// thing that the program does before costs each step of each run.
pub fn run_host(folder: &Path) -> ExitCode {
    reach_in_host("before-lock");
    let folder = SessionFolder::new(folder);
    tell_panics_to(folder.trouble());
    match serve(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            // Nobody reads a host's output. Whoever finds the session without a report reads this.
            let _ = write_plainly(&folder.trouble(), format!("{trouble}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// A host that panics leaves no report, which says that it is lost; this says why.
fn tell_panics_to(path: PathBuf) {
    std::panic::set_hook(Box::new(move |panic| {
        let _ = write_plainly(&path, format!("the session's host met a bug: {panic}\n").as_bytes());
    }));
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
    #[error("the session's host was started without a control socket; `proctor host` is not for people")]
    Control(std::io::Error),
    #[error("the session's host failed to write its report as JSON: {0}")]
    Encode(serde_json::Error),
}

/// The sources of an error, as one text.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

fn serve(folder: &SessionFolder) -> Result<(), Trouble> {
    let control = descriptors::take_stdin().and_then(Control::new).map_err(Trouble::Control)?;
    let signals = Signals::listen(&[Signal::Terminate, Signal::Interrupt, Signal::Hangup, Signal::FileSize])?;
    family::become_subreaper().map_err(Trouble::Subreaper)?;
    let Some(spec) = read_json::<StoredSpec>(&folder.spec())? else {
        return Ok(());
    };
    let identity = ProcessIdentity::current()?;
    let Some(lock) = take_lock(folder, &spec, &identity)? else {
        return Ok(());
    };
    reach_in_host("after-lock");
    write_json(&folder.host(), &StoredHost::new(&identity, lock.touched()))?;
    let begun = Instant::now();
    let streams = [StreamLog::create(folder.stdout(), LIMITS), StreamLog::create(folder.stderr(), LIMITS)];
    let mut supervisor = Supervisor::new(&spec, folder, lock, control, signals, streams);
    let (end, shells) = run_shells(&mut supervisor, spec.shells);
    let report = conclude(supervisor, folder, Conclusion { end, shells, begun });
    reach_in_host("before-report");
    leave_report(folder, report)?;
    reach_in_host("after-report");
    Ok(())
}

/// Takes the session's lock; `None` when there is nothing to do here.
///
/// A session runs at most once. Another host may live (its lock is held), may have died (it left its identity),
/// or somebody may have given the session up while this host was on its way (a fence).
fn take_lock(folder: &SessionFolder, spec: &StoredSpec, identity: &ProcessIdentity) -> Result<Option<HeldLock>, Trouble> {
    match lock::try_acquire(&spec.lock(), &identity.to_string())? {
        Attempt::Acquired(_) if folder.is_fenced() || folder.host().exists() => Ok(None),
        Attempt::Acquired(lock) => Ok(Some(lock)),
        Attempt::Held { .. } => Ok(None),
    }
}

fn run_shells(supervisor: &mut Supervisor, count: usize) -> (SessionEnd, Vec<ShellEnd>) {
    let mut ended = Vec::new();
    for number in 1..=count {
        if let Some(end) = supervisor.due() {
            return (end, ended);
        }
        let run = match supervisor.run_shell(number) {
            Ok(run) => run,
            Err(reason) => return (SessionEnd::Crashed { reason }, ended),
        };
        ended.extend(run.shell);
        if let Some(end) = run.cut_short {
            return (end, ended);
        }
        if ended.last().is_some_and(|shell| shell.exit_code != 0) {
            break;
        }
    }
    (SessionEnd::Completed, ended)
}

struct Conclusion {
    end: SessionEnd,
    shells: Vec<ShellEnd>,
    begun: Instant,
}

fn conclude(supervisor: Supervisor, folder: &SessionFolder, conclusion: Conclusion) -> Report {
    let left = supervisor.finish();
    let [stdout, stderr] = left.streams.map(StreamLog::finish);
    let (outputs, output_error) = match outputs::read(&folder.output()) {
        Ok(outputs) => (outputs, None),
        Err(reason) => (std::collections::BTreeMap::new(), Some(reason)),
    };
    let notes: Vec<String> = stdout.note.into_iter().chain(stderr.note).chain(left.notes).collect();
    let report = SessionReport {
        end: conclusion.end,
        shells: conclusion.shells,
        stdout: stdout.excerpt,
        stderr: stderr.excerpt,
        outputs,
        output_error,
        ended_orphans: left.ended_orphans,
        lingering: left.lingering,
        log_note: None,
        duration_ms: millis(conclusion.begun),
    };
    Report { report, notes, lock: left.lock, control: left.control }
}

/// What a supervisor leaves when its last shell is over.
pub(super) struct Left {
    pub(super) streams: [StreamLog; 2],
    pub(super) notes: Vec<String>,
    pub(super) ended_orphans: u32,
    pub(super) lingering: Vec<Lingering>,
    pub(super) lock: HeldLock,
    pub(super) control: Control,
}

/// A report with what is held until it is written: the lock, and the connections whose end tells the drivers.
struct Report {
    report: SessionReport,
    notes: Vec<String>,
    lock: HeldLock,
    control: Control,
}

pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Bytes that a log gives up when there is no other space for the report.
const ROOM: u64 = 1024 * 1024;

/// Writes the report, the last thing that a host does.
///
/// The disk is often full *because* of what the session printed. The report says how the session ended and holds
/// the excerpts, so the logs give way to it.
fn leave_report(folder: &SessionFolder, report: Report) -> Result<(), Trouble> {
    let Report { mut report, mut notes, lock, control } = report;
    let mut encode = |notes: &[String]| {
        report.log_note = (!notes.is_empty()).then(|| notes.join("; "));
        encode_report(&report).map_err(Trouble::Encode)
    };
    let written = match write_report(folder, &encode(&notes)?) {
        Err(DurableError::NoSpace { .. }) => {
            notes.extend([folder.stdout(), folder.stderr()].iter().filter_map(|path| shorten(path)));
            write_report(folder, &encode(&notes)?)
        }
        other => other,
    };
    drop(control);
    drop(lock);
    Ok(written?)
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
