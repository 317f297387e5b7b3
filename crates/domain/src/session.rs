//! What a session is and how it can end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{SessionId, Timestamp};

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
}

impl SessionReport {
    /// The exit code that decides: that of the last shell that ran.
    pub fn exit_code(&self) -> Option<i32> {
        self.shells.last().map(|shell| shell.exit_code)
    }
}

/// A session as a run remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id; its files are in `sessions/<id>/`.
    pub id: SessionId,
    /// The phase it served.
    pub phase: Phase,
    /// The attempt it belonged to, from 1.
    pub attempt: u32,
    /// What its host reported; `None` while it runs or when its host died.
    pub report: Option<SessionReport>,
}
