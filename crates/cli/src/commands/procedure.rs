//! `proctor procedure …`

mod gc;
mod lint;
mod list;
mod merge;
mod pin;
mod rejudge;
mod resume;
mod run;
mod show;
mod status;

use proctor_cards::Finding;
use proctor_domain::ExitCode;
use proctor_orchestrator::procedure::Keep;
use serde::Serialize;

use crate::Invocation;
use crate::args::procedure::ProcedureCommand;
use crate::report::Report;
pub(crate) use resume::go_on;
pub(crate) use status::RunView;

/// Runs one of them.
pub fn run(invocation: &Invocation, command: &ProcedureCommand) -> Result<ExitCode, Report> {
    match command {
        ProcedureCommand::Run(args) => run::run(invocation, args),
        ProcedureCommand::Resume(args) => resume::run(invocation, args),
        ProcedureCommand::Rejudge(args) => rejudge::run(invocation, args),
        ProcedureCommand::Merge(args) => merge::run(invocation, args),
        ProcedureCommand::Status(args) => status::run(invocation, args),
        ProcedureCommand::List(args) => list::run(invocation, args),
        ProcedureCommand::Show(args) => show::run(invocation, args),
        ProcedureCommand::Lint(args) => lint::run(invocation, args),
        ProcedureCommand::Gc(args) => gc::run(invocation, args),
        ProcedureCommand::Pin(args) => pin::run(invocation, &args.run, Keep::Forever),
        ProcedureCommand::Unpin(args) => pin::run(invocation, &args.run, Keep::AsDeclared),
    }
}

/// A finding as JSON.
#[derive(Serialize)]
struct FindingObject<'finding> {
    level: &'static str,
    path: String,
    line: usize,
    column: usize,
    message: &'finding str,
    hint: Option<&'finding str>,
}

impl<'finding> From<&'finding Finding> for FindingObject<'finding> {
    fn from(finding: &'finding Finding) -> Self {
        Self {
            level: finding.level.name(),
            path: finding.path.display().to_string(),
            line: finding.line,
            column: finding.column,
            message: &finding.message,
            hint: finding.hint.as_deref(),
        }
    }
}
