//! A run as JSON: the one object of `procedure run`, `resume` and `status`.

use std::collections::BTreeMap;

use proctor_domain::procedure::{CheckResult, PrecheckResult, Run, StepRecord, StepState};
use proctor_domain::session::{Phase, SessionRecord};
use proctor_domain::{RunId, Timestamp};
use proctor_orchestrator::procedure::Standing;
use serde::Serialize;

/// The version of this form.
const VERSION: u32 = 1;

/// A run.
#[derive(Debug, Serialize)]
pub struct RunDocument {
    version: u32,
    run: RunId,
    procedure: String,
    outcome: &'static str,
    exit_code: u8,
    cost_usd: f64,
    cost_complete: bool,
    steps: Vec<StepDocument>,
}

#[derive(Debug, Serialize)]
struct StepDocument {
    id: String,
    state: &'static str,
    reason: Option<String>,
    attempts: u32,
    precheck: Option<PrecheckDocument>,
    run: Option<RunPhaseDocument>,
    validate: Option<ValidateDocument>,
    outputs: BTreeMap<String, String>,
    commits: Vec<String>,
    error: Option<String>,
    duration_ms: u64,
}

#[derive(Debug, Serialize)]
struct PrecheckDocument {
    result: &'static str,
    exit_code: Option<i32>,
}

#[derive(Debug, Serialize)]
struct RunPhaseDocument {
    sessions: Vec<SessionDocument>,
}

#[derive(Debug, Serialize)]
struct SessionDocument {
    id: String,
    kind: &'static str,
    end: &'static str,
    exit_code: Option<i32>,
    cost_usd: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ValidateDocument {
    result: &'static str,
    reasoning: Option<String>,
    reason: Option<String>,
}

impl RunDocument {
    /// The document of a run that stands as `standing` says, at `now`.
    pub fn of(run_id: &RunId, run: &Run, standing: &Standing, now: Timestamp) -> Self {
        Self {
            version: VERSION,
            run: run_id.clone(),
            procedure: run.started.procedure.clone(),
            outcome: outcome(standing),
            exit_code: standing.exit_code().code(),
            // Shells cost nothing, and that is known.
            cost_usd: 0.0,
            cost_complete: true,
            steps: run.steps.iter().map(|step| step_document(run, step, standing, now)).collect(),
        }
    }
}

/// The word for how a run stands.
pub fn outcome(standing: &Standing) -> &'static str {
    match standing {
        Standing::Ended(outcome) => outcome.name(),
        Standing::Interrupted | Standing::Halted(_) => "interrupted",
        Standing::Running => "running",
    }
}

/// The word for where a step stands.
pub fn step_state(step: &StepRecord, standing: &Standing) -> &'static str {
    match step.state {
        StepState::Pending => "pending",
        StepState::Completed => "completed",
        StepState::Skipped(_) => "skipped",
        StepState::Failed(_) => "failed",
        StepState::Running | StepState::Failing(_) | StepState::Skipping => match standing {
            Standing::Running => "running",
            Standing::Ended(_) | Standing::Interrupted | Standing::Halted(_) => "interrupted",
        },
    }
}

fn step_document(run: &Run, step: &StepRecord, standing: &Standing, now: Timestamp) -> StepDocument {
    let reason = match &step.state {
        StepState::Skipped(reason) => Some(reason.name().to_owned()),
        StepState::Pending
        | StepState::Running
        | StepState::Failing(_)
        | StepState::Skipping
        | StepState::Completed
        | StepState::Failed(_) => None,
    };
    let error = match &step.state {
        StepState::Failed(failure) | StepState::Failing(failure) => Some(failure.to_string()),
        StepState::Pending | StepState::Running | StepState::Skipping | StepState::Completed | StepState::Skipped(_) => None,
    };
    StepDocument {
        id: step.plan.id.to_string(),
        state: step_state(step, standing),
        reason,
        attempts: step.attempts,
        precheck: step.precheck.as_ref().map(|result| PrecheckDocument {
            result: precheck_name(result),
            exit_code: step.last_report(Phase::Precheck).and_then(proctor_domain::session::SessionReport::exit_code),
        }),
        run: run_phase(run, step, standing),
        validate: step.validate.map(|result| validate_document(step, result)),
        outputs: step.outputs.clone(),
        commits: step.commits.iter().map(ToString::to_string).collect(),
        error,
        duration_ms: step.worked_millis(now).unwrap_or(0),
    }
}

/// The word for what a precheck decided.
pub fn precheck_name(result: &PrecheckResult) -> &'static str {
    match result {
        PrecheckResult::Pass => "pass",
        PrecheckResult::Skip => "skip",
        PrecheckResult::Fail(_) => "fail",
    }
}

/// The word for how a session ended, or that it goes on, or that its host died without a word.
pub fn session_end(session: &SessionRecord, run: &Run, standing: &Standing) -> &'static str {
    match &session.report {
        Some(report) => report.end.name(),
        None if *standing == Standing::Running && run.open_session() == Some(&session.id) => "running",
        None => "lost",
    }
}

fn run_phase(run: &Run, step: &StepRecord, standing: &Standing) -> Option<RunPhaseDocument> {
    let of_phase = step.sessions.iter().filter(|session| session.phase == Phase::Run);
    let sessions: Vec<SessionDocument> = of_phase.map(|session| session_document(run, session, standing)).collect();
    (!sessions.is_empty()).then_some(RunPhaseDocument { sessions })
}

fn session_document(run: &Run, session: &SessionRecord, standing: &Standing) -> SessionDocument {
    SessionDocument {
        id: session.id.to_string(),
        kind: "shell",
        end: session_end(session, run, standing),
        exit_code: session.report.as_ref().and_then(proctor_domain::session::SessionReport::exit_code),
        cost_usd: Some(0.0),
    }
}

fn validate_document(step: &StepRecord, result: CheckResult) -> ValidateDocument {
    let failed = match &step.state {
        StepState::Failed(failure) | StepState::Failing(failure) => {
            Some(failure).filter(|failure| failure.phase() == Some(Phase::Validate))
        }
        StepState::Pending | StepState::Running | StepState::Skipping | StepState::Completed | StepState::Skipped(_) => None,
    };
    let failed = failed.or(step.warning.as_ref());
    ValidateDocument { result: result.name(), reasoning: failed.map(ToString::to_string), reason: None }
}
