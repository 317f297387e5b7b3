//! `proctor procedure rejudge`.

use proctor_domain::ExitCode;
use proctor_journal::Journal;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{find_run, load_run, rejudge_run};

use super::run::conclude;
use crate::Invocation;
use crate::args::Format;
use crate::args::procedure::RejudgeArgs;
use crate::commands::question::refuse_under_session;
use crate::place::Place;
use crate::progress::Progress;
use crate::report::Report;

/// Judges again what a judge left without a verdict.
pub(super) fn run(invocation: &Invocation, args: &RejudgeArgs) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let mut site = Place::find(invocation)?.into_site(invocation, None)?;
    let mut journal = Journal::open(site.state.root())?;
    let run = find_run(&site, &journal, &args.run)?;
    args.engine.apply_to_run(&mut site.settings, &invocation.directory, &load_run(&journal, &run)?.run.started)?;
    let mut progress = Progress::new(&invocation.printer);
    let end = rejudge_run(&site, &mut journal, &SystemClock, &mut |notice| progress.tell(&notice), &run);
    progress.finish();
    Ok(conclude(invocation, &end?, Format::from_flag(args.json)))
}
