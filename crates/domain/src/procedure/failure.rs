//! Why a step failed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RepoPath;
use crate::session::Phase;

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
            Self::Outputs { .. }
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
            Self::Outputs { reason } => write!(formatter, "outputs: {reason}"),
            Self::Template { key, reason } => write!(formatter, "`{key}` can't be evaluated: {reason}"),
            Self::TouchedForeign { paths } => {
                write!(formatter, "it changed files that were not the run's: {}", list(paths))
            }
            Self::PrecheckChanged { paths } => write!(formatter, "its precheck changed files: {}", list(paths)),
            Self::Uncommittable { reason } => formatter.write_str(reason),
            Self::HookRefused { output } => write!(formatter, "a git hook refused the commit: {}", output.trim()),
            Self::Signing { output } => write!(formatter, "the commit could not be signed: {}", output.trim()),
            Self::Git { output } => write!(formatter, "git refused the commit: {}", output.trim()),
        }
    }
}

/// The first ten paths, and how many more there are.
fn list(paths: &[RepoPath]) -> String {
    let shown: Vec<String> = paths.iter().take(10).map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(shown.len());
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
