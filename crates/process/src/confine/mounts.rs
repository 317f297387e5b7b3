//! What is mounted where in a box that is made out of mounts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{BoxRules, real};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mount {
    Writable,
    ReadOnly,
    Hidden,
}

/// Parents before what is in them, so that the longest path decides.
pub(super) type Mounts = BTreeMap<PathBuf, Mount>;

/// What the rules say. Of two for the same path the stricter one holds.
pub(super) fn of_rules(rules: &BoxRules) -> Mounts {
    let mut mounts: Mounts = rules.writable.iter().map(|path| (real(path), Mount::Writable)).collect();
    mounts.extend(rules.read_only_inside.iter().filter(|path| path.exists()).map(|path| (real(path), Mount::ReadOnly)));
    mounts.extend(rules.hidden.iter().filter(|path| path.exists()).map(|path| (real(path), Mount::Hidden)));
    mounts
}

/// The mount that decides about a path.
pub(super) fn governing(mounts: &Mounts, path: &Path) -> Option<Mount> {
    path.ancestors().find_map(|ancestor| mounts.get(ancestor).copied())
}

/// Makes mount points of the writable folders on the way to what is protected in them. A mount moves along with a
/// folder that is renamed, and a new one could be put in its place; a mount point itself can't be renamed.
pub(super) fn pin(mounts: &mut Mounts) {
    let protected: Vec<PathBuf> =
        mounts.iter().filter(|(_, mount)| !matches!(mount, Mount::Writable)).map(|(path, _)| path.clone()).collect();
    for path in protected {
        for folder in path.ancestors().skip(1) {
            if governing(mounts, folder) == Some(Mount::Writable) {
                mounts.entry(folder.to_owned()).or_insert(Mount::Writable);
            }
        }
    }
}
