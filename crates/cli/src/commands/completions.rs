//! `proctor completions`

use clap::CommandFactory;
use proctor_domain::ExitCode;

use crate::Invocation;
use crate::args::CommandLine;
use crate::args::setup::CompletionsArgs;
use crate::report::Report;

/// Prints the script.
pub fn run(invocation: &Invocation, args: &CompletionsArgs) -> Result<ExitCode, Report> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "proctor", &mut script);
    invocation.printer.text(&String::from_utf8_lossy(&script));
    Ok(ExitCode::Done)
}
