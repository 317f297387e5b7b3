//! What is changed in a work tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use proctor_domain::{Branch, Oid, RepoPath};

use crate::git::unreadable;
use crate::repository::parse_oid;
use crate::{Repository, WorkspaceError};

/// A work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The commit HEAD is at; `None` on a branch that has none yet.
    pub head: Option<Oid>,
    /// What HEAD points at.
    pub branch: Branch,
    /// What differs from HEAD, each path once, sorted.
    pub changes: Vec<Change>,
    /// The merge, rebase, cherry-pick, revert, bisect or am in progress.
    pub operation: Option<String>,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub path: RepoPath,
    /// How it differs from HEAD.
    pub kind: ChangeKind,
    /// Whether the index differs from HEAD here: somebody ran `git add` or `git rm`.
    pub staged: bool,
}

/// How a path differs from HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Contents, mode or type.
    Modified,
    /// In the index, not in HEAD.
    Added,
    /// In HEAD or the index, not in the work tree.
    Deleted,
    /// In the work tree, not in the index (though it may be in HEAD).
    Untracked,
    /// In a conflict.
    Unmerged,
    /// A submodule whose checked-out or staged commit differs; its own files are clean.
    SubmoduleMoved,
    /// A submodule with changes of its own that are not committed in it.
    SubmoduleDirty,
    /// An untracked folder that is a repository of its own; the path ends in `/`.
    NestedRepository,
}

/// More new files than this are not committed unasked.
pub const NEW_FILES_LIMIT: usize = 2_000;
/// More bytes in new files than this are not committed unasked: 50 MiB.
pub const NEW_BYTES_LIMIT: u64 = 50 * 1024 * 1024;

impl Status {
    /// The changed paths that the index does not know yet.
    pub fn untracked(&self) -> Vec<RepoPath> {
        self.changes.iter().filter(|change| change.kind == ChangeKind::Untracked).map(|change| change.path.clone()).collect()
    }

    /// All changed paths.
    pub fn paths(&self) -> Vec<RepoPath> {
        self.changes.iter().map(|change| change.path.clone()).collect()
    }
}

/// Why changes are not committed unasked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    /// A repository of its own would become a pointer to a commit that nobody else has.
    #[error("{path} is a git repository of its own")]
    NestedRepository {
        /// Where it lies.
        path: RepoPath,
    },
    /// What a submodule has not committed itself is in no commit of the repository around it.
    #[error("{path} is a submodule with changes that are not committed in it")]
    DirtySubmodule {
        /// Where it lies.
        path: RepoPath,
    },
    /// More than [`NEW_FILES_LIMIT`] new files.
    #[error("there are {count} new files, most of them under {mostly} (the limit is {NEW_FILES_LIMIT})")]
    Files {
        /// How many.
        count: usize,
        /// The folder at the top that holds most of them, or the first file.
        mostly: RepoPath,
    },
    /// More than [`NEW_BYTES_LIMIT`] in new files.
    #[error("there are {} MiB of new files, the largest of them {largest} (the limit is {} MiB)", bytes >> 20, NEW_BYTES_LIMIT >> 20)]
    Bytes {
        /// How many.
        bytes: u64,
        /// The largest file.
        largest: RepoPath,
    },
}

/// Whether these changes hold something that Proctor does not commit unasked.
pub fn too_much(repository: &Repository, changes: &[Change]) -> Result<(), TooMuch> {
    if let Some(nested) = changes.iter().find(|change| change.kind == ChangeKind::NestedRepository) {
        return Err(TooMuch::NestedRepository { path: nested.path.clone() });
    }
    if let Some(dirty) = changes.iter().find(|change| change.kind == ChangeKind::SubmoduleDirty) {
        return Err(TooMuch::DirtySubmodule { path: dirty.path.clone() });
    }
    let new = || changes.iter().filter(|change| matches!(change.kind, ChangeKind::Untracked | ChangeKind::Added));
    let count = new().count();
    if count > NEW_FILES_LIMIT {
        return Err(TooMuch::Files { count, mostly: fullest_folder(new()) });
    }
    let size = |change: &Change| {
        let path = repository.work_tree.join(OsStr::from_bytes(change.path.as_bytes()));
        std::fs::symlink_metadata(path).map_or(0, |metadata| metadata.len())
    };
    let sizes = new().map(|change| (size(change), &change.path));
    let (bytes, largest) = sizes.fold((0, None), |(bytes, largest): (u64, Option<(u64, &RepoPath)>), (size, path)| {
        (bytes.saturating_add(size), largest.filter(|(known, _)| *known >= size).or(Some((size, path))))
    });
    match largest {
        Some((_, largest)) if bytes > NEW_BYTES_LIMIT => Err(TooMuch::Bytes { bytes, largest: largest.clone() }),
        Some(_) | None => Ok(()),
    }
}

/// The folder at the top that most of the changes are in; what is at the top itself counts as its own.
fn fullest_folder<'a>(changes: impl Iterator<Item = &'a Change>) -> RepoPath {
    let mut counts: std::collections::BTreeMap<&[u8], usize> = std::collections::BTreeMap::new();
    for change in changes {
        let bytes = change.path.as_bytes();
        let end = bytes.iter().position(|&byte| byte == b'/').map_or(bytes.len(), |slash| slash + 1);
        *counts.entry(&bytes[..end]).or_default() += 1;
    }
    RepoPath::new(counts.into_iter().max_by_key(|(_, count)| *count).map_or(&b""[..], |(folder, _)| folder))
}

impl Repository {
    /// What is changed. One git process that takes no lock and runs nothing of the repository's, plus
    /// one for each submodule that is checked out.
    pub fn status(&self) -> Result<Status, WorkspaceError> {
        let git = self.quiet("status")?.args([
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--branch",
            // How far the branch is from its upstream can take longer than all the rest.
            "--no-ahead-behind",
            "--no-renames",
            "--ignore-submodules=dirty",
        ]);
        let output = git.run()?.stdout;
        let mut status = parse(&output).ok_or_else(|| unreadable("status", &output))?;
        self.survey_submodules(&mut status.changes)?;
        status.changes.sort_by(|a, b| a.path.cmp(&b.path));
        status.operation = self.operation_in_progress();
        Ok(status)
    }
}

/// Reads `git status --porcelain=v2 -z --branch`.
fn parse(output: &[u8]) -> Option<Status> {
    let mut status = Status { head: None, branch: Branch::Detached, changes: Vec::new(), operation: None };
    for record in output.split(|&byte| byte == 0).filter(|record| !record.is_empty()) {
        match (record[0], record.get(2..)?) {
            (b'#', header) => parse_header(header, &mut status)?,
            (b'1', rest) => status.changes.push(parse_change(rest)?),
            (b'u', rest) => {
                // XY sub m1 m2 m3 mW h1 h2 h3 path
                let path = rest.splitn(10, |&byte| byte == b' ').nth(9)?;
                status.changes.push(Change { path: RepoPath::new(path), kind: ChangeKind::Unmerged, staged: true });
            }
            (b'?', path) => {
                let kind = if path.ends_with(b"/") { ChangeKind::NestedRepository } else { ChangeKind::Untracked };
                status.changes.push(Change { path: RepoPath::new(path), kind, staged: false });
            }
            (_, _) => return None,
        }
    }
    merge_doubled(&mut status.changes);
    Some(status)
}

fn parse_header(header: &[u8], status: &mut Status) -> Option<()> {
    if let Some(oid) = header.strip_prefix(b"branch.oid ") {
        status.head = if oid == b"(initial)" { None } else { Some(parse_oid(oid)?) };
    } else if let Some(name) = header.strip_prefix(b"branch.head ") {
        status.branch = match name {
            b"(detached)" => Branch::Detached,
            name => Branch::Named(String::from_utf8_lossy(name).into_owned()),
        };
    }
    Some(())
}

/// `XY sub mH mI mW hH hI path`
fn parse_change(rest: &[u8]) -> Option<Change> {
    let mut fields = rest.splitn(8, |&byte| byte == b' ');
    let &[index, worktree] = fields.next()? else {
        return None;
    };
    let submodule = fields.next()?;
    let path = fields.nth(5)?;
    let kind = match (index, worktree) {
        (_, b'D') | (b'D', _) => ChangeKind::Deleted,
        // The second is `git add --intent-to-add`.
        (b'A', _) | (_, b'A') => ChangeKind::Added,
        (_, _) if submodule.starts_with(b"S") => ChangeKind::SubmoduleMoved,
        (_, _) => ChangeKind::Modified,
    };
    Some(Change { path: RepoPath::new(path), kind, staged: index != b'.' })
}

/// A path that was removed from the index and is still in the work tree comes as two records; it is one change.
fn merge_doubled(changes: &mut Vec<Change>) {
    if !changes.iter().any(|change| change.kind == ChangeKind::Deleted && change.staged) {
        return;
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes.dedup_by(|second, first| {
        let same = second.path == first.path;
        if same {
            first.staged |= second.staged;
            first.kind = ChangeKind::Untracked;
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn change(path: &[u8], kind: ChangeKind, staged: bool) -> Change {
        Change { path: RepoPath::new(path), kind, staged }
    }

    #[test]
    fn every_kind_of_record_is_read() {
        let mut output = format!("# branch.oid {OID}\0# branch.head a/b\0# branch.upstream o/b\0").into_bytes();
        let ordinary = |codes: &str, submodule: &str, path: &[u8]| {
            [format!("1 {codes} {submodule} 100644 100644 100644 {OID} {OID} ").as_bytes(), path, b"\0"].concat()
        };
        output.extend(ordinary(".M", "N...", b"mode changed"));
        output.extend(ordinary("A.", "N...", b":x"));
        output.extend(ordinary("MD", "N...", b"gone\nline"));
        output.extend(ordinary(".M", "SC..", b"sub"));
        output.extend(format!("u UU N... 100644 100644 100644 100644 {OID} {OID} {OID} both\0").as_bytes());
        output.extend(b"? new \xff\0? nested/\0");

        let status = parse(&output).unwrap();

        assert_eq!((status.head, status.branch), (Some(Oid(OID.to_owned())), Branch::Named("a/b".to_owned())));
        let expected = [
            change(b"mode changed", ChangeKind::Modified, false),
            change(b":x", ChangeKind::Added, true),
            change(b"gone\nline", ChangeKind::Deleted, true),
            change(b"sub", ChangeKind::SubmoduleMoved, false),
            change(b"both", ChangeKind::Unmerged, true),
            change(b"new \xff", ChangeKind::Untracked, false),
            change(b"nested/", ChangeKind::NestedRepository, false),
        ];
        let mut changes = status.changes;
        changes.sort_by_key(|change| expected.iter().position(|wanted| wanted.path == change.path));
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_path_that_left_the_index_alone_is_one_change() {
        let output = format!("1 D. N... 100644 000000 000000 {OID} {} x\0? x\0", "0".repeat(40));

        assert_eq!(parse(output.as_bytes()).unwrap().changes, [change(b"x", ChangeKind::Untracked, true)]);
    }

    #[test]
    fn what_is_no_status_is_refused() {
        for output in [&b"x"[..], b"1 .M\0", b"9 what\0", b"# branch.oid zz\0"] {
            assert_eq!(parse(output), None, "{}", String::from_utf8_lossy(output));
        }
    }
}
