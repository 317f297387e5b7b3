//! `proctor stop`: ends a run's session and leaves the run resumable.

use proctor_domain::ExitCode;
use proctor_domain::procedure::Outcome;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{Standing, StopEnd, stop_run};

use super::question::refuse_under_session;
use crate::Invocation;
use crate::archive::{Archive, Target, nothing_like};
use crate::args::runs::StopArgs;
use crate::progress::Progress;
use crate::report::Report;
use crate::run_document::outcome;

/// Stops a run and says what came of it.
pub fn run(invocation: &Invocation, args: &StopArgs) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let mut archive = Archive::open_to_change(invocation)?.ok_or_else(|| nothing_like(&args.id))?;
    let (Target::Run(run) | Target::Session(run, _)) = archive.target(&args.id)?;
    let mut progress = Progress::new(&invocation.printer);
    let stopped = stop_run(&archive.site, &mut archive.journal, &SystemClock, &mut |notice| progress.tell(&notice), &run);
    progress.finish();
    let end = stopped?;
    let standing = archive.look(&run)?.standing;
    let (sentence, code) = match (end, &standing) {
        (StopEnd::NotRunning, Standing::Ended(_)) => {
            (format!("nothing to stop: {run} is over ({})", outcome(&standing)), ExitCode::NothingToDo)
        }
        (StopEnd::NotRunning, Standing::Halted(reason)) if reason.is_parked() => {
            (format!("nothing to stop: {run} is parked; `proctor procedure status {run}` says what it waits for"), ExitCode::NothingToDo)
        }
        (StopEnd::NotRunning, Standing::Interrupted | Standing::Halted(_) | Standing::Running) => {
            (format!("nothing to stop: {run} is not running; `proctor procedure resume {run}` goes on with it"), ExitCode::NothingToDo)
        }
        // The request met the end of its last step.
        (StopEnd::Stopped, Standing::Ended(Outcome::Completed | Outcome::Inconclusive | Outcome::Skipped | Outcome::Failed)) => {
            (format!("{run} had come to its end: {}", outcome(&standing)), ExitCode::Done)
        }
        (StopEnd::Stopped, Standing::Interrupted | Standing::Halted(_) | Standing::Running) => {
            (format!("{run} was stopped; `proctor procedure resume {run}` goes on with it"), ExitCode::Done)
        }
        (StopEnd::Stopping, _) => {
            (format!("{run} was asked to stop and is still at work; `proctor procedure status {run}` says where"), ExitCode::Inconclusive)
        }
    };
    invocation.printer.say(&sentence);
    Ok(code)
}
