//! One run as a state machine: the fold of its events, and what it owes next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    CheckResult, CommitPurpose, Failure, HaltReason, PrecheckResult, Records, RunEvent, RunStarted, SkipReason, StepId, StepPlan,
    judge_precheck, judge_run, judge_validate,
};
use crate::session::{Phase, SessionEnd, SessionRecord, SessionReport};
use crate::{CardDuration, Oid, RepoPath, SessionId, Timestamp};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every step is completed or skipped, at least one completed.
    Completed,
    /// A step failed.
    Failed,
    /// No step failed, and at least one check reached no verdict.
    Inconclusive,
    /// Every step was skipped.
    Skipped,
}

impl Outcome {
    /// The word used in JSON, run cards and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
        }
    }
}

/// An event that can't follow the state it met. Only a damaged journal or a bug leads to one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event `{event}` can't follow here: {position}")]
pub struct UnexpectedEvent {
    /// The event's kind.
    pub event: String,
    /// Where the run was.
    pub position: String,
}

/// A run, folded from its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How it was started.
    pub started: RunStarted,
    /// When it was started.
    pub started_at: Timestamp,
    /// Its steps, in order.
    pub steps: Vec<StepRecord>,
    /// Where it is.
    pub position: Position,
    /// Why it stands still, when it does.
    pub halt: Option<HaltReason>,
    /// Whether the `Start procedure` commit exists (only where records are in git).
    pub materialised: bool,
    /// The newest commit that the run knows: its start, its own commits, its steps' commits.
    pub head: Option<Oid>,
    /// Proctor's own commits, oldest first.
    pub commits: Vec<Oid>,
    /// What was uncommitted when the run last stopped: tells its own changes from what others did since.
    pub left: Option<Leftovers>,
    /// What a failed attempt left and the following attempts start from.
    pub carried: Option<Leftovers>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When `gc` may remove it; `None` for never (or not yet known).
    pub expires: Option<Timestamp>,
}

/// Uncommitted paths of a run, and a tree object that holds their contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// The paths.
    pub paths: Vec<RepoPath>,
    /// HEAD's tree with these paths as they were.
    pub snapshot: Oid,
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// Between steps.
    Between,
    /// Inside the step with this index.
    InStep(usize, Stage),
    /// All steps are decided; the last commit may be due.
    Closing {
        /// How it will end.
        outcome: Outcome,
        /// Where its last commit stands.
        commit: LastCommit,
    },
    /// Over.
    Ended(Outcome),
}

/// Where the last commit of a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastCommit {
    /// There is none to make.
    NotDue,
    /// It is to be made.
    Due,
    /// It was recorded as planned and may exist.
    Planned,
}

/// Where a run is inside a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The `Start procedure` commit comes next, then the phase, or the settling when there is none.
    Materialising {
        /// Whether the commit was recorded as planned.
        planned: bool,
        /// The phase that follows; `None` when the step is already decided.
        then: Option<Phase>,
    },
    /// A session for this phase is to be opened.
    Opening(Phase),
    /// This session was opened for this phase.
    InSession(SessionId, Phase),
    /// A session was lost or interrupted; the tree goes back to the baseline before the next attempt.
    Restoring {
        /// Whether what is put back was recorded as planned.
        planned: Option<Vec<RepoPath>>,
    },
    /// A failed attempt waits for its repetition.
    Pausing(Timestamp),
    /// The phases are over; what they left in the tree is to be looked at.
    Settling,
    /// The step's commit is due.
    Committing {
        /// The paths it takes.
        paths: Vec<RepoPath>,
        /// Whether it was recorded as planned.
        planned: bool,
    },
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owed {
    /// Decide whether and how to begin the step with this index.
    Begin(usize),
    /// Open a session for this phase of the step with this index.
    OpenSession(usize, Phase),
    /// Drive this session to its end: start its host, or attach to it, or read its report.
    Drive(SessionId),
    /// Save and put back what a lost session changed.
    Restore(usize),
    /// Record that the failed attempt is repeated after a pause.
    PlanRetry {
        /// What failed.
        failure: Failure,
        /// How long to wait first.
        pause: CardDuration,
    },
    /// Wait until then, then begin the next attempt.
    Wait(Timestamp),
    /// Look at what the step left in the tree.
    Survey(usize),
    /// Make this commit with these paths (and the record, where records are in git).
    Commit(CommitPurpose, Vec<RepoPath>),
    /// Record the end.
    End(Outcome),
    /// Nothing: it is over, or halted until somebody resumes it.
    Nothing,
}

/// What is known of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// What the state machine knows of its definition.
    pub plan: StepPlan,
    /// Where it stands.
    pub state: StepState,
    /// Attempts begun.
    pub attempts: u32,
    /// HEAD before its first attempt.
    pub baseline: Option<Oid>,
    /// Every session, oldest first.
    pub sessions: Vec<SessionRecord>,
    /// What its precheck decided in the last attempt that ran it.
    pub precheck: Option<PrecheckResult>,
    /// What its checks said in the last attempt that ran them.
    pub validate: Option<CheckResult>,
    /// A failed check that did not fail the step.
    pub warning: Option<Failure>,
    /// What it wrote to `$PROCTOR_OUTPUT`.
    pub outputs: BTreeMap<String, String>,
    /// Commits made by it and for it, oldest first.
    pub commits: Vec<Oid>,
    /// The paths it changed, as last surveyed.
    pub changed: Vec<RepoPath>,
    /// Failures of attempts that were repeated.
    pub earlier_failures: Vec<Failure>,
    /// Salvage refs of lost attempts.
    pub salvaged: Vec<String>,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it was decided.
    pub ended_at: Option<Timestamp>,
}

/// Where a step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepState {
    /// Its turn has not come.
    Pending,
    /// Begun and not decided.
    Running,
    /// Failed, and what it left is not settled yet.
    Failing(Failure),
    /// Skipped by its precheck, and what it left is not settled yet.
    Skipping,
    /// Done.
    Completed,
    /// Not run.
    Skipped(SkipReason),
    /// Not done.
    Failed(Failure),
}

impl StepRecord {
    fn new(plan: StepPlan) -> Self {
        Self {
            plan,
            state: StepState::Pending,
            attempts: 0,
            baseline: None,
            sessions: Vec::new(),
            precheck: None,
            validate: None,
            warning: None,
            outputs: BTreeMap::new(),
            commits: Vec::new(),
            changed: Vec::new(),
            earlier_failures: Vec::new(),
            salvaged: Vec::new(),
            started_at: None,
            ended_at: None,
        }
    }

    /// The last session of a phase that has a report.
    pub fn last_report(&self, phase: Phase) -> Option<&SessionReport> {
        self.sessions.iter().rev().filter(|session| session.phase == phase).find_map(|session| session.report.as_ref())
    }

    /// Whether it is completed, skipped or failed.
    pub fn is_decided(&self) -> bool {
        matches!(self.state, StepState::Completed | StepState::Skipped(_) | StepState::Failed(_))
    }

    fn phase_after(&self, phase: Option<Phase>) -> Option<Phase> {
        self.plan.phases.iter().copied().find(|candidate| phase.is_none_or(|phase| *candidate > phase))
    }
}

impl Run {
    /// The run that a [`RunEvent::Started`] at `at` begins.
    pub fn start(at: Timestamp, started: RunStarted) -> Self {
        Self {
            steps: started.steps.iter().cloned().map(StepRecord::new).collect(),
            head: started.head.clone(),
            started,
            started_at: at,
            position: Position::Between,
            halt: None,
            materialised: false,
            commits: Vec::new(),
            left: None,
            carried: None,
            ended_at: None,
            expires: None,
        }
    }

    /// Folds a whole stream; `None` when it is empty.
    pub fn replay(events: impl IntoIterator<Item = (Timestamp, RunEvent)>) -> Result<Option<Self>, UnexpectedEvent> {
        let mut run: Option<Self> = None;
        for (at, event) in events {
            match (&mut run, event) {
                (None, RunEvent::Started(started)) => run = Some(Self::start(at, *started)),
                (Some(run), event) => run.apply(at, event)?,
                (None, event) => {
                    return Err(UnexpectedEvent { event: kind(&event), position: "before the run's start".to_owned() });
                }
            }
        }
        Ok(run)
    }

    /// The step it is in.
    pub fn current_step(&self) -> Option<&StepRecord> {
        match self.position {
            Position::InStep(index, _) => self.steps.get(index),
            Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// The session it is in: opened, and neither ended nor lost as far as the run knows.
    pub fn open_session(&self) -> Option<&SessionId> {
        match &self.position {
            Position::InStep(_, Stage::InSession(session, _)) => Some(session),
            Position::InStep(..) | Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// Whether the commit that it owes was recorded as planned, and so may exist already.
    pub fn commit_was_planned(&self) -> bool {
        match &self.position {
            Position::InStep(_, Stage::Materialising { planned, .. } | Stage::Committing { planned, .. }) => *planned,
            Position::Closing { commit, .. } => *commit == LastCommit::Planned,
            Position::InStep(..) | Position::Between | Position::Ended(_) => false,
        }
    }

    /// What it waits for. Asked after every event and again after a restart.
    pub fn owes(&self) -> Owed {
        if self.halt.is_some() {
            return Owed::Nothing;
        }
        match &self.position {
            Position::Between => {
                self.steps.iter().position(|step| step.state == StepState::Pending).map_or(Owed::End(self.outcome_so_far()), Owed::Begin)
            }
            Position::InStep(index, stage) => self.owes_in_step(*index, stage),
            Position::Closing { commit: LastCommit::Due | LastCommit::Planned, .. } => Owed::Commit(CommitPurpose::End, Vec::new()),
            Position::Closing { outcome, commit: LastCommit::NotDue } => Owed::End(*outcome),
            Position::Ended(_) => Owed::Nothing,
        }
    }

    fn owes_in_step(&self, index: usize, stage: &Stage) -> Owed {
        match stage {
            Stage::Materialising { .. } => Owed::Commit(CommitPurpose::Start, Vec::new()),
            Stage::Opening(phase) => Owed::OpenSession(index, *phase),
            Stage::InSession(session, _) => Owed::Drive(session.clone()),
            Stage::Restoring { .. } => Owed::Restore(index),
            Stage::Pausing(until) => Owed::Wait(*until),
            Stage::Settling => self.retry_due(index).unwrap_or(Owed::Survey(index)),
            Stage::Committing { paths, .. } => Owed::Commit(CommitPurpose::Step(self.steps[index].plan.id.clone()), paths.clone()),
        }
    }

    fn keeps_cards(&self) -> bool {
        self.started.records == Records::Git
    }

    /// The outcome that the decided steps add up to.
    fn outcome_so_far(&self) -> Outcome {
        let any = |wanted: fn(&StepRecord) -> bool| self.steps.iter().any(wanted);
        if any(|step| matches!(step.state, StepState::Failed(_))) {
            Outcome::Failed
        } else if any(|step| step.validate == Some(CheckResult::Inconclusive)) {
            Outcome::Inconclusive
        } else if any(|step| step.state == StepState::Completed) {
            Outcome::Completed
        } else {
            Outcome::Skipped
        }
    }

    /// Applies one event that the caller has journaled, or is about to.
    ///
    /// # Errors
    /// The event can't follow the present state; the run is left as it was.
    pub fn apply(&mut self, at: Timestamp, event: RunEvent) -> Result<(), UnexpectedEvent> {
        match event {
            RunEvent::Halted { reason } if self.halt.is_none() && !matches!(self.position, Position::Ended(_)) => {
                self.halt = Some(reason);
                Ok(())
            }
            RunEvent::LeftInTree { paths, snapshot } => {
                self.left = (!paths.is_empty()).then_some(Leftovers { paths, snapshot });
                Ok(())
            }
            RunEvent::Resumed { head, directive, accepted: _ } => {
                self.resume(head);
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
            (Position::Between, RunEvent::StepSkipped { step, reason }) => self.decide(&step, at, StepState::Skipped(reason)),
            (Position::Between, RunEvent::StepRejected { step, failure }) => {
                let index = self.pending_index(&step)?;
                self.steps[index].state = StepState::Failing(failure);
                self.steps[index].started_at.get_or_insert(at);
                let stage = self.stage_before(index, None);
                self.stay(index, stage)
            }
            (Position::Between, RunEvent::StepBegan { step, baseline }) => self.begin(&step, at, baseline),
            (Position::Between, RunEvent::Ended { outcome, expires }) if self.is_ready_to_end(outcome) => {
                self.end(at, outcome, expires);
                Ok(())
            }
            (Position::Closing { outcome, commit: LastCommit::NotDue }, RunEvent::Ended { outcome: ended, expires })
                if outcome == ended =>
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

    /// A run ends straight from between steps when no final commit is due.
    fn is_ready_to_end(&self, outcome: Outcome) -> bool {
        self.owes() == Owed::End(outcome)
    }

    fn apply_in_step(&mut self, at: Timestamp, index: usize, stage: Stage, event: RunEvent) -> Result<(), UnexpectedEvent> {
        match (stage, event) {
            (Stage::Opening(phase), RunEvent::SessionOpened { session, phase: opened }) if phase == opened => {
                let attempt = self.steps[index].attempts;
                self.steps[index].sessions.push(SessionRecord { id: session.clone(), phase, attempt, report: None });
                self.stay(index, Stage::InSession(session, phase))
            }
            (Stage::InSession(open, phase), RunEvent::SessionEnded { session, report }) if open == session => {
                self.session_ended(index, phase, *report)
            }
            (Stage::InSession(open, _), RunEvent::SessionLost { session }) if open == session => {
                self.stay(index, Stage::Restoring { planned: None })
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
                self.stay(index, Stage::Pausing(until))
            }
            (Stage::Settling, RunEvent::Surveyed { changed, commits, failure }) => self.settle(at, index, changed, commits, failure),
            (Stage::Materialising { then, .. }, RunEvent::CommitPlanned { purpose: CommitPurpose::Start, .. }) => {
                self.stay(index, Stage::Materialising { planned: true, then })
            }
            (Stage::Materialising { planned: true, then }, RunEvent::Committed { purpose: CommitPurpose::Start, commit }) => {
                self.note_commit(commit.clone());
                self.materialised = true;
                self.steps[index].baseline = Some(commit);
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
                self.note_commit(commit.clone());
                self.steps[index].commits.push(commit);
                self.carried = None;
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
        record.baseline = baseline;
        record.started_at.get_or_insert(at);
        record.state = StepState::Running;
        let stage = self.stage_before(index, self.steps[index].phase_after(None));
        self.stay(index, stage)
    }

    /// The stage that leads to `phase`: the first commit comes before anything but a precheck.
    fn stage_before(&self, index: usize, phase: Option<Phase>) -> Stage {
        let needs_start = self.keeps_cards() && !self.materialised && self.steps[index].state != StepState::Skipping;
        match phase {
            Some(Phase::Precheck) => Stage::Opening(Phase::Precheck),
            then if needs_start => Stage::Materialising { planned: false, then },
            then => then.map_or(Stage::Settling, Stage::Opening),
        }
    }

    fn session_ended(&mut self, index: usize, phase: Phase, report: SessionReport) -> Result<(), UnexpectedEvent> {
        if report.end == SessionEnd::Interrupted {
            self.record_report(index, report);
            return self.stay(index, Stage::Restoring { planned: None });
        }
        let severity = self.steps[index].plan.severity;
        let record = &mut self.steps[index];
        match phase {
            Phase::Precheck => {
                let result = judge_precheck(&report);
                match &result {
                    PrecheckResult::Pass => {}
                    PrecheckResult::Skip => record.state = StepState::Skipping,
                    PrecheckResult::Fail(failure) => record.state = StepState::Failing(failure.clone()),
                }
                record.precheck = Some(result);
            }
            Phase::Run => {
                if let Some(failure) = judge_run(&report) {
                    record.state = StepState::Failing(failure);
                }
            }
            Phase::Validate => {
                let (result, failure) = judge_validate(&report, severity);
                record.validate = Some(result);
                match (result, failure) {
                    (CheckResult::Fail, Some(failure)) => record.state = StepState::Failing(failure),
                    (_, failure) => record.warning = failure,
                }
            }
        }
        record.outputs.extend(report.outputs.clone());
        self.record_report(index, report);
        let next = (self.steps[index].state == StepState::Running).then(|| self.steps[index].phase_after(Some(phase))).flatten();
        let stage = self.stage_before(index, next);
        self.stay(index, stage)
    }

    fn record_report(&mut self, index: usize, report: SessionReport) {
        if let Some(session) = self.steps[index].sessions.last_mut() {
            session.report = Some(report);
        }
    }

    /// The repetition of a failed attempt, where `retry` covers the failure and has attempts left.
    fn retry_due(&self, index: usize) -> Option<Owed> {
        let record = &self.steps[index];
        let (StepState::Failing(failure), Some(retry)) = (&record.state, record.plan.retry) else { return None };
        let repeated = u32::try_from(record.earlier_failures.len()).unwrap_or(u32::MAX);
        let due = failure.is_of_a_shell() && repeated < retry.max;
        due.then(|| Owed::PlanRetry { failure: failure.clone(), pause: retry.pause_after(repeated + 1) })
    }

    fn attempt_again(&mut self, index: usize, after: Option<Phase>) -> Result<(), UnexpectedEvent> {
        let record = &mut self.steps[index];
        record.attempts += 1;
        record.state = StepState::Running;
        record.validate = None;
        record.warning = None;
        record.outputs.clear();
        if after.is_none() {
            record.precheck = None;
        }
        let stage = self.stage_before(index, self.steps[index].phase_after(after));
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
    fn step_over(&mut self, at: Timestamp, index: usize) {
        let record = &mut self.steps[index];
        record.ended_at = Some(at);
        record.state = match std::mem::replace(&mut record.state, StepState::Completed) {
            StepState::Skipping => StepState::Skipped(SkipReason::Precheck),
            StepState::Failing(failure) => StepState::Failed(failure),
            decided @ (StepState::Skipped(_) | StepState::Failed(_)) => decided,
            StepState::Pending | StepState::Running | StepState::Completed => StepState::Completed,
        };
        self.position = Position::Between;
        self.close_when_decided();
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

    fn stay(&mut self, index: usize, stage: Stage) -> Result<(), UnexpectedEvent> {
        self.position = Position::InStep(index, stage);
        Ok(())
    }

    fn note_commit(&mut self, commit: Oid) {
        self.head = Some(commit.clone());
        self.commits.push(commit);
    }

    /// A failed run goes back to its failed step; a halted one goes on where it stood.
    fn resume(&mut self, head: Option<Oid>) {
        self.halt = None;
        self.head = head;
        let failed = self.steps.iter().position(|step| matches!(step.state, StepState::Failed(_)));
        if let Some(index) = failed {
            self.carried = self.left.clone();
            self.ended_at = None;
            self.expires = None;
            let record = &mut self.steps[index];
            record.state = StepState::Pending;
            record.precheck = None;
            record.validate = None;
            record.warning = None;
            record.earlier_failures.clear();
            record.outputs.clear();
            record.ended_at = None;
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
        self.position = Position::Between;
        for record in &mut self.steps {
            if !record.is_decided() {
                record.state = StepState::Pending;
            }
        }
    }

    fn describe(&self) -> String {
        format!("{:?}", self.position)
    }

    fn unexpected(&self, event: &RunEvent) -> UnexpectedEvent {
        UnexpectedEvent { event: kind(event), position: self.describe() }
    }
}

/// The event's stored kind, for messages.
fn kind(event: &RunEvent) -> String {
    let text = format!("{event:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}
