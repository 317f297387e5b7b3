//! `proctor mcp`: memory and runs as tools for agents.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Offer memory and runs to agents, as a server of the Model Context Protocol
///
/// It speaks on standard input and output, which is what clients start it for. With --http it listens on this machine alone, and lets in
/// who has its token. What a tool records is proposed, and counts once a person approved it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  claude mcp add proctor -- proctor mcp\n  codex mcp add proctor -- proctor mcp\n  proctor mcp --http --port 7431"
)]
pub struct McpArgs {
    /// Speak streamable HTTP on 127.0.0.1
    #[arg(long)]
    pub http: bool,

    /// The port to listen at; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "http")]
    pub port: u16,

    /// A file with the token that callers must have, readable by you alone; without it one is drawn, and its file named
    #[arg(long, value_name = "FILE", requires = "http", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
}
