//! Files that a reader never sees half written.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
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

/// Makes a folder that only its owner can look into, with those above it that are not there.
///
/// # Errors
/// It can't be made, or what is there is no folder, or one that others own or may write to.
pub fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let metadata = fs::symlink_metadata(path)?;
    let is_ours = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0;
    if is_ours { Ok(()) } else { Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write to that folder")) }
}

/// Whether a file was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// It holds the new contents.
    Done,
    /// Somebody else wrote it since it was read. It holds what they wrote.
    Changed,
}

/// Replaces the contents of a file that others write too, unless it no longer holds what it held when it was read: `known`, or
/// `None` if there was no file. It keeps its mode; a new one gets `mode` without what the process's mask takes away.
///
/// The comparison comes last, when everything is written and synced and only the rename is left to do. A program that writes in
/// the microseconds between the two is not noticed: no system call compares and renames.
///
/// # Errors
/// The old contents stand and the temporary file is gone.
pub fn replace(path: &Path, known: Option<&[u8]>, bytes: &[u8], durability: Durability, mode: u32) -> Result<Replaced, DurableError> {
    let folder = path.parent().ok_or_else(|| DurableError::NoFolder { path: path.to_owned() })?;
    replace_in(folder, path, known, bytes, (durability, mode)).map_err(|source| DurableError::of(path, source))
}

fn replace_in(
    folder: &Path,
    path: &Path,
    known: Option<&[u8]>,
    bytes: &[u8],
    (durability, mode): (Durability, u32),
) -> io::Result<Replaced> {
    let mut file =
        tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).permissions(fs::Permissions::from_mode(mode)).tempfile_in(folder)?;
    if let (Some(_), Ok(metadata)) = (known, fs::metadata(path)) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.write_all(bytes)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    match known {
        Some(known) if !holds(path, known)? => return Ok(Replaced::Changed),
        Some(_) => drop(file.persist(path).map_err(|failed| failed.error)?),
        None => match file.persist_noclobber(path) {
            Ok(_) => {}
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => return Ok(Replaced::Changed),
            Err(failed) => return Err(failed.error),
        },
    }
    if durability == Durability::Synced {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(Replaced::Done)
}

fn holds(path: &Path, known: &[u8]) -> io::Result<bool> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes == known),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
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
