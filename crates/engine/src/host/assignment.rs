//! What a driver hands to a host: one session, with the environment that must not lie on a disk.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::{RepoPath, SessionId};
use serde::{Deserialize, Serialize};

use super::SessionSpec;

/// A session to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    folder: RepoPath,
    pub(super) spec: StoredSpec,
    environment: Vec<(RepoPath, RepoPath)>,
    /// The point at which the host dies, in a crash test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) killpoint: Option<String>,
}

/// What may lie on a disk of a session's spec: everything but the environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredSpec {
    version: u64,
    pub(super) session: SessionId,
    pub(super) shells: usize,
    directory: RepoPath,
    lock: RepoPath,
    wall_limit_ms: u64,
    pub(super) linger: Vec<String>,
    /// The host that it was handed to, when that was running already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
}

impl Assignment {
    pub(super) fn new(folder: &Path, spec: StoredSpec, environment: &[(OsString, OsString)], killpoint: Option<String>) -> Self {
        let environment = environment.iter().map(|(name, value)| (to_text(name), to_text(value))).collect();
        Self { folder: to_text(folder.as_os_str()), spec, environment, killpoint }
    }

    pub(super) fn folder(&self) -> PathBuf {
        from_text(&self.folder).into()
    }

    pub(super) fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.environment.iter().map(|(name, value)| (from_text(name), from_text(value)))
    }
}

impl StoredSpec {
    pub(super) fn of(spec: &SessionSpec, host: Option<String>) -> Self {
        Self {
            version: super::files::VERSION,
            session: spec.session.clone(),
            shells: spec.shells.len(),
            directory: to_text(spec.directory.as_os_str()),
            lock: to_text(spec.lock.as_os_str()),
            wall_limit_ms: u64::try_from(spec.wall_limit.as_millis()).unwrap_or(u64::MAX),
            linger: spec.linger.clone(),
            host,
        }
    }

    pub(super) fn directory(&self) -> PathBuf {
        from_text(&self.directory).into()
    }

    pub(super) fn lock(&self) -> PathBuf {
        from_text(&self.lock).into()
    }

    pub(super) fn wall_limit(&self) -> Duration {
        Duration::from_millis(self.wall_limit_ms)
    }
}

/// Paths and variables are bytes; the one function that writes such as text belongs to [`RepoPath`].
fn to_text(bytes: &OsStr) -> RepoPath {
    RepoPath::new(bytes.as_bytes())
}

fn from_text(text: &RepoPath) -> OsString {
    OsString::from_vec(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_arrive_and_the_stored_part_has_no_environment() {
        let odd = |text: &[u8]| OsString::from_vec(text.to_vec());
        let spec = SessionSpec {
            session: SessionId::from_bits(7),
            folder: odd(b"/f\xfe").into(),
            shells: vec!["true".to_owned(), "false".to_owned()],
            directory: odd(b"/a\xff\nb").into(),
            environment: vec![(odd(b"TOKEN"), odd(b"\"secret\"\xff\n\t=")), (odd(b"N\xff"), odd(b""))],
            wall_limit: Duration::from_millis(1500),
            linger: vec!["sccache".to_owned()],
            lock: odd(b"/\"quoted\"").into(),
        };

        let stored = StoredSpec::of(&spec, None);
        let text = serde_json::to_string(&Assignment::new(&spec.folder, stored.clone(), &spec.environment, None)).unwrap();
        let read: Assignment = serde_json::from_str(&text).unwrap();

        assert!(!serde_json::to_string(&stored).unwrap().contains("TOKEN"));
        assert_eq!((read.folder(), read.spec.directory(), read.spec.lock()), (spec.folder, spec.directory, spec.lock));
        assert_eq!((read.spec.shells, read.spec.wall_limit()), (2, spec.wall_limit));
        assert_eq!(read.environment().collect::<Vec<_>>(), spec.environment);
    }
}
