//! `proctor runs`, `show`, `log`, `cost`, `answer`, `say`, `stop`: looking at runs, answering one, speaking to one and ending one.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use proctor_domain::CardDuration;

use super::engine::EngineArgs;

/// List runs, newest first
///
/// Runs in which every step was skipped are left out unless `--all` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor runs --limit 5")]
pub struct RunsArgs {
    /// Also list runs that had nothing to do
    #[arg(long)]
    pub all: bool,

    /// List only runs that wait: for an answer, for a limit to reset, for a merge
    #[arg(long)]
    pub parked: bool,

    /// List at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Show a run or a session
///
/// Shows everything recorded about it: for a run its steps, attempts, commits and sessions, for a session what
/// it ran and how it ended.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor show run_8x2\n  proctor show ses_0f3 --json")]
pub struct ShowRunArgs {
    /// A run's or session's id, or a unique beginning of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Print what a run or a session wrote
///
/// Prints what shells wrote as it is, and what an agent said and did as a transcript that can be read. Control characters
/// are shown escaped unless `--raw` is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  proctor log run_8x2 --follow\n  proctor log ses_0f3 --stream stderr\n  proctor log ses_0f3 --raw | jq -r .type"
)]
pub struct LogArgs {
    /// A run's or session's id, or a unique beginning of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Go on printing until it ends
    #[arg(long)]
    pub follow: bool,

    /// Print only one of the two streams
    #[arg(long, value_enum, value_name = "STREAM")]
    pub stream: Option<StreamChoice>,

    /// Print the bytes as they were written; of an agent, the lines of its engine
    #[arg(long)]
    pub raw: bool,

    /// Print one JSON object with the events
    #[arg(long, conflicts_with_all = ["raw", "follow"])]
    pub json: bool,
}

/// Answer what a parked run asks
///
/// Records the answer to a step with `approve`, and prints how the run goes on. An approved step does its work when the run
/// is resumed; a rejected one fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor answer run_8x2 approve --resume\n  proctor answer run_8x2 reject -m 'not before Monday'")]
pub struct AnswerArgs {
    /// A run's id, a unique beginning of it, or its run folder
    #[arg(value_name = "RUN")]
    pub run: String,

    /// What you say to a step that asks whether it may go on; an agent that asks wants --message alone
    #[arg(value_enum, value_name = "ANSWER")]
    pub answer: Option<AnswerChoice>,

    /// In your words: why, or what an agent asked; kept with the run
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,

    /// Go on with the run at once
    #[arg(long)]
    pub resume: bool,

    /// Which engine drives agents then.
    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What a person says to a step that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnswerChoice {
    /// Go on.
    Approve,
    /// Don't; the step fails.
    Reject,
}

/// Show what agents cost
///
/// Adds up the sessions of agents, judges and repairs in this repository. A cost that nobody knows is shown as unknown and
/// never counted as nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor cost --since 7d --by model\n  proctor cost --since 2026-03-02 --by day --json")]
pub struct CostArgs {
    /// Only sessions that ended since: a duration like 12h or 7d, a date, or a time in UTC
    #[arg(long, value_name = "DURATION|DATE")]
    pub since: Option<Since>,

    /// What to add up by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = CostBy::Procedure)]
    pub by: CostBy,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `--by` of `cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CostBy {
    /// The procedure.
    Procedure,
    /// The step of a procedure.
    Step,
    /// The model.
    Model,
    /// The day on which the session ended, by the clock of this machine.
    Day,
}

/// `--since` of `cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// So long ago.
    Ago(CardDuration),
    /// The beginning of this day, by the clock of this machine.
    Day(jiff::civil::Date),
    /// This instant.
    Instant(jiff::Timestamp),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = || text.parse().map(Self::Ago).ok();
        let instant = || text.parse().map(Self::Instant).ok();
        // A time without its offset would be read as a day, and its hour be lost.
        let day = || (!text.contains(':')).then(|| text.parse().map(Self::Day).ok()).flatten();
        duration()
            .or_else(instant)
            .or_else(day)
            .ok_or_else(|| "write a duration like 12h or 7d, a date like 2026-03-02, or a time like 2026-03-02T06:00:00Z".to_owned())
    }
}

/// `--stream` of `log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StreamChoice {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Say something to an agent at work
///
/// The agent of the run's present session gets the text with what its model is told next, or as a further prompt, and goes on.
/// Engines differ in whether they hear anything while they work; `proctor engines` calls it steering.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor say run_8x2 'Leave the changelog alone.'\n  proctor say run_8x2 - < remarks.md")]
pub struct SayArgs {
    /// A run's or session's id, or a unique beginning of it
    #[arg(value_name = "RUN")]
    pub run: String,

    /// What to say, at most 64 KiB; `-` reads standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub text: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Stop a run
///
/// Ends its session, records the run as interrupted and leaves its tree as it is; `proctor procedure resume`
/// continues it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor stop run_8x2")]
pub struct StopArgs {
    /// A run's or session's id, or a unique beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
}
