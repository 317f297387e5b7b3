//! `proctor dev`: for those who write cards and try them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Tools for those who write cards
#[derive(Debug, Subcommand)]
pub enum DevCommand {
    Model(ModelArgs),
}

/// Run a scripted model on this machine
///
/// It speaks Anthropic's Messages API, OpenAI's Responses and Chat Completions APIs and Gemini's API on 127.0.0.1 and
/// answers what a script says, so that cards can be tried with the real programs of agents and without a bill. It prints
/// what to tell each of them, runs until it is interrupted, and writes nothing to the disk.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor dev model --example > model.toml\n  proctor dev model --script model.toml --port 4100")]
pub struct ModelArgs {
    /// What the model says; without it, what `--example` prints
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub script: Option<PathBuf>,

    /// The port to listen on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Write the port to this file once it listens
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub port_file: Option<PathBuf>,

    /// Print an example of a script and do nothing else
    #[arg(long, conflicts_with_all = ["script", "port", "port_file"])]
    pub example: bool,
}
