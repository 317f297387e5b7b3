//! Runs and sessions as JSON, complete.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proctor_domain::procedure::{Failure, Leftovers, Proposal, Records, StepRecord, StepState};
use proctor_domain::session::{Excerpt, Lingering, Phase, SessionEnd, SessionRecord, SessionReport, ShellEnd};
use proctor_domain::{Oid, RecordId, RepoPath, RunId, SessionId, Timestamp};
use proctor_orchestrator::procedure::Standing;
use serde::Serialize;

use super::View;
use super::claims::{
    AnswerDetails, ApprovalDetails, ClaimDetails, FactDetails, SessionClaims, SessionFacts, answer_details, approval_details, claims,
    facts, session_claims, session_facts,
};
use crate::run_document::{has_warnings, outcome, precheck_name, session_kind, step_state};
use crate::run_text::{utc_time, work_name};
use crate::spending::{Tally, TallyDocument};
use crate::standing::{StandingDocument, why};

#[derive(Serialize)]
pub(super) struct RunDetails {
    version: u32,
    run: RunId,
    procedure: String,
    outcome: &'static str,
    /// Whether a step counts as done although a check of it said no.
    with_warnings: bool,
    /// Null while it runs.
    exit_code: Option<u8>,
    standing: StandingDocument,
    /// Why it stands still, when it does.
    halted: Option<String>,
    started_at: String,
    ended_at: Option<String>,
    duration_ms: u64,
    /// A time, `never`, or null while the run is not over.
    expires: Option<String>,
    card: RepoPath,
    /// SHA-256 of the card's text as the run follows it.
    definition: String,
    records: Records,
    folder: Option<RepoPath>,
    worktree: RepoPath,
    card_root: RepoPath,
    branch: String,
    /// Where the work of a run with a worktree of its own goes in the end.
    isolated: Option<IsolatedDetails>,
    /// The box that its agents were held in; null before the first of them.
    confined: Option<String>,
    /// What they reach of the network, and what their box leaves open; null where that was not recorded.
    #[serde(rename = "box")]
    in_box: Option<BoxDetails>,
    cost: TallyDocument,
    head_at_start: Option<Oid>,
    head: Option<Oid>,
    directive: Option<String>,
    inputs: BTreeMap<String, String>,
    only: Option<String>,
    /// Paths that were dirty at the start and are left alone.
    foreign: Vec<RepoPath>,
    foreign_tree: Option<Oid>,
    /// What it left uncommitted when it last stopped.
    left: Option<LeftDetails>,
    events: u64,
    /// Proctor's own commits, oldest first.
    commits: Vec<Oid>,
    memory: MemoryDetails,
    steps: Vec<StepDetails>,
}

/// What became in memory of what the run taught.
#[derive(Serialize)]
struct MemoryDetails {
    proposals: Vec<Proposal>,
    /// Why memory could not be told.
    obstacle: Option<String>,
}

#[derive(Serialize)]
struct IsolatedDetails {
    origin: RepoPath,
    into: String,
    merged: Option<Oid>,
}

#[derive(Serialize)]
struct BoxDetails {
    kind: String,
    net: String,
    /// What such a box is to keep agents from and this one does not.
    open: Vec<String>,
}

#[derive(Serialize)]
struct LeftDetails {
    paths: Vec<RepoPath>,
    tree: Oid,
}

#[derive(Serialize)]
struct StepDetails {
    id: String,
    state: &'static str,
    reason: Option<&'static str>,
    error: Option<String>,
    warning: Option<String>,
    phases: Vec<&'static str>,
    attempts: u32,
    started_at: Option<String>,
    ended_at: Option<String>,
    duration_ms: u64,
    baseline: Option<Oid>,
    precheck: Option<&'static str>,
    validate: Option<&'static str>,
    outputs: BTreeMap<String, String>,
    changed: Vec<RepoPath>,
    commits: Vec<Oid>,
    earlier_failures: Vec<String>,
    salvaged: Vec<String>,
    approval: Option<ApprovalDetails>,
    /// What a person told its agents.
    answers: Vec<AnswerDetails>,
    /// What its agents say. Nothing was decided on it.
    claims: Vec<ClaimDetails>,
    /// What Proctor saw.
    facts: FactDetails,
    sessions: Vec<SessionDetails>,
}

#[derive(Serialize)]
struct SessionDetails {
    id: SessionId,
    kind: &'static str,
    work: String,
    phase: &'static str,
    attempt: u32,
    end: &'static str,
    /// What is known beyond the word: a reason, a time.
    detail: Option<String>,
    exit_code: Option<i32>,
    shells: Vec<ShellDetails>,
    duration_ms: Option<u64>,
    outputs: BTreeMap<String, String>,
    output_error: Option<String>,
    ended_orphans: u32,
    lingering: Vec<LingeringDetails>,
    /// What a judge said.
    verdict: Option<VerdictDetails>,
    log_note: Option<String>,
    stdout: Option<StreamDetails>,
    stderr: Option<StreamDetails>,
    folder: RepoPath,
    /// The records of memory that it was shown.
    known: Vec<RecordId>,
    /// What the agent says; null for shells.
    claims: Option<SessionClaims>,
    /// What its engine and Proctor saw of it; null for shells.
    facts: Option<SessionFacts>,
}

#[derive(Serialize)]
struct VerdictDetails {
    passed: bool,
    reasoning: String,
}

#[derive(Serialize)]
struct ShellDetails {
    exit_code: i32,
    duration_ms: u64,
}

#[derive(Serialize)]
struct LingeringDetails {
    program: String,
    pid: u32,
}

#[derive(Serialize)]
struct StreamDetails {
    head: String,
    tail: String,
    omitted: u64,
}

#[derive(Serialize)]
pub(super) struct SessionDocument {
    version: u32,
    run: RunId,
    procedure: String,
    step: String,
    session: SessionDetails,
    /// The bash texts; empty when the session's files are gone.
    scripts: Vec<String>,
}

/// A run with all its steps and sessions.
pub(super) fn run(view: &View<'_>) -> RunDetails {
    let loaded = &view.seen.loaded;
    let (run, standing) = (&loaded.run, &view.seen.standing);
    let started = &run.started;
    let until = run.ended_at.unwrap_or(if *standing == Standing::Running { view.now } else { view.seen.last_sign });
    RunDetails {
        version: 1,
        run: loaded.run_id.clone(),
        procedure: started.procedure.clone(),
        outcome: outcome(standing),
        with_warnings: has_warnings(run, standing),
        exit_code: (*standing != Standing::Running).then(|| standing.exit_code().code()),
        standing: StandingDocument::of(&loaded.run_id, run, standing),
        halted: why(run, standing),
        started_at: utc_time(run.started_at),
        ended_at: run.ended_at.map(utc_time),
        duration_ms: until.millis_since(run.started_at),
        expires: run.ended_at.map(|_| run.expires.map_or_else(|| "never".to_owned(), utc_time)),
        card: started.card.clone(),
        definition: started.snapshot.clone(),
        records: started.records,
        folder: started.folder.clone(),
        worktree: started.worktree.clone(),
        card_root: started.card_root.clone(),
        branch: started.branch.to_string(),
        isolated: started.isolated.as_ref().map(|isolated| IsolatedDetails {
            origin: isolated.origin.clone(),
            into: isolated.into.to_string(),
            merged: run.merged.clone(),
        }),
        confined: run.confined.as_ref().map(|confined| confined.kind.clone()),
        in_box: run
            .confined
            .as_ref()
            .and_then(|confined| Some(BoxDetails { kind: confined.kind.clone(), net: confined.net.clone()?, open: confined.open.clone() })),
        cost: Tally::of(run.steps.iter().flat_map(|step| &step.sessions)).document(),
        head_at_start: started.head.clone(),
        head: run.head.clone(),
        directive: started.directive.clone(),
        inputs: started.inputs.clone(),
        only: started.only.as_ref().map(ToString::to_string),
        foreign: started.foreign.clone(),
        foreign_tree: started.foreign_snapshot.clone(),
        left: run.left.as_ref().map(|Leftovers { paths, snapshot }| LeftDetails { paths: paths.clone(), tree: snapshot.clone() }),
        events: loaded.version,
        commits: run.commits.clone(),
        memory: MemoryDetails { proposals: run.proposals.clone(), obstacle: run.proposal_obstacle.clone() },
        steps: run.steps.iter().map(|step| step_details(view, step, until)).collect(),
    }
}

/// One session with its texts.
pub(super) fn session(view: &View<'_>, step: &StepRecord, session: &SessionRecord) -> SessionDocument {
    SessionDocument {
        version: 1,
        run: view.seen.loaded.run_id.clone(),
        procedure: view.seen.loaded.run.started.procedure.clone(),
        step: step.plan.id.to_string(),
        session: session_details(view, step, session),
        scripts: view.shells(&session.id),
    }
}

fn step_details(view: &View<'_>, step: &StepRecord, until: Timestamp) -> StepDetails {
    let (reason, error) = match &step.state {
        StepState::Skipped(reason) => (Some(reason.name()), None),
        StepState::Failed(failure) | StepState::Failing(failure) => (None, Some(failure.to_string())),
        StepState::Pending | StepState::Running | StepState::Skipping | StepState::Completed => (None, None),
    };
    StepDetails {
        id: step.plan.id.to_string(),
        state: step_state(step, &view.seen.standing),
        reason,
        error,
        warning: step.warning.as_ref().map(Failure::to_string),
        phases: step.plan.phases.iter().copied().map(Phase::name).collect(),
        attempts: step.attempts_made(),
        started_at: step.started_at.map(utc_time),
        ended_at: step.ended_at.map(utc_time),
        duration_ms: step.worked_millis(until).unwrap_or(0),
        baseline: step.baseline.clone(),
        precheck: step.precheck.as_ref().map(precheck_name),
        validate: step.validate.map(proctor_domain::procedure::CheckResult::name),
        outputs: step.outputs.clone(),
        changed: step.changed.clone(),
        commits: step.commits.clone(),
        earlier_failures: step.earlier_failures.iter().map(Failure::to_string).collect(),
        salvaged: step.salvaged.clone(),
        approval: step.approval.as_ref().map(approval_details),
        answers: answer_details(step),
        claims: claims(step),
        facts: facts(view, step),
        sessions: step.sessions.iter().map(|session| session_details(view, step, session)).collect(),
    }
}

fn session_details(view: &View<'_>, step: &StepRecord, session: &SessionRecord) -> SessionDetails {
    let report = session.report.as_ref();
    let verdict = step.verdicts.iter().find(|(by, _)| *by == session.id).map(|(_, verdict)| verdict);
    SessionDetails {
        id: session.id.clone(),
        kind: session_kind(session),
        work: work_name(session.phase, session.work),
        phase: session.phase.name(),
        attempt: session.attempt,
        end: view.session_end(session),
        detail: report.and_then(|report| end_detail(&report.end, utc_time)),
        exit_code: report.and_then(SessionReport::exit_code),
        shells: report.map(|report| report.shells.iter().map(shell_details).collect()).unwrap_or_default(),
        duration_ms: report.map(|report| report.duration_ms),
        outputs: report.map(|report| report.outputs.clone()).unwrap_or_default(),
        output_error: report.and_then(|report| report.output_error.clone()),
        ended_orphans: report.map_or(session.orphans_of_lost, |report| report.ended_orphans),
        verdict: verdict.map(|verdict| VerdictDetails { passed: verdict.passed, reasoning: verdict.reasoning.clone() }),
        lingering: report.map(|report| report.lingering.iter().map(lingering_details).collect()).unwrap_or_default(),
        log_note: report.and_then(|report| report.log_note.clone()),
        stdout: report.map(|report| stream_details(&report.stdout)),
        stderr: report.map(|report| stream_details(&report.stderr)),
        folder: stored(&view.archive.site.state.session(&session.id)),
        known: session.known.clone(),
        claims: report.and_then(|report| report.agent.as_deref()).map(session_claims),
        facts: report.and_then(|report| report.agent.as_deref()).map(|agent| session_facts(view, session, agent)),
    }
}

/// What an end says beyond its name, with times written so.
pub(super) fn end_detail(end: &SessionEnd, time: fn(Timestamp) -> String) -> Option<String> {
    match end {
        SessionEnd::Crashed { reason } => Some(reason.clone()),
        SessionEnd::RateLimited { until } | SessionEnd::UsageLimit { until } => until.map(|until| format!("until {}", time(until))),
        SessionEnd::Completed
        | SessionEnd::TurnLimit
        | SessionEnd::Budget
        | SessionEnd::Timeout
        | SessionEnd::Silent
        | SessionEnd::Refused
        | SessionEnd::Interrupted
        | SessionEnd::NoResult => None,
    }
}

fn shell_details(shell: &ShellEnd) -> ShellDetails {
    ShellDetails { exit_code: shell.exit_code, duration_ms: shell.duration_ms }
}

fn lingering_details(lingering: &Lingering) -> LingeringDetails {
    LingeringDetails { program: lingering.program.clone(), pid: lingering.pid }
}

fn stream_details(excerpt: &Excerpt) -> StreamDetails {
    StreamDetails { head: excerpt.head.clone(), tail: excerpt.tail.clone(), omitted: excerpt.omitted }
}

fn stored(path: &Path) -> RepoPath {
    RepoPath::new(path.as_os_str().as_bytes())
}
