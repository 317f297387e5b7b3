//! The driver's side: starting a host, finding one again, and taking over from a dead one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_domain::session::SessionReport;
use proctor_process::durable::{self, Durability};
use proctor_process::family::{self, EndedProcesses};
use proctor_process::lock::{self, Attempt};
use proctor_process::{ProcessIdentity, Program, Sink, Stdin, descriptors, killpoint};

use super::attached::Attached;
use super::control::Line;
use super::files::{CONTROL_SOCKET, SessionFolder, StoredHost, StoredSpec, files_error, read_json, read_report, write_json, write_plainly};
use super::orphans::{MARKER, Remains, adopt_orphans, marked};
use super::{HostError, SessionSpec};

/// How long a host may take between its lock and its socket or its report, on a machine that is very busy.
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

/// Starts a session's host, detached, with `program host <folder>`.
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
    if folder.spec().exists() {
        return Err(HostError::AlreadyStarted { session: folder.session() });
    }
    for (text, number) in spec.shells.iter().zip(1..) {
        write_plainly(&folder.shell(number), text.as_bytes())?;
    }
    write_plainly(&folder.output(), b"")?;
    let (listener, line) = bind(&folder)?;
    // The last file, because its presence says that a host may be under way.
    write_json(&folder.spec(), &StoredSpec::of(spec))?;
    let host = Program::new(program)
        .arg("host")
        .arg(&spec.folder)
        .env(with_marker(spec).into_iter().chain(killpoint::for_next_host()))
        .own_session()
        .stdin(Stdin::Descriptor(listener.into()))
        .stdout(Sink::Null)
        .stderr(Sink::Null)
        .spawn();
    match host {
        Ok(child) => Ok(Attached::to_child(folder, &spec.lock, line, child)),
        Err(error) => {
            // If even this fails, the session will be found lost instead of never started, which is the safe side.
            let _ = std::fs::remove_file(folder.spec());
            Err(HostError::Start(error))
        }
    }
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
            None if !folder.spec().exists() && !folder.is_fenced() => return Ok(Found::NeverStarted),
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

/// Whether a host was started and has not come to its lock yet, as when its driver died that very moment.
///
/// No shell runs before `host.json` is written, so without that file whoever carries the marker is the host. The
/// fence would make it harmless too, but at the price of an attempt.
fn is_on_its_way(folder: &SessionFolder) -> bool {
    !folder.host().exists() && !folder.is_fenced() && !marked(&folder.session()).is_empty()
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
/// `host` is the dead host where this process had started it.
pub(super) fn take_over(folder: &SessionFolder, lock: &Path, host: Option<ProcessIdentity>) -> Result<TakeOver, HostError> {
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
    // A spec that can't be read must not keep orphans alive.
    let linger = read_json::<StoredSpec>(&folder.spec()).ok().flatten().map(|spec| spec.linger).unwrap_or_default();
    let ended = Remains { session: folder.session(), host, linger }.end();
    drop(held);
    Ok(TakeOver::Done(ended))
}

/// Binds the control socket and connects to it at once, so that the host finds the driver waiting.
fn bind(folder: &SessionFolder) -> Result<(UnixListener, Line), HostError> {
    let failed = |source| files_error(&folder.path().join(CONTROL_SOCKET), source);
    let open = File::open(folder.path()).map_err(failed)?;
    let address = descriptors::short_path(open.as_fd(), Path::new(CONTROL_SOCKET));
    // Left by an attempt to start that came to nothing.
    match std::fs::remove_file(&address) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(failed(source)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&address).map_err(failed)?;
    let line = UnixStream::connect(&address).and_then(Line::new).map_err(failed)?;
    Ok((listener, line))
}

fn connect(folder: &SessionFolder) -> Option<Line> {
    let open = File::open(folder.path()).ok()?;
    let address = descriptors::short_path(open.as_fd(), Path::new(CONTROL_SOCKET));
    UnixStream::connect(&address).and_then(Line::new).ok()
}

/// Attaches to a living host; `None` while it has not said who it is.
fn attach(folder: &SessionFolder, lock: &Path, holder: &str) -> Result<Option<Attached>, HostError> {
    let stored = read_json::<StoredHost>(&folder.host())?.and_then(|host| host.identity());
    let Some(identity) = stored.or_else(|| holder.parse().ok()) else {
        return Ok(None);
    };
    // Somebody who takes over holds the lock too; that passes.
    if !identity.is_alive() {
        return Ok(None);
    }
    Ok(Attached::to_stranger(folder.clone(), lock, identity, connect(folder)))
}

/// The environment with the session's id as the last part of its marker.
fn with_marker(spec: &SessionSpec) -> Vec<(OsString, OsString)> {
    let mut environment = spec.environment.clone();
    let own = spec.session.as_str();
    let marker = environment.iter_mut().rev().find(|(name, _)| name == MARKER);
    match marker {
        Some((_, value)) => {
            let names_us = value.as_encoded_bytes().rsplit(|&byte| byte == b':').next() == Some(own.as_bytes());
            if !names_us {
                value.push(":");
                value.push(own);
            }
        }
        None => environment.push((MARKER.into(), own.into())),
    }
    environment
}
