//! The files that a driver and a host share: their names, and their versions.
//!
//! Version 1 of each is what this module writes. A newer one is refused with a sentence, because guessing at
//! half of what it says could run a step twice or call a failed one done.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use proctor_domain::Timestamp;
use proctor_domain::session::SessionReport;
use proctor_process::ProcessIdentity;
use proctor_process::durable::{self, Durability, DurableError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::HostError;

pub(super) const VERSION: u64 = 1;

/// The folder of one session.
#[derive(Debug, Clone)]
pub(super) struct SessionFolder {
    path: PathBuf,
}

impl SessionFolder {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The session's id, which is the folder's name.
    pub(super) fn session(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn spec(&self) -> PathBuf {
        self.path.join("spec.json")
    }

    /// The script of a shell, counted from 1.
    pub(super) fn shell(&self, number: usize) -> PathBuf {
        self.path.join(format!("shell-{number}.sh"))
    }

    pub(super) fn host(&self) -> PathBuf {
        self.path.join("host.json")
    }

    pub(super) fn report(&self) -> PathBuf {
        self.path.join("report.json")
    }

    /// Whether the session is over.
    pub(super) fn has_report(&self) -> bool {
        self.report().exists()
    }

    pub(super) fn stdout(&self) -> PathBuf {
        self.path.join("stdout.log")
    }

    pub(super) fn stderr(&self) -> PathBuf {
        self.path.join("stderr.log")
    }

    /// What an agent printed.
    pub(super) fn transcript(&self) -> PathBuf {
        self.path.join(super::TRANSCRIPT)
    }

    /// What an agent is told once and for all.
    pub(super) fn system(&self) -> PathBuf {
        self.path.join("system.md")
    }

    /// What an agent is asked, which it reads from its standard input.
    pub(super) fn prompt(&self) -> PathBuf {
        self.path.join("prompt.md")
    }

    /// Files that an agent's engine wants to find.
    pub(super) fn own(&self) -> PathBuf {
        self.path.join("engine")
    }

    /// The socket by which the session's tools are called: among the files that can be seen in its box.
    pub(super) fn tools(&self) -> PathBuf {
        self.own().join("tools.sock")
    }

    /// What an agent is asked again, when its answer was no result.
    pub(super) fn question(&self) -> PathBuf {
        self.path.join("question.md")
    }

    pub(super) fn output(&self) -> PathBuf {
        self.path.join("output")
    }

    /// What the host itself had to say, when it could not do its job.
    pub(super) fn trouble(&self) -> PathBuf {
        self.path.join("host.log")
    }

    pub(super) fn fence(&self) -> PathBuf {
        self.path.join("fence")
    }

    /// How many processes of a lost session were ended, one line for each time somebody took over.
    pub(super) fn orphans(&self) -> PathBuf {
        self.path.join("orphans")
    }

    /// Whether a host was ever given the session. Its spec becomes the host's file when a host has it.
    pub(super) fn was_started(&self) -> bool {
        self.spec().exists() || self.host().exists()
    }

    /// Whether a host has ever begun the session.
    pub(super) fn has_traces(&self) -> bool {
        self.host().exists() || self.report().exists()
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.fence().exists()
    }

    /// Makes the folder, private; it may be there already.
    pub(super) fn create(&self) -> Result<(), HostError> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(files_error(&self.path, source)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The file of this name among those of an agent's engine. Its folder is made, private; it may be there already.
    pub(super) fn make_room(&self, name: &str) -> Result<PathBuf, HostError> {
        self.make_room_for(self.own().join(name))
    }

    /// Makes the folder of this file of the session, private; it may be there already.
    pub(super) fn make_room_for(&self, file: PathBuf) -> Result<PathBuf, HostError> {
        let folder = file.parent().unwrap_or(&self.path);
        let made = DirBuilder::new().mode(0o700).recursive(true).create(folder);
        made.map_err(|source| files_error(folder, source)).map(|()| file)
    }
}

pub(super) const CONTROL_SOCKET: &str = "control.sock";

pub(super) fn files_error(path: &Path, source: io::Error) -> HostError {
    HostError::Files { path: path.to_owned(), source }
}

/// Writes a file that nobody relies on before its writer says so. One that was cut short is replaced or passed over.
///
/// It is shortened after it was written and not before: some file systems send a file that was emptied first to the disk
/// when it is closed, which a short session would wait for.
pub(super) fn write_plainly(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let write = || -> io::Result<()> {
        let mut file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)
    };
    write().map_err(|source| files_error(path, source))
}

/// Who the host is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredHost {
    version: u64,
    identity: String,
    started: Timestamp,
    #[serde(default)]
    linger: Vec<String>,
}

impl StoredHost {
    /// `started` is the time at which the host took its lock, by the clock of the lock's file system: the one
    /// that the change times of files are compared with.
    pub(super) fn new(identity: &ProcessIdentity, started: Option<std::time::SystemTime>, linger: &[String]) -> Self {
        let since_epoch = started.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        Self { version: VERSION, identity: identity.to_string(), started: Timestamp(millis), linger: linger.to_vec() }
    }

    /// Names of programs that may outlive the session.
    pub(super) fn into_linger(self) -> Vec<String> {
        self.linger
    }

    /// Writes it over the session's spec, which nobody needs when a host has it, and gives that its own name: a file that is
    /// written over costs a tenth of a new one.
    pub(super) fn write(&self, folder: &SessionFolder) -> Result<(), HostError> {
        write_json(&folder.spec(), self)?;
        std::fs::rename(folder.spec(), folder.host()).map_err(|source| files_error(&folder.host(), source))
    }

    pub(super) fn identity(&self) -> Option<ProcessIdentity> {
        self.identity.parse().ok()
    }
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), HostError> {
    write_plainly(path, &serde_json::to_vec(value).map_err(|error| damaged(path, &error))?)
}

/// The report as it is stored: a version beside the fields of [`SessionReport`].
pub(super) fn encode_report(report: &SessionReport) -> Result<Vec<u8>, serde_json::Error> {
    let mut value = serde_json::to_value(report)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("version".to_owned(), VERSION.into());
    }
    serde_json::to_vec(&value)
}

pub(super) fn write_report(folder: &SessionFolder, bytes: &[u8]) -> Result<(), DurableError> {
    durable::write(&folder.report(), bytes, Durability::Renamed)
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

/// Reads a file of a known version; `None` when it is not there.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, HostError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(files_error(path, source)),
    };
    let Versioned { version } = serde_json::from_slice(&bytes).map_err(|error| damaged(path, &error))?;
    if version > VERSION {
        return Err(HostError::Newer { path: path.to_owned(), version });
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(path, &error))
}

pub(super) fn read_report(folder: &SessionFolder) -> Result<Option<SessionReport>, HostError> {
    read_json(&folder.report())
}

fn damaged(path: &Path, error: &serde_json::Error) -> HostError {
    HostError::Damaged { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proctor_domain::session::{Excerpt, Lingering, SessionEnd, ShellEnd};

    use super::*;

    #[test]
    fn a_report_reads_back_as_itself() {
        let folder = tempfile::tempdir().unwrap();
        let folder = SessionFolder::new(folder.path());
        let report = SessionReport {
            end: SessionEnd::Crashed { reason: "no bash".to_owned() },
            shells: vec![ShellEnd { exit_code: 137, duration_ms: 5 }],
            stdout: Excerpt { head: "a".to_owned(), tail: "b".to_owned(), omitted: 7 },
            stderr: Excerpt::default(),
            outputs: BTreeMap::from([("a".to_owned(), "b\u{1}".to_owned())]),
            output_error: Some("line 1".to_owned()),
            ended_orphans: 3,
            lingering: vec![Lingering { program: "sccache".to_owned(), pid: 7 }],
            log_note: None,
            duration_ms: 9,
            agent: None,
            killed_by: None,
        };

        write_report(&folder, &encode_report(&report).unwrap()).unwrap();

        assert_eq!(read_report(&folder).unwrap(), Some(report));
    }

    #[test]
    fn a_newer_or_damaged_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = SessionFolder::new(folder.path());
        assert_eq!(read_report(&folder).unwrap(), None);

        write_plainly(&folder.report(), br#"{"version":2,"end":"a new kind"}"#).unwrap();
        let newer = read_report(&folder).unwrap_err();
        write_plainly(&folder.report(), br#"{"version":1,"end":"#).unwrap();
        let damaged = read_report(&folder).unwrap_err();

        assert!(matches!(newer, HostError::Newer { version: 2, .. }), "{newer:?}");
        assert!(newer.to_string().contains("was written by a newer Proctor (version 2)"));
        assert!(matches!(damaged, HostError::Damaged { .. }), "{damaged:?}");
    }
}
