//! The beginning and the settling of a step.

use std::collections::BTreeSet;

use proctor_cards::template;
use proctor_domain::procedure::{Failure, RunEvent, SkipReason, StepId, StepSpec, StepState, Task};
use proctor_domain::{RepoPath, SessionId};
use proctor_engine::SessionSpec;
use proctor_recall::advice::Brief;
use proctor_workspace::{Change, Status, too_much};

use super::driver::Driver;
use super::{Notice, ProcedureError};
use crate::session::{SessionOwner, shell_session, step_variables, template_values};

impl Driver<'_> {
    /// Decides whether the step with this index runs, and begins it.
    pub(super) fn begin(&mut self, index: usize) -> Result<(), ProcedureError> {
        let step = self.step_id(index);
        if self.run.started.only.as_ref().is_some_and(|only| *only != step) {
            return self.skip(step, SkipReason::NotSelected);
        }
        match self.decide(&step) {
            Ok(true) => {}
            Ok(false) => return self.skip(step, SkipReason::Condition),
            Err(failure) => return self.record(RunEvent::StepRejected { step, failure }),
        }
        let status = match self.tree_at_rest()? {
            Ok(status) => status,
            Err(reason) => return self.halt(reason),
        };
        if !self.run.started.foreign.is_empty() {
            self.foreign_snapshot = Some(self.context.site.repository.snapshot(&self.run.started.foreign)?);
        }
        self.record(RunEvent::StepBegan { step, baseline: status.head })?;
        self.tell_step_began();
        Ok(())
    }

    fn skip(&mut self, step: StepId, reason: SkipReason) -> Result<(), ProcedureError> {
        (self.context.notify)(Notice::StepSkipped { step: &step, reason });
        self.record(RunEvent::StepSkipped { step, reason })
    }

    /// Whether the step's condition holds. Its variables are evaluated too, so that a bad one fails before anything ran.
    fn decide(&self, step: &StepId) -> Result<bool, Failure> {
        let spec = self.spec(step)?;
        let values = template_values(&self.run, &self.definition);
        if let Some(condition) = &spec.when {
            let holds =
                template::evaluate_when(condition, &values).map_err(|reason| Failure::Template { key: "when".to_owned(), reason })?;
            if !holds {
                return Ok(false);
            }
        }
        step_variables(&values, spec).map(|_| true)
    }

    fn spec(&self, step: &StepId) -> Result<&StepSpec, Failure> {
        self.definition
            .step(step)
            .ok_or_else(|| Failure::Template { key: "steps".to_owned(), reason: format!("`{step}` is not in the card") })
    }

    pub(super) fn session_spec(
        &mut self,
        index: usize,
        session: SessionId,
        task: Task,
        known: Option<&Brief>,
    ) -> Result<SessionSpec, ProcedureError> {
        if let Some(errand) = self.errand(index, task)? {
            return self.agent_session_spec(index, session, (task, errand), known);
        }
        let lost = || ProcedureError::LostDefinition { run: self.run_id.clone(), source: None };
        let step = self.definition.step(&self.run.steps[index].plan.id).ok_or_else(lost)?;
        let record = &self.run.steps[index];
        let owner = SessionOwner { run_id: &self.run_id, run: &self.run, definition: &self.definition, step, record, known: None };
        // The templates were evaluated when the step began, with the same values.
        shell_session(self.context.site, &owner, session, task.phase).map_err(|_| lost())
    }

    /// Looks at what the step left in the tree, once its phases are over.
    pub(super) fn survey(&mut self, index: usize) -> Result<(), ProcedureError> {
        let status = self.context.site.repository.status()?;
        if let Some(reason) = self.moved(&status) {
            return self.halt(reason);
        }
        // What the step's agents committed, and what was committed for them, was collected before.
        let known = self.run.head.clone();
        let commits = if status.head == known {
            Vec::new()
        } else {
            match self.commits_after(known.as_ref(), &status)? {
                Ok(commits) => commits,
                Err(reason) => return self.halt(reason),
            }
        };
        if !commits.is_empty() {
            self.keep_detached(status.head.as_ref())?;
        }
        let changed = self.changed_paths(&status);
        self.note_untracked(&changed, &status);
        let failure = self.survey_failure(index, &status, &changed)?;
        self.record(RunEvent::Surveyed { changed, commits, failure })?;
        if self.run.steps[index].is_decided() {
            // Nothing is written any more: the next step need not look again.
            self.resting = Some(status);
        } else {
            self.surveyed = Some(status);
        }
        self.tell_if_decided(index);
        Ok(())
    }

    /// Tells the watcher when the step with this index is decided.
    pub(super) fn tell_if_decided(&mut self, index: usize) {
        let record = &self.run.steps[index];
        if record.is_decided() {
            (self.context.notify)(Notice::StepDecided(record));
        }
    }

    fn survey_failure(&self, index: usize, status: &Status, changed: &[RepoPath]) -> Result<Option<Failure>, ProcedureError> {
        let touched = self.touched_foreign()?;
        if !touched.is_empty() {
            return Ok(Some(Failure::TouchedForeign { paths: touched }));
        }
        let record = &self.run.steps[index];
        match &record.state {
            StepState::Skipping => {
                let known = self.known(changed)?;
                let paths: Vec<RepoPath> = changed.iter().filter(|path| !known.contains(path)).cloned().collect();
                Ok((!paths.is_empty()).then_some(Failure::PrecheckChanged { paths }))
            }
            StepState::Running => {
                if let Some(failure) = self.outputs_failure(index) {
                    return Ok(Some(failure));
                }
                Ok(self.too_much_to_commit(status, changed))
            }
            StepState::Pending | StepState::Failing(_) | StepState::Completed | StepState::Skipped(_) | StepState::Failed(_) => Ok(None),
        }
    }

    /// Whether these changes are more than a step can have meant to leave.
    pub(super) fn too_much_to_commit(&self, status: &Status, changed: &[RepoPath]) -> Option<Failure> {
        let wanted: BTreeSet<&RepoPath> = changed.iter().collect();
        let changes: Vec<Change> = status.changes.iter().filter(|change| wanted.contains(&change.path)).cloned().collect();
        let too_much = too_much(&self.context.site.repository, &changes).err();
        too_much.map(|reason| Failure::Uncommittable { reason: reason.to_string() })
    }

    pub(super) fn touched_foreign(&self) -> Result<Vec<RepoPath>, ProcedureError> {
        let Some(before) = &self.foreign_snapshot else { return Ok(Vec::new()) };
        let repository = &self.context.site.repository;
        let now = repository.snapshot(&self.run.started.foreign)?;
        let differing = repository.differing(before, &now)?;
        Ok(differing.into_iter().filter(|path| self.run.started.foreign.contains(path)).collect())
    }

    /// A card that declares outputs gets exactly these.
    fn outputs_failure(&self, index: usize) -> Option<Failure> {
        let record = &self.run.steps[index];
        let declared = self.definition.step(&record.plan.id)?.outputs.as_ref()?;
        let undeclared = record.outputs.keys().find(|name| !declared.contains(name));
        let missing = declared.iter().find(|name| !record.outputs.contains_key(*name));
        let reason = match (undeclared, missing) {
            (Some(name), _) => format!("`{name}` was written but is not declared under `outputs`"),
            (None, Some(name)) => format!("`{name}` is declared but was not written to $PROCTOR_OUTPUT"),
            (None, None) => return None,
        };
        Some(Failure::Outputs { reason })
    }
}
