//! A small file as it was, to be compared and put back.

use std::ffi::OsStr;
use std::fmt::Write;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proctor_domain::RepoPath;
use proctor_process::durable::{self, Durability};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::WorkspaceError;
use crate::refusal::Refusal;
use crate::repository::file_error;
use crate::tree_path::metadata_of;

/// What is larger is compared by its hash and can't be put back.
const LARGEST: u64 = 4 * 1024 * 1024;

/// What is at a path, and what a symbolic link there leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keepsake {
    /// Where the link leads, if it is one; the type is taken for its form in JSON.
    link: Option<RepoPath>,
    mode: u32,
    contents: Contents,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Contents {
    Absent,
    Folder,
    Text(String),
    /// What is not UTF-8.
    Bytes(Vec<u8>),
    Large {
        bytes: u64,
        sha256: String,
    },
    /// A socket, a FIFO, a device; or a file that we may not read.
    Other,
}

impl Keepsake {
    /// What a path without anything at it is.
    pub(crate) fn absent() -> Self {
        Self { link: None, mode: 0, contents: Contents::Absent }
    }

    pub(crate) fn of(path: &Path) -> Result<Self, WorkspaceError> {
        let Some(metadata) = metadata_of(path)? else {
            return Ok(Self::absent());
        };
        let link = if metadata.is_symlink() { std::fs::read_link(path).ok() } else { None };
        let link = link.map(|target| RepoPath::new(target.as_os_str().as_bytes()));
        // The kind is asked first, because opening a FIFO would wait for a writer.
        let (mode, contents) = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => (0, Contents::Folder),
            Ok(metadata) if metadata.is_file() => {
                (metadata.permissions().mode() & 0o777, Contents::of(path, metadata.len()).unwrap_or(Contents::Other))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (0, Contents::Absent),
            Ok(_) | Err(_) => (0, Contents::Other),
        };
        Ok(Self { link, mode, contents })
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.link.is_none() && self.contents == Contents::Absent
    }

    /// Whether there is a folder, be it by a link.
    pub(crate) fn is_folder(&self) -> bool {
        self.contents == Contents::Folder
    }

    /// Whether what was there is more than can be put back.
    pub(crate) fn is_whole_folder(&self) -> bool {
        self.is_folder() && self.link.is_none()
    }

    /// Whether both hold the same, whatever their modes.
    pub(crate) fn holds_what(&self, other: &Self) -> bool {
        self.has_link_of(other) && self.contents == other.contents
    }

    /// Whether both are links to the same place, or neither is one.
    pub(crate) fn has_link_of(&self, other: &Self) -> bool {
        self.link == other.link
    }

    pub(crate) fn is_link(&self) -> bool {
        self.link.is_some()
    }

    /// The contents of a file.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match &self.contents {
            Contents::Text(text) => Some(text.as_bytes()),
            Contents::Bytes(bytes) => Some(bytes),
            // A link that leads nowhere is to git as if there were no file.
            Contents::Absent if self.link.is_some() => Some(b""),
            Contents::Absent | Contents::Folder | Contents::Large { .. } | Contents::Other => None,
        }
    }

    /// The hash of the contents, in hex.
    pub(crate) fn sha256(&self) -> String {
        match &self.contents {
            Contents::Large { sha256, .. } => sha256.clone(),
            Contents::Text(_) | Contents::Bytes(_) | Contents::Absent | Contents::Folder | Contents::Other => {
                hex(&Sha256::digest(self.bytes().unwrap_or_default()))
            }
        }
    }

    /// Makes `path` what it was. What is there now has been set aside.
    pub(crate) fn put_back(&self, path: &Path) -> Result<(), WorkspaceError> {
        let mut path = path.to_owned();
        if let Some(target) = &self.link {
            let target = OsStr::from_bytes(target.as_bytes());
            remove(&path)?;
            make_parent(&path)?;
            std::os::unix::fs::symlink(target, &path).map_err(file_error(&path, "write"))?;
            path = path.parent().unwrap_or(Path::new("/")).join(target);
        }
        match &self.contents {
            Contents::Absent => remove(&path),
            Contents::Folder => std::fs::create_dir_all(&path).map_err(file_error(&path, "make")),
            Contents::Text(_) | Contents::Bytes(_) => self.write(&path),
            Contents::Large { .. } | Contents::Other => Err(WorkspaceError::Refused(Refusal::NotKept { path })),
        }
    }

    fn write(&self, path: &Path) -> Result<(), WorkspaceError> {
        make_parent(path)?;
        let bytes = self.bytes().unwrap_or_default();
        durable::write(path, bytes, Durability::Renamed).map_err(|source| WorkspaceError::Keep { path: path.to_owned(), source })?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(self.mode)).map_err(file_error(path, "write"))
    }

    /// Keeps what is at `path` in the folder `kept`. A file also stays where it is, so that it can be
    /// replaced in one step; anything else is gone from there.
    pub(crate) fn set_aside(&self, path: &Path, kept: &Path) -> Result<(), WorkspaceError> {
        let place = free_name(kept, path)?;
        match (&self.contents, &self.link) {
            (Contents::Text(_) | Contents::Bytes(_) | Contents::Large { .. }, link) => {
                std::fs::copy(path, &place).map_err(file_error(&place, "write"))?;
                // For looking at: nobody is to run it from here.
                std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o600)).map_err(file_error(&place, "write"))?;
                if link.is_some() { remove(path) } else { Ok(()) }
            }
            (_, Some(target)) => {
                let target = OsStr::from_bytes(target.as_bytes());
                std::os::unix::fs::symlink(target, &place).map_err(file_error(&place, "write"))?;
                remove(path)
            }
            (Contents::Absent, None) => Ok(()),
            (Contents::Folder, None) => move_to(path, &place),
            (Contents::Other, None) => remove(path),
        }
    }
}

impl Contents {
    fn of(path: &Path, length: u64) -> io::Result<Self> {
        if length > LARGEST {
            let (mut file, mut hash, mut bytes) = (std::fs::File::open(path)?, Sha256::new(), 0);
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(Self::Large { bytes, sha256: hex(&hash.finalize()) }),
                    count => {
                        hash.update(&buffer[..count]);
                        bytes += count as u64;
                    }
                }
            }
        }
        let bytes = std::fs::read(path)?;
        Ok(String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text))
    }
}

/// Moves what is at a path to the folder `kept`: a link itself, not what it leads to.
pub(crate) fn move_aside(path: &Path, kept: &Path) -> Result<(), WorkspaceError> {
    move_to(path, &free_name(kept, path)?)
}

fn move_to(path: &Path, place: &Path) -> Result<(), WorkspaceError> {
    match std::fs::rename(path, place) {
        // Proctor's state may be on another disk than the repository.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_tree(path, place)?;
            let folder = metadata_of(path)?.is_some_and(|metadata| metadata.is_dir());
            let removed = if folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            removed.map_err(file_error(path, "remove"))
        }
        done => done.map_err(file_error(path, "move")),
    }
}

/// Copies files, links and folders; a FIFO or socket holds nothing.
fn copy_tree(path: &Path, place: &Path) -> Result<(), WorkspaceError> {
    let Some(metadata) = metadata_of(path)? else { return Ok(()) };
    if metadata.is_symlink() {
        let target = std::fs::read_link(path).map_err(file_error(path, "read"))?;
        return std::os::unix::fs::symlink(target, place).map_err(file_error(place, "write"));
    }
    if metadata.is_file() {
        return std::fs::copy(path, place).map(drop).map_err(file_error(place, "write"));
    }
    if metadata.is_dir() {
        std::fs::create_dir(place).map_err(file_error(place, "make"))?;
        for entry in std::fs::read_dir(path).map_err(file_error(path, "read"))? {
            let entry = entry.map_err(file_error(path, "read"))?;
            copy_tree(&entry.path(), &place.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn make_parent(path: &Path) -> Result<(), WorkspaceError> {
    path.parent().map_or(Ok(()), |parent| std::fs::create_dir_all(parent).map_err(file_error(parent, "make")))
}

/// Removes a file or a link; a folder only where it is empty.
fn remove(path: &Path) -> Result<(), WorkspaceError> {
    let removed = match metadata_of(path)? {
        None => return Ok(()),
        Some(metadata) if metadata.is_dir() => std::fs::remove_dir(path),
        Some(_) => std::fs::remove_file(path),
    };
    removed.map_err(file_error(path, "remove"))
}

/// A name in the folder that is not taken, like the file's own. A leading dot would hide it.
fn free_name(folder: &Path, path: &Path) -> Result<PathBuf, WorkspaceError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_start_matches('.');
    for number in 1.. {
        let place = folder.join(if number == 1 { name.to_owned() } else { format!("{name}.{number}") });
        if metadata_of(&place)?.is_none() {
            return Ok(place);
        }
    }
    Ok(folder.join(name))
}
