//! Links in git's own folders, and operations in progress there.
//!
//! Git writes some of its files in place, through whatever link has their name: a planted one makes
//! Proctor's own git, which is in no box, write to a file of the user's. And what a rebase has yet to do
//! can hold commands, which run when a person lets it go on. Only names are looked at, of few files: not
//! objects, and of references only those that are not packed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proctor_domain::RepoPath;
use proctor_process::durable::{self, Durability};
use serde::{Deserialize, Serialize};

use crate::keepsake::move_aside;
use crate::refusal::Refusal;
use crate::repository::{file_error, parse_oid};
use crate::tree_path::metadata_of;
use crate::{Repository, WorkspaceError};

/// The marks of an operation in progress, with what a person calls it.
const OPERATIONS: [(&str, &str); 9] = [
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("sequencer", "a cherry-pick or revert"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisect"),
    ("BISECT_START", "a bisect"),
    ("BISECT_RUN", "a bisect"),
];

/// Looked at as files that are remembered whole.
const REMEMBERED: [&str; 6] = ["HEAD", "commondir", "config", "config.worktree", "gitdir", "hooks"];

/// Replaced by git as a whole, so that a second name of theirs stays as it is.
const REPLACED: [&str; 2] = ["index", "packed-refs"];

/// The ways that lead out of git's folders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ways(BTreeSet<Way>);

/// One way out. Paths are absolute; the type is taken for its form in JSON.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Way {
    path: RepoPath,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// A symbolic link, with where it leads.
    Link(RepoPath),
    /// A file that has other names too, and that git appends to or truncates.
    Shared,
    Operation,
}

impl Ways {
    pub(crate) fn of(repository: &Repository) -> Result<Self, WorkspaceError> {
        let mut ways = BTreeSet::new();
        for folder in BTreeSet::from([&repository.git_dir, &repository.common_dir]) {
            look_into(folder, &mut |path, metadata| {
                let name = path.file_name().unwrap_or_default();
                let named = |names: &[&str]| names.iter().any(|one| OsStr::new(one) == name);
                if OPERATIONS.iter().any(|(mark, _)| OsStr::new(mark) == name) {
                    ways.insert(Way::new(path, Kind::Operation));
                } else if !named(&REMEMBERED) {
                    ways.extend(link(path, metadata).or_else(|| shared(path, metadata).filter(|_| !named(&REPLACED))));
                }
                Ok(())
            })?;
            for below in ["logs", "refs"] {
                look_below(&folder.join(below), &mut |path, metadata| {
                    // References are replaced as a whole; their logs are appended to.
                    ways.extend(link(path, metadata).or_else(|| shared(path, metadata).filter(|_| below == "logs")));
                })?;
            }
        }
        // Other worktrees of the repository: what is in progress there is their users' own business.
        for record in repository.other_records() {
            for folder in [record.clone(), record.join("logs")] {
                look_into(&folder, &mut |path, metadata| {
                    let replaced = REPLACED.iter().chain(&REMEMBERED).any(|name| path.ends_with(name)) && !path.ends_with("logs/HEAD");
                    ways.extend(link(path, metadata).or_else(|| shared(path, metadata).filter(|_| !replaced)));
                    Ok(())
                })?;
            }
        }
        for folder in ["objects", "objects/info"] {
            look_into(&repository.common_dir.join(folder), &mut |path, metadata| {
                ways.extend(link(path, metadata).filter(|_| !path.ends_with("info/alternates") && !path.ends_with("info/http-alternates")));
                Ok(())
            })?;
        }
        Ok(Self(ways))
    }

    /// The ways that were not there before.
    pub(crate) fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Way> {
        self.0.difference(&before.0)
    }

    /// The link that was at a path.
    fn link_at(&self, path: &RepoPath) -> Option<&RepoPath> {
        self.0.iter().find_map(|way| match &way.kind {
            Kind::Link(target) if way.path == *path => Some(target),
            Kind::Link(_) | Kind::Shared | Kind::Operation => None,
        })
    }
}

impl Way {
    fn new(path: &Path, kind: Kind) -> Self {
        Self { path: RepoPath::new(path.as_os_str().as_bytes()), kind }
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(self.path.as_bytes()))
    }

    /// What to say about it.
    pub(crate) fn words(&self, repository: &Repository) -> String {
        let path = self.path();
        let within = path.strip_prefix(&repository.git_dir).or_else(|_| path.strip_prefix(&repository.common_dir)).unwrap_or(&path);
        match self.kind {
            Kind::Link(_) => format!("{} leads elsewhere", within.display()),
            Kind::Shared => format!("{} is a file of another name too", within.display()),
            Kind::Operation => {
                let operation = OPERATIONS.iter().find(|(mark, _)| Path::new(mark) == within).map_or("an operation", |(_, name)| name);
                format!("{operation} was left in progress")
            }
        }
    }

    /// Refuses where what the link hides is the repository itself, which then is elsewhere.
    pub(crate) fn refuse_lost(&self, repository: &Repository) -> Result<(), WorkspaceError> {
        let path = self.path();
        let within = path.strip_prefix(&repository.common_dir).unwrap_or(&path);
        let holds = within.starts_with("packed-refs") || ((within.starts_with("objects") || within.starts_with("refs")) && path.is_dir());
        if holds && matches!(self.kind, Kind::Link(_)) {
            return Err(WorkspaceError::Refused(Refusal::GitDirectoryGone { path }));
        }
        Ok(())
    }

    /// Moves it to the folder `kept`; what a link was before, and a reference's value, are put in its place.
    pub(crate) fn close(&self, before: &Ways, kept: &Path) -> Result<(), WorkspaceError> {
        let path = self.path();
        let value = matches!(self.kind, Kind::Link(_)).then(|| reference_value(&path)).flatten();
        move_aside(&path, kept)?;
        if let Some(target) = before.link_at(&self.path) {
            return std::os::unix::fs::symlink(OsStr::from_bytes(target.as_bytes()), &path).map_err(file_error(&path, "write"));
        }
        match value {
            Some(value) => {
                durable::write(&path, &value, Durability::Renamed).map_err(|source| WorkspaceError::Keep { path: path.clone(), source })
            }
            None => Ok(()),
        }
    }

    /// Whether it stood for the index, which is to be made again.
    pub(crate) fn is_index(&self, repository: &Repository) -> bool {
        self.path() == repository.git_dir.join("index")
    }
}

/// The commit that a reference names, where it is a link to a file that holds one.
fn reference_value(path: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.is_file() && metadata.len() < 100)?;
    let below_refs = path.components().any(|part| part.as_os_str() == "refs") && !path.components().any(|part| part.as_os_str() == "logs");
    let text = (below_refs && metadata.is_file()).then(|| std::fs::read(path).ok()).flatten()?;
    parse_oid(text.trim_ascii_end()).map(|oid| format!("{oid}\n").into_bytes())
}

fn link(path: &Path, metadata: &Metadata) -> Option<Way> {
    let target = metadata.is_symlink().then(|| std::fs::read_link(path).ok()).flatten()?;
    Some(Way::new(path, Kind::Link(RepoPath::new(target.as_os_str().as_bytes()))))
}

fn shared(path: &Path, metadata: &Metadata) -> Option<Way> {
    (metadata.is_file() && metadata.nlink() > 1).then(|| Way::new(path, Kind::Shared))
}

/// Looks at everything in a folder; not where the folder is itself a link, which is found as one.
fn look_into(folder: &Path, look: &mut dyn FnMut(&Path, &Metadata) -> Result<(), WorkspaceError>) -> Result<(), WorkspaceError> {
    if !metadata_of(folder)?.is_some_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    let entries = match std::fs::read_dir(folder) {
        // Another git removed it in between, as it does with empty folders of references.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(file_error(folder, "read"))?,
    };
    for entry in entries {
        let path = entry.map_err(file_error(folder, "read"))?.path();
        if let Some(metadata) = metadata_of(&path)? {
            look(&path, &metadata)?;
        }
    }
    Ok(())
}

fn look_below(folder: &Path, look: &mut dyn FnMut(&Path, &Metadata)) -> Result<(), WorkspaceError> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        look_into(&folder, &mut |path, metadata| {
            look(path, metadata);
            if metadata.is_dir() {
                folders.push(path.to_owned());
            }
            Ok(())
        })?;
    }
    Ok(())
}
