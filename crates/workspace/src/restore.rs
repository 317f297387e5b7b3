//! Putting paths back to what a commit says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proctor_domain::{Oid, RepoPath};
use proctor_process::killpoint;

use crate::git::unreadable;
use crate::repository::{file_error, parse_oid};
use crate::salvage::index_entries;
use crate::tree_path::{Presence, TreePaths, metadata_of, nul_separated, on_disk, parents, split_nul};
use crate::{Repository, WorkspaceError};

/// Bytes of paths per call where git takes them as arguments.
const ARGUMENT_BYTES: usize = 60_000;

/// What a commit holds at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: String,
    oid: Oid,
}

impl Entry {
    fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }
}

impl Repository {
    /// Puts the work tree and the index entries of exactly these paths back to `baseline` (a commit or
    /// tree; what is absent there, or everything where it is `None`, is removed).
    ///
    /// Nothing else is touched: where something that was not named stands in the way, it is said before
    /// anything is changed. Only ignored files in a folder that has to become a file again go with it.
    /// Asking twice is the same as asking once.
    pub fn restore(&self, paths: &[RepoPath], baseline: Option<&Oid>) -> Result<(), WorkspaceError> {
        let paths: BTreeSet<RepoPath> = paths.iter().cloned().collect();
        if paths.is_empty() {
            return Ok(());
        }
        let entries = match baseline {
            Some(baseline) => self.entries_at(baseline, &paths)?,
            None => BTreeMap::new(),
        };
        self.find_obstacles(&paths, &entries)?;
        let mut tree = TreePaths::new(&self.work_tree);
        self.remove_files(&mut tree, &paths, &entries)?;
        killpoint::reach("restore removed");
        self.patiently(|| self.restore_index(&paths, &entries))?;
        killpoint::reach("restore indexed");
        self.write_files(&mut tree, &entries)?;
        for (path, entry) in entries.iter().filter(|(_, entry)| entry.is_submodule()) {
            self.restore_submodule(path, entry)?;
        }
        Ok(())
    }

    /// What the baseline holds at these paths; those that it holds nothing at, or a folder, are left out.
    fn entries_at(&self, baseline: &Oid, paths: &BTreeSet<RepoPath>) -> Result<BTreeMap<RepoPath, Entry>, WorkspaceError> {
        let mut entries = BTreeMap::new();
        let paths: Vec<&RepoPath> = paths.iter().filter(|path| !path.as_bytes().ends_with(b"/")).collect();
        for chunk in chunks_by_bytes(&paths) {
            let git = self.quiet("ls-tree")?.option("--literal-pathspecs").args(["-z", "--full-tree", &baseline.0, "--"]);
            let output = git.args(chunk.iter().map(|path| std::ffi::OsStr::from_bytes(path.as_bytes()))).run()?.stdout;
            for record in split_nul(&output) {
                let (path, entry) = parse_tree_entry(record).ok_or_else(|| unreadable("ls-tree", record))?;
                if entry.mode != "040000" {
                    entries.insert(path, entry);
                }
            }
        }
        Ok(entries)
    }

    /// Looks for what would have to be deleted although it was not named.
    fn find_obstacles(&self, paths: &BTreeSet<RepoPath>, entries: &BTreeMap<RepoPath, Entry>) -> Result<(), WorkspaceError> {
        let mut tree = TreePaths::new(&self.work_tree);
        for path in paths {
            let blocked = |by: RepoPath| WorkspaceError::RestoreBlocked { path: path.clone(), by };
            if path.as_bytes().ends_with(b"/") && tree.presence(&without_slash(path))? == Presence::Folder {
                // A repository of its own: its commits are nowhere else.
                return Err(blocked(RepoPath::new([path.as_bytes(), b".git"].concat())));
            }
            match tree.obstacle(path)? {
                // A parent that is a file or a link now, and was not named: somebody put it there.
                Some(by) if entries.contains_key(path) && !paths.contains(&by) => return Err(blocked(by)),
                Some(_) | None => {}
            }
            let entry = entries.get(path);
            if entry.is_some_and(Entry::is_submodule) || tree.presence(path)? != Presence::Folder {
                continue;
            }
            let Some(foreign) = self.foreign_below(path, paths)? else {
                continue;
            };
            // A folder that the baseline does not know as a file may stay where it is, but not a repository.
            if entry.is_some() || tree.on_disk(path).join(".git").exists() {
                return Err(blocked(foreign));
            }
        }
        Ok(())
    }

    /// The first file below a folder that was not named and is not ignored.
    fn foreign_below(&self, folder: &RepoPath, paths: &BTreeSet<RepoPath>) -> Result<Option<RepoPath>, WorkspaceError> {
        let mut unnamed = Vec::new();
        collect_files(&self.work_tree, folder, &mut unnamed)?;
        unnamed.retain(|path| !paths.contains(path));
        if unnamed.is_empty() {
            return Ok(None);
        }
        let git = self.quiet("check-ignore")?.args(["-z", "--stdin", "--no-index"]).accept(&[0, 1]);
        // This command reads patterns too, and knows no way to say that a path is none: none begins with a dot.
        let input = unnamed.iter().flat_map(|path| [b"./", path.as_bytes(), b"\0"].concat()).collect();
        let output = git.input(input).run()?.stdout;
        let ignored: BTreeSet<&[u8]> = split_nul(&output).filter_map(|path| path.strip_prefix(b"./")).collect();
        Ok(unnamed.into_iter().find(|path| !ignored.contains(path.as_bytes())))
    }

    /// Removes what is at the named paths, with the folders that become empty.
    fn remove_files(
        &self,
        tree: &mut TreePaths<'_>,
        paths: &BTreeSet<RepoPath>,
        entries: &BTreeMap<RepoPath, Entry>,
    ) -> Result<(), WorkspaceError> {
        // Backwards, so that what is in a folder goes before the folder.
        for path in paths.iter().rev() {
            match tree.presence(path)? {
                Presence::File { .. } | Presence::Symlink => {
                    remove_at(&tree.on_disk(path))?;
                    if !entries.contains_key(path) {
                        self.remove_empty_parents(path);
                    }
                }
                Presence::Folder if entries.get(path).is_some_and(|entry| !entry.is_submodule()) => {
                    // What is left in it is ignored; see `find_obstacles`.
                    remove_folder(&tree.on_disk(path))?;
                }
                Presence::Folder | Presence::Absent => {}
            }
            tree.forget();
        }
        Ok(())
    }

    fn remove_empty_parents(&self, path: &RepoPath) {
        for parent in parents(path) {
            // Refused where it is not empty, which is the end of it.
            if std::fs::remove_dir(on_disk(&self.work_tree, &RepoPath::new(parent))).is_err() {
                return;
            }
        }
    }

    fn restore_index(&self, paths: &BTreeSet<RepoPath>, entries: &BTreeMap<RepoPath, Entry>) -> Result<(), WorkspaceError> {
        let null = self.object_format.null();
        let removals = paths.iter().filter(|path| !path.as_bytes().ends_with(b"/")).map(|path| ("0", &null, path));
        let additions = entries.iter().map(|(path, entry)| (entry.mode.as_str(), &entry.oid, path));
        // All are taken out first: a conflict has up to three entries at one path, and only removing it removes them.
        let input = index_entries(removals.chain(additions));
        self.quiet("update-index")?.args(["-z", "--index-info"]).input(input).run().map(drop)
    }

    fn write_files(&self, tree: &mut TreePaths<'_>, entries: &BTreeMap<RepoPath, Entry>) -> Result<(), WorkspaceError> {
        let files: Vec<&RepoPath> = entries.iter().filter(|(_, entry)| !entry.is_submodule()).map(|(path, _)| path).collect();
        if files.is_empty() {
            return Ok(());
        }
        for path in &files {
            make_parents_writable(tree, path)?;
        }
        self.patiently(|| {
            let git = self.quiet("checkout-index")?.args(["--force", "--index", "-z", "--stdin"]);
            git.input(nul_separated(files.iter().copied())).run().map(drop)
        })
    }

    /// Checks the recorded commit out in a submodule that is checked out at all. Git refuses where that
    /// would overwrite changes.
    fn restore_submodule(&self, path: &RepoPath, entry: &Entry) -> Result<(), WorkspaceError> {
        let Some(submodule) = self.submodule(path, false)? else {
            return Ok(());
        };
        if submodule.head()?.commit.as_ref() == Some(&entry.oid) {
            return Ok(());
        }
        submodule.quiet("checkout")?.args(["--quiet", "--detach", "--no-recurse-submodules", &entry.oid.0]).run().map(drop)
    }
}

/// `<mode> <type> <oid>\t<path>`
fn parse_tree_entry(record: &[u8]) -> Option<(RepoPath, Entry)> {
    let tab = record.iter().position(|&byte| byte == b'\t')?;
    let mut fields = std::str::from_utf8(&record[..tab]).ok()?.split(' ');
    let mode = fields.next()?.to_owned();
    let oid = parse_oid(fields.nth(1)?.as_bytes())?;
    Some((RepoPath::new(&record[tab + 1..]), Entry { mode, oid }))
}

fn without_slash(path: &RepoPath) -> RepoPath {
    RepoPath::new(path.as_bytes().strip_suffix(b"/").unwrap_or(path.as_bytes()))
}

/// Runs of paths that fit into one call's arguments.
fn chunks_by_bytes<'a>(paths: &'a [&'a RepoPath]) -> Vec<&'a [&'a RepoPath]> {
    let mut chunks = Vec::new();
    let mut begin = 0;
    let mut bytes = 0;
    for (index, path) in paths.iter().enumerate() {
        let length = path.as_bytes().len() + 1;
        if index > begin && bytes + length > ARGUMENT_BYTES {
            chunks.push(&paths[begin..index]);
            begin = index;
            bytes = 0;
        }
        bytes += length;
    }
    if begin < paths.len() {
        chunks.push(&paths[begin..]);
    }
    chunks
}

/// All files and links below a folder.
fn collect_files(top: &Path, folder: &RepoPath, files: &mut Vec<RepoPath>) -> Result<(), WorkspaceError> {
    let directory = on_disk(top, folder);
    let entries = std::fs::read_dir(&directory).map_err(file_error(&directory, "read"))?;
    for entry in entries {
        let entry = entry.map_err(file_error(&directory, "read"))?;
        let path = RepoPath::new([folder.as_bytes(), b"/", entry.file_name().as_bytes()].concat());
        let kind = entry.file_type().map_err(file_error(&directory, "read"))?;
        if kind.is_dir() {
            collect_files(top, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Removes a file or link, also from a folder that a step made read-only.
fn remove_at(path: &Path) -> Result<(), WorkspaceError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            if let Some(folder) = path.parent() {
                make_writable(folder)?;
            }
            std::fs::remove_file(path).map_err(file_error(path, "remove"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(file_error(path, "remove")),
    }
}

/// Removes a folder with all that is in it.
fn remove_folder(path: &Path) -> Result<(), WorkspaceError> {
    make_writable(path)?;
    for entry in std::fs::read_dir(path).map_err(file_error(path, "read"))? {
        let entry = entry.map_err(file_error(path, "read"))?;
        if entry.file_type().map_err(file_error(path, "read"))?.is_dir() {
            remove_folder(&entry.path())?;
        } else {
            remove_at(&entry.path())?;
        }
    }
    if let Some(folder) = path.parent() {
        make_writable(folder)?;
    }
    std::fs::remove_dir(path).map_err(file_error(path, "remove"))
}

/// Git keeps nothing of a folder's mode, so a folder that a step made read-only is the step's doing.
fn make_parents_writable(tree: &mut TreePaths<'_>, path: &RepoPath) -> Result<(), WorkspaceError> {
    if tree.obstacle(path)?.is_some() {
        return Ok(());
    }
    for parent in parents(path) {
        let folder = tree.on_disk(&RepoPath::new(parent));
        if metadata_of(&folder)?.is_some() {
            make_writable(&folder)?;
        }
    }
    Ok(())
}

fn make_writable(folder: &Path) -> Result<(), WorkspaceError> {
    let Some(metadata) = metadata_of(folder)? else {
        return Ok(());
    };
    let mode = metadata.permissions().mode();
    if mode & 0o700 == 0o700 {
        return Ok(());
    }
    std::fs::set_permissions(folder, Permissions::from_mode(mode | 0o700)).map_err(file_error(folder, "make writable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_so_that_each_call_takes_its_arguments() {
        let long = RepoPath::new(vec![b'a'; ARGUMENT_BYTES - 10]);
        let short = RepoPath::new("b");
        let paths = [&short, &long, &long, &short, &long];

        let lengths: Vec<usize> = chunks_by_bytes(&paths).iter().map(|chunk| chunk.len()).collect();

        assert_eq!(lengths, [2, 2, 1]);
        assert!(chunks_by_bytes(&[]).is_empty());
    }
}
