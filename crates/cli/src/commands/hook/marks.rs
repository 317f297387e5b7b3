//! What was said to a session already.
//!
//! A session has a folder and each thing that was said a file in it, both named by hashes: ids and paths come from outside. The
//! folders are private, and go with time.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::environment::{self, Environment};
use crate::state::StateHome;

/// A session that was silent for so long is over, or has long forgotten.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The notes about one session. Without a session, or without a place for them, nothing counts as said.
#[derive(Debug)]
pub(super) struct Marks {
    folder: Option<PathBuf>,
}

impl Marks {
    pub(super) fn of(environment: &Environment, host: &str, session: Option<&str>) -> Self {
        let folder = session.and_then(|session| Some(all(environment)?.join(hash(&[host, session]))));
        Self { folder }
    }

    /// Whether this was said.
    pub(super) fn has(&self, kind: &str, about: &str) -> bool {
        self.file(kind, about).is_some_and(|file| file.exists())
    }

    /// Notes that this is said now. Of several that say it at once, one is the first.
    pub(super) fn is_first(&self, kind: &str, about: &str) -> bool {
        let (Some(folder), Some(file)) = (&self.folder, self.file(kind, about)) else { return true };
        if !folder.exists() {
            make(folder);
        }
        let noted = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
        !noted.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    }

    /// The session has forgotten everything.
    pub(super) fn forget(&self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }

    fn file(&self, kind: &str, about: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(hash(&[kind, about])))
    }
}

/// The folder of all sessions.
fn all(environment: &Environment) -> Option<PathBuf> {
    let runtime = environment.folder(&environment::XDG_RUNTIME_DIR).map(|folder| folder.join("proctor").join("hooks"));
    let folder = runtime.or_else(|| StateHome::of(None, environment).ok().map(|home| home.path().join("hooks").join("said")))?;
    // Where somebody else put something in its place, they could silence memory.
    let is_ours = |path: &Path| match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    is_ours(&folder).then_some(folder)
}

/// Makes a session's folder, and clears away those of old ones: that is rare enough, and often enough.
fn make(folder: &Path) {
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let others = folder.parent().and_then(|all| fs::read_dir(all).ok());
    for other in others.into_iter().flatten().flatten() {
        let age = other.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > KEPT_FOR) {
            let _ = fs::remove_dir_all(other.path());
        }
    }
}

fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
