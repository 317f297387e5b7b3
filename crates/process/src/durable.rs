//! Files that a reader never sees half written.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// How much a file must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: the file and its folder are synced before the call returns.
    Synced,
    /// Readers and the death of this process: one rename. Much cheaper, and enough for what a
    /// power cut makes worthless anyway, such as the report of a session whose processes it ended.
    Renamed,
}

/// Why a file could not be written. What stood there before is untouched.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// There is no folder to write into, or the path has no file name.
    #[error("write {}: there is no folder for it", path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// The disk, the quota or the file size limit is full.
    #[error("write {}: no space left", path.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Permissions, a read-only file system, or a failing disk.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl DurableError {
    fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let kind = source.kind();
        if matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            Self::NoFolder { path }
        } else if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge) {
            Self::NoSpace { path, source }
        } else {
            Self::Write { path, source }
        }
    }
}

const PREFIX: &str = ".proctor-";
const SUFFIX: &str = ".tmp";

/// Whether this is the name of a file that a process was writing when it was killed.
pub fn is_half_written(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

/// Replaces the contents of `path` in one step, mode 0600.
///
/// The temporary file lies in the same folder, because a rename across file systems is a copy.
///
/// # Errors
/// The old contents stand and the temporary file is gone.
pub fn write(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), DurableError> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(DurableError::NoFolder { path: path.to_owned() }),
    };
    write_in(folder, path, bytes, durability).map_err(|source| DurableError::of(path, source))
}

fn write_in(folder: &Path, path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        // Said once more, although it is the library's default: state may hold what was printed in confidence.
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    // Dropping the unpersisted file, here and on the way out of an error above, removes it.
    file.persist(path).map_err(|failed| failed.error)?;
    if durability == Durability::Synced {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}
