//! Why a step failed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RepoPath;
use crate::path::listed;
use crate::session::{Phase, Work};

/// Paths that a sentence names; of more it says how many.
const LISTED: usize = 10;

/// Why a step failed. Its `Display` is one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "cause")]
pub enum Failure {
    /// A shell exited with a code that does not pass.
    Exit {
        /// In which phase.
        phase: Phase,
        /// The shell's number within the phase, from 1.
        shell: usize,
        /// Its exit code.
        code: i32,
    },
    /// A phase reached its wall-clock limit.
    Timeout {
        /// Which phase.
        phase: Phase,
    },
    /// A shell could not be started.
    Crashed {
        /// In which phase.
        phase: Phase,
        /// One sentence.
        reason: String,
    },
    /// An agent was cut short, and no check looks at its work.
    Agent {
        /// The agent's number, from 1.
        agent: u32,
        /// How its session ended.
        end: String,
    },
    /// An agent said that it can't go on, and no check looks at its work.
    Blocked {
        /// The agent's number, from 1.
        agent: u32,
        /// In its words.
        reason: String,
    },
    /// A model gave no answer at all: login, refusal, no program.
    NoResponse {
        /// What the session was for.
        work: Work,
        /// One sentence.
        reason: String,
    },
    /// A judge found the work wanting.
    Judged {
        /// Its reasoning.
        reasoning: String,
    },
    /// A person said no.
    Rejected {
        /// In their words.
        message: Option<String>,
    },
    /// An agent changed what git runs: its settings, hooks or where it looks for the repository.
    ChangedGit {
        /// What was changed; put back where that was possible.
        what: Vec<String>,
    },
    /// What was written to `$PROCTOR_OUTPUT` can't be used.
    Outputs {
        /// One sentence.
        reason: String,
    },
    /// An expression or template can't be evaluated.
    Template {
        /// The card key it stands under.
        key: String,
        /// One sentence.
        reason: String,
    },
    /// The step changed paths that were somebody else's before the run began.
    TouchedForeign {
        /// Which.
        paths: Vec<RepoPath>,
    },
    /// A precheck that skips or fails must not change files.
    PrecheckChanged {
        /// Which.
        paths: Vec<RepoPath>,
    },
    /// What the step left can't be committed as it is: a nested repository, too many or too large files.
    Uncommittable {
        /// One sentence that names it.
        reason: String,
    },
    /// A hook refused the commit.
    HookRefused {
        /// What it printed.
        output: String,
    },
    /// The commit could not be signed.
    Signing {
        /// What git printed.
        output: String,
    },
    /// Git refused the commit for another reason.
    Git {
        /// What git printed.
        output: String,
    },
}

impl Failure {
    /// The phase that failed, where one did.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Self::Exit { phase, .. } | Self::Timeout { phase } | Self::Crashed { phase, .. } => Some(*phase),
            Self::PrecheckChanged { .. } => Some(Phase::Precheck),
            Self::NoResponse { work: Work::Judge(_), .. } | Self::Judged { .. } => Some(Phase::Validate),
            Self::Agent { .. } | Self::Blocked { .. } | Self::NoResponse { .. } => Some(Phase::Run),
            Self::Rejected { .. }
            | Self::ChangedGit { .. }
            | Self::Outputs { .. }
            | Self::Template { .. }
            | Self::TouchedForeign { .. }
            | Self::Uncommittable { .. }
            | Self::HookRefused { .. }
            | Self::Signing { .. }
            | Self::Git { .. } => None,
        }
    }

    /// Whether `retry: on: [shell]` covers it.
    pub fn is_of_a_shell(&self) -> bool {
        matches!(self, Self::Exit { .. } | Self::Timeout { .. }) && self.phase() != Some(Phase::Precheck)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { phase: phase @ (Phase::Run | Phase::Validate), shell, code: 75 } => {
                write!(formatter, "{} shell {shell}: exit 75, which skips only in a precheck", phase.name())
            }
            Self::Exit { phase, shell, code } => write!(formatter, "{} shell {shell}: exit {code}", phase.name()),
            Self::Timeout { phase } => write!(formatter, "{} reached its time limit", phase.name()),
            Self::Crashed { phase, reason } => write!(formatter, "{} could not be run: {reason}", phase.name()),
            Self::Agent { agent, end } => write!(formatter, "agent {agent} ended with `{end}`, and nothing checks its work"),
            Self::Blocked { agent, reason } => write!(formatter, "agent {agent} says that it is blocked: {}", reason.trim()),
            Self::NoResponse { work, reason } => write!(formatter, "{} gave no answer: {reason}", who(*work)),
            Self::Judged { reasoning } => write!(formatter, "judged: {}", reasoning.trim()),
            Self::Rejected { message: Some(message) } => write!(formatter, "it was rejected: {}", message.trim()),
            Self::Rejected { message: None } => formatter.write_str("it was rejected"),
            Self::ChangedGit { what } => write!(formatter, "its agent changed what git runs: {}", what.join(", ")),
            Self::Outputs { reason } => write!(formatter, "outputs: {reason}"),
            Self::Template { key, reason } => write!(formatter, "`{key}` can't be evaluated: {reason}"),
            Self::TouchedForeign { paths } => {
                write!(formatter, "it changed files that were not the run's: {}", listed(paths, LISTED))
            }
            Self::PrecheckChanged { paths } => write!(formatter, "its precheck changed files: {}", listed(paths, LISTED)),
            Self::Uncommittable { reason } => formatter.write_str(reason),
            Self::HookRefused { output } => write!(formatter, "a git hook refused the commit: {}", output.trim()),
            Self::Signing { output } => write!(formatter, "the commit could not be signed: {}", output.trim()),
            Self::Git { output } => write!(formatter, "git refused the commit: {}", output.trim()),
        }
    }
}

fn who(work: Work) -> String {
    match work {
        Work::Shells => "the shell".to_owned(),
        Work::Agent(number) => format!("agent {number}"),
        Work::Judge(_) => "the judge".to_owned(),
        Work::Repair => "the repairing agent".to_owned(),
    }
}
