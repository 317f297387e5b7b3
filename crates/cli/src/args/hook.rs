//! `proctor hook`: what the programs of agents call by themselves.

use clap::{Args, Subcommand, ValueEnum};

/// Let the programs of agents ask memory by themselves
///
/// `install` enters commands into a program's own settings. The program then calls `proctor hook HOST EVENT` with a JSON object on standard
/// input, and reads one from standard output.
#[derive(Debug, Subcommand)]
pub enum HookCommand {
    /// Answer an event of Claude Code
    #[command(subcommand)]
    ClaudeCode(HookEvent),
    /// Answer an event of Codex
    ///
    /// Codex reads files with its shell only, so `pre-read` looks at commands. It runs hooks once you have accepted them in its `/hooks`.
    #[command(subcommand)]
    Codex(HookEvent),
    /// Answer an event of Cursor
    ///
    /// Cursor has no event that can tell its agent something before an edit without refusing the edit. So `pre-edit` answers `postToolUse`: it
    /// speaks when the agent has read the file, or at the latest when it has written it.
    #[command(subcommand)]
    Cursor(HookEvent),
    Install(InstallHookArgs),
    Uninstall(UninstallHookArgs),
    Status(HookStatusArgs),
}

/// What happened, or is about to.
#[derive(Debug, Subcommand)]
pub enum HookEvent {
    /// Say that there is a memory, how to ask it, and the newest dead ends
    ///
    /// Says nothing where there is no memory. Never stops anything.
    #[command(after_help = "Example, as Claude Code calls it:\n  echo '{\"session_id\":\"s\"}' | proctor hook claude-code session-start")]
    SessionStart,
    /// Say what memory knows of the file that is about to be changed, once a session
    ///
    /// Never stops anything, and always exits with 0.
    #[command(
        after_help = "Example, as Claude Code calls it:\n  echo '{\"tool_name\":\"Edit\",\"tool_input\":{\"file_path\":\"src/main.rs\"}}' | proctor hook \
                      claude-code pre-edit"
    )]
    PreEdit,
    PreRead(PreReadArgs),
}

/// Turn down reading a long file whole
///
/// Only with `--read-budget`. What it turns down is told how to go on. In doubt it lets things pass.
#[derive(Debug, Args)]
#[command(
    after_help = "Example, as Claude Code calls it:\n  echo '{\"tool_name\":\"Read\",\"tool_input\":{\"file_path\":\"long.log\"}}' | proctor hook \
                  claude-code pre-read --read-budget"
)]
pub struct PreReadArgs {
    /// Turn down what reads more than 350 lines, or `AOP_READ_BUDGET_LINES`, or more than 64 KiB
    #[arg(long)]
    pub read_budget: bool,
}

/// A program that runs agents and calls hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
}

impl Host {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::Cursor];

    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
        }
    }
}

/// Whose settings are meant.
#[derive(Debug, Clone, Copy, Args)]
pub struct HookPlaceArgs {
    /// The repository's settings, for everybody who works on it
    #[arg(long, conflicts_with = "user")]
    pub project: bool,

    /// Your own settings, for all repositories; so it is when nothing is said
    #[arg(long)]
    pub user: bool,
}

/// Enter the hooks into a program's settings
///
/// The rest of the file stays as it is, and a copy of it is kept. Doing it again changes nothing, or what is to be different. The program is
/// entered by its path, or in the repository's settings as `proctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor hook install claude-code --dry-run\n  proctor hook install codex --project --read-budget")]
pub struct InstallHookArgs {
    /// The program
    #[arg(value_enum, value_name = "HOST")]
    pub host: Host,

    #[command(flatten)]
    pub place: HookPlaceArgs,

    /// Also turn down reading long files whole
    #[arg(long)]
    pub read_budget: bool,

    /// Only say what would be changed
    #[arg(long)]
    pub dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Take the hooks out of a program's settings
///
/// Takes out what `install` entered and nothing else. Where nobody changed the file since, it is what it was before.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor hook uninstall claude-code")]
pub struct UninstallHookArgs {
    /// The program
    #[arg(value_enum, value_name = "HOST")]
    pub host: Host,

    #[command(flatten)]
    pub place: HookPlaceArgs,

    /// Only say what would be changed
    #[arg(long)]
    pub dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Say where hooks are installed, and whether the programs that they call are there
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor hook status")]
pub struct HookStatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
