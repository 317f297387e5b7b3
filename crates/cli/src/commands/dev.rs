//! `proctor dev`

mod model;

use proctor_domain::ExitCode;

use crate::Invocation;
use crate::args::dev::DevCommand;
use crate::report::Report;

/// Runs the tool.
pub fn run(invocation: &Invocation, command: &DevCommand) -> Result<ExitCode, Report> {
    match command {
        DevCommand::Model(args) => model::run(invocation, args),
    }
}
