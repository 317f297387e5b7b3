//! The command line as people type it. Parsing ends here: commands get these structs as plain values
//! and never see clap.

pub mod dev;
pub mod engine;
pub mod hook;
pub mod mcp;
pub mod memory;
pub mod procedure;
pub mod runs;
pub mod setup;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Sets the work of shell procedures and coding agents, watches it, and believes only what it can check
#[derive(Debug, Parser)]
#[command(
    name = "proctor",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Start with `proctor demo` to see it work, or with `proctor init` in a repository of yours."
)]
pub struct CommandLine {
    /// Work as if started in this directory
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub directory: Option<PathBuf>,

    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// When to use colour; `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto, global = true)]
    pub color: ColorChoice,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When output has colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`.
    Auto,
    /// Also into a pipe or file.
    Always,
    /// Nowhere.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Init(setup::InitArgs),
    Where(setup::WhereArgs),
    #[command(subcommand)]
    Procedure(procedure::ProcedureCommand),
    Runs(runs::RunsArgs),
    Show(runs::ShowRunArgs),
    Log(runs::LogArgs),
    Cost(runs::CostArgs),
    Answer(runs::AnswerArgs),
    Say(runs::SayArgs),
    Stop(runs::StopArgs),
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    Mcp(mcp::McpArgs),
    #[command(subcommand)]
    Hook(hook::HookCommand),
    Doctor(setup::DoctorArgs),
    Engines(engine::EnginesArgs),
    Demo(setup::DemoArgs),
    Trust(setup::TrustArgs),
    Completions(setup::CompletionsArgs),
    #[command(subcommand)]
    Dev(dev::DevCommand),
}

/// What can be told from the arguments before, or without, parsing them.
#[derive(Debug, PartialEq, Eq)]
pub struct Glimpse {
    /// Whether the caller wants JSON, so that even a usage error is answered with an object.
    pub format: Format,
    /// The last readable `--color`.
    pub color: ColorChoice,
}

/// How a result is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// Exactly one JSON object.
    Json,
}

impl Format {
    /// The format that a `--json` flag asks for.
    pub fn from_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

impl Glimpse {
    /// Looks at the arguments up to `--`, without the program's name.
    pub fn of(arguments: &[OsString]) -> Self {
        let mut glimpse = Self { format: Format::Text, color: ColorChoice::Auto };
        let mut rest = arguments.iter().filter_map(|argument| argument.to_str()).take_while(|argument| *argument != "--");
        while let Some(argument) = rest.next() {
            let color = match argument {
                "--json" => {
                    glimpse.format = Format::Json;
                    None
                }
                "--color" => rest.next(),
                other => other.strip_prefix("--color="),
            };
            if let Some(color) = color.and_then(|text| ColorChoice::from_str(text, false).ok()) {
                glimpse.color = color;
            }
        }
        glimpse
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn json_and_colour_are_seen_in_arguments_that_do_not_parse() {
        for (arguments, format, color) in [
            (vec!["procedure", "rum", "--json"], Format::Json, ColorChoice::Auto),
            (vec!["--color", "never", "where"], Format::Text, ColorChoice::Never),
            (vec!["--color=always"], Format::Text, ColorChoice::Always),
            (vec!["--color=blue", "--", "--json"], Format::Text, ColorChoice::Auto),
        ] {
            let given: Vec<OsString> = arguments.iter().map(OsString::from).collect();

            assert_eq!(Glimpse::of(&given), Glimpse { format, color }, "{arguments:?}");
        }
    }
}
