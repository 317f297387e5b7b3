//! `proctor runs`, `show`, `log`, `stop`: looking at runs and ending one.

use clap::{Args, ValueEnum};

/// List runs, newest first
///
/// Runs in which every step was skipped are left out unless `--all` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor runs --limit 5")]
pub struct RunsArgs {
    /// Also list runs that had nothing to do
    #[arg(long)]
    pub all: bool,

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
/// Control characters are shown escaped unless `--raw` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor log run_8x2 --follow\n  proctor log ses_0f3 --stream stderr")]
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

    /// Print the bytes as they were written
    #[arg(long)]
    pub raw: bool,
}

/// `--stream` of `log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StreamChoice {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
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
