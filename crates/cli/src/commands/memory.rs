//! `proctor memory`

pub(super) mod add;
mod attempt;
mod decide;
mod doctor;
mod edit;
mod export;
mod import;
mod list;
pub(super) mod receipt;
pub(super) mod shown;

use proctor_domain::ExitCode;
use proctor_recall::Polarity;

use self::decide::Decision;
use crate::Invocation;
use crate::args::memory::{AddCommand, MemoryCommand};
use crate::report::Report;

/// Runs one of the commands of memory.
pub fn run(invocation: &Invocation, command: &MemoryCommand) -> Result<ExitCode, Report> {
    match command {
        MemoryCommand::Add(AddCommand::Works(args)) => add::run(invocation, Polarity::Works, args),
        MemoryCommand::Add(AddCommand::Fails(args)) => add::run(invocation, Polarity::Fails, args),
        MemoryCommand::Try(args) => attempt::run(invocation, args),
        MemoryCommand::List(args) => list::run(invocation, args),
        MemoryCommand::Show(args) => list::show(invocation, args),
        MemoryCommand::Edit(args) => edit::run(invocation, args),
        MemoryCommand::Approve(args) => decide::run(invocation, Decision::Approve, args),
        MemoryCommand::Reject(args) => decide::run(invocation, Decision::Reject, args),
        MemoryCommand::Forget(args) => decide::run(invocation, Decision::Forget, args),
        MemoryCommand::Import(args) => import::run(invocation, args),
        MemoryCommand::Export(args) => export::run(invocation, args),
        MemoryCommand::Doctor(args) => doctor::run(invocation, args),
    }
}
