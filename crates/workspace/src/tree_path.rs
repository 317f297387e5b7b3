//! What is at a path of the work tree, without ever looking through a symbolic link.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proctor_domain::RepoPath;

use crate::WorkspaceError;
use crate::repository::file_error;

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Nothing, or something that git does not keep (a socket, a FIFO, a device).
    Absent,
    /// A file; whether its owner may execute it.
    File {
        /// Git keeps this and nothing else of the mode.
        executable: bool,
    },
    Symlink,
    Folder,
}

/// Looks at paths of one work tree. Remembers the folders that it has found to be real.
#[derive(Debug)]
pub(crate) struct TreePaths<'a> {
    top: &'a Path,
    real: HashSet<Vec<u8>>,
}

impl<'a> TreePaths<'a> {
    pub(crate) fn new(top: &'a Path) -> Self {
        Self { top, real: HashSet::new() }
    }

    /// Where a path is on disk.
    pub(crate) fn on_disk(&self, path: &RepoPath) -> PathBuf {
        on_disk(self.top, path)
    }

    /// What is there. A path below a symbolic link is absent: what it leads to is not the work tree's.
    pub(crate) fn presence(&mut self, path: &RepoPath) -> Result<Presence, WorkspaceError> {
        if self.obstacle(path)?.is_some() {
            return Ok(Presence::Absent);
        }
        let kind = |metadata: Metadata| {
            let kind = metadata.file_type();
            if kind.is_symlink() {
                Presence::Symlink
            } else if kind.is_dir() {
                Presence::Folder
            } else if kind.is_file() {
                Presence::File { executable: metadata.permissions().mode() & 0o100 != 0 }
            } else {
                Presence::Absent
            }
        };
        Ok(metadata_of(&self.on_disk(path))?.map_or(Presence::Absent, kind))
    }

    /// The first of a path's parents that is no folder: the path can't be there. A parent that is missing is no obstacle.
    pub(crate) fn obstacle(&mut self, path: &RepoPath) -> Result<Option<RepoPath>, WorkspaceError> {
        let bytes = path.as_bytes();
        for (slash, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let parent = &bytes[..slash];
            if self.real.contains(parent) {
                continue;
            }
            let parent_path = RepoPath::new(parent);
            match metadata_of(&self.on_disk(&parent_path))? {
                Some(metadata) if metadata.is_dir() => {
                    self.real.insert(parent.to_vec());
                }
                Some(_) => return Ok(Some(parent_path)),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Forgets which folders are real, after some were removed.
    pub(crate) fn forget(&mut self) {
        self.real.clear();
    }
}

/// Where a path is on disk.
pub(crate) fn on_disk(top: &Path, path: &RepoPath) -> PathBuf {
    top.join(OsStr::from_bytes(path.as_bytes()))
}

/// The metadata of what is at a path itself; `None` where nothing is.
pub(crate) fn metadata_of(path: &Path) -> Result<Option<Metadata>, WorkspaceError> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(file_error(path, "look at")(error)),
    }
}

/// The parents of a path, the nearest first, without the top.
pub(crate) fn parents(path: &RepoPath) -> impl Iterator<Item = &[u8]> {
    let bytes = path.as_bytes();
    bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').map(move |(slash, _)| &bytes[..slash])
}

/// Paths as git reads lists of them: each ends in NUL.
pub(crate) fn nul_separated<'a>(paths: impl IntoIterator<Item = &'a RepoPath>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// The paths in such a list.
pub(crate) fn split_nul(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|&byte| byte == 0).filter(|path| !path.is_empty())
}
