//! What git's index holds before, during and after a commit of ours.
//!
//! Most commits are `git commit --only`, which takes the named paths and puts all else in the index back.
//! Two kinds can't be: git looks at a removed path through a link that took its folder's place and finds
//! the file again, and it compares each named path with each entry, which for thousands of them takes
//! minutes. Those are made from an index of our own, and the user's index follows afterwards.

use std::collections::{BTreeMap, BTreeSet};

use proctor_domain::{Oid, RepoPath};
use proctor_process::Program;

use crate::effects::EFFECT_VARIABLE;
use crate::git::{Git, unreadable};
use crate::repository::parse_oid;
use crate::salvage::{TemporaryIndex, index_entries};
use crate::tree_path::{Presence, TreePaths, nul_separated, on_disk, parents, split_nul};
use crate::{Repository, WorkspaceError};

/// From so many paths on, a commit is made from an index of our own.
const MANY_PATHS: usize = 200;
/// From so many objects on, they are written without a sync for each and then synced all at once: a sync
/// takes milliseconds, so that 5,000 files would take a minute.
const MANY_OBJECTS: usize = 100;

/// How a commit's paths are handed to git.
#[derive(Debug)]
pub(crate) enum Staged {
    /// By a list of paths.
    Listed {
        /// The paths as patterns, each ended by a NUL.
        pathspecs: Vec<u8>,
        /// What had to be added to the user's index.
        before: IndexBefore,
    },
    /// By an index that holds HEAD and the paths.
    OwnIndex(TemporaryIndex),
}

/// Index entries as they were before new files were added.
#[derive(Debug, Default)]
pub(crate) struct IndexBefore {
    /// What was added.
    added: Vec<RepoPath>,
    /// `git ls-files --stage -z`, where adding can push entries out: a file whose place a folder takes, and the reverse.
    displaced: Vec<u8>,
}

/// One side of a difference: mode and object, or nothing there.
type Side = Option<(String, Oid)>;

impl Repository {
    /// Prepares a commit of these paths on top of `head`.
    pub(crate) fn stage(
        &self,
        (paths, untracked): (&[RepoPath], &[RepoPath]),
        head: Option<&Oid>,
        marker: &str,
    ) -> Result<Staged, WorkspaceError> {
        let mut tree = TreePaths::new(&self.work_tree);
        let mut beyond_a_link = false;
        for path in paths {
            beyond_a_link = beyond_a_link || self.is_beyond_a_link(&mut tree, path)?;
        }
        if beyond_a_link || paths.len() > MANY_PATHS {
            return self.stage_in_own_index(paths, head, marker).map(Staged::OwnIndex);
        }
        let is_folder = |path: &RepoPath| std::fs::symlink_metadata(on_disk(&self.work_tree, path)).is_ok_and(|metadata| metadata.is_dir());
        let before = self.add_new_files(paths, untracked, marker)?;
        Ok(Staged::Listed { pathspecs: pathspecs(paths, is_folder), before })
    }

    fn is_beyond_a_link(&self, tree: &mut TreePaths<'_>, path: &RepoPath) -> Result<bool, WorkspaceError> {
        Ok(match tree.obstacle(path)? {
            Some(obstacle) => tree.presence(&obstacle)? == Presence::Symlink,
            None => false,
        })
    }

    fn stage_in_own_index(&self, paths: &[RepoPath], head: Option<&Oid>, marker: &str) -> Result<TemporaryIndex, WorkspaceError> {
        let index = TemporaryIndex::new(&self.git_dir);
        if let Some(head) = head {
            // From a copy of the user's, which knows the files' time stamps: else git would read every file of
            // the repository again to see whether it is as in HEAD.
            index.begin_with(&self.git_dir.join("index"))?;
            index.of(self.quiet("read-tree")?).args(["--reset", &head.0]).run()?;
        }
        let mut tree = TreePaths::new(&self.work_tree);
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for path in paths {
            match tree.presence(path)? {
                Presence::File { .. } | Presence::Symlink => present.push(path),
                // A submodule; or a folder in a file's place, whose files are named themselves.
                Presence::Folder if tree.on_disk(path).join(".git").exists() => present.push(path),
                Presence::Folder | Presence::Absent => absent.push(path),
            }
        }
        let null = self.object_format.null();
        let removals = index_entries(absent.iter().map(|path| ("0", &null, *path)));
        index.of(self.quiet("update-index")?).args(["-z", "--index-info"]).input(removals).run()?;
        let count = present.len();
        let add = index.of(self.git("update-index")).args(["--add", "--remove", "--replace", "-z", "--stdin"]);
        self.write_objects(add.env(EFFECT_VARIABLE, marker).input(nul_separated(present)), count)?;
        Ok(index)
    }

    /// Runs a command that writes this many objects, so that they are on disk when it returns.
    pub(crate) fn write_objects(&self, git: Git, count: usize) -> Result<Vec<u8>, WorkspaceError> {
        if count < MANY_OBJECTS {
            return Ok(git.run()?.stdout);
        }
        let output = git.set("core.fsync=none").run()?.stdout;
        self.sync_file_system()?;
        Ok(output)
    }

    fn sync_file_system(&self) -> Result<(), WorkspaceError> {
        let sync = |arguments: &[&std::ffi::OsStr]| {
            let program = Program::new("sync").args(arguments.iter().copied()).dir(&self.git_dir);
            let ended = program.env(self.environment.variables().iter().cloned()).run(None);
            ended.map_err(|source| WorkspaceError::Start { command: "(sync)", source })
        };
        let objects = self.common_dir.join("objects");
        if sync(&["-f".as_ref(), objects.as_os_str()])?.status.is_success() {
            return Ok(());
        }
        // A `sync` without that option: all file systems, then.
        sync(&[]).map(drop)
    }

    /// Adds files to the index that it does not know, since `git commit` takes known paths only.
    ///
    /// By `update-index`, which takes exact paths, and not by `git add`, which takes patterns (and for two
    /// thousand of them needs twenty times as long).
    fn add_new_files(&self, paths: &[RepoPath], untracked: &[RepoPath], marker: &str) -> Result<IndexBefore, WorkspaceError> {
        if untracked.is_empty() {
            return Ok(IndexBefore::default());
        }
        let displaced =
            if may_displace(paths, untracked) { self.quiet("ls-files")?.args(["--stage", "-z"]).run()?.stdout } else { Vec::new() };
        // Not a quiet command: the user's filters apply to what is committed.
        let git = self.git("update-index").args(["--add", "--remove", "--replace", "-z", "--stdin"]);
        git.env(EFFECT_VARIABLE, marker).input(nul_separated(untracked)).run()?;
        Ok(IndexBefore { added: untracked.to_vec(), displaced })
    }

    /// Puts the index entries back that [`Self::stage`] changed, where no commit came of it.
    pub(crate) fn unstage(&self, staged: &Staged) -> Result<(), WorkspaceError> {
        let before = match staged {
            Staged::Listed { before, .. } if !before.added.is_empty() => before,
            Staged::Listed { .. } | Staged::OwnIndex(_) => return Ok(()),
        };
        let null = self.object_format.null();
        let mut input = index_entries(before.added.iter().map(|path| ("0", &null, path)));
        // `ls-files --stage` writes what `update-index --index-info` reads.
        for entry in split_nul(&before.displaced).filter(|entry| displaced_by(entry, &before.added)) {
            input.extend_from_slice(entry);
            input.push(0);
        }
        self.patiently(|| self.quiet("update-index")?.args(["-z", "--index-info"]).input(input.clone()).run().map(drop))
    }

    /// Brings the index entries of a commit's paths up to the commit, where they were left behind: after a
    /// commit whose hooks changed what was staged, or that was made from an index of our own. One process
    /// where nothing is to be done.
    ///
    /// To be called for a commit that a resume finds. An entry counts as left behind when it is as it was
    /// before the commit, or when the file itself is as in the commit; anything else was staged since, by
    /// somebody, and stays.
    pub fn settle_index(&self, commit: &Oid) -> Result<(), WorkspaceError> {
        let git = self.quiet("diff-index")?.args(["--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none"]);
        let output = git.arg(&commit.0).run()?.stdout;
        let differing = parse_raw(&output).ok_or_else(|| unreadable("diff-index", &output))?;
        if differing.is_empty() {
            return Ok(());
        }
        let git = self.quiet("diff-tree")?.args(["-r", "-m", "--first-parent", "--root", "--no-commit-id", "--raw", "-z", "--no-renames"]);
        let output = git.args(["--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", &commit.0]).run()?.stdout;
        let committed = parse_raw(&output).ok_or_else(|| unreadable("diff-tree", &output))?;
        let mut left = Vec::new();
        for (path, (wanted, present)) in differing {
            let Some((before, _)) = committed.get(&path) else {
                continue;
            };
            if present == *before || self.file_is(&path, wanted.as_ref())? {
                left.push((path, wanted));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let null = self.object_format.null();
        let removals = left.iter().map(|(path, _)| ("0", &null, path));
        let additions = left.iter().filter_map(|(path, side)| side.as_ref().map(|(mode, oid)| (mode.as_str(), oid, path)));
        let input = index_entries(removals.chain(additions));
        self.patiently(|| self.quiet("update-index")?.args(["-z", "--index-info"]).input(input.clone()).run().map(drop))?;
        // So that the next statuses need not read these files.
        self.patiently(|| self.refresh_index())
    }

    /// Whether the work tree holds this at a path.
    fn file_is(&self, path: &RepoPath, side: Option<&(String, Oid)>) -> Result<bool, WorkspaceError> {
        let mut tree = TreePaths::new(&self.work_tree);
        Ok(match (tree.presence(path)?, side) {
            (Presence::Absent, None) => true,
            (Presence::File { executable }, Some((mode, oid))) if executable == (mode == "100755") => self.hash_filtered(path)? == *oid,
            (Presence::Absent | Presence::File { .. } | Presence::Symlink | Presence::Folder, _) => false,
        })
    }
}

/// Reads `--raw -z`: by path, what was there before and what is there after.
fn parse_raw(output: &[u8]) -> Option<BTreeMap<RepoPath, (Side, Side)>> {
    let mut differences = BTreeMap::new();
    let mut fields = split_nul(output);
    while let Some(record) = fields.next() {
        let words: Vec<&str> = std::str::from_utf8(record).ok()?.strip_prefix(':')?.split(' ').collect();
        let &[mode_before, mode_after, before, after, _] = words.as_slice() else {
            return None;
        };
        let side = |mode: &str, oid: &str| match mode {
            "000000" => Some(None),
            mode => parse_oid(oid.as_bytes()).map(|oid| Some((mode.to_owned(), oid))),
        };
        differences.insert(RepoPath::new(fields.next()?), (side(mode_before, before)?, side(mode_after, after)?));
    }
    Some(differences)
}

/// Paths as git reads a list of patterns: each says of itself that it is none. Not by the option
/// `--literal-pathspecs`, which hooks would inherit for patterns of their own.
fn pathspecs(paths: &[RepoPath], is_folder: impl Fn(&RepoPath) -> bool) -> Vec<u8> {
    let named: BTreeSet<&[u8]> = paths.iter().map(RepoPath::as_bytes).collect();
    let mut bytes = Vec::new();
    for path in paths {
        let below = [path.as_bytes(), &b"/"[..]].concat();
        let has_named_below = named.range::<&[u8], _>(below.as_slice()..).next().is_some_and(|next| next.starts_with(&below));
        // A file that a folder took the place of: the files in it that are named push its entry out. As a
        // pattern it would take everything in the folder.
        if has_named_below && is_folder(path) {
            continue;
        }
        bytes.extend_from_slice(b":(top,literal)");
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Whether adding these files can push other entries out of the index.
fn may_displace(paths: &[RepoPath], untracked: &[RepoPath]) -> bool {
    let untracked: BTreeSet<&[u8]> = untracked.iter().map(RepoPath::as_bytes).collect();
    let named: BTreeSet<&[u8]> = paths.iter().map(RepoPath::as_bytes).collect();
    let is_below = |path: &RepoPath, set: &BTreeSet<&[u8]>| parents(path).any(|parent| set.contains(parent));
    paths.iter().any(|path| is_below(path, &untracked) || (untracked.contains(path.as_bytes()) && is_below(path, &named)))
}

/// Whether an entry of `git ls-files --stage` is below or above one of these paths.
fn displaced_by(entry: &[u8], added: &[RepoPath]) -> bool {
    let Some(tab) = entry.iter().position(|&byte| byte == b'\t') else {
        return false;
    };
    let path = &entry[tab + 1..];
    let is_above = |above: &[u8], below: &[u8]| below.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
    added.iter().any(|one| is_above(one.as_bytes(), path) || is_above(path, one.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<RepoPath> {
        names.iter().map(|name| RepoPath::new(*name)).collect()
    }

    #[test]
    fn a_file_that_became_a_folder_is_no_pattern_for_all_in_it() {
        let named = paths(&["x", "x.y", "x/a"]);

        assert_eq!(pathspecs(&named, |_| true), b":(top,literal)x.y\0:(top,literal)x/a\0");
        assert_eq!(pathspecs(&named, |_| false), b":(top,literal)x\0:(top,literal)x.y\0:(top,literal)x/a\0");
    }

    #[test]
    fn files_and_folders_that_change_places_are_noticed() {
        assert!(may_displace(&paths(&["x", "x/y"]), &paths(&["x/y"])));
        assert!(may_displace(&paths(&["x/y", "x"]), &paths(&["x"])));
        assert!(!may_displace(&paths(&["x", "xy", "z/a"]), &paths(&["xy", "z/a"])));
    }

    #[test]
    fn raw_differences_are_read_by_path() {
        let oid = "0123456789abcdef0123456789abcdef01234567";
        let null = "0".repeat(40);
        let output = format!(":100644 000000 {oid} {null} D\0a b\0:000000 100755 {null} {oid} A\0c\0");

        let read = parse_raw(output.as_bytes()).unwrap();

        let there = |mode: &str| Some((mode.to_owned(), Oid(oid.to_owned())));
        let expected = [(RepoPath::new("a b"), (there("100644"), None)), (RepoPath::new("c"), (None, there("100755")))];
        assert_eq!(read, BTreeMap::from(expected));
        assert_eq!(parse_raw(b"x\0"), None);
    }
}
