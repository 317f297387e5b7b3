//! `proctor stop`: ends the current session of a run and leaves the run resumable.

use std::path::Path;
use std::time::Duration;

use proctor_domain::procedure::Position;
use proctor_domain::{Clock, RunId};
use proctor_journal::JournalStore;
use proctor_process::{ProcessIdentity, Signal, lock};

use super::driver::{Context, Stop};
use super::isolated::site_of;
use super::lookup::{is_alive, load_run};
use super::resume::take_over;
use super::{Notice, ProcedureError};
use crate::Site;

/// A driver that gets the signal ends its session (5 s of grace) and goes within this time.
const PATIENCE: Duration = Duration::from_secs(15);

/// What came of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopEnd {
    /// The run was stopped.
    Stopped,
    /// The driver got the signal and is still at work.
    Stopping,
    /// Nothing of the run was alive.
    NotRunning,
}

/// Stops a run: asks its driver, or, where only a host lives, does what its driver would do.
///
/// # Errors
/// We failed; the run is as it was.
pub fn stop_run(
    site: &Site,
    journal: &mut dyn JournalStore,
    clock: &dyn Clock,
    notify: &mut dyn FnMut(Notice<'_>),
    run_id: &RunId,
) -> Result<StopEnd, ProcedureError> {
    let loaded = load_run(journal, run_id)?;
    let run_lock = site.state.run_lock(run_id);
    if let Some(holder) = lock::holder_if_held(&run_lock)? {
        return ask_driver(&run_lock, &holder);
    }
    if matches!(loaded.run.position, Position::Ended(_)) || !is_alive(site, &loaded)? {
        return Ok(StopEnd::NotRunning);
    }
    let own = site_of(site, &loaded.run)?;
    let mut driver = take_over(Context { site: own.as_ref().unwrap_or(site), journal, clock, notify }, loaded)?;
    driver.stop = Stop::Now;
    driver.drive().map(|_| StopEnd::Stopped)
}

fn ask_driver(run_lock: &Path, holder: &str) -> Result<StopEnd, ProcedureError> {
    // A lock whose holder has not written its name yet belongs to a driver that is just starting.
    let Some(driver) = holder.split_whitespace().nth(1).and_then(|text| text.parse::<ProcessIdentity>().ok()) else {
        return Ok(StopEnd::Stopping);
    };
    driver.signal(Signal::Terminate)?;
    driver.wait_for_end(PATIENCE)?;
    // The lock says whether it is gone, not the process: a text that names a process which no longer exists would
    // make a living driver look stopped.
    let gone = lock::holder_if_held(run_lock)?.is_none();
    Ok(if gone { StopEnd::Stopped } else { StopEnd::Stopping })
}
