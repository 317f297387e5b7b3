//! What the working tree must look like while none of the run's steps is at work.

use std::collections::BTreeSet;

use proctor_domain::procedure::{HaltReason, Leftovers};
use proctor_domain::{Oid, RepoPath};
use proctor_workspace::Status;

use super::ProcedureError;
use super::driver::Driver;

impl Driver<'_> {
    /// The tree's status, or what others did to it since the run's last write.
    pub(super) fn tree_at_rest(&mut self) -> Result<Result<Status, HaltReason>, ProcedureError> {
        let status = match self.resting.take() {
            Some(status) if self.is_still_at(&status)? => status,
            Some(_) | None => self.context.site.repository.status()?,
        };
        if let Some(reason) = self.moved(&status).or(self.history_changed(&status)?) {
            return Ok(Err(reason));
        }
        let foreign = self.foreign_changes(&status)?;
        if foreign.is_empty() { Ok(Ok(status)) } else { Ok(Err(HaltReason::ForeignChanges(foreign))) }
    }

    /// Whether HEAD is where this status says and nothing is in progress. Costs no process.
    fn is_still_at(&self, status: &Status) -> Result<bool, ProcedureError> {
        let repository = &self.context.site.repository;
        let head = repository.head()?;
        Ok(head.commit == status.head && head.branch == status.branch && repository.operation_in_progress().is_none())
    }

    /// An operation in progress, or another branch.
    pub(super) fn moved(&self, status: &Status) -> Option<HaltReason> {
        if let Some(operation) = &status.operation {
            return Some(HaltReason::Operation(operation.clone()));
        }
        let expected = &self.run.started.branch;
        (status.branch != *expected).then(|| HaltReason::BranchMoved { expected: expected.clone(), found: status.branch.clone() })
    }

    fn history_changed(&self, status: &Status) -> Result<Option<HaltReason>, ProcedureError> {
        if status.head == self.run.head {
            return Ok(None);
        }
        Ok(match self.commits_after(self.run.head.as_ref(), status)? {
            Ok(commits) if commits.is_empty() => None,
            Ok(commits) => Some(HaltReason::ForeignCommits(commits)),
            Err(reason) => Some(reason),
        })
    }

    /// The commits from `base` to HEAD, oldest first, or that `base` is no longer behind HEAD.
    pub(super) fn commits_after(&self, base: Option<&Oid>, status: &Status) -> Result<Result<Vec<Oid>, HaltReason>, ProcedureError> {
        let repository = &self.context.site.repository;
        if let Some(base) = base {
            let behind = match &status.head {
                Some(head) => repository.is_ancestor(base, head)?,
                None => false,
            };
            if !behind {
                return Ok(Err(HaltReason::HistoryRewritten { expected: base.clone() }));
            }
        }
        Ok(Ok(repository.commits_since(base)?.into_iter().map(|commit| commit.oid).collect()))
    }

    /// Changed paths that are not the run's business: neither carried from a failed attempt nor accepted.
    pub(super) fn foreign_changes(&self, status: &Status) -> Result<Vec<RepoPath>, ProcedureError> {
        let changed = self.changed_paths(status);
        let known = self.known(&changed)?;
        Ok(changed.into_iter().filter(|path| !known.contains(path)).collect())
    }

    /// Those of `changed` that the run knows and that nobody has touched since: what a failed attempt left, and what
    /// a person took into the run.
    pub(super) fn known(&self, changed: &[RepoPath]) -> Result<BTreeSet<RepoPath>, ProcedureError> {
        let mut known = self.unchanged_since(self.run.carried.as_ref(), changed)?;
        known.extend(self.unchanged_since(self.run.accepted.as_ref(), changed)?);
        Ok(known)
    }

    /// Those of `changed` that are among `leftovers` and still hold what they held then.
    pub(super) fn unchanged_since(
        &self,
        leftovers: Option<&Leftovers>,
        changed: &[RepoPath],
    ) -> Result<BTreeSet<RepoPath>, ProcedureError> {
        let Some(leftovers) = leftovers else { return Ok(BTreeSet::new()) };
        let repository = &self.context.site.repository;
        let now = repository.snapshot(changed)?;
        let differing: BTreeSet<RepoPath> = repository.differing(&leftovers.snapshot, &now)?.into_iter().collect();
        Ok(changed.iter().filter(|path| leftovers.paths.contains(path) && !differing.contains(path)).cloned().collect())
    }

    /// Everything that differs from HEAD, without the paths that `--allow-dirty` set aside and the run's own folder.
    pub(super) fn changed_paths(&self, status: &Status) -> Vec<RepoPath> {
        let foreign: BTreeSet<&RepoPath> = self.run.started.foreign.iter().collect();
        status
            .changes
            .iter()
            .map(|change| &change.path)
            .filter(|path| !foreign.contains(path) && !self.is_own_record(path))
            .cloned()
            .collect()
    }

    pub(super) fn is_own_record(&self, path: &RepoPath) -> bool {
        self.run
            .started
            .folder
            .as_ref()
            .is_some_and(|folder| path.as_bytes().strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/')))
    }
}
