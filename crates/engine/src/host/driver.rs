//! The driver's side: starting sessions, finding one again, and taking over from a dead host.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_domain::session::SessionReport;
use proctor_process::durable::{self, Durability};
use proctor_process::family::{self, EndedProcesses};
use proctor_process::identity::ticks_now;
use proctor_process::lock::{self, Attempt};
use proctor_process::{ProcessIdentity, Program, Sink, Stdin, killpoint};

use super::assignment::{Assignment, StoredSpec};
use super::attached::Attached;
use super::files::{SessionFolder, StoredHost, read_json, read_report, write_json, write_plainly};
use super::kennel::{self, LeashedHost};
use super::line::Line;
use super::orphans::{HOST_MARKER, MARKER, Remains, adopt_orphans, is_host_of};
use super::{HostError, SessionSpec, SessionWork};
use crate::redact::{Secrets, redact_text};

/// How long a host may take to come to its lock or to its end, on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is waited between two looks at what gives no sign of its own.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Where a session stands that was opened before.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "made once per session and taken apart at once")]
pub enum Found {
    /// Its host lives.
    Live(Attached),
    /// Its host reported.
    Ended(SessionReport),
    /// Its host is gone and left no report. The session is fenced, and what it left behind was ended.
    Lost,
    /// No host was ever started for it, and none can be under way: it may be started.
    NeverStarted,
}

/// Starts a session in a host: one that this process has at hand, or a new one, detached, by `program host <folder>`.
///
/// # Errors
/// Nothing runs when this fails, and the session counts as never started, unless it was started before.
pub fn start(spec: &SessionSpec, program: &Path) -> Result<Attached, HostError> {
    adopt_orphans();
    let folder = SessionFolder::new(&spec.folder);
    folder.create()?;
    if folder.is_fenced() {
        return Err(HostError::Fenced { session: folder.session() });
    }
    if folder.was_started() {
        return Err(HostError::AlreadyStarted { session: folder.session() });
    }
    write_work(spec, &folder)?;
    let since = ticks_now();
    match hand_over(spec, program, &folder) {
        Ok(host) => Ok(Attached::to_leashed(folder, &spec.lock, host, since)),
        Err(error) => {
            // A host that got half of it does nothing. If even this fails, the session will be found lost instead of never
            // started, which is the safe side.
            let _ = std::fs::remove_file(folder.spec());
            Err(error)
        }
    }
}

/// Writes what the child is to read.
fn write_work(spec: &SessionSpec, folder: &SessionFolder) -> Result<(), HostError> {
    let names_outputs = match &spec.work {
        SessionWork::Shells(texts) => {
            for (text, number) in texts.iter().zip(1..) {
                write_plainly(&folder.shell(number), text.as_bytes())?;
            }
            // Making a file is the dearest thing that a short session does. A text that names this one finds it there;
            // whatever else may append to it.
            texts.iter().any(|text| text.contains("PROCTOR_OUTPUT"))
        }
        SessionWork::Agent(run) => {
            let secrets = Secrets::new(&spec.secrets);
            write_plainly(&folder.system(), redact_text(&secrets, &run.opening.system).as_bytes())?;
            write_plainly(&folder.prompt(), redact_text(&secrets, &run.opening.prompt).as_bytes())?;
            for (name, text) in &run.files {
                write_plainly(&folder.make_room(name)?, redact_text(&secrets, text).as_bytes())?;
            }
            // A box can let a file be written that is there, and not one that will be.
            true
        }
    };
    if names_outputs { write_plainly(&folder.output(), b"") } else { Ok(()) }
}

/// Hands the session to a host: a waiting one where there is one.
fn hand_over(spec: &SessionSpec, program: &Path, folder: &SessionFolder) -> Result<LeashedHost, HostError> {
    let (own, around) = markers(spec);
    let mut environment = spec.environment.clone();
    if let SessionWork::Agent(run) = &spec.work {
        environment.extend(run.environment.iter().cloned());
    }
    environment.retain(|(name, _)| name != MARKER);
    environment.push((MARKER.into(), own));
    let killpoint = killpoint::for_next_session();
    let announce = |host: Option<&LeashedHost>| -> Result<Assignment, HostError> {
        let stored = StoredSpec::of(spec, host.and_then(LeashedHost::identity).map(ToString::to_string));
        // The last file, because its presence says that a host may be under way.
        write_json(&folder.spec(), &stored)?;
        Ok(Assignment::new(spec, stored, &environment, killpoint.clone()))
    };
    if let Some(waiting) = kennel::take(program, &around) {
        let assignment = announce(Some(&waiting))?;
        if waiting.line().assign(assignment).is_ok() {
            return Ok(waiting);
        }
        // It died this very moment.
    }
    let assignment = announce(None)?;
    let host = spawn(spec, program, around)?;
    match host.line().assign(assignment) {
        Ok(()) => Ok(host),
        Err(source) => Err(HostError::HandOver { session: folder.session(), source }),
    }
}

/// Starts a host. `around` names the sessions that this process itself is in.
fn spawn(spec: &SessionSpec, program: &Path, around: OsString) -> Result<LeashedHost, HostError> {
    let no_pair = |source| HostError::HandOver { session: spec.session.to_string(), source };
    let (ours, theirs) = UnixStream::pair().map_err(no_pair)?;
    let line = Line::leash(ours.into()).map_err(no_pair)?;
    // The variables are those of the first session, so that `ps` shows whose host it is. But its marker names no session
    // of ours: the host outlives the first one and is no orphan of it.
    let mut marker = around.clone();
    if !marker.is_empty() {
        marker.push(":");
    }
    marker.push("host");
    let child = Program::new(program)
        .arg("host")
        .arg(&spec.folder)
        .env(spec.environment.iter().cloned())
        .env([(MARKER, marker), (HOST_MARKER, spec.session.as_str().into())])
        .own_session()
        .stdin(Stdin::Descriptor(theirs.into()))
        .stdout(Sink::Null)
        .stderr(Sink::Null)
        .spawn()
        .map_err(HostError::Start)?;
    Ok(LeashedHost::new(program, around, line, child))
}

/// Looks where a session stands and, when its host is dead, takes over from it: only the driver of the session's run
/// may ask.
///
/// # Errors
/// Its files can't be read, a newer Proctor wrote them, or what is left of it can't be fenced.
pub fn find(folder: &Path, lock: &Path) -> Result<Found, HostError> {
    adopt_orphans();
    let folder = SessionFolder::new(folder);
    let begun = Instant::now();
    loop {
        if let Some(report) = read_report(&folder)? {
            return Ok(Found::Ended(report));
        }
        match lock::holder_if_held(lock)? {
            Some(holder) => {
                if let Some(attached) = attach(&folder, lock, &holder)? {
                    return Ok(Found::Live(attached));
                }
            }
            None if !folder.was_started() && !folder.is_fenced() => return Ok(Found::NeverStarted),
            None if is_on_its_way(&folder) => {}
            None => match take_over(&folder, lock, None)? {
                TakeOver::Done(_) => return Ok(Found::Lost),
                // The report came in since, or a late host has taken its lock.
                TakeOver::Reported(report) => return Ok(Found::Ended(report)),
                TakeOver::Held(_) => {}
            },
        }
        if begun.elapsed() > PATIENCE {
            let holder = lock::holder_if_held(lock)?.unwrap_or_default();
            return Err(HostError::Unreachable { session: folder.session(), holder });
        }
        family::wait_for_end(&[], LOOK_AGAIN);
    }
}

/// Whether a host was given the session and has not come to its lock yet, as when its driver died that very moment.
///
/// The fence would make it harmless too, but at the price of an attempt. A host that was idle and never got the session
/// goes by itself, since its driver is gone.
fn is_on_its_way(folder: &SessionFolder) -> bool {
    if folder.host().exists() || folder.is_fenced() {
        return false;
    }
    let handed_to = read_json::<StoredSpec>(&folder.spec()).ok().flatten().and_then(|spec| spec.host);
    match handed_to.and_then(|host| host.parse::<ProcessIdentity>().ok()) {
        Some(host) => host.is_alive(),
        None => is_host_of(&folder.session()),
    }
}

/// Takes over from a host that is dead or never came: a late one will find the fence and do nothing, and processes of the
/// session that still run are ended.
///
/// # Errors
/// The host lives, or the fence can't be written.
pub fn fence(folder: &Path, lock: &Path) -> Result<EndedProcesses, HostError> {
    let folder = SessionFolder::new(folder);
    match take_over(&folder, lock, None)? {
        TakeOver::Done(ended) => Ok(ended),
        // It is over; there is nothing to keep out and nothing that its host did not see to.
        TakeOver::Reported(_) => Ok(EndedProcesses::default()),
        TakeOver::Held(holder) => Err(HostError::StillAlive { session: folder.session(), holder }),
    }
}

/// What an attempt to take over came to.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "made once per session and taken apart at once")]
pub(super) enum TakeOver {
    /// The session is fenced, and these processes were ended.
    Done(EndedProcesses),
    /// The host had reported.
    Reported(SessionReport),
    /// Somebody holds the lock and wrote this into it.
    Held(String),
}

/// Fences a session whose host is dead, under its lock, and ends what is left of it.
///
/// `handed_over_since` is when the session began, where this process had started its host.
pub(super) fn take_over(folder: &SessionFolder, lock: &Path, handed_over_since: Option<u64>) -> Result<TakeOver, HostError> {
    // The file keeps the host's last sign of life, by which a resume tells the session's changes from later ones. It
    // may be refused and asked for again, so looking must not count as life.
    let held = match lock::try_take_over(lock)? {
        Attempt::Acquired(held) => held,
        Attempt::Held { holder } => return Ok(TakeOver::Held(holder)),
    };
    if let Some(report) = read_report(folder)? {
        return Ok(TakeOver::Reported(report));
    }
    folder.create()?;
    // Only the death of processes matters here, for a power cut ends every host.
    durable::write(&folder.fence(), b"{\"version\":1}\n", Durability::Renamed)?;
    // A file that can't be read must not keep orphans alive.
    let linger = read_json::<StoredHost>(&folder.host()).ok().flatten().map(StoredHost::into_linger).unwrap_or_default();
    let ended = Remains { session: folder.session(), handed_over_since, linger }.end();
    note_orphans(folder, ended.ended.len());
    drop(held);
    Ok(TakeOver::Done(ended))
}

/// Only talk comes of it, so that it may be missing.
fn note_orphans(folder: &SessionFolder, count: usize) {
    let file = folder.orphans();
    let earlier = std::fs::read_to_string(&file).unwrap_or_default();
    if count > 0 {
        let _ = durable::write(&file, format!("{earlier}{count}\n").as_bytes(), Durability::Renamed);
    }
}

/// How many processes were ended that were left of a session whose host had died.
pub fn ended_orphans(folder: &Path) -> u32 {
    let counts = std::fs::read_to_string(SessionFolder::new(folder).orphans()).unwrap_or_default();
    counts.lines().filter_map(|count| count.parse::<u32>().ok()).sum()
}

/// Attaches to a living host; `None` while it has not said who it is.
fn attach(folder: &SessionFolder, lock: &Path, holder: &str) -> Result<Option<Attached>, HostError> {
    let stored = match read_json::<StoredHost>(&folder.host()) {
        Ok(stored) => stored.and_then(|host| host.identity()),
        // It is being written.
        Err(HostError::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    let Some(identity) = stored.or_else(|| holder.parse().ok()) else {
        return Ok(None);
    };
    // Somebody who takes over holds the lock too; that passes.
    if !identity.is_alive() {
        return Ok(None);
    }
    let line = Line::connect(folder).ok();
    // The socket is the host's and not the session's alone. Whoever connects after the session's end is heard only in
    // the next one, but then the report was there before.
    if folder.report().exists() {
        return Ok(None);
    }
    Ok(Attached::to_stranger(folder.clone(), lock, identity, line))
}

/// The marker of the session, whose last part is its own id, and the part before that: the sessions around it.
fn markers(spec: &SessionSpec) -> (OsString, OsString) {
    let own = spec.session.as_str();
    let given = spec.environment.iter().rev().find(|(name, _)| name == MARKER).map(|(_, value)| value.clone()).unwrap_or_default();
    let around = match given.as_encoded_bytes().strip_suffix(own.as_bytes()) {
        Some([]) => OsString::new(),
        Some([before @ .., b':']) => std::os::unix::ffi::OsStringExt::from_vec(before.to_vec()),
        Some(_) | None => given,
    };
    let mut marker = around.clone();
    if !marker.is_empty() {
        marker.push(":");
    }
    marker.push(own);
    (marker, around)
}
