//! Commands about the repository and this machine: `init`, `doctor`, `where`, `trust`, `completions`, `demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proctor_engine::agent::EngineKind;

/// Prepare a repository
///
/// Finds the layout, writes a commented `proctor.toml` and, where there is no procedure yet, a small example.
/// With `--agents` the example is a procedure with an agent, in a worktree of its own, which is also written where there
/// are others. It shows its plan and asks first; files that exist are never touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor init\n  proctor init --agents\n  proctor init --yes --layout proctor")]
pub struct InitArgs {
    /// Write an example with an agent
    #[arg(long)]
    pub agents: bool,

    /// Ask nothing
    #[arg(long, short)]
    pub yes: bool,

    /// Use this layout in place of the one that is found
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<LayoutChoice>,

    /// Print the plan and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `--layout` of `init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LayoutChoice {
    /// Cards in `proctor/`.
    Proctor,
    /// Cards in `_config/`, records in `_bookkeeping/`.
    Beebox,
}

/// Check git, state, journal, cards and what is left of dead runs
///
/// Each failed check names its remedy. Exits 1 when a check fails.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor doctor")]
pub struct DoctorArgs {
    /// Mend a damaged journal first: what can be read moves to a new file, the damaged one is kept
    #[arg(long)]
    pub repair: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Print where things are
///
/// Prints the repository, the working tree, the card root, the layout, the settings files, the state folder and
/// the journal. Creates nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sqlite3 \"$(proctor where --json | jq -r .journal.path)\" .schema")]
pub struct WhereArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Accept the sensitive settings of this repository
///
/// A repository's own `proctor.toml` can't pass environment variables to sessions, let programs outlive them, name
/// the programs of engines or make the boxes of agents weaker until you accept exactly those values here. When they
/// change, you are asked again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor trust\n  proctor trust --revoke")]
pub struct TrustArgs {
    /// Ask nothing
    #[arg(long, short, conflicts_with = "revoke")]
    pub yes: bool,

    /// Take back what was accepted
    #[arg(long)]
    pub revoke: bool,

    /// Print one JSON object; changes nothing unless `--yes` or `--revoke` is given
    #[arg(long)]
    pub json: bool,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor completions bash > ~/.local/share/bash-completion/completions/proctor")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// See it work in a small repository made for it
///
/// Makes a real git repository in a temporary folder and runs a release check in it: an agent writes the changelog, a
/// judge finds it wanting, the agent repairs it; then a test fails, and the run goes on once that is mended. The agent
/// follows a script, so this needs neither a git identity nor a network nor money; with `--engine claude` it is the real one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor demo --keep /tmp/proctor-demo\n  proctor demo --engine claude")]
pub struct DemoArgs {
    /// Who plays the agent: a script, or Claude Code with your login
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = DemoEngine::Scripted)]
    pub engine: DemoEngine,

    /// Make the repository in this new folder and keep it
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
}

/// `--engine` of `demo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoEngine {
    /// Does what a script says. No model is called.
    Scripted,
    /// Claude Code, which has to be installed and logged in, or led elsewhere by `ANTHROPIC_BASE_URL`.
    Claude,
}

impl DemoEngine {
    /// The engine that plays.
    pub fn kind(self) -> EngineKind {
        match self {
            Self::Scripted => EngineKind::Scripted,
            Self::Claude => EngineKind::Claude,
        }
    }
}
