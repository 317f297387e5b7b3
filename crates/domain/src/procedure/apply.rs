//! How events change a run.

use std::collections::BTreeMap;

use super::run::{Confinement, LastCommit, Leftovers, Position, Run, Stage, StepRecord, StepState};
use super::{
    Answer, Approval, CommitPurpose, Failure, Outcome, Owed, PrecheckResult, Records, RunEvent, SkipReason, StepId, StepPlan, Task,
    Verdict, judge_precheck, judge_run, judge_validate,
};
use crate::session::{Phase, SessionEnd, SessionReport, Work};
use crate::{Oid, RepoPath, Timestamp};

/// An event that can't follow the state it met. Only a damaged journal or a bug leads to one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event `{event}` can't follow here: {position}")]
pub struct UnexpectedEvent {
    /// The event's kind.
    pub event: String,
    /// Where the run was.
    pub position: String,
}

impl Run {
    /// Applies one event that the caller has journaled, or is about to.
    ///
    /// # Errors
    /// The event can't follow the present state; the run is left as it was.
    pub fn apply(&mut self, at: Timestamp, event: RunEvent) -> Result<(), UnexpectedEvent> {
        self.follow(at, event)?;
        self.newest_at = at;
        Ok(())
    }

    fn follow(&mut self, at: Timestamp, event: RunEvent) -> Result<(), UnexpectedEvent> {
        match event {
            RunEvent::Halted { reason } if self.halt.is_none() && !matches!(self.position, Position::Ended(_)) => {
                self.halt = Some(reason);
                self.halted_at = Some(at);
                Ok(())
            }
            RunEvent::LeftInTree { paths, snapshot } => {
                self.left = (!paths.is_empty()).then_some(Leftovers { paths, snapshot });
                Ok(())
            }
            RunEvent::Resumed { head, directive, accepted, snapshot, last_sign } => {
                self.count_rest(at, last_sign);
                self.resume(head, accepted.is_empty());
                self.accepted = snapshot.map(|snapshot| Leftovers { paths: accepted, snapshot });
                self.started.directive = directive.or_else(|| self.started.directive.take());
                Ok(())
            }
            RunEvent::Redefined { snapshot, steps } => {
                self.redefine(snapshot, steps);
                Ok(())
            }
            RunEvent::Retained { expires } => {
                self.expires = expires;
                Ok(())
            }
            RunEvent::Confined { kind, net, open } => {
                self.confined = Some(Confinement { kind, net, open });
                Ok(())
            }
            // A person answers while the run stands still, or finds it going on already.
            RunEvent::Answered { step, answer, message } => self.answered(at, step, answer, message),
            RunEvent::RejudgeAsked if self.position == Position::Ended(Outcome::Inconclusive) => {
                self.rejudge(at);
                Ok(())
            }
            RunEvent::Proposed { records, obstacle } if self.owes() == Owed::Propose => {
                self.note_proposals(records, obstacle);
                Ok(())
            }
            RunEvent::Merged { commit } if self.may_be_merged() => {
                self.merged = Some(commit);
                Ok(())
            }
            event @ (RunEvent::Started(_)
            | RunEvent::StepSkipped { .. }
            | RunEvent::StepBegan { .. }
            | RunEvent::StepRejected { .. }
            | RunEvent::SessionOpened { .. }
            | RunEvent::SessionEnded { .. }
            | RunEvent::SessionLost { .. }
            | RunEvent::RestorePlanned { .. }
            | RunEvent::Restored
            | RunEvent::RetryPlanned { .. }
            | RunEvent::RetryBegan
            | RunEvent::Collected { .. }
            | RunEvent::RejudgeAsked
            | RunEvent::WorktreeMade
            | RunEvent::Merged { .. }
            | RunEvent::Proposed { .. }
            | RunEvent::Surveyed { .. }
            | RunEvent::CommitPlanned { .. }
            | RunEvent::Committed { .. }
            | RunEvent::CommitRefused { .. }
            | RunEvent::Halted { .. }
            | RunEvent::Ended { .. }) => self.apply_in_order(at, event),
        }
    }

    fn apply_in_order(&mut self, at: Timestamp, event: RunEvent) -> Result<(), UnexpectedEvent> {
        if self.halt.is_some() {
            return Err(self.unexpected(&event));
        }
        match (self.position.clone(), event) {
            (Position::Between, RunEvent::WorktreeMade) if self.owes() == Owed::MakeWorktree => {
                self.worktree_made = true;
                Ok(())
            }
            (Position::Between, event) if self.owes() == Owed::MakeWorktree => Err(self.unexpected(&event)),
            (Position::Between, RunEvent::StepSkipped { step, reason }) => self.decide(&step, at, StepState::Skipped(reason)),
            (Position::Between, RunEvent::StepRejected { step, failure }) => {
                let index = self.pending_index(&step)?;
                self.steps[index].state = StepState::Failing(failure);
                self.steps[index].baseline = self.head.clone();
                self.steps[index].started_at.get_or_insert(at);
                let stage = self.stage_before(index, None);
                self.stay(index, stage)
            }
            (Position::Between, RunEvent::StepBegan { step, baseline }) => self.begin(&step, at, baseline),
            (Position::Between, RunEvent::Ended { outcome, expires, .. }) if self.is_ready_to_end(outcome) => {
                self.end(at, outcome, expires);
                Ok(())
            }
            (Position::Closing { outcome, commit: LastCommit::NotDue }, RunEvent::Ended { outcome: ended, expires, .. })
                if outcome == ended && self.is_ready_to_end(outcome) =>
            {
                self.end(at, outcome, expires);
                Ok(())
            }
            (Position::Closing { outcome, commit }, RunEvent::CommitPlanned { purpose: CommitPurpose::End, .. })
                if commit != LastCommit::NotDue =>
            {
                self.position = Position::Closing { outcome, commit: LastCommit::Planned };
                Ok(())
            }
            (Position::Closing { outcome, commit: LastCommit::Planned }, RunEvent::Committed { purpose: CommitPurpose::End, commit }) => {
                self.note_commit(commit);
                self.position = Position::Closing { outcome, commit: LastCommit::NotDue };
                Ok(())
            }
            (Position::InStep(index, stage), event) => self.apply_in_step(at, index, stage, event),
            (_, event) => Err(self.unexpected(&event)),
        }
    }

    /// A completed run is merged on its way to its end, an inconclusive one when a person wants it.
    fn may_be_merged(&self) -> bool {
        let inconclusive = self.position == Position::Ended(Outcome::Inconclusive);
        self.awaits_merge() && (inconclusive || self.owes_but_proposals() == Owed::Merge)
    }

    /// Nothing is left to do but to end, straight from between steps where no final commit is due.
    fn is_ready_to_end(&self, outcome: Outcome) -> bool {
        self.owes_but_proposals() == Owed::End(outcome)
    }

    /// What it owes beside proposals to memory, of which runs before them knew nothing.
    fn owes_but_proposals(&self) -> Owed {
        match (self.owes(), &self.position) {
            (Owed::Propose, Position::Closing { outcome, .. }) => self.owes_at_last(*outcome),
            (owed, _) => owed,
        }
    }

    fn apply_in_step(&mut self, at: Timestamp, index: usize, stage: Stage, event: RunEvent) -> Result<(), UnexpectedEvent> {
        match (stage, event) {
            (Stage::Opening(task), RunEvent::SessionOpened { session, phase, work, evidence, known }) if task == (Task { phase, work }) => {
                self.session_opened(at, index, (session.clone(), known), task);
                self.steps[index].evidence = evidence.or(self.steps[index].evidence.take());
                self.stay(index, Stage::InSession(session, task))
            }
            (Stage::InSession(open, task), RunEvent::SessionEnded { session, report, verdict }) if open == session => {
                self.session_ended(at, index, task, *report, verdict)
            }
            (Stage::InSession(open, task), RunEvent::SessionLost { session, ended_orphans }) if open == session => {
                if let Some(lost) = self.steps[index].sessions.last_mut() {
                    (lost.ended_at, lost.orphans_of_lost) = (Some(at), ended_orphans);
                }
                self.session_cut_off(index, task)
            }
            (Stage::Collecting { then }, RunEvent::Collected { changed, commits, failure }) => {
                self.collect(index, then, (changed, commits), failure)
            }
            (Stage::CommittingWork { paths, then, .. }, RunEvent::CommitPlanned { purpose: CommitPurpose::Work(step), .. })
                if step == self.steps[index].plan.id =>
            {
                self.stay(index, Stage::CommittingWork { paths, planned: true, then })
            }
            (Stage::CommittingWork { planned: true, then, .. }, RunEvent::Committed { purpose: CommitPurpose::Work(step), commit })
                if step == self.steps[index].plan.id =>
            {
                self.step_commit(index, commit);
                self.collected(index, then)
            }
            (Stage::CommittingWork { planned: true, .. }, RunEvent::CommitRefused { purpose: CommitPurpose::Work(step), failure })
                if step == self.steps[index].plan.id =>
            {
                self.steps[index].state = StepState::Failing(failure);
                self.stay(index, Stage::Settling)
            }
            (Stage::Restoring { .. }, RunEvent::RestorePlanned { salvage, paths }) => {
                self.steps[index].salvaged.extend(salvage);
                self.stay(index, Stage::Restoring { planned: Some(paths) })
            }
            (Stage::Restoring { .. }, RunEvent::Restored) => self.attempt_again(index, None),
            (Stage::Pausing(_), RunEvent::RetryBegan) => self.attempt_again(index, Some(Phase::Precheck)),
            (Stage::Settling, RunEvent::RetryPlanned { failure, until }) => {
                self.steps[index].earlier_failures.push(failure);
                self.steps[index].state = StepState::Running;
                self.carried = self.left.clone();
                self.accepted = None;
                self.stay(index, Stage::Pausing(until))
            }
            (Stage::Settling, RunEvent::Surveyed { changed, commits, failure }) => self.settle(at, index, changed, commits, failure),
            (Stage::Materialising { then, .. }, RunEvent::CommitPlanned { purpose: CommitPurpose::Start, .. }) => {
                self.stay(index, Stage::Materialising { planned: true, then })
            }
            (Stage::Materialising { planned: true, then }, RunEvent::Committed { purpose: CommitPurpose::Start, commit }) => {
                self.note_commit(commit.clone());
                self.materialised = true;
                self.steps[index].baseline = Some(commit.clone());
                // The record of the run is no work of the step's.
                self.steps[index].judged_from = Some(Some(commit));
                self.stay(index, then.map_or(Stage::Settling, Stage::Opening))
            }
            (Stage::Committing { paths, .. }, RunEvent::CommitPlanned { purpose: CommitPurpose::Step(step), .. })
                if step == self.steps[index].plan.id =>
            {
                self.stay(index, Stage::Committing { paths, planned: true })
            }
            (Stage::Committing { planned: true, .. }, RunEvent::Committed { purpose: CommitPurpose::Step(step), commit })
                if step == self.steps[index].plan.id =>
            {
                self.step_commit(index, commit);
                self.step_over(at, index);
                Ok(())
            }
            (Stage::Committing { planned: true, paths }, RunEvent::CommitRefused { purpose: CommitPurpose::Step(step), failure })
                if step == self.steps[index].plan.id =>
            {
                self.commit_refused(at, index, &paths, failure);
                Ok(())
            }
            (_, event) => Err(self.unexpected(&event)),
        }
    }

    fn begin(&mut self, step: &StepId, at: Timestamp, baseline: Option<Oid>) -> Result<(), UnexpectedEvent> {
        let index = self.pending_index(step)?;
        let record = &mut self.steps[index];
        record.attempts += 1;
        record.judged_from.get_or_insert_with(|| baseline.clone());
        record.baseline = baseline;
        record.earlier_sessions = record.sessions.len();
        record.started_at.get_or_insert(at);
        record.state = StepState::Running;
        let stage = self.stage_before(index, self.steps[index].first_task_after(None));
        self.stay(index, stage)
    }

    /// The stage that leads to `task`: a person is asked, and the first commit made, before anything but a precheck.
    pub(super) fn stage_before(&self, index: usize, task: Option<Task>) -> Stage {
        let record = &self.steps[index];
        let needs_start = self.keeps_cards() && !self.materialised && record.state != StepState::Skipping;
        let asks = record.plan.approve.is_some() && record.approval.is_none() && record.state == StepState::Running;
        match task {
            Some(task) if task.phase == Phase::Precheck => Stage::Opening(task),
            then if asks => Stage::Asking { then },
            then if needs_start => Stage::Materialising { planned: false, then },
            then => then.map_or(Stage::Settling, Stage::Opening),
        }
    }

    fn session_ended(
        &mut self,
        at: Timestamp,
        index: usize,
        task: Task,
        report: SessionReport,
        verdict: Option<Verdict>,
    ) -> Result<(), UnexpectedEvent> {
        if let Some(stage) = Self::limited(task, &report) {
            self.record_report(at, index, report);
            return self.stay(index, stage);
        }
        if report.end == SessionEnd::Interrupted {
            self.record_report(at, index, report);
            return self.session_cut_off(index, task);
        }
        self.steps[index].outputs.extend(report.outputs.clone());
        self.record_report(at, index, report.clone());
        match task.work {
            Work::Shells => self.shells_ended(index, task.phase, &report),
            Work::Agent(number) => self.agent_ended(index, number, &report),
            Work::Judge(number) => self.judge_ended(at, index, number, &report, verdict),
            Work::Repair => self.repair_ended(index, &report),
        }
    }

    /// Its host died, or somebody interrupted it.
    fn session_cut_off(&mut self, index: usize, task: Task) -> Result<(), UnexpectedEvent> {
        match task.work {
            Work::Shells => self.stay(index, Stage::Restoring { planned: None }),
            Work::Agent(_) | Work::Judge(_) | Work::Repair => self.open_again(index, task),
        }
    }

    fn answered(&mut self, at: Timestamp, step: StepId, answer: Answer, message: Option<String>) -> Result<(), UnexpectedEvent> {
        match self.position.clone() {
            Position::InStep(index, Stage::Asking { then }) if self.steps[index].plan.id == step => {
                self.answer(index, then, Approval { answer, message, at })
            }
            Position::InStep(index, Stage::Questioned { task, question }) if self.steps[index].plan.id == step => {
                self.answer_agent(index, task, question, Approval { answer, message, at })
            }
            Position::InStep(..) | Position::Between | Position::Closing { .. } | Position::Ended(_) => {
                Err(self.unexpected(&RunEvent::Answered { step, answer, message }))
            }
        }
    }

    fn shells_ended(&mut self, index: usize, phase: Phase, report: &SessionReport) -> Result<(), UnexpectedEvent> {
        let severity = self.steps[index].plan.severity;
        let record = &mut self.steps[index];
        let mut repairs = false;
        match phase {
            Phase::Precheck => {
                let result = judge_precheck(report);
                match &result {
                    PrecheckResult::Pass => {}
                    PrecheckResult::Skip => record.state = StepState::Skipping,
                    PrecheckResult::Fail(failure) => record.state = StepState::Failing(failure.clone()),
                }
                record.precheck = Some(result);
            }
            Phase::Run => {
                if let (Some(failure), StepState::Running) = (judge_run(report), &record.state) {
                    record.state = StepState::Failing(failure);
                }
            }
            Phase::Validate => {
                let (result, failure) = judge_validate(report, severity);
                record.validate = Some(result);
                repairs = failure.is_some_and(|failure| self.found_wanting(index, failure));
            }
        }
        let record = &self.steps[index];
        let next = (record.state == StepState::Running).then(|| record.task_after(Task::shells(phase))).flatten();
        let stage = self.stage_before(index, if repairs { Some(Task::REPAIR) } else { next });
        self.stay(index, stage)
    }

    /// A commit that holds the step's work.
    fn step_commit(&mut self, index: usize, commit: Oid) {
        self.note_commit(commit.clone());
        self.steps[index].commits.push(commit);
        self.carried = None;
        self.left = None;
        self.accepted = None;
    }

    fn record_report(&mut self, at: Timestamp, index: usize, report: SessionReport) {
        if let Some(session) = self.steps[index].sessions.last_mut() {
            session.ended_at = Some(at);
            session.report = Some(report);
        }
    }

    fn attempt_again(&mut self, index: usize, after: Option<Phase>) -> Result<(), UnexpectedEvent> {
        let record = &mut self.steps[index];
        record.attempts += 1;
        // A step whose agent gave no answer fails, however often its shells are lost: its state stays.
        record.validate = None;
        record.warning = None;
        record.outputs = if record.collected { record.outputs_of_agents() } else { BTreeMap::new() };
        if after.is_none() && !record.collected {
            record.precheck = None;
        }
        let stage = self.stage_before(index, self.steps[index].first_task_after(after));
        self.stay(index, stage)
    }

    fn settle(
        &mut self,
        at: Timestamp,
        index: usize,
        changed: Vec<RepoPath>,
        commits: Vec<Oid>,
        failure: Option<Failure>,
    ) -> Result<(), UnexpectedEvent> {
        if let Some(newest) = commits.last() {
            self.head = Some(newest.clone());
        }
        let record = &mut self.steps[index];
        record.changed.clone_from(&changed);
        record.commits.extend(commits);
        if let Some(failure) = failure
            && !matches!(record.state, StepState::Failing(_))
        {
            record.state = StepState::Failing(failure);
        }
        let keeps_out = matches!(
            record.state,
            StepState::Failing(Failure::TouchedForeign { .. } | Failure::PrecheckChanged { .. } | Failure::Uncommittable { .. })
        );
        let paths = if keeps_out { Vec::new() } else { changed };
        match (&record.state, self.started.records) {
            (StepState::Skipping, _) => {
                self.step_over(at, index);
                Ok(())
            }
            // A check must have seen what its commit holds, so a failed step is committed only where the
            // layout asks for its record.
            (StepState::Failing(_), Records::State) => {
                self.step_over(at, index);
                Ok(())
            }
            (_, Records::State) if paths.is_empty() => {
                self.step_over(at, index);
                Ok(())
            }
            (StepState::Failing(_), Records::Git) if !self.materialised => {
                self.stay(index, Stage::Materialising { planned: false, then: None })
            }
            (_, Records::State | Records::Git) => self.stay(index, Stage::Committing { paths, planned: false }),
        }
    }

    /// A refused commit fails the step. Where records are in git the record still goes in, without the files.
    fn commit_refused(&mut self, at: Timestamp, index: usize, paths: &[RepoPath], failure: Failure) {
        let had_files = !paths.is_empty();
        self.steps[index].state = StepState::Failing(failure);
        if self.keeps_cards() && had_files {
            self.position = Position::InStep(index, Stage::Committing { paths: Vec::new(), planned: false });
        } else {
            self.step_over(at, index);
        }
    }

    /// The step is decided; the run goes on or closes.
    pub(super) fn step_over(&mut self, at: Timestamp, index: usize) {
        let record = &mut self.steps[index];
        record.ended_at = Some(at);
        record.state = match std::mem::replace(&mut record.state, StepState::Completed) {
            StepState::Skipping => StepState::Skipped(SkipReason::Precheck),
            StepState::Failing(failure) => StepState::Failed(failure),
            decided @ (StepState::Skipped(_) | StepState::Failed(_)) => decided,
            StepState::Pending | StepState::Running | StepState::Completed => StepState::Completed,
        };
        self.position = Position::Between;
        if !self.judge_next() {
            self.close_when_decided();
        }
    }

    fn close_when_decided(&mut self) {
        let failed = self.steps.iter().any(|step| matches!(step.state, StepState::Failed(_)));
        if failed || self.steps.iter().all(StepRecord::is_decided) {
            self.close();
        }
    }

    fn close(&mut self) {
        let outcome = self.outcome_so_far();
        let commit = if self.materialised { LastCommit::Due } else { LastCommit::NotDue };
        self.position = Position::Closing { outcome, commit };
    }

    fn end(&mut self, at: Timestamp, outcome: Outcome, expires: Option<Timestamp>) {
        self.ended_at = Some(at);
        self.expires = expires;
        self.position = Position::Ended(outcome);
    }

    fn decide(&mut self, step: &StepId, at: Timestamp, state: StepState) -> Result<(), UnexpectedEvent> {
        let index = self.pending_index(step)?;
        self.steps[index].state = state;
        self.steps[index].ended_at = Some(at);
        self.close_when_decided();
        Ok(())
    }

    fn pending_index(&self, step: &StepId) -> Result<usize, UnexpectedEvent> {
        self.steps
            .iter()
            .position(|record| record.plan.id == *step && record.state == StepState::Pending)
            .ok_or_else(|| UnexpectedEvent { event: format!("begin or skip {step}"), position: self.describe() })
    }

    pub(super) fn stay(&mut self, index: usize, stage: Stage) -> Result<(), UnexpectedEvent> {
        self.position = Position::InStep(index, stage);
        Ok(())
    }

    fn note_commit(&mut self, commit: Oid) {
        self.head = Some(commit.clone());
        self.commits.push(commit);
    }

    /// A failed run goes back to its failed step; a halted one goes on where it stood.
    fn resume(&mut self, head: Option<Oid>, nothing_foreign: bool) {
        self.halt = None;
        let untouched = nothing_foreign && self.head == head;
        // Foreign commits were accepted. The step's own work is what comes after them: before, the baseline may not
        // even be in HEAD's history any more.
        if let Position::InStep(index, _) = self.position
            && self.head != head
        {
            self.steps[index].baseline.clone_from(&head);
        }
        self.head = head;
        if let Position::InStep(index, Stage::Limited { task, .. }) = self.position {
            self.position = Position::InStep(index, Stage::Opening(task));
        }
        let failed = self.steps.iter().position(|step| matches!(step.state, StepState::Failed(_)));
        // A run that died on the way to its end still owes that end, failed or not.
        if let (Position::Ended(Outcome::Failed), Some(index)) = (&self.position, failed) {
            // What a precheck should not have written is nobody's work: it has to go before the step is tried again.
            let precheck_wrote = matches!(self.steps[index].state, StepState::Failed(Failure::PrecheckChanged { .. }));
            self.carried = if precheck_wrote { None } else { self.left.clone() };
            self.ended_at = None;
            self.expires = None;
            self.has_proposed = false;
            if untouched && self.lacks_only_its_verdict(index) {
                return self.judge_anew(index);
            }
            // Judging again can have failed several.
            self.steps.iter_mut().filter(|step| matches!(step.state, StepState::Failed(_))).for_each(StepRecord::start_over);
            self.position = Position::Between;
        }
    }

    /// Steps that are decided are kept by id; the others follow the new definition.
    fn redefine(&mut self, snapshot: String, steps: Vec<StepPlan>) {
        let mut earlier: BTreeMap<StepId, StepRecord> =
            std::mem::take(&mut self.steps).into_iter().map(|record| (record.plan.id.clone(), record)).collect();
        self.steps = steps
            .iter()
            .map(|plan| match earlier.remove(&plan.id) {
                Some(record) => StepRecord { plan: plan.clone(), ..record },
                None => StepRecord::new(plan.clone()),
            })
            .collect();
        self.started.snapshot = snapshot;
        self.started.steps = steps;
        self.has_proposed = false;
        self.position = Position::Between;
        // Other agents may be asked for other work now, so nothing that was done for the step before counts.
        self.steps.iter_mut().filter(|step| !step.is_decided()).for_each(StepRecord::start_over);
    }

    fn describe(&self) -> String {
        format!("{:?}", self.position)
    }

    fn unexpected(&self, event: &RunEvent) -> UnexpectedEvent {
        UnexpectedEvent { event: kind(event), position: self.describe() }
    }
}

impl StepRecord {
    /// Nothing of what it came to counts any more; what it left behind does.
    fn start_over(&mut self) {
        self.state = StepState::Pending;
        self.precheck = None;
        self.validate = None;
        self.warning = None;
        self.approval = None;
        self.answers.clear();
        self.collected = false;
        self.repairing = None;
        self.unjudged = None;
        self.reasoning = None;
        self.rejudge = false;
        self.earlier_failures.clear();
        self.outputs.clear();
        self.ended_at = None;
    }

    /// What its agents, which are not asked again, wrote since it was last begun.
    fn outputs_of_agents(&self) -> BTreeMap<String, String> {
        let of_agents = self.present_sessions().iter().filter(|session| matches!(session.work, Work::Agent(_) | Work::Repair));
        of_agents.filter_map(|session| session.report.as_ref()).flat_map(|report| report.outputs.clone()).collect()
    }
}

/// The event's stored kind, for messages.
pub(super) fn kind(event: &RunEvent) -> String {
    let text = format!("{event:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}
