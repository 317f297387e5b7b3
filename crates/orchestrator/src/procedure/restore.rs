//! What a lost or interrupted session had changed: saved, then put back to the step's baseline.

use std::collections::BTreeSet;

use proctor_domain::procedure::{Outcome, Position, RunEvent, Stage};
use proctor_domain::{Oid, RepoPath, RunId};
use proctor_process::killpoint;

use super::driver::Driver;
use super::{Notice, ProcedureError};

impl Driver<'_> {
    /// Puts the tree back for the next attempt. Safe to repeat: what is put back was saved and recorded first.
    pub(super) fn restore(&mut self, index: usize) -> Result<(), ProcedureError> {
        self.resting = None;
        let planned = match &self.run.position {
            Position::InStep(_, Stage::Restoring { planned }) => planned.clone(),
            Position::InStep(..) | Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        };
        let Some(paths) = (match planned {
            Some(paths) => {
                // An earlier driver may have been killed together with the git that put them back.
                self.clear_own_locks()?;
                Some(paths)
            }
            None => self.plan_restore(index)?,
        }) else {
            return Ok(());
        };
        if !paths.is_empty() {
            killpoint::reach("before restore");
            self.put_back(&paths)?;
            killpoint::reach("after restore");
        }
        let salvage = self.run.steps[index].salvaged.last().cloned();
        (self.context.notify)(Notice::Restored { salvage: salvage.as_deref().filter(|_| !paths.is_empty()), paths: &paths });
        self.record(RunEvent::Restored)?;
        self.tell_step_began();
        Ok(())
    }

    /// Saves what is there under a ref and records what will be put back. `None` when the run had to halt.
    fn plan_restore(&mut self, index: usize) -> Result<Option<Vec<RepoPath>>, ProcedureError> {
        let repository = &self.context.site.repository;
        let status = repository.status()?;
        if let Some(reason) = self.moved(&status) {
            self.halt(reason)?;
            return Ok(None);
        }
        let mut changed: BTreeSet<RepoPath> = self.changed_paths(&status).into_iter().collect();
        // What an earlier attempt had left and the lost one put back to HEAD's state is changed as well.
        let taken_in = [&self.run.carried, &self.run.accepted].into_iter().flatten();
        changed.extend(taken_in.flat_map(|leftovers| leftovers.paths.iter().cloned()));
        let changed: Vec<RepoPath> = changed.into_iter().collect();
        let known = self.known(&changed)?;
        let paths: Vec<RepoPath> = changed.into_iter().filter(|path| !known.contains(path)).collect();
        let salvage = if paths.is_empty() { None } else { Some(self.salvage(index, &paths, status.head.as_ref())?) };
        self.record(RunEvent::RestorePlanned { salvage, paths: paths.clone() })?;
        self.save()?;
        Ok(Some(paths))
    }

    fn salvage(&self, index: usize, paths: &[RepoPath], parent: Option<&Oid>) -> Result<String, ProcedureError> {
        let repository = &self.context.site.repository;
        let record = &self.run.steps[index];
        let reference = format!("{}/{}-{}", salvage_prefix(&self.run_id), record.plan.id, record.attempts);
        let tree = repository.snapshot(paths)?;
        killpoint::reach("before salvage");
        let message = format!("Saved from attempt {} of step {} of {}\n", record.attempts, record.plan.id, self.run_id);
        repository.save(&reference, &tree, parent, &message)?;
        killpoint::reach("after salvage");
        Ok(reference)
    }

    /// Paths that a person took into the run or that an earlier, failed attempt left go back to what they were then;
    /// the others to the commit HEAD is at.
    fn put_back(&self, paths: &[RepoPath]) -> Result<(), ProcedureError> {
        let repository = &self.context.site.repository;
        let mut others = paths.to_vec();
        for leftovers in [&self.run.accepted, &self.run.carried].into_iter().flatten() {
            let (own, rest): (Vec<RepoPath>, Vec<RepoPath>) = others.into_iter().partition(|path| leftovers.paths.contains(path));
            others = rest;
            if !own.is_empty() {
                repository.restore(&own, Some(&leftovers.snapshot))?;
            }
        }
        let head = repository.status()?.head;
        repository.restore(&others, head.as_ref())?;
        Ok(())
    }

    /// Records what stays uncommitted when the run stops, so that a resume can tell it from what others do next.
    pub(super) fn note_leftovers(&mut self) -> Result<(), ProcedureError> {
        if self.run.halt.is_none() && self.run.position != Position::Ended(Outcome::Failed) {
            return Ok(());
        }
        let repository = &self.context.site.repository;
        let status = repository.status()?;
        let changed = self.changed_paths(&status);
        let paths = match self.run.position {
            // In place, whatever changed while a step was at work is the step's.
            Position::InStep(..) | Position::Ended(_) => changed,
            Position::Between | Position::Closing { .. } => {
                let known = self.known(&changed)?;
                changed.into_iter().filter(|path| known.contains(path)).collect()
            }
        };
        self.record_left(paths)
    }

    /// Records these paths as left uncommitted, and keeps what they hold under a ref.
    pub(super) fn record_left(&mut self, paths: Vec<RepoPath>) -> Result<(), ProcedureError> {
        if paths.is_empty() && self.run.left.is_none() {
            return Ok(());
        }
        let repository = &self.context.site.repository;
        let snapshot = repository.snapshot(&paths)?;
        let message = format!("Left in the working tree by {}\n", self.run_id);
        let head = repository.head()?.commit;
        repository.save(&format!("{}/left", salvage_prefix(&self.run_id)), &snapshot, head.as_ref(), &message)?;
        self.record(RunEvent::LeftInTree { paths, snapshot })
    }
}

/// The refs under which what a run saved is kept; `gc` removes them with the run.
pub(super) fn salvage_prefix(run: &RunId) -> String {
    format!("refs/proctor/salvage/{run}")
}
