//! Submodules: repositories inside the work tree that the index points into.
//!
//! Git looks for changes inside a submodule by running itself there, with whatever settings and `.git`
//! pointer it finds. A step can have replaced both, or have made a whole repository and entered it into
//! the index, and then git would run what the step named. So git is told to compare the pointers only,
//! and each submodule is looked into as a repository of its own, with its own recorded git directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use proctor_domain::{Oid, RepoPath};

use crate::git::unreadable;
use crate::tree_path::on_disk;
use crate::{Change, ChangeKind, Repository, WorkspaceError};

/// The submodules that are known, each as the repository it was when it was first seen.
#[derive(Debug, Default)]
pub(crate) struct Submodules {
    known: BTreeMap<RepoPath, Arc<Repository>>,
    listed: Option<Listed>,
    /// Whether the submodules that were there when the run began are in `known`.
    begun: bool,
}

/// The pointers in the index as it was.
#[derive(Debug)]
struct Listed {
    index: IndexIdentity,
    paths: Vec<RepoPath>,
}

/// Tells whether the index file was replaced. Git never changes it in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexIdentity {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl IndexIdentity {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Repository {
    /// Adds the submodules that have changes of their own to a status.
    ///
    /// Whether there may be any is told by `.gitmodules`, git's folder of submodules, and the pointers
    /// among the changes; only then is the index listed. A repository that was entered into the index
    /// by mistake, without any of these, is not looked into.
    pub(crate) fn survey_submodules(&self, changes: &mut Vec<Change>) -> Result<(), WorkspaceError> {
        let begun = std::mem::replace(&mut self.submodules.lock().unwrap_or_else(PoisonError::into_inner).begun, true);
        let pointed = changes.iter().any(|change| change.kind == ChangeKind::SubmoduleMoved);
        let may_have = pointed || self.work_tree.join(".gitmodules").exists() || self.common_dir.join("modules").exists();
        if !may_have {
            return Ok(());
        }
        for path in self.pointers()? {
            let Some(submodule) = self.submodule(&path, !begun)? else {
                continue;
            };
            if submodule.status()?.changes.is_empty() {
                continue;
            }
            match changes.iter_mut().find(|change| change.path == path) {
                Some(change) => change.kind = ChangeKind::SubmoduleDirty,
                None => changes.push(Change { path, kind: ChangeKind::SubmoduleDirty, staged: false }),
            }
        }
        Ok(())
    }

    /// The submodule at a path, where its files are checked out.
    pub(crate) fn submodule(&self, path: &RepoPath, present_at_start: bool) -> Result<Option<Arc<Self>>, WorkspaceError> {
        let known = self.submodules.lock().unwrap_or_else(PoisonError::into_inner).known.get(path).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let work_tree = on_disk(&self.work_tree, path);
        let Some(git_dir) = pointed_git_dir(&work_tree) else {
            return Ok(None);
        };
        let submodule = Self::at(self.program.clone(), git_dir.clone(), git_dir, work_tree, self.object_format, self.environment.clone());
        if present_at_start {
            submodule.guard_config(None)?;
        } else {
            submodule.guard_config_as(self)?;
        }
        let submodule = Arc::new(submodule);
        self.submodules.lock().unwrap_or_else(PoisonError::into_inner).known.insert(path.clone(), Arc::clone(&submodule));
        Ok(Some(submodule))
    }

    /// The paths that are pointers to commits of other repositories in `to`, and were none in `from`.
    pub fn new_pointers(&self, from: Option<&Oid>, to: &Oid) -> Result<Vec<RepoPath>, WorkspaceError> {
        if from == Some(to) {
            return Ok(Vec::new());
        }
        let empty = self.empty_tree()?;
        let git = self.quiet("diff-tree")?.args(["-r", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none"]);
        let output = git.args([&from.unwrap_or(&empty).0, &to.0]).run()?.stdout;
        let mut parts = output.split(|&byte| byte == 0);
        let mut pointers = Vec::new();
        while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
            let modes = facts.strip_prefix(b":").and_then(|facts| facts.get(..13)).ok_or_else(|| unreadable("diff-tree", facts))?;
            if modes.ends_with(b" 160000") && !modes.starts_with(b"160000 ") {
                pointers.push(RepoPath::new(path));
            }
        }
        Ok(pointers)
    }

    /// The paths in the index that are pointers to commits of other repositories.
    pub(crate) fn pointers(&self) -> Result<Vec<RepoPath>, WorkspaceError> {
        let index = IndexIdentity::of(&self.git_dir.join("index"));
        let mut submodules = self.submodules.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(listed), Some(index)) = (&submodules.listed, index)
            && listed.index == index
        {
            return Ok(listed.paths.clone());
        }
        let output = self.quiet("ls-files")?.args(["--stage", "-z"]).run()?.stdout;
        let mut paths = Vec::new();
        for entry in output.split(|&byte| byte == 0).filter(|entry| entry.starts_with(b"160000 ")) {
            let tab = entry.iter().position(|&byte| byte == b'\t').ok_or_else(|| unreadable("ls-files", entry))?;
            paths.push(RepoPath::new(&entry[tab + 1..]));
        }
        submodules.listed = index.map(|index| Listed { index, paths: paths.clone() });
        Ok(paths)
    }
}

/// Where the `.git` of a work tree points, if it is one.
pub(crate) fn pointed_git_dir(work_tree: &Path) -> Option<PathBuf> {
    let dot_git = work_tree.join(".git");
    let metadata = std::fs::symlink_metadata(&dot_git).ok()?;
    let git_dir = if metadata.is_file() {
        let text = std::fs::read(&dot_git).ok()?;
        let path = text.strip_prefix(b"gitdir:")?.trim_ascii();
        work_tree.join(OsStr::from_bytes(path))
    } else {
        dot_git
    };
    // Without resolving, the path would hold `..` and follow a folder that a step moves.
    git_dir.join("HEAD").exists().then(|| git_dir.canonicalize().ok()).flatten()
}
