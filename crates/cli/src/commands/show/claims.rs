//! What agents say beside what Proctor saw, kept apart.

use proctor_domain::Oid;
use proctor_domain::RepoPath;
use proctor_domain::procedure::{Answer, Approval, CheckResult, Failure, QuestionAnswer, StepRecord, StepState, Unjudged};
use proctor_domain::session::EngineName;
use proctor_domain::session::{AgentReport, Learned, SessionRecord, Usage, Work};
use serde::Serialize;
use serde_json::Value;

use super::View;
use crate::run_text::{utc_time, work_name};
use crate::spending::{TokensDocument, dollars, tokens};

/// A claim.
#[derive(Serialize)]
pub(super) struct ClaimDetails {
    pub(super) session: String,
    pub(super) by: String,
    /// By what it said it.
    pub(super) kind: Said,
    pub(super) text: String,
}

/// By what an agent said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Said {
    /// A note, in the middle of its work.
    Note,
    /// What its repair taught.
    Learned,
    /// That it can't go on.
    Blocked,
    /// A question to a person.
    Question,
    /// Its last words.
    LastWords,
}

/// What Proctor saw of a step.
#[derive(Serialize)]
pub(super) struct FactDetails {
    changed: Vec<RepoPath>,
    commits: Vec<Oid>,
    checks: Option<&'static str>,
    judge: Option<JudgeDetails>,
    /// What its agents changed of what git runs.
    planted: Vec<String>,
}

#[derive(Serialize)]
struct JudgeDetails {
    /// `pass`, `fail`, or null for none.
    verdict: Option<&'static str>,
    reasoning: Option<String>,
    /// Why there is no verdict.
    unjudged: Option<&'static str>,
    /// What was judged: the tree or commit before, and the tree after.
    from: Option<Oid>,
    to: Option<Oid>,
}

/// What a person said.
#[derive(Serialize)]
pub(super) struct ApprovalDetails {
    answer: Answer,
    message: Option<String>,
    at: String,
}

/// What one agent said.
#[derive(Serialize)]
pub(super) struct SessionClaims {
    text: Option<String>,
    /// What it wanted to be kept.
    notes: Vec<String>,
    /// What its repair taught it, by its words.
    learned: Option<Learned>,
    /// Why it could not go on.
    blocked: Option<String>,
    /// What it asked a person.
    question: Option<String>,
    /// Its structured result, as it gave it.
    result: Option<Value>,
}

/// What is known of an agent's session.
#[derive(Serialize)]
pub(super) struct SessionFacts {
    engine: EngineName,
    model: Option<String>,
    conversation: Option<String>,
    responded: bool,
    turns: u32,
    tokens: TokensDocument,
    cost_usd: Option<f64>,
    /// What the engine said about an error.
    error: Option<String>,
    unknown_lines: u64,
    planted: Vec<String>,
}

/// What a person told an agent that asked.
#[derive(Serialize)]
pub(super) struct AnswerDetails {
    question: String,
    answer: String,
    at: String,
}

/// What a person told the agents of a step.
pub(super) fn answer_details(step: &StepRecord) -> Vec<AnswerDetails> {
    let details =
        |told: &QuestionAnswer| AnswerDetails { question: told.question.clone(), answer: told.answer.clone(), at: utc_time(told.at) };
    step.answers.iter().map(details).collect()
}

/// What a person said to a step.
pub(super) fn approval_details(approval: &Approval) -> ApprovalDetails {
    ApprovalDetails { answer: approval.answer, message: approval.message.clone(), at: utc_time(approval.at) }
}

/// What the agents of a step say, oldest first. A judge's word is its verdict.
pub(super) fn claims(step: &StepRecord) -> Vec<ClaimDetails> {
    let of_agents = step.sessions.iter().filter(|session| matches!(session.work, Work::Agent(_) | Work::Repair));
    let said = |session: &SessionRecord| {
        let (id, by) = (session.id.to_string(), work_name(session.phase, session.work));
        let claim = move |(kind, text)| ClaimDetails { session: id.clone(), by: by.clone(), kind, text };
        session.report.as_ref().and_then(|report| report.agent.as_deref()).map(words).unwrap_or_default().into_iter().map(claim)
    };
    of_agents.flat_map(said).collect()
}

/// What an agent said, in the order in which it can have done so.
fn words(agent: &AgentReport) -> Vec<(Said, String)> {
    let notes = agent.told.notes.iter().map(|note| (Said::Note, note.clone()));
    let learned = agent.told.learned.iter().map(|learned| (Said::Learned, format!("{}\notherwise: {}", learned.route, learned.trap)));
    let blocked = agent.told.blocked.iter().map(|reason| (Said::Blocked, reason.clone()));
    let question = agent.told.question.iter().map(|question| (Said::Question, question.clone()));
    let last = agent.claim.iter().map(|claim| (Said::LastWords, claim.clone()));
    notes.chain(learned).chain(blocked).chain(question).chain(last).collect()
}

/// What Proctor saw of a step.
pub(super) fn facts(view: &View<'_>, step: &StepRecord) -> FactDetails {
    FactDetails {
        changed: changed(view, step),
        commits: step.commits.clone(),
        checks: step.validate.map(CheckResult::name),
        judge: step.plan.judged.then(|| JudgeDetails {
            verdict: verdict(step),
            reasoning: step.reasoning.clone(),
            unjudged: step.unjudged.map(Unjudged::name),
            from: step.evidence.as_ref().and_then(|evidence| evidence.from.clone()),
            to: step.evidence.as_ref().map(|evidence| evidence.to.clone()),
        }),
        planted: step.sessions.iter().flat_map(|session| planted(view, session)).collect(),
    }
}

/// The paths that it changed, committed or not, sorted. What its shells left the record says; what its agents did was
/// committed before that, and of it git has to be asked.
pub(super) fn changed(view: &View<'_>, step: &StepRecord) -> Vec<RepoPath> {
    let mut paths = step.changed.clone();
    if let (1.., Some(baseline), Some(last)) = (step.plan.agents, &step.baseline, step.commits.last()) {
        // Commits that git has thrown away since can't be asked any more.
        paths.extend(view.archive.site.repository.differing(baseline, last).unwrap_or_default());
    }
    paths.sort();
    paths.dedup();
    paths
}

/// What its judge found.
pub(super) fn verdict(step: &StepRecord) -> Option<&'static str> {
    step.reasoning.as_ref()?;
    let failure = match &step.state {
        StepState::Failed(failure) | StepState::Failing(failure) => Some(failure),
        StepState::Pending | StepState::Running | StepState::Skipping | StepState::Completed | StepState::Skipped(_) => {
            step.warning.as_ref()
        }
    };
    Some(if matches!(failure, Some(Failure::Judged { .. })) { "fail" } else { "pass" })
}

/// What the agent of a session changed of what git runs, one sentence each.
pub(super) fn planted(view: &View<'_>, session: &SessionRecord) -> Vec<String> {
    let told = std::fs::read_to_string(view.archive.site.state.changed_programs(&session.id)).unwrap_or_default();
    told.lines().map(str::to_owned).collect()
}

/// What an agent said.
pub(super) fn session_claims(agent: &AgentReport) -> SessionClaims {
    let json = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
    SessionClaims {
        text: agent.claim.clone(),
        notes: agent.told.notes.clone(),
        learned: agent.told.learned.clone(),
        blocked: agent.told.blocked.clone(),
        question: agent.told.question.clone(),
        result: agent.result.as_ref().map(json),
    }
}

/// What is known of its session.
pub(super) fn session_facts(view: &View<'_>, session: &SessionRecord, agent: &AgentReport) -> SessionFacts {
    SessionFacts {
        engine: agent.engine.clone(),
        model: agent.model.clone(),
        conversation: agent.conversation.clone(),
        responded: agent.responded,
        turns: agent.turns,
        tokens: tokens(usage(agent), !agent.spent.is_empty() || !agent.responded),
        cost_usd: agent.cost().known().map(dollars),
        error: agent.error.clone(),
        unknown_lines: agent.unknown_lines,
        planted: planted(view, session),
    }
}

/// The tokens of all models together.
pub(super) fn usage(agent: &AgentReport) -> Usage {
    agent.spent.iter().fold(Usage::default(), |total, spending| Usage {
        input: total.input.saturating_add(spending.usage.input),
        output: total.output.saturating_add(spending.usage.output),
        cache_read: total.cache_read.saturating_add(spending.usage.cache_read),
        cache_write: total.cache_write.saturating_add(spending.usage.cache_write),
    })
}
