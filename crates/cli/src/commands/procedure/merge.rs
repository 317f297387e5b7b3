//! `proctor procedure merge`.

use proctor_domain::ExitCode;
use proctor_journal::Journal;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{find_run, merge_run};

use super::run::conclude;
use crate::Invocation;
use crate::args::Format;
use crate::args::procedure::MergeArgs;
use crate::commands::question::refuse_under_session;
use crate::place::Place;
use crate::progress::Progress;
use crate::report::Report;

/// Merges the branch of an isolated run that waits for it.
pub(super) fn run(invocation: &Invocation, args: &MergeArgs) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let site = Place::find(invocation)?.into_site(invocation, None)?;
    let mut journal = Journal::open(site.state.root())?;
    let run = find_run(&site, &journal, &args.run)?;
    let mut progress = Progress::new(&invocation.printer);
    let end = merge_run(&site, &mut journal, &SystemClock, &mut |notice| progress.tell(&notice), &run);
    progress.finish();
    Ok(conclude(invocation, &end?, Format::from_flag(args.json)))
}
