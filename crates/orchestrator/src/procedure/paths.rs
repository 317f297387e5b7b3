//! Between paths on disk and paths as the journal keeps them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proctor_domain::RepoPath;

/// A path on disk as the journal keeps it.
pub(crate) fn stored(path: &Path) -> RepoPath {
    RepoPath::new(path.as_os_str().as_bytes())
}

/// A path of the repository on disk.
pub(crate) fn on_disk(work_tree: &Path, path: &RepoPath) -> PathBuf {
    work_tree.join(OsStr::from_bytes(path.as_bytes()))
}

/// A path that was absolute when it was [`stored`], on disk.
pub(crate) fn absolute(path: &RepoPath) -> PathBuf {
    on_disk(Path::new("/"), path)
}
