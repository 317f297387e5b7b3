//! What a session is and how it can end.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Cost, RecordId, SessionId, Timestamp};

/// The three phases of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Decides whether the step is needed.
    Precheck,
    /// Does the work.
    Run,
    /// Checks the work.
    Validate,
}

impl Phase {
    /// The name used in cards and in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precheck => "precheck",
            Self::Run => "run",
            Self::Validate => "validate",
        }
    }
}

/// What a session does in its phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// It runs the phase's shells.
    #[default]
    Shells,
    /// It is the agent with this number, from 1.
    Agent(u32),
    /// It judges the step's work: the first or a further try, from 1.
    Judge(u32),
    /// It is the step's only agent again, asked to repair what a check found.
    Repair,
}

impl Work {
    /// The word used in JSON and in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shells => "shells",
            Self::Agent(_) => "agent",
            Self::Judge(_) => "judge",
            Self::Repair => "repair",
        }
    }

    /// Whether an agent engine does it.
    pub fn needs_engine(self) -> bool {
        self != Self::Shells
    }
}

/// What an engine, which drives agents, is called: `claude`, or a name that the settings gave one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EngineName(String);

/// A word that can be the name of no engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of an engine: it wants at most 40 lower-case letters, digits and `-`, a letter first")]
pub struct InvalidEngineName(pub String);

impl EngineName {
    /// Longest name, in bytes.
    const LONGEST: usize = 40;

    /// The word used in settings, JSON and text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for EngineName {
    type Err = InvalidEngineName;

    fn from_str(text: &str) -> Result<Self, InvalidEngineName> {
        let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let is_name = text.starts_with(|first: char| first.is_ascii_lowercase()) && text.chars().all(is_allowed);
        if is_name && text.len() <= Self::LONGEST { Ok(Self(text.to_owned())) } else { Err(InvalidEngineName(text.to_owned())) }
    }
}

impl TryFrom<String> for EngineName {
    type Error = InvalidEngineName;

    fn try_from(text: String) -> Result<Self, InvalidEngineName> {
        text.parse()
    }
}

impl From<EngineName> for String {
    fn from(name: EngineName) -> Self {
        name.0
    }
}

/// Tokens that were used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read anew.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Written into it.
    pub cache_write: u64,
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_write: self.cache_write.saturating_add(more.cache_write),
        }
    }
}

/// What one model used in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// The model, as the engine calls it.
    pub model: String,
    /// The tokens.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
}

/// What the engine of an agent session printed comes to. What the agent *says* in it is a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The engine.
    pub engine: EngineName,
    /// Its own id of the conversation, by which it can be resumed.
    pub conversation: Option<String>,
    /// The model that it said it would use.
    pub model: Option<String>,
    /// Whether the model answered anything at all.
    pub responded: bool,
    /// Turns of the model.
    pub turns: u32,
    /// By model. Empty when the engine says nothing about it, which is not the same as nothing spent.
    pub spent: Vec<Spending>,
    /// The agent's last words, shortened.
    pub claim: Option<String>,
    /// The structured result that it gave, as JSON text. Not validated.
    pub result: Option<String>,
    /// What the engine said about an error, shortened.
    pub error: Option<String>,
    /// Lines of the transcript that this version does not know.
    pub unknown_lines: u64,
    /// What the agent told by the tools of its session.
    #[serde(default, skip_serializing_if = "Told::is_empty")]
    pub told: Told,
}

/// What an agent told by the tools of its session. It is a claim, as all that an agent says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// What it wanted to be kept, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why it can't go on, where it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// What it asks a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What it learnt, where it said so; the last one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned: Option<Learned>,
}

/// What an agent says that it learnt: a way that works, and what goes wrong for who does it otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// What was done.
    pub route: String,
    /// What goes wrong otherwise.
    pub trap: String,
}

impl Told {
    /// Whether it told nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AgentReport {
    /// What the session cost, all models together. An engine that says nothing about it may have spent something.
    pub fn cost(&self) -> Cost {
        if self.spent.is_empty() {
            return Cost::Unknown;
        }
        self.spent.iter().map(|spending| spending.cost).sum()
    }
}

/// How a session ended, as its host saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum SessionEnd {
    /// Every child ran to its end or the phase stopped at one that failed; exit codes say which.
    Completed,
    /// The engine's own turn cap was reached.
    TurnLimit,
    /// The money cap was reached.
    Budget,
    /// The wall-clock limit was reached and the processes were ended.
    Timeout,
    /// No sign of life for the silence limit, and the processes were ended.
    Silent,
    /// The provider asks to wait; never counts as an attempt.
    RateLimited {
        /// When it may be tried again, where the provider said so.
        until: Option<Timestamp>,
    },
    /// The account's quota is used up; never counts as an attempt.
    UsageLimit {
        /// When the quota resets, where the provider said so.
        until: Option<Timestamp>,
    },
    /// The engine answered nothing: login, refusal.
    Refused,
    /// The child could not be started or died without an answer.
    Crashed {
        /// One sentence for a person.
        reason: String,
    },
    /// Somebody asked the session to stop.
    Interrupted,
    /// The engine ended without the structured result it owed.
    NoResult,
}

impl SessionEnd {
    /// The word used in JSON and in text.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::TurnLimit => "turn-limit",
            Self::Budget => "budget",
            Self::Timeout => "timeout",
            Self::Silent => "silent",
            Self::RateLimited { .. } => "rate-limited",
            Self::UsageLimit { .. } => "usage-limit",
            Self::Refused => "refused",
            Self::Crashed { .. } => "crashed",
            Self::Interrupted => "interrupted",
            Self::NoResult => "no-result",
        }
    }
}

/// How one shell of a phase ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellEnd {
    /// Its exit code; 128 + n when signal n ended it.
    pub exit_code: i32,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// What is kept of one output stream: the whole of a short one, head and tail of a long one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The first bytes (at most [`Excerpt::HEAD`]), as text; invalid UTF-8 is replaced.
    pub head: String,
    /// The last bytes (at most [`Excerpt::TAIL`]); empty when `head` holds everything.
    pub tail: String,
    /// Bytes of the stream that are in neither.
    pub omitted: u64,
}

impl Excerpt {
    /// Bytes kept from the start of a stream.
    pub const HEAD: usize = 4 * 1024;
    /// Bytes kept from its end.
    pub const TAIL: usize = 12 * 1024;

    /// The excerpt as one text, with a line that says what is missing.
    pub fn text(&self) -> String {
        if self.omitted == 0 {
            return format!("{}{}", self.head, self.tail);
        }
        format!("{}\n[… {} bytes not shown …]\n{}", self.head, self.omitted, self.tail)
    }

    /// Whether the stream was empty.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.omitted == 0
    }
}

/// A process that a session left on purpose because the settings list it under `linger`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lingering {
    /// The program's name.
    pub program: String,
    /// Its process id at that moment.
    pub pid: u32,
}

/// The facts a host leaves about a session that it saw to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    /// How it ended.
    pub end: SessionEnd,
    /// One entry for each shell that was started, in order.
    pub shells: Vec<ShellEnd>,
    /// What is kept of standard output, all shells together.
    pub stdout: Excerpt,
    /// What is kept of standard error.
    pub stderr: Excerpt,
    /// `name=value` lines that the shells wrote to `$PROCTOR_OUTPUT`, last one wins.
    pub outputs: BTreeMap<String, String>,
    /// A sentence when what was written to `$PROCTOR_OUTPUT` can't be used.
    pub output_error: Option<String>,
    /// Processes that were ended because they outlived their shell.
    pub ended_orphans: u32,
    /// Processes that were left on purpose.
    pub lingering: Vec<Lingering>,
    /// A sentence when a stream could not be kept whole (disk full, over the size limit).
    pub log_note: Option<String>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// What its engine printed, for a session of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentReport>>,
    /// The signal by which the agent's program died, although its host sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<i32>,
}

impl SessionReport {
    /// The exit code that decides: that of the last shell that ran.
    pub fn exit_code(&self) -> Option<i32> {
        self.shells.last().map(|shell| shell.exit_code)
    }
}

impl SessionReport {
    /// Whether the provider turned it away before the model had answered anything: that costs nothing.
    pub fn is_free(&self) -> bool {
        let turned_away = matches!(self.end, SessionEnd::Refused | SessionEnd::RateLimited { .. } | SessionEnd::UsageLimit { .. });
        turned_away && self.agent.as_ref().is_some_and(|agent| !agent.responded && agent.turns == 0 && agent.spent.is_empty())
    }
}

impl SessionRecord {
    /// Whether its provider wanted to be left alone before the model had answered anything.
    pub fn met_a_limit_unanswered(&self) -> bool {
        let Some(report) = &self.report else { return false };
        let limited = matches!(report.end, SessionEnd::RateLimited { .. } | SessionEnd::UsageLimit { .. });
        limited && report.agent.as_ref().is_some_and(|agent| !agent.responded)
    }
}

/// A session as a run remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id; its files are in `sessions/<id>/`.
    pub id: SessionId,
    /// The phase it served.
    pub phase: Phase,
    /// What it did in it.
    pub work: Work,
    /// The attempt it belonged to, from 1.
    pub attempt: u32,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The records of memory that it was shown.
    pub known: Vec<RecordId>,
    /// When its end, or the loss of its host, was recorded.
    pub ended_at: Option<Timestamp>,
    /// Processes that were left of it when its host had died, and were ended.
    pub orphans_of_lost: u32,
    /// What its host reported; `None` while it runs or when its host died.
    pub report: Option<SessionReport>,
}
