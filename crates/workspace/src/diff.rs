//! What changed between two trees, as text for a judge.
//!
//! The judge is to see what the commit holds, whatever its author says in the repository: attributes
//! that call a file binary, drivers that show something else, and replacement objects are not followed.
//! So git is asked for plain hunks of everything, and headers, binaries and cuts are written here.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write;

use proctor_domain::{Oid, RepoPath};

use crate::evidence::{FileChange, Shape, render};
use crate::git::{Git, unreadable};
use crate::repository::parse_oid;
use crate::{Repository, WorkspaceError};

/// A file over this size is named with its sizes and not compared.
const LARGEST_FILE: u64 = 32 * 1024 * 1024;
/// What is compared by one process: its output is at most about this long, and is held in memory.
const BATCH_BYTES: u64 = 64 * 1024 * 1024;
/// How long the paths on one command line may be; the kernel takes two megabytes with the environment.
const BATCH_PATHS: usize = 256 * 1024;
/// Up to as many changed files, git looks for renames, which costs up to the square of them.
const RENAMES_LIMIT: usize = 400;

/// Whether deleted and new files are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renames {
    Find,
    Ignore,
}

/// One record of git's raw format.
#[derive(Debug)]
struct Entry {
    modes: (String, String),
    oids: (Oid, Oid),
    status: u8,
    paths: (RepoPath, RepoPath),
    sizes: (u64, u64),
}

impl Entry {
    fn is_too_large(&self) -> bool {
        self.sizes.0.max(self.sizes.1) > LARGEST_FILE
    }
}

impl Repository {
    /// What changed between a commit (`None`: nothing was there) and a tree, for a judge.
    ///
    /// A unified diff. Where it is longer than `limit` bytes, a list of the files with the lines added and
    /// removed comes first, long files are cut, and each cut is said at its place. Binary files come by
    /// name and size. Runs no program that the repository names.
    pub fn evidence(&self, from: Option<&Oid>, to: &Oid, limit: usize) -> Result<String, WorkspaceError> {
        let from = match from {
            Some(commit) => commit.clone(),
            None => self.empty_tree()?,
        };
        let mut renames = Renames::Find;
        let mut entries = self.compare(&from, to, renames)?;
        let large = |entries: &[Entry]| {
            let bytes = entries.iter().map(|entry| entry.sizes.0.saturating_add(entry.sizes.1)).fold(0, u64::saturating_add);
            entries.len() > RENAMES_LIMIT || bytes > BATCH_BYTES || entries.iter().any(Entry::is_too_large)
        };
        if large(&entries) {
            // Several calls could pair the files differently.
            renames = Renames::Ignore;
            entries = self.compare(&from, to, renames)?;
        }
        let batches = batches(entries, renames);
        let mut changes = Vec::new();
        for batch in batches {
            changes.extend(self.show(&from, to, batch, renames)?);
        }
        Ok(render(&changes, limit))
    }

    pub(crate) fn empty_tree(&self) -> Result<Oid, WorkspaceError> {
        let output = self.quiet("mktree")?.input(Vec::new()).run()?.stdout;
        parse_oid(output.trim_ascii_end()).ok_or_else(|| unreadable("mktree", &output))
    }

    fn diff_tree(&self, from: &Oid, to: &Oid, renames: Renames) -> Result<Git, WorkspaceError> {
        let pairs = match renames {
            Renames::Find => "--find-renames",
            Renames::Ignore => "--no-renames",
        };
        let git = self.quiet("diff-tree")?.env("GIT_NO_REPLACE_OBJECTS", "1").set("diff.suppressBlankEmpty=false");
        let git = git.args(["-r", "--no-commit-id", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "-l1000", pairs]);
        Ok(git.args(["--ignore-submodules=none", "--submodule=short", &from.0, &to.0]))
    }

    fn compare(&self, from: &Oid, to: &Oid, renames: Renames) -> Result<Vec<Entry>, WorkspaceError> {
        let output = self.diff_tree(from, to, renames)?.args(["--raw", "-z", "--no-abbrev"]).run()?.stdout;
        let mut entries = parse_raw(&output).ok_or_else(|| unreadable("diff-tree", &output))?;
        let sizes = self.sizes(&entries)?;
        for entry in &mut entries {
            let size = |oid: &Oid| sizes.get(&oid.0).copied().unwrap_or_default();
            entry.sizes = (size(&entry.oids.0), size(&entry.oids.1));
        }
        Ok(entries)
    }

    /// The sizes of the files' contents, by object name.
    fn sizes(&self, entries: &[Entry]) -> Result<HashMap<String, u64>, WorkspaceError> {
        let named = |mode: &str| mode != "000000" && mode != "160000";
        let old = entries.iter().filter(|entry| named(&entry.modes.0)).map(|entry| &entry.oids.0);
        let new = entries.iter().filter(|entry| named(&entry.modes.1)).map(|entry| &entry.oids.1);
        let input: String = old.chain(new).fold(String::new(), |mut input, oid| {
            let _ = writeln!(input, "{oid}");
            input
        });
        if input.is_empty() {
            return Ok(HashMap::new());
        }
        let git = self.quiet("cat-file")?.env("GIT_NO_REPLACE_OBJECTS", "1").arg("--batch-check=%(objectname) %(objectsize)");
        let output = git.input(input.into_bytes()).run()?.stdout;
        let text = String::from_utf8_lossy(&output);
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(oid, size)| Some((oid.to_owned(), size.parse().ok()?)))
            .collect())
    }

    /// The hunks of some of the changed files.
    fn show(&self, from: &Oid, to: &Oid, batch: Batch, renames: Renames) -> Result<Vec<FileChange>, WorkspaceError> {
        let Batch { entries, named } = batch;
        if entries.iter().all(Entry::is_too_large) {
            return Ok(entries.into_iter().flat_map(|entry| changes_of(entry, &[])).collect());
        }
        // Attributes can call a file binary and so hide it; `--text` goes before them.
        let git = self.diff_tree(from, to, renames)?.args(["--raw", "--patch", "--text", "--unified=3", "--inter-hunk-context=0"]);
        let git = git.set("core.quotePath=true").set("core.bigFileThreshold=512m").arg("--");
        let git = if named { git.args(entries.iter().map(|entry| literal(&entry.paths.1))) } else { git };
        let output = git.run()?.stdout;
        let mut sections = named_sections(&output).ok_or_else(|| unreadable("diff-tree", &output))?;
        let mut changes = Vec::new();
        for entry in entries {
            let own = sections.remove(&entry.paths.1).unwrap_or_default();
            if !entry.is_too_large() && own.len() != section_count(entry.status) {
                return Err(unreadable("diff-tree", &output));
            }
            changes.extend(changes_of(entry, &own));
        }
        Ok(changes)
    }
}

/// Git shows a change of type as a deletion and an addition.
fn section_count(status: u8) -> usize {
    if status == b'T' { 2 } else { 1 }
}

/// Files that are compared by one process.
#[derive(Debug, Default)]
struct Batch {
    entries: Vec<Entry>,
    /// Whether they are fewer than all, and have to be named.
    named: bool,
}

fn batches(entries: Vec<Entry>, renames: Renames) -> Vec<Batch> {
    if renames == Renames::Find {
        return vec![Batch { entries, named: false }];
    }
    let mut batches: Vec<Batch> = Vec::new();
    let (mut bytes, mut length) = (0_u64, 0_usize);
    let mut after_large = false;
    for entry in entries {
        let large = entry.is_too_large();
        bytes = bytes.saturating_add(entry.sizes.0).saturating_add(entry.sizes.1);
        length += entry.paths.1.as_bytes().len() + 32;
        match batches.last_mut() {
            Some(batch) if bytes <= BATCH_BYTES && length <= BATCH_PATHS && large == after_large => batch.entries.push(entry),
            Some(_) | None => {
                bytes = entry.sizes.0.saturating_add(entry.sizes.1);
                length = 0;
                batches.push(Batch { entries: vec![entry], named: true });
            }
        }
        after_large = large;
    }
    if let [only] = batches.as_mut_slice() {
        only.named = false;
    }
    batches
}

/// A path that means itself, from the top, whatever characters it has.
fn literal(path: &RepoPath) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec([b":(top,literal)", path.as_bytes()].concat())
}

/// Reads `git diff-tree --raw -z`.
fn parse_raw(output: &[u8]) -> Option<Vec<Entry>> {
    let mut fields = output.split(|&byte| byte == 0);
    let mut entries = Vec::new();
    loop {
        let facts = fields.next()?;
        if facts.is_empty() {
            return fields.next().is_none().then_some(entries);
        }
        let facts = std::str::from_utf8(facts.strip_prefix(b":")?).ok()?;
        let [old_mode, new_mode, old, new, status] = *facts.split(' ').collect::<Vec<_>>() else {
            return None;
        };
        let status = *status.as_bytes().first()?;
        let path = RepoPath::new(fields.next()?);
        let renamed = if matches!(status, b'R' | b'C') { RepoPath::new(fields.next()?) } else { path.clone() };
        entries.push(Entry {
            modes: (old_mode.to_owned(), new_mode.to_owned()),
            oids: (parse_oid(old.as_bytes())?, parse_oid(new.as_bytes())?),
            status,
            paths: (path, renamed),
            sizes: (0, 0),
        });
    }
}

/// The hunks of each file by its path, from `git diff-tree --raw --patch`. A name that was asked for can
/// bring others along: `x` is also the folder of `x/y` where the one took the other's place.
fn named_sections(output: &[u8]) -> Option<HashMap<RepoPath, Vec<&[u8]>>> {
    let mut sections = sections(output).into_iter();
    let mut named = HashMap::new();
    for line in output.split(|&byte| byte == b'\n').take_while(|line| line.starts_with(b":")) {
        let line = std::str::from_utf8(line).ok()?;
        let (facts, paths) = line.split_once('\t')?;
        let status = *facts.rsplit(' ').next()?.as_bytes().first()?;
        let path = RepoPath::parse(paths.rsplit('\t').next()?);
        let own: Vec<&[u8]> = sections.by_ref().take(section_count(status)).collect();
        named.insert(path, own);
    }
    sections.next().is_none().then_some(named)
}

/// The parts of a patch, one for each file, each without its header: the hunks. Every line of a hunk
/// begins with a character of its own, so no contents look like a header.
fn sections(patch: &[u8]) -> Vec<&[u8]> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive(|&byte| byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).map(|(&start, end)| hunks(&patch[start..end])).collect()
}

fn hunks(section: &[u8]) -> &[u8] {
    let mut rest = section;
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        if rest.starts_with(b"@@ ") {
            return rest;
        }
        rest = &rest[end + 1..];
    }
    &[]
}

/// A changed file as it is shown; a change of type is two.
fn changes_of(entry: Entry, sections: &[&[u8]]) -> Vec<FileChange> {
    let present = |mode: &str| (mode != "000000").then(|| mode.to_owned());
    let (old_mode, new_mode) = (present(&entry.modes.0), present(&entry.modes.1));
    let too_large = entry.is_too_large();
    let Entry { paths, sizes, .. } = entry;
    let body = |number: usize| Shape::of(sections.get(number).copied().unwrap_or_default(), too_large);
    let change = |modes, body| FileChange { paths: paths.clone(), modes, sizes, body };
    if entry.status == b'T' {
        return vec![change((old_mode, None), body(0)), change((None, new_mode), body(1))];
    }
    vec![change((old_mode, new_mode), body(0))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_that_look_like_a_header_do_not_split_a_file() {
        let patch =
            b"diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-diff --git a/y b/y\n+@@ x\ndiff --git a/z b/z\nold mode 1\n";

        assert_eq!(sections(patch), [&b"@@ -1 +1 @@\n-diff --git a/y b/y\n+@@ x\n"[..], b""]);
    }

    #[test]
    fn what_is_no_raw_diff_is_refused() {
        for output in [&b"x"[..], b":100644 100644 1 2 M\0a\0", b":1 2 3\0a\0"] {
            assert!(parse_raw(output).is_none(), "{}", String::from_utf8_lossy(output));
        }
        assert!(parse_raw(b"").unwrap().is_empty());
    }

    #[test]
    fn a_file_that_is_too_large_shares_its_batch_only_with_its_like() {
        let entry = |name: &str, size| Entry {
            modes: ("000000".to_owned(), "100644".to_owned()),
            oids: (Oid("0".repeat(40)), Oid("1".repeat(40))),
            status: b'A',
            paths: (RepoPath::new(name), RepoPath::new(name)),
            sizes: (0, size),
        };
        let sizes = [1, 2, LARGEST_FILE + 1, 3, LARGEST_FILE, LARGEST_FILE];

        let batches = batches(sizes.map(|size| entry("x", size)).into(), Renames::Ignore);

        let lengths: Vec<usize> = batches.iter().map(|batch| batch.entries.len()).collect();
        assert_eq!(lengths, [2, 1, 2, 1]);
        assert!(batches.iter().all(|batch| batch.named));
    }
}
