//! Going on with a run: after a failure, a stop, or the death of its driver or host.

use std::collections::BTreeSet;

use proctor_cards::{Source, read_procedure};
use proctor_domain::procedure::{HaltReason, Outcome, Owed, Position, RunEvent, Stage, StepPlan, Task};
use proctor_domain::session::{SessionRecord, Work};
use proctor_domain::{Clock, Oid, RepoPath, RunId};
use proctor_engine::Found;
use proctor_journal::JournalStore;
use proctor_process::lock;
use proctor_workspace::Status;

use super::driver::{Context, Driver, DriverLocks, RunEnd, Standing, Stop, Stored};
use super::isolated::site_of;
use super::lookup::{LoadedRun, definition_of, is_here, load_run};
use super::restore::salvage_prefix;
use super::start::{WhenBusy, check_engine, lock_run, lock_tree};
use super::{GoingOn, Notice, ProcedureError, Refusal, agents, since};
use crate::Site;

/// What the caller of `procedure resume` asks for.
#[derive(Debug, Clone)]
pub struct ResumeRequest {
    /// The run.
    pub run: RunId,
    /// Replaces the directive.
    pub directive: Option<String>,
    /// Which version of the card to follow.
    pub definition: NewDefinition,
    /// What to do about what others did to the tree since.
    pub attitude: Attitude,
}

/// Which version of the card a resumed run follows.
#[derive(Debug, Clone)]
pub enum NewDefinition {
    /// The one it was started with.
    Keep,
    /// This one. Steps that are decided are kept by id.
    Take(Source),
}

/// What to do about what others did to the tree since the run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attitude {
    /// Refuse to go on.
    Strict,
    /// Go on with the tree as it is; changed files count as the next step's.
    AcceptForeign,
}

/// What came of a resume.
#[derive(Debug)]
pub enum Resumption {
    /// The run is over and has nothing to go on with.
    Over {
        /// How it stands.
        standing: Standing,
        /// The run as it is.
        loaded: Box<LoadedRun>,
    },
    /// It was driven on.
    Driven(Box<RunEnd>),
}

/// Goes on with a run and drives it as far as it goes.
///
/// # Errors
/// It is refused, or we failed.
pub fn resume_run(
    site: &Site,
    journal: &mut dyn JournalStore,
    clock: &dyn Clock,
    notify: &mut dyn FnMut(Notice<'_>),
    request: ResumeRequest,
) -> Result<Resumption, ProcedureError> {
    let loaded = load_run(journal, &request.run)?;
    if let Position::Ended(Outcome::Completed | Outcome::Skipped | Outcome::Inconclusive) = loaded.run.position
        && matches!(request.definition, NewDefinition::Keep)
    {
        return Ok(Resumption::Over { standing: Standing::at_rest(&loaded.run), loaded: Box::new(loaded) });
    }
    let own = site_of(site, &loaded.run)?;
    let mut driver = take_over(Context { site: own.as_ref().unwrap_or(site), journal, clock, notify }, loaded)?;
    driver.prepare_resume(&request).map_err(|error| driver.stopped(error))?;
    driver.drive().map(|end| Resumption::Driven(Box::new(end)))
}

/// Becomes the driver of a run whose driver is gone.
pub(super) fn take_over(context: Context<'_>, loaded: LoadedRun) -> Result<Driver<'_>, ProcedureError> {
    let site = context.site;
    let run_id = loaded.run_id.clone();
    if !is_here(site, &loaded.run.started.worktree) {
        return Err(Refusal::OtherWorktree { run: run_id, worktree: loaded.run.started.worktree }.into());
    }
    let run_lock = lock_run(site, &run_id)?.ok_or_else(|| Refusal::Live { run: run_id.clone() })?;
    let tree = lock_tree(site, context.journal, context.notify, &run_id, WhenBusy::Refuse)?;
    if let Some(session) = loaded.run.open_session()
        && lock::holder_if_held(&site.state.session_lock(session))?.is_none()
    {
        // Its driver may have died before it looked at what an agent had planted.
        agents::mend_programs(site, session)?;
    }
    site.repository.guard_config(Some(&site.state.git_settings(&run_id)))?;
    // Read again under the lock: its driver may have written its last events in between.
    let loaded = load_run(context.journal, &run_id)?;
    let definition = definition_of(site, context.journal, &loaded)?;
    let last_activity = since::last_activity(site, &loaded);
    let last_sign = since::last_sign(site, &loaded);
    let last_decision = loaded.newest_event;
    let stored = Stored { run_id, run: loaded.run, definition, version: loaded.version };
    let mut driver = Driver::new(context, DriverLocks { _run: run_lock, _tree: tree }, stored)?;
    driver.last_activity = Some(last_activity);
    driver.last_sign = Some(last_sign);
    driver.last_decision = Some(last_decision);
    Ok(driver)
}

impl Driver<'_> {
    /// Makes sure that the tree is as the run left it, then records that it goes on.
    fn prepare_resume(&mut self, request: &ResumeRequest) -> Result<(), ProcedureError> {
        let alive = self.look_for_session()?;
        if alive && matches!(request.definition, NewDefinition::Take(_)) {
            return Err(self.mid_step());
        }
        if alive {
            // Nothing stood still: there is no change of hands to check or to record.
            self.tell_resumed();
            return Ok(());
        }
        self.clear_own_locks()?;
        self.adopt_own_commit()?;
        let (head, foreign) = self.check_foreign(request.attitude)?;
        let (accepted, snapshot) = self.accept(foreign)?;
        self.tell_resumed();
        let (halt, over) = (self.run.halt.clone(), matches!(self.run.position, Position::Ended(_)));
        // One that stopped in good order has recorded when.
        let last_sign = self.last_sign.filter(|_| halt.is_none() && !over);
        self.record(RunEvent::Resumed { head, accepted, snapshot, directive: request.directive.clone(), last_sign })?;
        self.tell_how(halt.as_ref(), over);
        if let NewDefinition::Take(source) = &request.definition {
            self.redefine(source)?;
        }
        self.save()
    }

    /// Tells with what the step goes on that the run stopped in. What became of an open session is told when it is looked at,
    /// and what is put back when that is done.
    fn tell_how(&mut self, halt: Option<&HaltReason>, was_over: bool) {
        let Position::InStep(index, stage) = &self.run.position else { return };
        if matches!(stage, Stage::InSession(..) | Stage::Restoring { .. } | Stage::Pausing(_)) {
            return;
        }
        let next = if let Stage::Opening(task) = stage { Some(task.work) } else { None };
        let how = match (halt, next) {
            (Some(HaltReason::Interrupted), Some(work)) if self.run.steps[*index].was_interrupted(work) => {
                GoingOn::Interrupted { conversation: self.next_conversation(*index, work) }
            }
            (Some(HaltReason::HostsLost(_)), Some(work)) => GoingOn::HostDied { conversation: self.next_conversation(*index, work) },
            (Some(HaltReason::Limited { .. }), _) => GoingOn::AfterLimit,
            (Some(HaltReason::Approval { .. } | HaltReason::Question { .. }), _) => GoingOn::Answered,
            (_, _) if was_over => GoingOn::JudgesAgain,
            (_, _) => GoingOn::Continues,
        };
        self.tell_goes_on(how);
    }

    fn tell_resumed(&mut self) {
        (self.context.notify)(Notice::Resumed { run: &self.run_id, procedure: &self.run.started.procedure });
    }

    /// Whether the session that the run is in is alive; what is found is kept for the loop.
    fn look_for_session(&mut self) -> Result<bool, ProcedureError> {
        let Some(session) = self.run.open_session().cloned() else { return Ok(false) };
        let state = &self.context.site.state;
        let found = proctor_engine::find(&state.session(&session), &state.session_lock(&session))?;
        let alive = matches!(found, Found::Live(_));
        self.found = Some(found);
        Ok(alive)
    }

    fn mid_step(&self) -> ProcedureError {
        match self.run.current_step() {
            Some(step) => Refusal::MidStep { run: self.run_id.clone(), step: step.plan.id.clone() }.into(),
            None => Refusal::Live { run: self.run_id.clone() }.into(),
        }
    }

    /// HEAD as the run may take it to be, and the foreign paths that were accepted.
    fn check_foreign(&mut self, attitude: Attitude) -> Result<(Option<Oid>, Vec<RepoPath>), ProcedureError> {
        if self.run.merged.is_some() {
            // Nothing is left to do in its worktree, which may be gone; what the user's own looks like is not its business.
            return Ok((self.run.head.clone(), Vec::new()));
        }
        let status = self.context.site.repository.status()?;
        if let Some(reason) = self.moved(&status) {
            return Err(self.cannot_go_on(reason));
        }
        let mut head = self.run.head.clone();
        if status.head != self.run.head {
            match self.commits_after(self.run.head.as_ref(), &status)? {
                Ok(_) if self.all_made_by_step()? => {}
                Ok(_) | Err(HaltReason::HistoryRewritten { .. }) if attitude == Attitude::AcceptForeign => head = status.head.clone(),
                Ok(commits) => {
                    let foreign = self.foreign_since_stop(&status)?;
                    return Err(Refusal::Halted { run: self.run_id.clone(), reason: HaltReason::ForeignCommits(commits), foreign }.into());
                }
                Err(reason) => return Err(self.cannot_go_on(reason)),
            }
        }
        let foreign = self.foreign_since_stop(&status)?;
        if !foreign.is_empty() && attitude == Attitude::Strict {
            return Err(self.cannot_go_on(HaltReason::ForeignChanges(foreign)));
        }
        Ok((head, foreign))
    }

    /// The foreign paths that are part of the run from now on, and a tree that holds them: those that were accepted
    /// before and that no step has taken in yet, and these.
    fn accept(&self, foreign: Vec<RepoPath>) -> Result<(Vec<RepoPath>, Option<Oid>), ProcedureError> {
        // A failed step has left what it made of them, and that counts.
        let earlier = self.run.accepted.iter().filter(|_| !matches!(self.run.position, Position::Ended(_)));
        if foreign.is_empty() {
            let kept = earlier.map(|leftovers| (leftovers.paths.clone(), Some(leftovers.snapshot.clone()))).next();
            return Ok(kept.unwrap_or_default());
        }
        let accepted: BTreeSet<RepoPath> = earlier.flat_map(|leftovers| leftovers.paths.iter().cloned()).chain(foreign).collect();
        let accepted: Vec<RepoPath> = accepted.into_iter().collect();
        let repository = &self.context.site.repository;
        let snapshot = repository.snapshot(&accepted)?;
        let message = format!("Taken into {} from the working tree\n", self.run_id);
        let head = repository.head()?.commit;
        repository.save(&format!("{}/accepted", salvage_prefix(&self.run_id)), &snapshot, head.as_ref(), &message)?;
        Ok((accepted, Some(snapshot)))
    }

    fn cannot_go_on(&self, reason: HaltReason) -> ProcedureError {
        Refusal::Halted { run: self.run_id.clone(), reason, foreign: Vec::new() }.into()
    }

    /// Whether the run is inside a step whose own shells can have made every commit since its baseline.
    fn all_made_by_step(&self) -> Result<bool, ProcedureError> {
        if self.run.current_step().is_none() {
            return Ok(false);
        }
        let until = self.last_activity.map_or(i64::MAX, |moment| moment.0);
        let commits = self.context.site.repository.commits_since(self.run.head.as_ref())?;
        Ok(commits.iter().all(|commit| commit.committed_at.saturating_mul(1_000) <= until))
    }

    /// The changed paths that the run did not leave like this.
    ///
    /// A run that stopped in good order recorded what it left, and that is compared by content. One whose
    /// driver died did not; what was changed after its last sign of life is not its doing.
    fn foreign_since_stop(&self, status: &Status) -> Result<Vec<RepoPath>, ProcedureError> {
        let changed = self.changed_paths(status);
        let stopped_in_order = self.run.halt.is_some() || matches!(self.run.position, Position::Ended(_));
        if stopped_in_order {
            let own = self.unchanged_since(self.run.left.as_ref(), &changed)?;
            return Ok(changed.into_iter().filter(|path| !own.contains(path)).collect());
        }
        if self.run.current_step().is_none() {
            return self.foreign_changes(status);
        }
        let work_tree = &self.context.site.repository.work_tree;
        Ok(self.last_activity.map_or_else(Vec::new, |moment| since::changed_after(work_tree, &changed, moment)))
    }

    /// From here on the run follows another version of its card.
    fn redefine(&mut self, source: &Source) -> Result<(), ProcedureError> {
        let site = self.context.site;
        let definition = read_procedure(source, site.layout, &site.box_defaults).map_err(ProcedureError::Card)?.definition;
        check_engine(site, &definition)?;
        while let Owed::Drive(_) | Owed::Restore(_) = self.run.owes() {
            self.step_once()?;
        }
        if self.run.current_step().is_some_and(|step| step.attempts > 0) && !self.may_redefine() {
            return Err(self.mid_step());
        }
        let snapshot = self.context.journal.put_snapshot(&source.text)?;
        self.record(RunEvent::Redefined { snapshot, steps: StepPlan::of(&definition) })?;
        self.definition = definition;
        Ok(())
    }

    /// Between steps, or before the first phase of an attempt whose traces were put back.
    ///
    /// Once a phase has ended, or a failed attempt is repeated on the tree as it is, the tree holds work of a step
    /// that would begin anew, and that would stop it.
    fn may_redefine(&self) -> bool {
        let Owed::OpenSession(index, task) = self.run.owes() else { return false };
        let step = &self.run.steps[index];
        // An agent keeps what it did, so its step can't begin anew.
        let begins_with_shells = task.work == Work::Shells && step.plan.tasks().first() == Some(&task);
        // After a failure nothing was done again yet; what there is to do is to be asked of the judge.
        let only_lacks_its_verdict =
            task == Task::judge(1) && step.present_sessions().last().is_some_and(SessionRecord::is_of_a_mute_judge);
        (begins_with_shells || only_lacks_its_verdict) && step.earlier_failures.is_empty() && self.stop == Stop::No
    }
}
