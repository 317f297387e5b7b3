//! A run as JSON: the one object of `procedure run`, `resume` and `status`.

use std::collections::BTreeMap;

use proctor_domain::procedure::{CheckResult, Outcome, PrecheckResult, Run, StepRecord, StepState, Unjudged};
use proctor_domain::session::{Phase, SessionRecord, Work};
use proctor_domain::{Cost, MicroDollars, RunId, Timestamp};
use proctor_orchestrator::procedure::Standing;
use serde::Serialize;

use crate::spending::{Tally, dollars};
use crate::standing::{StandingDocument, branch_to_merge};

/// The version of this form.
const VERSION: u32 = 1;

/// A run.
#[derive(Debug, Serialize)]
pub struct RunDocument {
    version: u32,
    run: RunId,
    procedure: String,
    outcome: &'static str,
    /// Whether a step counts as done although a check of it said no.
    with_warnings: bool,
    /// Null while it runs.
    exit_code: Option<u8>,
    standing: StandingDocument,
    /// The branch of an isolated run that is not merged yet.
    branch_to_merge: Option<String>,
    /// What is known of the cost; null where nothing is.
    cost_usd: Option<f64>,
    /// Whether that is all of it.
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
    /// `shell`, `agent`, `judge` or `repair`.
    kind: &'static str,
    end: &'static str,
    exit_code: Option<i32>,
    turns: Option<u32>,
    cost_usd: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ValidateDocument {
    result: &'static str,
    /// What the judge, or the failed check, says.
    reasoning: Option<String>,
    /// Why there is no verdict.
    reason: Option<&'static str>,
    /// The sessions of judges.
    sessions: Vec<SessionDocument>,
}

impl RunDocument {
    /// The document of a run that stands as `standing` says, at `now`.
    pub fn of(run_id: &RunId, run: &Run, standing: &Standing, now: Timestamp) -> Self {
        let cost = Tally::of(run.steps.iter().flat_map(|step| &step.sessions));
        Self {
            version: VERSION,
            run: run_id.clone(),
            procedure: run.started.procedure.clone(),
            outcome: outcome(standing),
            with_warnings: has_warnings(run, standing),
            exit_code: Some(standing.exit_code().code()),
            standing: StandingDocument::of(run_id, run, standing),
            branch_to_merge: branch_to_merge(run).map(ToString::to_string),
            cost_usd: cost.cost_usd(),
            cost_complete: cost.is_complete(),
            steps: run.steps.iter().map(|step| step_document(run, step, standing, now)).collect(),
        }
    }

    /// The same for somebody who only looks at the run: one that is at work has no exit code yet.
    #[must_use]
    pub fn looked_at(self) -> Self {
        Self { exit_code: self.exit_code.filter(|_| self.outcome != "running"), ..self }
    }
}

/// Whether a run is completed with a warning.
pub fn has_warnings(run: &Run, standing: &Standing) -> bool {
    *standing == Standing::Ended(Outcome::Completed) && run.has_warnings()
}

/// How a run stands, in words: as [`outcome`], or `completed with warnings`.
pub fn outcome_text(run: &Run, standing: &Standing) -> &'static str {
    if has_warnings(run, standing) { "completed with warnings" } else { outcome(standing) }
}

/// The word for how a run stands.
pub fn outcome(standing: &Standing) -> &'static str {
    match standing {
        Standing::Ended(outcome) => outcome.name(),
        Standing::Halted(reason) if reason.is_parked() => "parked",
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
            Standing::Halted(reason) if reason.is_parked() => "parked",
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
        attempts: step.attempts_made(),
        precheck: step.precheck.as_ref().map(|result| PrecheckDocument {
            result: precheck_name(result),
            exit_code: step.last_report(Phase::Precheck).and_then(proctor_domain::session::SessionReport::exit_code),
        }),
        run: run_phase(run, step, standing),
        validate: step.validate.map(|result| validate_document(run, step, result, standing)),
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
    let is_meant = |session: &SessionRecord| session.phase == Phase::Run;
    let sessions = session_documents(run, step, standing, is_meant);
    (!sessions.is_empty()).then_some(RunPhaseDocument { sessions })
}

fn session_documents(run: &Run, step: &StepRecord, standing: &Standing, is_meant: impl Fn(&SessionRecord) -> bool) -> Vec<SessionDocument> {
    step.sessions.iter().filter(|session| is_meant(session)).map(|session| session_document(run, session, standing)).collect()
}

/// The word for what a session is.
pub fn session_kind(session: &SessionRecord) -> &'static str {
    if session.work == Work::Shells { "shell" } else { session.work.name() }
}

/// What a session cost, where that is known. Shells cost nothing, and that is known.
pub fn session_cost(session: &SessionRecord) -> Cost {
    if session.work == Work::Shells {
        return Cost::Known(MicroDollars(0));
    }
    session.report.as_ref().and_then(|report| report.agent.as_ref()).map_or(Cost::Unknown, |agent| agent.cost())
}

fn session_document(run: &Run, session: &SessionRecord, standing: &Standing) -> SessionDocument {
    SessionDocument {
        id: session.id.to_string(),
        kind: session_kind(session),
        end: session_end(session, run, standing),
        exit_code: session.report.as_ref().and_then(proctor_domain::session::SessionReport::exit_code),
        turns: session.report.as_ref().and_then(|report| report.agent.as_ref()).map(|agent| agent.turns),
        cost_usd: session_cost(session).known().map(dollars),
    }
}

fn validate_document(run: &Run, step: &StepRecord, result: CheckResult, standing: &Standing) -> ValidateDocument {
    let failed = match &step.state {
        StepState::Failed(failure) | StepState::Failing(failure) => {
            Some(failure).filter(|failure| failure.phase() == Some(Phase::Validate))
        }
        StepState::Pending | StepState::Running | StepState::Skipping | StepState::Completed | StepState::Skipped(_) => None,
    };
    let failed = failed.or(step.warning.as_ref());
    ValidateDocument {
        result: result.name(),
        reasoning: step.reasoning.clone().or_else(|| failed.map(ToString::to_string)),
        reason: step.unjudged.filter(|_| result == CheckResult::Inconclusive).map(Unjudged::name),
        sessions: session_documents(run, step, standing, |session| matches!(session.work, Work::Judge(_))),
    }
}
