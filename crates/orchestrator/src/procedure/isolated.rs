//! Runs in a worktree and branch of their own: made at the start, merged when completed, removed at the end.

use proctor_domain::path::listed;
use proctor_domain::procedure::{Definition, HaltReason, Isolated, Isolation, Outcome, Position, Run, RunEvent};
use proctor_domain::{Branch, Clock, Oid, RunId};
use proctor_journal::JournalStore;
use proctor_process::killpoint;
use proctor_process::lock::{self, Attempt, HeldLock};
use proctor_workspace::{MergeEnd, MergeRequest, Repository, Status, worktree_key};

use super::driver::{Context, Driver, RunEnd, Standing};
use super::lookup::load_run;
use super::restore::salvage_prefix;
use super::resume::take_over;
use super::start::{holder_text, run_in_holder};
use super::{Notice, ProcedureError, Refusal, paths};
use crate::Site;

/// Paths that a sentence about a merge names.
const LISTED: usize = 5;

/// The branch of an isolated run.
pub(super) fn branch_of(run: &RunId, procedure: &str) -> String {
    let name: String = procedure.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '-' }).collect();
    let id = run.as_str().rsplit('_').next().unwrap_or_default();
    format!("proctor/{}-{id}", name.trim_matches('-'))
}

/// Where an isolated run comes from, if the card wants one.
///
/// # Errors
/// A worktree can't be made here.
pub(super) fn isolation(site: &Site, definition: &Definition, status: &Status) -> Result<Option<Isolated>, ProcedureError> {
    if definition.isolation != Some(Isolation::Worktree) {
        return Ok(None);
    }
    if status.branch == Branch::Detached {
        return Err(Refusal::NoBranchToMerge.into());
    }
    site.repository.can_isolate()?;
    Ok(Some(Isolated { origin: paths::stored(&site.repository.work_tree), into: status.branch.clone() }))
}

/// The site of an isolated run: the same, but in the run's worktree, which is made if it is not there. `None` for a run
/// that works in place, or whose worktree is gone because it was merged.
///
/// # Errors
/// The worktree can't be made.
pub(super) fn site_of(site: &Site, run: &Run) -> Result<Option<Site>, ProcedureError> {
    if run.started.isolated.is_none() || run.merged.is_some() {
        return Ok(None);
    }
    let path = paths::absolute(&run.started.worktree);
    let Branch::Named(branch) = &run.started.branch else { return Ok(None) };
    let start = run.head.as_ref().or(run.started.head.as_ref()).ok_or(Refusal::NoBranchToMerge)?;
    killpoint::reach("before worktree");
    site.repository.add_worktree(&path, branch, start, &site.state.worktrees_lock())?;
    killpoint::reach("after worktree");
    let repository = site.repository.elsewhere(&path)?;
    let card_root = paths::on_disk(&repository.work_tree, &run.started.card_root);
    Ok(Some(site.moved_to(repository, card_root)))
}

impl Driver<'_> {
    /// The worktree was made before the driver; that it is there is recorded now.
    pub(super) fn make_worktree(&mut self) -> Result<(), ProcedureError> {
        self.record(RunEvent::WorktreeMade)?;
        self.save()
    }

    /// Brings the run's branch to where it came from, or parks.
    pub(super) fn merge(&mut self) -> Result<(), ProcedureError> {
        match self.try_merge()? {
            Ok(commit) => self.merged(commit),
            Err(reason) => {
                let branch = self.run.started.branch.clone();
                self.halt(HaltReason::NotMerged { branch, reason })
            }
        }
    }

    fn merged(&mut self, commit: Oid) -> Result<(), ProcedureError> {
        (self.context.notify)(Notice::Merged { commit: &commit });
        self.record(RunEvent::Merged { commit })
    }

    /// HEAD of the branch that it was merged into, or one sentence about why it was not.
    fn try_merge(&mut self) -> Result<Result<Oid, String>, ProcedureError> {
        let (Some(isolated), Branch::Named(branch)) = (self.run.started.isolated.clone(), self.run.started.branch.clone()) else {
            return Ok(Err("it works in place".to_owned()));
        };
        self.save()?;
        let origin = paths::absolute(&isolated.origin);
        let repository = self.context.site.repository.elsewhere(&origin)?;
        let _held = match self.hold(&repository)? {
            Ok(locks) => locks,
            Err(reason) => return Ok(Err(reason)),
        };
        let marker = format!("{}/end/1/merge", self.run_id);
        repository.wait_for_or_end_effects(&marker, super::commit::EFFECT_PATIENCE)?;
        let request = MergeRequest {
            message: format!(
                "Merge procedure: {}\n\nProcedure: {0}\nRun: {}\n",
                super::commit::single_line(&self.run.started.procedure),
                self.run_id
            ),
            branch,
            into: isolated.into.clone(),
            marker,
            log: self.context.site.state.git_log(&self.run_id),
        };
        killpoint::reach("before merge");
        let end = repository.merge_branch(&request)?;
        killpoint::reach("after merge");
        Ok(match end {
            MergeEnd::Merged(commit) => Ok(commit),
            MergeEnd::Conflict { paths } => Err(format!("it conflicts with `{}` in {}", isolated.into, listed(&paths, LISTED))),
            MergeEnd::Dirty { paths } => Err(format!("{} has uncommitted changes: {}", origin.display(), listed(&paths, LISTED))),
            MergeEnd::OtherBranch { found } => Err(format!("{} is on `{found}`, not on `{}`", origin.display(), isolated.into)),
            MergeEnd::InProgress { operation } => Err(format!("a {operation} is in progress in {}", origin.display())),
            MergeEnd::Refused { output } => Err(format!("git refused: {}", output.trim())),
        })
    }

    /// The locks for a merge into this tree: one among merges, which are short and waited for, and that of the tree, which a
    /// run that works there holds for as long as it takes; then one sentence about that. That of the tree is let go first: the
    /// next merge finds it free.
    fn hold(&self, origin: &Repository) -> Result<Result<[HeldLock; 2], String>, ProcedureError> {
        let state = &self.context.site.state;
        let holder = holder_text(&self.run_id)?;
        let merge = lock::acquire(&state.merge_lock(), &holder)?;
        Ok(match lock::try_acquire(&state.worktree_lock(&worktree_key(&origin.work_tree)), &holder)? {
            Attempt::Acquired(tree) => Ok([tree, merge]),
            Attempt::Held { holder } => Err(format!("{} works in {}", run_in_holder(&holder), origin.work_tree.display())),
        })
    }

    /// Removes the worktree and branch of an isolated run that ends like this, if nothing is in them any more. Done before
    /// the end is recorded: nobody resumes a run that is over.
    pub(super) fn clear_worktree(&mut self, outcome: Outcome) -> Result<(), ProcedureError> {
        if self.run.started.isolated.is_none() || (self.run.merged.is_none() && outcome != Outcome::Skipped) {
            return Ok(());
        }
        self.save()?;
        let started = &self.run.started;
        let (Some(isolated), Branch::Named(branch)) = (&started.isolated, &started.branch) else { return Ok(()) };
        // Not the place of this driver, which is the user's own where a resume found the run merged.
        let path = paths::absolute(&started.worktree);
        let salvage = format!("{}/worktree", salvage_prefix(&self.run_id));
        let origin = paths::absolute(&isolated.origin);
        // What can't be removed now, `gc` removes with the run.
        if let Ok(repository) = self.context.site.repository.elsewhere(&origin) {
            let _ = repository.remove_worktree(&path, branch, &salvage);
        }
        Ok(())
    }
}

/// Removes what is left of the worktree and branch of a run that is to be removed itself, whatever is in them.
///
/// # Errors
/// The worktree is locked or holds a repository of its own.
pub(super) fn remove_for_good(site: &Site, run_id: &RunId, run: &Run) -> Result<(), ProcedureError> {
    let (Some(_), Branch::Named(branch)) = (&run.started.isolated, &run.started.branch) else { return Ok(()) };
    let path = paths::absolute(&run.started.worktree);
    site.repository.remove_worktree(&path, branch, &format!("{}/worktree", salvage_prefix(run_id)))?;
    super::gc::remove(&site.state.worktree_lock(&worktree_key(&path)))
}

/// Merges the branch of an isolated run that was parked or is inconclusive.
///
/// # Errors
/// There is nothing to merge, or we failed.
pub fn merge_run(
    site: &Site,
    journal: &mut dyn JournalStore,
    clock: &dyn Clock,
    notify: &mut dyn FnMut(Notice<'_>),
    run_id: &RunId,
) -> Result<RunEnd, ProcedureError> {
    let loaded = load_run(journal, run_id)?;
    let parked = matches!(loaded.run.halt, Some(HaltReason::NotMerged { .. }));
    let inconclusive = loaded.run.position == Position::Ended(Outcome::Inconclusive);
    if !loaded.run.awaits_merge() || !(parked || inconclusive) {
        return Err(Refusal::NothingToMerge { run: run_id.clone() }.into());
    }
    let own = site_of(site, &loaded.run)?;
    let mut driver = take_over(Context { site: own.as_ref().unwrap_or(site), journal, clock, notify }, loaded)?;
    if parked {
        let head = driver.run.head.clone();
        driver.record(RunEvent::Resumed { head, accepted: Vec::new(), snapshot: None, directive: None, last_sign: None })?;
        return driver.drive();
    }
    match driver.try_merge()? {
        Ok(commit) => {
            driver.merged(commit)?;
            driver.clear_worktree(Outcome::Inconclusive)?;
            Ok(RunEnd { run_id: driver.run_id.clone(), standing: Standing::at_rest(&driver.run), run: driver.run })
        }
        Err(reason) => Err(Refusal::NotMerged { run: run_id.clone(), branch: driver.run.started.branch.clone(), reason }.into()),
    }
}
