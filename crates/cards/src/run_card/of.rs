//! From a run to its card.

use proctor_domain::Timestamp;
use proctor_domain::procedure::{Outcome, Position, PrecheckResult, Run, Stage, StepRecord, StepState};
use proctor_domain::retention::{Expires, expiry_time};
use proctor_domain::session::{Phase, SessionReport, Work};

use super::{PrecheckRecord, PrecheckStatus, RunCard, RunPhaseRecord, RunStepRecord, StepStatus, Streams, ValidateRecord};

impl RunCard {
    /// The record of `run` as it will be true of the commit that is made now, at `at`: a step whose commit is
    /// due counts as decided, a run whose last commit is due counts as ended. The run's id is left open.
    pub fn of(run: &Run, at: Timestamp) -> Self {
        let (outcome, completed_at) = match &run.position {
            Position::Closing { outcome, .. } => (Some(*outcome), Some(at)),
            Position::Ended(outcome) => (Some(*outcome), run.ended_at),
            Position::Between | Position::InStep(..) => (None, None),
        };
        let steps = run.steps.iter().enumerate().map(|(index, step)| step_record(run, index, step, at)).collect();
        Self {
            run: None,
            procedure: run.started.card.to_string(),
            outcome,
            started_at: Some(run.started_at),
            completed_at,
            directive: run.started.directive.clone(),
            inputs: run.started.inputs.clone(),
            expires: expires(run, at),
            steps,
        }
    }
}

fn expires(run: &Run, at: Timestamp) -> Expires {
    let expires = match &run.position {
        Position::Ended(_) => run.expires,
        Position::Closing { outcome: Outcome::Completed | Outcome::Skipped, .. } => expiry_time(at, run.started.run_expiry),
        Position::Closing { outcome: Outcome::Failed | Outcome::Inconclusive, .. } => expiry_time(at, run.started.failed_run_expiry),
        Position::Between | Position::InStep(..) => return Expires::Unset,
    };
    expires.map_or(Expires::Never, Expires::At)
}

fn step_record(run: &Run, index: usize, step: &StepRecord, at: Timestamp) -> RunStepRecord {
    let commit_is_due = matches!(&run.position, Position::InStep(current, Stage::Committing { .. }) if *current == index);
    let status = match &step.state {
        StepState::Pending => StepStatus::Pending,
        StepState::Running if commit_is_due => StepStatus::Completed,
        StepState::Running => StepStatus::Running,
        StepState::Failing(_) | StepState::Failed(_) => StepStatus::Failed,
        StepState::Skipping => StepStatus::Skipped(Some(proctor_domain::procedure::SkipReason::Precheck)),
        StepState::Completed => StepStatus::Completed,
        StepState::Skipped(reason) => StepStatus::Skipped(Some(*reason)),
    };
    let failure = match &step.state {
        StepState::Failing(failure) | StepState::Failed(failure) => Some(failure),
        StepState::Pending | StepState::Running | StepState::Skipping | StepState::Completed | StepState::Skipped(_) => None,
    };
    let error_of = |phase: Phase| failure.filter(|failure| failure.phase() == Some(phase)).map(ToString::to_string);
    let streams = |phase: Phase| step.last_report(phase).map(streams).unwrap_or_default();
    let precheck = step.precheck.as_ref().map(|result| PrecheckRecord {
        status: match result {
            PrecheckResult::Pass => PrecheckStatus::Pass,
            PrecheckResult::Skip => PrecheckStatus::Skip,
            PrecheckResult::Fail(_) => PrecheckStatus::Fail,
        },
        streams: streams(Phase::Precheck),
    });
    // The agent's session is the one to go on with; what shells did is in their streams.
    let of_run = || step.sessions.iter().rev().filter(|session| session.phase == Phase::Run);
    let session = of_run().find(|session| session.work != Work::Shells).or_else(|| of_run().next());
    let run_phase = session.map(|session| RunPhaseRecord {
        session: Some(session.id.to_string()),
        streams: streams(Phase::Run),
        error: error_of(Phase::Run),
        git_ref: step.commits.last().map(ToString::to_string),
    });
    let validate = step.validate.map(|status| ValidateRecord {
        status,
        streams: streams(Phase::Validate),
        review: step.reasoning.clone(),
        error: error_of(Phase::Validate).or_else(|| step.warning.as_ref().map(ToString::to_string)),
        reason: step.unjudged.map(|unjudged| unjudged.name().to_owned()),
    });
    let is_decided = !matches!(status, StepStatus::Pending | StepStatus::Running);
    RunStepRecord {
        id: step.plan.id.to_string(),
        status,
        started_at: step.started_at,
        completed_at: step.ended_at.or_else(|| is_decided.then_some(at)),
        attempts: step.attempts,
        error: failure.map(ToString::to_string),
        earlier_errors: step.earlier_failures.iter().map(ToString::to_string).collect(),
        precheck,
        run: run_phase,
        validate,
        outputs: step.outputs.clone(),
        commits: step.commits.clone(),
    }
}

fn streams(report: &SessionReport) -> Streams {
    Streams { exit_code: report.exit_code(), stdout: report.stdout.text(), stderr: report.stderr.text() }
}
