//! Judging again what was left without a verdict.

use proctor_domain::procedure::{CheckResult, Outcome, Position, Records, RunEvent};
use proctor_domain::{Clock, RunId};
use proctor_journal::JournalStore;

use super::driver::{Context, RunEnd};
use super::isolated::site_of;
use super::lookup::load_run;
use super::resume::take_over;
use super::{Notice, ProcedureError, Refusal};
use crate::Site;

/// Judges every check of the run again that reached no verdict, on the evidence that was recorded then, and ends the run
/// anew by what the judges say.
///
/// # Errors
/// The run is not inconclusive, or we failed.
pub fn rejudge_run(
    site: &Site,
    journal: &mut dyn JournalStore,
    clock: &dyn Clock,
    notify: &mut dyn FnMut(Notice<'_>),
    run_id: &RunId,
) -> Result<RunEnd, ProcedureError> {
    let loaded = load_run(journal, run_id)?;
    let open = loaded.run.steps.iter().any(|step| step.validate == Some(CheckResult::Inconclusive));
    if loaded.run.position != Position::Ended(Outcome::Inconclusive) || !open {
        return Err(Refusal::NothingToJudge { run: run_id.clone() }.into());
    }
    let own = site_of(site, &loaded.run)?;
    let mut driver = take_over(Context { site: own.as_ref().unwrap_or(site), journal, clock, notify }, loaded)?;
    if driver.run.started.records == Records::Git {
        // The record is committed again, which must not land elsewhere.
        let status = driver.context.site.repository.status()?;
        if let Some(reason) = driver.moved(&status) {
            return Err(Refusal::Halted { run: run_id.clone(), reason, foreign: Vec::new() }.into());
        }
    }
    driver.record(RunEvent::RejudgeAsked)?;
    driver.drive()
}
