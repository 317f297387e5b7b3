//! What a procedure card declares.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CardDuration, Expiry, MicroDollars};

/// A procedure as its card declares it. Defaults that depend on the layout are still open (`None`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Names runs, commits and run folders; need not be the file's stem.
    pub name: String,
    /// One line for lists.
    pub description: String,
    /// How long completed runs are kept.
    pub run_expiry: Option<Expiry>,
    /// How long failed and inconclusive runs are kept.
    pub failed_run_expiry: Option<Expiry>,
    /// What a caller may or must give.
    pub inputs: Vec<InputSpec>,
    /// Where the run is recorded; the layout decides when absent.
    pub records: Option<Records>,
    /// Where the steps work.
    pub isolation: Option<Isolation>,
    /// Whether memory is asked for its steps, and told what they taught.
    pub memory: MemoryUse,
    /// In the order in which they run. May be empty: then every run has nothing to do.
    pub steps: Vec<StepSpec>,
}

impl Definition {
    /// Whether any step starts an agent or has a criterion that a model judges.
    pub fn needs_agents(&self) -> bool {
        self.steps.iter().any(StepSpec::needs_agents)
    }

    /// Whether memory is asked and told for the step with this id.
    pub fn uses_memory(&self, id: &StepId) -> bool {
        self.memory == MemoryUse::On && self.step(id).is_some_and(|step| step.memory == MemoryUse::On)
    }

    /// The step with this id.
    pub fn step(&self, id: &StepId) -> Option<&StepSpec> {
        self.steps.iter().find(|step| step.id == *id)
    }
}

/// Where a run keeps its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Records {
    /// In the journal; one commit for each step that changed something.
    State,
    /// Also as run cards in the repository, with a commit for each step.
    Git,
}

/// Where the steps of a run work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In the working tree they were started in.
    InPlace,
    /// In a worktree and branch of their own.
    Worktree,
}

/// Whether memory is asked and told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemoryUse {
    /// It is, if the settings have it so.
    #[default]
    On,
    /// It is neither.
    Off,
}

/// A step's name within its procedure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepId(String);

/// A text that can't be a step id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can't be a step id: use letters, digits, `-`, `_` and `.`, starting with a letter or digit, at most 64 characters")]
pub struct InvalidStepId(pub String);

impl StepId {
    /// The id as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for StepId {
    type Error = InvalidStepId;

    fn try_from(text: String) -> Result<Self, InvalidStepId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let starts_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        // It becomes a part of a reference's name, where git takes none of these.
        let fits_reference = !text.contains("..") && !text.ends_with('.') && !text.ends_with(".lock");
        if starts_well && fits_reference && text.len() <= 64 && text.bytes().all(allowed) {
            Ok(Self(text))
        } else {
            Err(InvalidStepId(text))
        }
    }
}

impl From<StepId> for String {
    fn from(id: StepId) -> Self {
        id.0
    }
}

/// A name as a part of an environment variable: upper case, everything but letters and digits becomes `_`.
///
/// `INPUT_<NAME>` and `STEP_<ID>_<NAME>` are made with it.
pub fn variable_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }).collect()
}

/// The variable by which later shells read an output of a step.
pub fn output_variable(step: &str, output: &str) -> String {
    format!("STEP_{}_{}", variable_name(step), variable_name(output))
}

/// One step of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSpec {
    /// Unique within the procedure.
    pub id: StepId,
    /// One line for people.
    pub description: String,
    /// Decides whether the step is needed.
    pub precheck: Option<PrecheckSpec>,
    /// Does the work.
    pub run: Option<PhaseSpec>,
    /// Checks the work.
    pub validate: Option<ValidateSpec>,
    /// Wall-clock limit of each of its phases.
    pub timeout: Option<CardDuration>,
    /// Variables for its shells; values are templates over inputs and outputs.
    pub env: Vec<(String, String)>,
    /// An expression over inputs and outputs; false means that the step is skipped.
    pub when: Option<String>,
    /// The outputs it may and must write; `None` leaves them open.
    pub outputs: Option<Vec<String>>,
    /// What to do when a shell fails.
    pub retry: Option<RetrySpec>,
    /// What a person is asked before the step does its work; without an answer it waits.
    pub approve: Option<String>,
    /// What its agents may cost together.
    pub budget: Option<MicroDollars>,
    /// Whether memory is asked for it, and told what it taught.
    pub memory: MemoryUse,
    /// First and last line of the step in its card, from 1.
    pub lines: (usize, usize),
}

impl StepSpec {
    /// Whether it starts an agent or has a criterion that a model judges.
    pub fn needs_agents(&self) -> bool {
        self.starts_agents() || self.is_judged()
    }

    /// Whether it starts an agent.
    pub fn starts_agents(&self) -> bool {
        self.run.as_ref().is_some_and(|phase| !phase.agents.is_empty())
    }

    /// Whether it has a criterion that a model judges.
    pub fn is_judged(&self) -> bool {
        self.validate.as_ref().is_some_and(|validate| !validate.phase.instructions.is_empty())
    }
}

/// What any phase may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseSpec {
    /// Bash texts, run in order under `set -euo pipefail`.
    pub shells: Vec<String>,
    /// Agents, run in order before the shells.
    pub agents: Vec<AgentSpec>,
    /// Criteria that a model judges.
    pub instructions: Vec<String>,
    /// Why the criteria matter, for the judge and for a repair.
    pub whys: Vec<String>,
}

/// One agent of a run phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSpec {
    /// What it is asked to do.
    pub prompt: String,
    /// A tier or model name.
    pub model: Option<String>,
    /// Cap on its turns.
    pub max_turns: Option<u32>,
}

/// The phase that decides whether a step is needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrecheckSpec {
    /// Its shells: 0 passes, 75 skips the step, anything else fails it.
    pub phase: PhaseSpec,
    /// Whether what it printed is given to the step's agents.
    pub pass_output: bool,
}

/// The phase that checks the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidateSpec {
    /// Its shells and criteria.
    pub phase: PhaseSpec,
    /// What a negative check does.
    pub severity: Severity,
    /// Tier or model of the judge.
    pub model: Option<String>,
}

/// What a negative check does to its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It is recorded and the run goes on.
    Warn,
    /// The step's only agent gets one chance to repair; without one, the step fails.
    Review,
    /// The step fails.
    Abort,
}

/// Further attempts after a failed shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetrySpec {
    /// Attempts after the first.
    pub max: u32,
    /// Pause before the second attempt; doubles with each further one.
    pub backoff: CardDuration,
}

impl RetrySpec {
    /// No pause is longer than this.
    pub const LONGEST_PAUSE: CardDuration = CardDuration::minutes(60);

    /// The pause after the attempt with this number (from 1) has failed.
    pub fn pause_after(&self, attempt: u32) -> CardDuration {
        let doubled = self.backoff.millis().saturating_mul(1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX));
        CardDuration::from_millis(doubled.min(Self::LONGEST_PAUSE.millis()))
    }
}

/// One declared input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSpec {
    /// Its name in `--input name=value`.
    pub name: String,
    /// What its text must be.
    pub kind: InputKind,
    /// Used when it is not given.
    pub default: Option<String>,
    /// Whether a run without it is refused.
    pub required: bool,
    /// One line for people.
    pub description: String,
}

/// What the text of an input must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputKind {
    /// Any text.
    String,
    /// A whole number that fits 64 bits.
    Int,
    /// A finite decimal number.
    Float,
    /// `true` or `false`.
    Bool,
    /// A path; not checked for existence.
    Path,
    /// One of these.
    Choice(Vec<String>),
}

/// A text that is not what an input's type asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("input `{name}`: `{value}` is not {wanted}")]
pub struct InvalidInput {
    /// The input's name.
    pub name: String,
    /// What was given, shortened.
    pub value: String,
    /// What is wanted, with its article.
    pub wanted: String,
}

impl InputSpec {
    /// Checks `value` against the declared type.
    pub fn check(&self, value: &str) -> Result<(), InvalidInput> {
        let (fits, wanted) = match &self.kind {
            InputKind::String => (true, String::new()),
            InputKind::Int => (value.parse::<i64>().is_ok(), "a whole number".to_owned()),
            InputKind::Float => (value.parse::<f64>().is_ok_and(f64::is_finite), "a number".to_owned()),
            InputKind::Bool => (matches!(value, "true" | "false"), "`true` or `false`".to_owned()),
            InputKind::Path => (!value.is_empty() && !value.contains('\0'), "a path".to_owned()),
            InputKind::Choice(choices) => (choices.iter().any(|choice| choice == value), format!("one of {}", choices.join(", "))),
        };
        if fits {
            return Ok(());
        }
        Err(InvalidInput { name: self.name.clone(), value: value.chars().take(80).collect(), wanted })
    }
}
