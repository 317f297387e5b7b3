//! Work that git was told not to see: marks in the index, and ignore files that ignore themselves.
//!
//! Git neither shows nor commits an edit of a file that is marked `assume-unchanged` or `skip-worktree`,
//! nor anything that an ignore file names which itself stands in no commit. Only folders that hold
//! files of the repository are looked at: caches hide themselves in the same manner in folders of their own.

use std::collections::BTreeSet;
use std::path::Path;

use proctor_domain::RepoPath;
use serde::{Deserialize, Serialize};

use crate::git::unreadable;
use crate::keepsake::Keepsake;
use crate::repository::file_error;
use crate::tree_path::{metadata_of, on_disk};
use crate::{Programs, Repository, WorkspaceError};

const IGNORE_FILE: &[u8] = b".gitignore";

/// What hides work at some time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hidden {
    /// Files that are marked in the index.
    marked: BTreeSet<RepoPath>,
    /// Ignore files that are ignored.
    ignoring: Vec<(RepoPath, Keepsake)>,
}

impl Repository {
    pub(crate) fn hidden(&self) -> Result<Hidden, WorkspaceError> {
        let output = self.quiet("ls-files")?.args(["-v", "-z"]).run()?.stdout;
        let mut marked = BTreeSet::new();
        let (mut folders, mut known): (BTreeSet<&[u8]>, BTreeSet<&[u8]>) = (BTreeSet::from([&b""[..]]), BTreeSet::new());
        for entry in output.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()) {
            let [mark, b' ', path @ ..] = entry else {
                return Err(unreadable("ls-files", entry));
            };
            if mark.is_ascii_lowercase() || *mark == b'S' {
                marked.insert(RepoPath::new(path));
            }
            if path.ends_with(IGNORE_FILE) {
                known.insert(path);
            }
            let mut folder = path;
            while let Some(slash) = folder.iter().rposition(|&byte| byte == b'/') {
                folder = &folder[..slash];
                if !folders.insert(folder) {
                    break;
                }
            }
        }
        let files =
            folders.into_iter().map(|folder| if folder.is_empty() { IGNORE_FILE.to_vec() } else { [folder, b"/", IGNORE_FILE].concat() });
        let mut files: Vec<RepoPath> = files.filter(|file| !known.contains(&file[..])).map(RepoPath::new).collect();
        files.retain(|file| self.is_plainly_there(file));
        let ignoring = self.ignored(&files)?.into_iter().map(|file| Ok((file.clone(), Keepsake::of(&on_disk(&self.work_tree, &file))?)));
        Ok(Hidden { marked, ignoring: ignoring.collect::<Result<_, WorkspaceError>>()? })
    }

    /// Whether a file is there, in a folder that is reached by no link: git does not answer about others.
    fn is_plainly_there(&self, file: &RepoPath) -> bool {
        let path = on_disk(&self.work_tree, file);
        let folder = path.parent().unwrap_or(&self.work_tree);
        let within = folder.strip_prefix(&self.work_tree).unwrap_or(Path::new(""));
        let plainly = || Some(folder.canonicalize().ok()? == self.work_tree.canonicalize().ok()?.join(within));
        metadata_of(&path).is_ok_and(|metadata| metadata.is_some_and(|metadata| metadata.is_file())) && plainly() == Some(true)
    }

    fn ignored(&self, files: &[RepoPath]) -> Result<Vec<RepoPath>, WorkspaceError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let git = self.quiet("check-ignore")?.args(["-z", "--stdin"]).input(nul_separated(files.iter()));
        let output = git.accept(&[0, 1]).run()?.stdout;
        Ok(output.split(|&byte| byte == 0).filter(|path| !path.is_empty()).map(RepoPath::new).collect())
    }
}

impl Programs {
    /// What hides an agent's work in a new ignore file that ignores itself, one short phrase each. Git is
    /// asked, so [`Self::put_back`] comes first.
    pub fn hiding(&self, repository: &Repository) -> Result<Vec<String>, WorkspaceError> {
        let hidden = repository.hidden()?;
        Ok(self.new_ignore_files(&hidden).map(|file| format!("{file} hides work, and ignores itself")).collect())
    }

    /// Takes new marks off the index again, so that edits are seen, and moves ignore files that ignore
    /// themselves to the folder `kept`. Asking twice is the same as asking once.
    pub fn uncover(&self, repository: &Repository, kept: &Path) -> Result<(), WorkspaceError> {
        let hidden = repository.hidden()?;
        for file in self.new_ignore_files(&hidden) {
            std::fs::create_dir_all(kept).map_err(file_error(kept, "make"))?;
            let path = on_disk(&repository.work_tree, file);
            Keepsake::of(&path)?.set_aside(&path, kept)?;
            let was = self.hidden.ignoring.iter().find(|(known, _)| known == file).map_or_else(Keepsake::absent, |(_, was)| was.clone());
            was.put_back(&path)?;
        }
        // Of a sparse checkout, git itself marks the files that are not there.
        let sparse = repository.setting("core.sparsecheckout")?.is_some_and(|value| !crate::repository::is_false(&value));
        let there = |path: &RepoPath| metadata_of(&on_disk(&repository.work_tree, path)).is_ok_and(|it| it.is_some());
        let marked: Vec<&RepoPath> = hidden.marked.difference(&self.hidden.marked).filter(|path| !sparse || there(path)).collect();
        if marked.is_empty() {
            return Ok(());
        }
        for mark in ["--no-assume-unchanged", "--no-skip-worktree"] {
            let input = nul_separated(marked.iter().copied());
            repository
                .patiently(|| repository.quiet("update-index")?.args([mark, "-z", "--stdin"]).input(input.clone()).run().map(drop))?;
        }
        Ok(())
    }

    fn new_ignore_files<'a>(&self, now: &'a Hidden) -> impl Iterator<Item = &'a RepoPath> {
        now.ignoring.iter().filter(|file| !self.hidden.ignoring.contains(file)).map(|(file, _)| file)
    }
}

fn nul_separated<'a>(paths: impl Iterator<Item = &'a RepoPath>) -> Vec<u8> {
    paths.flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect()
}
