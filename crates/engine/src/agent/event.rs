//! What the line of a transcript can mean, whichever engine printed it.

use proctor_domain::Timestamp;
use proctor_domain::session::Spending;

/// One thing that happened in an agent's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// The conversation exists.
    Started {
        /// The engine's own id of it.
        conversation: String,
        /// The model that will answer.
        model: Option<String>,
    },
    /// A person said this to it while it worked.
    Said(String),
    /// The model said something.
    Text(String),
    /// The model thought something aloud.
    Thinking(String),
    /// The model answered once: what it said and called since the answer before belongs to one turn.
    Turn,
    /// The model wants a tool.
    ToolCall {
        /// The engine's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// What it is given, as JSON text.
        input: String,
    },
    /// A tool has answered.
    ToolResult {
        /// The id of its call.
        id: String,
        /// Whether it failed.
        failed: bool,
        /// What it said.
        text: String,
    },
    /// What the agent means to do, all of it, as it is now.
    Plan(Vec<PlanEntry>),
    /// The provider could not answer, and the engine tries again.
    Retrying {
        /// Which attempt comes next, from 1.
        attempt: u32,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// How long it waits first.
        wait_ms: Option<u64>,
    },
    /// The provider said how much of the account's quota is left or when it resets. No sign of progress.
    Limit {
        /// When it resets.
        until: Option<Timestamp>,
        /// Whether requests are refused until then.
        reached: bool,
    },
    /// A server of tools did not start: its tools are missing.
    ServerFailed {
        /// What the settings call it.
        name: String,
        /// Why, where the engine says so.
        reason: Option<String>,
    },
    /// It is at work, and the line says no more than that: a part of a message that comes whole later, the words of an
    /// agent that it set to work itself. A sign of progress.
    Working,
    /// What was spent since the program was started, by model, as far as it is known by now.
    Spent(Vec<Spending>),
    /// Known, and of no weight: a heartbeat, a status.
    Nothing,
    /// The engine says that it is done with what was asked. There may be several in one session.
    Finished(Box<Finish>),
    /// A line of a kind that this version does not know; its kind.
    Unknown(String),
    /// A line that is not what the engine prints: half a line, text among JSON.
    Garbage,
}

/// One thing that an agent means to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    /// In its words.
    pub text: String,
    /// How far it is with that.
    pub state: PlanState,
}

/// How far an agent says that it is with one thing of its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanState {
    /// Not begun.
    Pending,
    /// At it.
    InProgress,
    /// Done.
    Completed,
}

impl AgentEvent {
    /// What a line is that needs no parser, where lines are objects: an empty one, or half a one, as a killed session leaves it
    /// and a cut makes it. `None` for one that is worth parsing.
    pub(crate) fn at_sight(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        match line.last() {
            None => Some(Self::Nothing),
            Some(b'}') => None,
            Some(_) => Some(Self::Garbage),
        }
    }
}

/// What an engine says at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// How it stopped.
    pub stop: Stop,
    /// Turns in this conversation since the program was started, where it says so.
    pub turns: Option<u32>,
    /// What was spent since the program was started, by model, where it says so.
    pub spent: Vec<Spending>,
    /// The agent's last words.
    pub text: Option<String>,
    /// The structured result, as JSON text.
    pub result: Option<String>,
}

/// How an engine stopped, by what it really means and not by what it calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It did what it could.
    Done,
    /// Its turn cap.
    TurnLimit,
    /// Its money cap.
    Budget,
    /// The provider asks to wait.
    RateLimited {
        /// Until then.
        until: Option<Timestamp>,
    },
    /// The account's quota is used up.
    UsageLimit {
        /// Until then.
        until: Option<Timestamp>,
    },
    /// The provider does not let it in, or won't answer: login, refusal.
    Refused(String),
    /// It owed a structured result and gave up.
    NoResult(String),
    /// Somebody stopped it.
    Interrupted,
    /// Anything else that went wrong.
    Failed(String),
}
