//! What a session's report means for its phase.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Failure, Severity};
use crate::session::{Phase, SessionEnd, SessionReport};

/// The exit code with which a precheck says that its step is not needed.
const SKIP: i32 = 75;

/// What a precheck decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrecheckResult {
    /// The step is needed.
    Pass,
    /// It is not.
    Skip,
    /// The precheck itself failed.
    Fail(Failure),
}

/// What the checks of a step said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckResult {
    /// The work is good.
    Pass,
    /// It is not, and the step fails.
    Fail,
    /// It is not, and the run goes on.
    Warn,
    /// No verdict was reached.
    Inconclusive,
}

impl CheckResult {
    /// The word used in JSON, run cards and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What a judge says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the work meets the criteria.
    pub passed: bool,
    /// Why, in the judge's words.
    pub reasoning: String,
}

/// Why a judge reached no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unjudged {
    /// It used up its turns, this many.
    MaxTurns(u32),
    /// It used up its money.
    MaxBudget,
    /// It ran out of time, or was silent for too long.
    Timeout,
    /// It gave no result, or not the one it was asked for.
    NoStructuredOutput,
    /// For another reason.
    Unknown,
}

impl Unjudged {
    /// The caps on the turns of a judge's first and second try.
    pub const TURNS: [u32; 2] = [8, 16];

    /// Why the session of a judge's try with this number, from 1, is no verdict.
    pub fn of(end: &SessionEnd, number: u32) -> Self {
        match end {
            SessionEnd::TurnLimit => Self::MaxTurns(Self::turns(number)),
            SessionEnd::Budget => Self::MaxBudget,
            SessionEnd::Timeout | SessionEnd::Silent => Self::Timeout,
            SessionEnd::Completed | SessionEnd::NoResult => Self::NoStructuredOutput,
            SessionEnd::RateLimited { .. }
            | SessionEnd::UsageLimit { .. }
            | SessionEnd::Refused
            | SessionEnd::Crashed { .. }
            | SessionEnd::Interrupted => Self::Unknown,
        }
    }

    /// The cap on the turns of a judge's try with this number, from 1.
    pub fn turns(number: u32) -> u32 {
        let [first, further] = Self::TURNS;
        if number <= 1 { first } else { further }
    }

    /// The word used in JSON and run cards.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTurns(_) => "max-turns",
            Self::MaxBudget => "max-budget",
            Self::Timeout => "timeout",
            Self::NoStructuredOutput => "no-structured-output",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Unjudged {
    /// As the end of the sentence "review of step ID …".
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxTurns(turns) => write!(formatter, "reached max turns ({turns})"),
            Self::MaxBudget => formatter.write_str("reached max budget"),
            Self::Timeout => formatter.write_str("timed out"),
            Self::NoStructuredOutput => formatter.write_str("returned no structured output"),
            Self::Unknown => formatter.write_str("reached no verdict"),
        }
    }
}

/// Reads a precheck: 0 passes, 75 skips, anything else fails.
pub fn judge_precheck(report: &SessionReport) -> PrecheckResult {
    match failure(Phase::Precheck, report) {
        None => PrecheckResult::Pass,
        Some(Failure::Exit { code: SKIP, .. }) => PrecheckResult::Skip,
        Some(failure) => PrecheckResult::Fail(failure),
    }
}

/// Reads a run phase; `Some` when it failed. Exit 75 fails here.
pub fn judge_run(report: &SessionReport) -> Option<Failure> {
    failure(Phase::Run, report).or_else(|| report.output_error.clone().map(|reason| Failure::Outputs { reason }))
}

/// Reads a validate phase, and why it is not a pass.
pub fn judge_validate(report: &SessionReport, severity: Severity) -> (CheckResult, Option<Failure>) {
    match (failure(Phase::Validate, report), severity) {
        (None, _) => (CheckResult::Pass, None),
        (Some(failure), Severity::Warn) => (CheckResult::Warn, Some(failure)),
        (Some(failure), Severity::Review | Severity::Abort) => (CheckResult::Fail, Some(failure)),
    }
}

fn failure(phase: Phase, report: &SessionReport) -> Option<Failure> {
    match &report.end {
        SessionEnd::Completed => {
            let shell = report.shells.len();
            report.exit_code().filter(|code| *code != 0).map(|code| Failure::Exit { phase, shell, code })
        }
        SessionEnd::Timeout => Some(Failure::Timeout { phase }),
        SessionEnd::Crashed { reason } => Some(Failure::Crashed { phase, reason: reason.clone() }),
        // The rest are ends of agents; a host of shells never reports them.
        end @ (SessionEnd::TurnLimit
        | SessionEnd::Budget
        | SessionEnd::Silent
        | SessionEnd::RateLimited { .. }
        | SessionEnd::UsageLimit { .. }
        | SessionEnd::Refused
        | SessionEnd::Interrupted
        | SessionEnd::NoResult) => Some(Failure::Crashed { phase, reason: format!("its session ended with `{}`", end.name()) }),
    }
}
