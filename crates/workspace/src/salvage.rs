//! Keeping the contents of paths: snapshots as trees, references that hold them, what differs.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use proctor_domain::{Oid, RepoPath};

use crate::git::{Git, unreadable};
use crate::repository::{file_error, parse_oid};
use crate::tree_path::{Presence, TreePaths, nul_separated, split_nul};
use crate::{Repository, WorkspaceError};

/// What temporary index files begin with, in the git directory.
pub(crate) const TEMPORARY_INDEX: &str = "proctor-index-";

/// A file that is changed while it is read is read again this often.
const SNAPSHOT_ATTEMPTS: usize = 3;

/// An index of our own beside the user's, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryIndex(PathBuf);

impl TemporaryIndex {
    pub(crate) fn new(git_dir: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(git_dir.join(format!("{TEMPORARY_INDEX}{}-{number}", std::process::id())))
    }

    /// Copies an index, where there is one. Git replaces that file as a whole, so a copy is never half of two.
    pub(crate) fn begin_with(&self, index: &Path) -> Result<(), WorkspaceError> {
        match std::fs::copy(index, &self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            copied => copied.map(drop).map_err(file_error(&self.0, "write")),
        }
    }

    pub(crate) fn of(&self, git: Git) -> Git {
        git.env("GIT_INDEX_FILE", &self.0)
    }
}

impl Drop for TemporaryIndex {
    fn drop(&mut self) {
        // One that can't be removed is removed with the stale locks later; nothing depends on it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What is to be entered into the index of a snapshot.
#[derive(Debug, Default)]
struct Snapshot {
    /// Files, with whether they are executable.
    files: Vec<(RepoPath, bool)>,
    /// Symbolic links and submodules, which git enters itself: no filter applies to them.
    others: Vec<RepoPath>,
    absent: Vec<RepoPath>,
}

impl Repository {
    /// A tree object that holds HEAD's tree with the present contents of these paths. The index is not touched.
    ///
    /// The contents are kept byte for byte, unlike in a commit: no filter and no end-of-line conversion,
    /// since what a filter keeps elsewhere would not be kept, and none of the programs is to run here.
    /// A repository of its own inside the work tree (a path that ends in `/`) is left out.
    pub fn snapshot(&self, paths: &[RepoPath]) -> Result<Oid, WorkspaceError> {
        let mut attempt = 1;
        loop {
            match self.snapshot_once(paths) {
                Err(WorkspaceError::Git { command: "hash-object", .. }) if attempt < SNAPSHOT_ATTEMPTS => attempt += 1,
                ended => return ended,
            }
        }
    }

    fn snapshot_once(&self, paths: &[RepoPath]) -> Result<Oid, WorkspaceError> {
        let Snapshot { files, others, absent } = self.look_at(paths)?;
        let blobs = self.keep_files(&files)?;
        let index = TemporaryIndex::new(&self.git_dir);
        self.read_head_into(&index)?;
        let null = self.object_format.null();
        let removals = absent.iter().map(|path| ("0", &null, path));
        let entries = files.iter().zip(&blobs).map(|((path, executable), blob)| {
            let mode = if *executable { "100755" } else { "100644" };
            (mode, blob, path)
        });
        let input = index_entries(removals.chain(entries));
        if !input.is_empty() {
            index.of(self.quiet("update-index")?).args(["-z", "--index-info"]).input(input).run()?;
        }
        if !others.is_empty() {
            let git = index.of(self.quiet("update-index")?).args(["--add", "--remove", "--replace", "-z", "--stdin"]);
            git.input(nul_separated(&others)).run()?;
        }
        self.refuse_unkept(&index, files.iter().map(|(path, _)| path).chain(&others))?;
        self.write_tree(&index)
    }

    /// Git passes over names that its index does not take (`.GIT/x`, `git~1`) and says so only to a person. A
    /// snapshot without them would look like one that holds everything.
    fn refuse_unkept<'a>(&self, index: &TemporaryIndex, mut wanted: impl Iterator<Item = &'a RepoPath>) -> Result<(), WorkspaceError> {
        let output = index.of(self.quiet("ls-files")?).args(["-z", "--cached", "--full-name"]).run()?.stdout;
        let kept: HashSet<&[u8]> = split_nul(&output).collect();
        match wanted.find(|path| !kept.contains(path.as_bytes())) {
            Some(path) => Err(WorkspaceError::Unkeepable { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// The tree that a commit of exactly these paths on top of `parent` would hold, filters applied. By it a
    /// commit is recognised whose trailers a hook took away.
    pub fn tree_with(&self, parent: Option<&Oid>, paths: &[RepoPath]) -> Result<Oid, WorkspaceError> {
        let index = TemporaryIndex::new(&self.git_dir);
        self.read_tree_into(parent, &index)?;
        let git = index.of(self.quiet("update-index")?).args(["--add", "--remove", "--replace", "-z", "--stdin"]);
        git.input(nul_separated(paths)).run()?;
        self.write_tree(&index)
    }

    fn look_at(&self, paths: &[RepoPath]) -> Result<Snapshot, WorkspaceError> {
        let mut tree = TreePaths::new(&self.work_tree);
        let mut snapshot = Snapshot::default();
        for path in paths.iter().filter(|path| !path.as_bytes().ends_with(b"/")) {
            match tree.presence(path)? {
                Presence::File { executable } => snapshot.files.push((path.clone(), executable)),
                Presence::Symlink => snapshot.others.push(path.clone()),
                Presence::Folder if tree.on_disk(path).join(".git").exists() => snapshot.others.push(path.clone()),
                Presence::Folder | Presence::Absent => snapshot.absent.push(path.clone()),
            }
        }
        Ok(snapshot)
    }

    /// Enters the files' contents into the object store.
    fn keep_files(&self, files: &[(RepoPath, bool)]) -> Result<Vec<Oid>, WorkspaceError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        // A large file is streamed, not read whole.
        let git = self.quiet("hash-object")?.set("core.bigFileThreshold=16m").args(["-w", "--no-filters", "--stdin-paths"]);
        let output = self.write_objects(git.input(lines(files.iter().map(|(path, _)| path))), files.len())?;
        let blobs: Option<Vec<Oid>> = output.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(parse_oid).collect();
        blobs.filter(|blobs| blobs.len() == files.len()).ok_or_else(|| unreadable("hash-object", &output))
    }

    /// What a file's blob would be called, filters applied.
    pub(crate) fn hash_filtered(&self, path: &RepoPath) -> Result<Oid, WorkspaceError> {
        let git = self.quiet("hash-object")?.arg("--stdin-paths").input(lines([path]));
        self.oid_from(git, "hash-object")
    }

    fn read_head_into(&self, index: &TemporaryIndex) -> Result<(), WorkspaceError> {
        let head = self.head()?.commit;
        self.read_tree_into(head.as_ref(), index)
    }

    fn read_tree_into(&self, tree: Option<&Oid>, index: &TemporaryIndex) -> Result<(), WorkspaceError> {
        match tree {
            Some(tree) => index.of(self.quiet("read-tree")?).arg(&tree.0).run().map(drop),
            // An index that is not there is an empty one.
            None => Ok(()),
        }
    }

    fn write_tree(&self, index: &TemporaryIndex) -> Result<Oid, WorkspaceError> {
        self.oid_from(index.of(self.quiet("write-tree")?), "write-tree")
    }

    fn oid_from(&self, git: Git, command: &'static str) -> Result<Oid, WorkspaceError> {
        let output = git.run()?.stdout;
        parse_oid(output.trim_ascii_end()).ok_or_else(|| unreadable(command, &output))
    }

    /// Keeps a tree under a reference (`refs/proctor/…`), as a commit of Proctor's own. It needs no
    /// identity of the user's, and is not signed.
    pub fn save(&self, reference: &str, tree: &Oid, parent: Option<&Oid>, message: &str) -> Result<Oid, WorkspaceError> {
        ours(reference)?;
        let mut git = self.quiet("commit-tree")?.arg(&tree.0);
        if let Some(parent) = parent {
            git = git.args(["-p", &parent.0]);
        }
        for role in ["AUTHOR", "COMMITTER"] {
            git = git.env(format!("GIT_{role}_NAME"), "Proctor").env(format!("GIT_{role}_EMAIL"), "proctor@localhost");
        }
        let commit = self.oid_from(git.args(["-F", "-"]).input(message.as_bytes().to_vec()), "commit-tree")?;
        self.set_ref(reference, &commit)?;
        Ok(commit)
    }

    /// Points a reference (`refs/proctor/…`) at an object.
    pub fn set_ref(&self, reference: &str, oid: &Oid) -> Result<(), WorkspaceError> {
        ours(reference)?;
        self.quiet("update-ref")?.args([reference, &oid.0]).run().map(drop)
    }

    /// The paths that differ between two trees or commits, sorted.
    pub fn differing(&self, before: &Oid, after: &Oid) -> Result<Vec<RepoPath>, WorkspaceError> {
        if before == after {
            return Ok(Vec::new());
        }
        let git = self.quiet("diff-tree")?.args(["-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv"]);
        let output = git.args(["--ignore-submodules=none", &before.0, &after.0]).run()?.stdout;
        Ok(split_nul(&output).map(RepoPath::new).collect())
    }

    /// Deletes all references below `prefix` (`refs/proctor/…`); how many there were.
    pub fn delete_refs(&self, prefix: &str) -> Result<usize, WorkspaceError> {
        ours(prefix)?;
        let output = self.quiet("for-each-ref")?.args(["--format=%(refname)", prefix]).run()?.stdout;
        let mut input = Vec::new();
        let mut count = 0;
        for name in output.split(|&byte| byte == b'\n').filter(|name| !name.is_empty()) {
            input.extend([b"delete ", name, b"\n"].concat());
            count += 1;
        }
        if count > 0 {
            self.quiet("update-ref")?.arg("--stdin").input(input).run()?;
        }
        Ok(count)
    }

    /// Removes temporary index files whose maker is gone.
    pub(crate) fn remove_left_indexes(&self) {
        let Ok(entries) = std::fs::read_dir(&self.git_dir) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let maker = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY_INDEX)).and_then(|rest| rest.split('-').next());
            let Some(maker) = maker.and_then(|maker| maker.parse::<u32>().ok()) else {
                continue;
            };
            // A later process with the same pid keeps the file until the next time, no more.
            let lives = std::fs::metadata(format!("/proc/{maker}")).is_ok_and(|metadata| metadata.nlink() > 0);
            if !lives {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Refuses to change what is not ours: branches, tags, notes.
fn ours(reference: &str) -> Result<(), WorkspaceError> {
    if reference.starts_with("refs/proctor/") { Ok(()) } else { Err(WorkspaceError::ForeignReference { reference: reference.to_owned() }) }
}

/// Entries as `git update-index -z --index-info` reads them; mode 0 removes.
pub(crate) fn index_entries<'a>(entries: impl Iterator<Item = (&'a str, &'a Oid, &'a RepoPath)>) -> Vec<u8> {
    let mut input = Vec::new();
    for (mode, oid, path) in entries {
        input.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
        input.extend_from_slice(path.as_bytes());
        input.push(0);
    }
    input
}

/// Paths as git reads them where it takes one a line: in quotes, which can hold every byte.
fn lines<'a>(paths: impl IntoIterator<Item = &'a RepoPath>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| [quoted(path), b"\n".to_vec()].concat()).collect()
}

/// A path in git's quoted form, always in quotes: the bytes that are plain as they are, all others in octal.
fn quoted(path: &RepoPath) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in path.as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b' '..=b'~' => quoted.push(byte),
            _ => quoted.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_whatever_its_bytes() {
        assert_eq!(quoted(&RepoPath::new(&b"a \"b\"\\\n\xff"[..])), br#""a \"b\"\\\012\377""#);
    }

    #[test]
    fn references_of_others_are_refused() {
        assert!(ours("refs/proctor/salvage/run_1/1").is_ok());
        for foreign in ["refs/heads/main", "refs/proctor", "HEAD", ""] {
            assert!(matches!(ours(foreign), Err(WorkspaceError::ForeignReference { .. })), "{foreign}");
        }
    }
}
