//! Run cards: the record of a run that people can read, and whose `expires` they can edit.

mod expires;
mod of;
mod read;
mod render;

use std::collections::BTreeMap;

use proctor_domain::procedure::{CheckResult, Outcome, SkipReason};
use proctor_domain::retention::Expires;
use proctor_domain::{Oid, RunId, Timestamp};

pub use expires::set_expires;
pub use read::read_run_card;
pub use render::render_run_card;

/// The record of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCard {
    /// The run; absent in cards that another program wrote.
    pub run: Option<RunId>,
    /// The procedure's card, relative to the repository's top.
    pub procedure: String,
    /// How it ended; absent while it is open.
    pub outcome: Option<Outcome>,
    /// When it started; absent in some cards that another program wrote.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// The one free text its caller gave.
    pub directive: Option<String>,
    /// The inputs, defaults filled in.
    pub inputs: BTreeMap<String, String>,
    /// What it says about its removal: the one thing that people edit.
    pub expires: Expires,
    /// One record for each step, in order.
    pub steps: Vec<RunStepRecord>,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// Its turn has not come.
    Pending,
    /// Begun and not decided.
    Running,
    /// Done.
    Completed,
    /// Not run; why, where it is known.
    Skipped(Option<SkipReason>),
    /// Not done.
    Failed,
}

impl StepStatus {
    /// The word used in cards.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Skipped(_) => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// The record of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStepRecord {
    /// The step's id.
    pub id: String,
    /// Where it stands.
    pub status: StepStatus,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it was decided.
    pub completed_at: Option<Timestamp>,
    /// Attempts begun; 0 where it is not known.
    pub attempts: u32,
    /// Why it failed: one sentence.
    pub error: Option<String>,
    /// Why earlier attempts failed, oldest first.
    pub earlier_errors: Vec<String>,
    /// What its precheck did.
    pub precheck: Option<PrecheckRecord>,
    /// What its run phase did.
    pub run: Option<RunPhaseRecord>,
    /// What its checks said.
    pub validate: Option<ValidateRecord>,
    /// What it wrote to `$PROCTOR_OUTPUT`.
    pub outputs: BTreeMap<String, String>,
    /// Commits made by it and for it before this record was written, oldest first.
    pub commits: Vec<Oid>,
}

/// What the shells of a phase printed, shortened, and how the last of them ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streams {
    /// The exit code that decided.
    pub exit_code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// What a precheck decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecheckStatus {
    /// The step is needed.
    Pass,
    /// It is not.
    Skip,
    /// The precheck itself failed.
    Fail,
}

impl PrecheckStatus {
    /// The word used in cards.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skip => "skip",
            Self::Fail => "fail",
        }
    }
}

/// What a precheck did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrecheckRecord {
    /// What it decided.
    pub status: PrecheckStatus,
    /// What it printed.
    pub streams: Streams,
}

/// What a run phase did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunPhaseRecord {
    /// The last session.
    pub session: Option<String>,
    /// What it printed.
    pub streams: Streams,
    /// Why it failed: one sentence.
    pub error: Option<String>,
    /// The commit that holds its work.
    pub git_ref: Option<String>,
}

/// What the checks of a step said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidateRecord {
    /// What they said.
    pub status: CheckResult,
    /// What they printed.
    pub streams: Streams,
    /// The judge's reasoning.
    pub review: Option<String>,
    /// Why it is no pass: one sentence.
    pub error: Option<String>,
    /// Why there is no verdict: a word such as `max-turns`.
    pub reason: Option<String>,
}
