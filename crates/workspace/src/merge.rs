//! Merging a run's branch into what the user has checked out.
//!
//! Foretold before anything is touched, and made by `git merge`, so that hooks and signing are the user's.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::{Branch, Oid, RepoPath};
use proctor_process::{Finished, killpoint};

use crate::commit::write_new;
use crate::effects::EFFECT_VARIABLE;
use crate::error::{complaint, lacks_identity, locked_path};
use crate::git::{ending, unreadable};
use crate::repository::{file_error, parse_oid};
use crate::tree_path::{parents, split_nul};
use crate::{Change, ChangeKind, Repository, WorkspaceError};

/// How long git and the hooks of a merge may take, like a shell of the user's.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// How much of what git and the hooks printed is reported; the log has it all.
const OUTPUT_BYTES: usize = 16 * 1024;

/// A merge to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRequest {
    /// The branch that is merged, by its short name.
    pub branch: String,
    /// What HEAD has to be on.
    pub into: Branch,
    /// The message of the merge commit, where one is needed.
    pub message: String,
    /// The value of `PROCTOR_EFFECT` for git and its hooks, by which a resume finds them.
    pub marker: String,
    /// Gets what git and the hooks print. A file, so that git outlives us; another is made beside it for the time of the merge.
    pub log: PathBuf,
}

/// How a merge ended. Unless it was made, the work tree is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeEnd {
    /// HEAD holds the branch; what HEAD is now.
    Merged(Oid),
    /// Both sides changed the same.
    Conflict {
        /// Where.
        paths: Vec<RepoPath>,
    },
    /// There are changes that are not committed, or files in the merge's way.
    Dirty {
        /// Where.
        paths: Vec<RepoPath>,
    },
    /// Another branch is checked out.
    OtherBranch {
        /// Which.
        found: Branch,
    },
    /// A merge, rebase, cherry-pick or the like is in progress.
    InProgress {
        /// Its name.
        operation: String,
    },
    /// A hook or git refused it.
    Refused {
        /// What was printed.
        output: String,
    },
}

/// What a merge would do.
enum Foretold {
    /// It gives this tree (or the tree of this commit).
    Result(Oid),
    Conflict(Vec<RepoPath>),
    Refused(String),
    /// Git is older than 2.38 and can't tell: it is tried, and taken back where it fails.
    Unknown,
}

/// The commits on both sides.
struct Sides {
    head: Oid,
    tip: Oid,
}

impl Repository {
    /// Merges a branch into what is checked out: forward where possible, else by a merge commit.
    ///
    /// Changes that are not committed stop it. Untracked files stay and do not, unless the merge would
    /// write there: git never overwrites them, and a person's notes are no reason to keep a run's result
    /// away. A branch that HEAD holds already is merged: so a second call finds the first one's work. What
    /// a git that was killed in the middle left is put back first, if every byte of it is in the branch.
    ///
    /// Git and its hooks run in a session of their own and outlive us. Before a second call,
    /// [`Repository::wait_for_or_end_effects`].
    pub fn merge_branch(&self, request: &MergeRequest) -> Result<MergeEnd, WorkspaceError> {
        self.patiently(|| self.merge_once(request))
    }

    fn merge_once(&self, request: &MergeRequest) -> Result<MergeEnd, WorkspaceError> {
        let head = self.head()?;
        if head.branch != request.into {
            return Ok(MergeEnd::OtherBranch { found: head.branch });
        }
        let (Some(head), Some(tip)) = (head.commit, self.branch_tip(&request.branch)?) else {
            return Ok(MergeEnd::Refused { output: format!("there is no commit on {} or on {}", request.into, request.branch) });
        };
        if self.is_ancestor(&tip, &head)? {
            return Ok(MergeEnd::Merged(head));
        }
        let sides = Sides { head, tip };
        let foretold = self.foretell(&sides)?;
        let touched = match &foretold {
            Foretold::Result(tree) => {
                let touched = self.differing(&sides.head, tree)?.into_iter().collect();
                self.undo_own_leftover(request, &sides, tree, &touched)?;
                touched
            }
            Foretold::Conflict(_) | Foretold::Refused(_) => BTreeSet::new(),
            Foretold::Unknown => self.differing(&sides.head, &sides.tip)?.into_iter().collect(),
        };
        if let Some(operation) = self.operation_in_progress() {
            return Ok(MergeEnd::InProgress { operation });
        }
        match foretold {
            Foretold::Conflict(paths) => return Ok(MergeEnd::Conflict { paths }),
            Foretold::Refused(output) => return Ok(MergeEnd::Refused { output }),
            Foretold::Result(_) | Foretold::Unknown => {}
        }
        let paths: Vec<RepoPath> =
            self.status()?.changes.into_iter().filter(|change| in_the_way(change, &touched)).map(|change| change.path).collect();
        if !paths.is_empty() {
            return Ok(MergeEnd::Dirty { paths });
        }
        killpoint::reach("merge foretold");
        let ended = self.run_merge(request, &sides);
        killpoint::reach("merge made");
        ended
    }

    fn foretell(&self, sides: &Sides) -> Result<Foretold, WorkspaceError> {
        if self.is_ancestor(&sides.head, &sides.tip)? {
            return Ok(Foretold::Result(sides.tip.clone()));
        }
        let git = self.quiet("merge-tree")?.args(["--write-tree", "-z", "--name-only", "--no-messages", &sides.head.0, &sides.tip.0]);
        let output = git.accept(&[0, 1, 128, 129]).run()?;
        let mut records = split_nul(&output.stdout);
        let tree = records.next().and_then(parse_oid);
        match (output.code, tree) {
            (0, Some(tree)) => Ok(Foretold::Result(tree)),
            (1, Some(_)) => Ok(Foretold::Conflict(records.map(RepoPath::new).collect())),
            (129, _) => Ok(Foretold::Unknown),
            (128, None) => Ok(Foretold::Refused(output.stderr)),
            (_, _) => Err(unreadable("merge-tree", &output.stdout)),
        }
    }

    /// Puts back what our own killed merge left, so that it can be made again. It is taken for ours where
    /// every changed path holds exactly what the merge gives, so that nothing can be lost either way.
    fn undo_own_leftover(
        &self,
        request: &MergeRequest,
        sides: &Sides,
        result: &Oid,
        touched: &BTreeSet<RepoPath>,
    ) -> Result<(), WorkspaceError> {
        let status = self.status()?;
        let merging = match status.operation.as_deref() {
            None => false,
            Some("merge") if self.is_merging(request, &sides.tip) => true,
            Some(_) => return Ok(()),
        };
        let strange = |change: &Change| change.kind != ChangeKind::Untracked && !touched.contains(&change.path);
        if status.changes.iter().any(strange) {
            return Ok(());
        }
        let paths: Vec<RepoPath> = status.changes.into_iter().map(|change| change.path).filter(|path| touched.contains(path)).collect();
        if !paths.is_empty() {
            let present = self.tree_with(Some(&sides.head), &paths)?;
            let others: BTreeSet<RepoPath> = self.differing(&present, result)?.into_iter().collect();
            if paths.iter().any(|path| others.contains(path)) {
                return Ok(());
            }
        }
        if merging {
            return self.abort();
        }
        if paths.is_empty() { Ok(()) } else { self.restore(&paths, Some(&sides.head)) }
    }

    /// Whether the merge in progress is the one that is asked for.
    fn is_merging(&self, request: &MergeRequest, tip: &Oid) -> bool {
        let read = |name: &str| std::fs::read_to_string(self.git_dir.join(name)).unwrap_or_default();
        read("MERGE_HEAD").trim() == tip.0 && read("MERGE_MSG").trim_start().starts_with(request.message.trim())
    }

    fn abort(&self) -> Result<(), WorkspaceError> {
        self.quiet("merge")?.arg("--abort").run().map(drop)
    }

    fn run_merge(&self, request: &MergeRequest, sides: &Sides) -> Result<MergeEnd, WorkspaceError> {
        let message = message_file(&request.log);
        write_new(&message, request.message.as_bytes())?;
        let log = File::create(&request.log).map_err(file_error(&request.log, "write"))?;
        let git = self.git("merge").set("gc.auto=0").set("maintenance.auto=false").env(EFFECT_VARIABLE, &request.marker);
        // Each says what a setting of the user's could say otherwise for merges by hand.
        let git = git.args(["--ff", "--commit", "--no-squash", "--no-edit", "--no-autostash", "--no-log", "--no-stat"]);
        let git =
            git.args(["--no-overwrite-ignore", "--cleanup=whitespace", "-F"]).arg(&message).arg(format!("refs/heads/{}", request.branch));
        let finished = git.detached(log, Some(LIMIT)).finish();
        let _ = std::fs::remove_file(&message);
        self.merge_end(&finished?, request, sides)
    }

    fn merge_end(&self, finished: &Finished, request: &MergeRequest, sides: &Sides) -> Result<MergeEnd, WorkspaceError> {
        if let Some(now) = self.head()?.commit
            && self.is_ancestor(&sides.tip, &now)?
        {
            return Ok(MergeEnd::Merged(now));
        }
        let output = printed(finished, &request.log)?;
        let unmerged = self.quiet("ls-files")?.args(["--unmerged", "-z", "--full-name"]).run()?.stdout;
        let paths: BTreeSet<RepoPath> =
            split_nul(&unmerged).filter_map(|entry| entry.splitn(2, |&byte| byte == b'\t').nth(1)).map(RepoPath::new).collect();
        if self.is_merging(request, &sides.tip) {
            // The tree was clean a moment ago, so what is taken back is the merge's own.
            self.abort()?;
        }
        if !paths.is_empty() {
            return Ok(MergeEnd::Conflict { paths: paths.into_iter().collect() });
        }
        if finished.status.code.is_none() || locked_path(&output).is_some() || lacks_identity(&output) {
            return Err(complaint("merge", ending(finished), &output));
        }
        Ok(MergeEnd::Refused { output })
    }
}

/// Whether a change keeps the merge from being made.
fn in_the_way(change: &Change, touched: &BTreeSet<RepoPath>) -> bool {
    if !matches!(change.kind, ChangeKind::Untracked | ChangeKind::NestedRepository) {
        return true;
    }
    let bytes = change.path.as_bytes();
    let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
    let path = RepoPath::new(bytes);
    if touched.contains(&path) || parents(&path).any(|parent| touched.contains(&RepoPath::new(parent))) {
        return true;
    }
    let inside = RepoPath::new([bytes, b"/"].concat());
    let next = touched.range((Bound::Included(&inside), Bound::Unbounded)).next();
    next.is_some_and(|next| next.as_bytes().starts_with(inside.as_bytes()))
}

fn message_file(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".message");
    PathBuf::from(name)
}

/// What git said on its two channels, the end of it.
fn printed(finished: &Finished, log: &Path) -> Result<String, WorkspaceError> {
    let log = std::fs::read(log).map_err(file_error(log, "read"))?;
    let end = |bytes: &[u8]| String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(OUTPUT_BYTES)..]).into_owned();
    Ok(end(&finished.stdout) + &end(&log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untracked_files_are_in_the_way_only_where_the_merge_writes() {
        let touched: BTreeSet<RepoPath> = ["a/b", "c"].map(RepoPath::new).into();
        for (path, kind, expected) in [
            ("a", ChangeKind::Untracked, true),
            ("a/b", ChangeKind::Untracked, true),
            ("a/x", ChangeKind::Untracked, false),
            ("a.x", ChangeKind::Untracked, false),
            ("c/d", ChangeKind::Untracked, true),
            ("a/", ChangeKind::NestedRepository, true),
            ("x", ChangeKind::Untracked, false),
            ("x", ChangeKind::Modified, true),
        ] {
            let change = Change { path: RepoPath::new(path), kind, staged: false };
            assert_eq!(in_the_way(&change, &touched), expected, "{path}");
        }
    }
}
