//! Keeping a run beyond its time, and giving it up again.

use proctor_cards::set_expires;
use proctor_domain::procedure::{Outcome, Position, Records, RunEvent};
use proctor_domain::retention::expiry_time;
use proctor_domain::{Clock, RepoPath, RunId, Timestamp};
use proctor_journal::JournalStore;
use proctor_process::durable::{self, Durability};
use proctor_workspace::{CommitRequest, Hooks};

use super::lookup::load_run;
use super::start::{WhenBusy, lock_run, lock_tree};
use super::{Notice, ProcedureError, Refusal, paths, record};
use crate::Site;

/// How long a run is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Until a person says otherwise.
    Forever,
    /// As long as its procedure says, counted from its end.
    AsDeclared,
}

/// Changes how long a run is kept; says when it may be removed (`None`: never).
///
/// # Errors
/// The run is unknown, its card can't be edited, or the commit of the edit fails.
pub fn keep_run(
    site: &Site,
    journal: &mut dyn JournalStore,
    clock: &dyn Clock,
    run_id: &RunId,
    keep: Keep,
) -> Result<Option<Timestamp>, ProcedureError> {
    // Its driver counts the events of its run: nobody else may add one while it lives.
    let _run = lock_run(site, run_id)?.ok_or_else(|| Refusal::Live { run: run_id.clone() })?;
    let loaded = load_run(journal, run_id)?;
    let started = &loaded.run.started;
    let ended = loaded.run.ended_at.unwrap_or(loaded.run.started_at);
    let failed = !matches!(loaded.run.position, Position::Ended(Outcome::Completed | Outcome::Skipped));
    let declared = if failed { started.failed_run_expiry } else { started.run_expiry };
    let expires = match keep {
        Keep::Forever => None,
        Keep::AsDeclared => expiry_time(ended, declared),
    };
    journal.append(run_id, loaded.version, &[(clock.now(), RunEvent::Retained { expires })])?;
    if let (Records::Git, Some(folder)) = (started.records, &started.folder) {
        edit_card(site, journal, run_id, folder, expires)?;
    }
    Ok(expires)
}

/// Writes the new time into the run card, and commits that one line.
fn edit_card(
    site: &Site,
    journal: &dyn JournalStore,
    run_id: &RunId,
    folder: &RepoPath,
    expires: Option<Timestamp>,
) -> Result<(), ProcedureError> {
    let path = record::path(folder);
    let file = paths::on_disk(&site.repository.work_tree, &path);
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(()) };
    let edited = set_expires(&text, &record::expires_text(expires)).map_err(|finding| ProcedureError::Card(vec![finding]))?;
    let _tree = lock_tree(site, journal, &mut |_: Notice<'_>| {}, run_id, WhenBusy::Refuse)?;
    if edited != text {
        durable::write(&file, edited.as_bytes(), Durability::Synced)?;
    }
    // Also when the card says so already: an earlier commit of it may have been refused or killed.
    let verb = if expires.is_none() { "Pin" } else { "Unpin" };
    let request = CommitRequest {
        paths: vec![path],
        untracked: Vec::new(),
        message: format!("{verb} procedure run: {run_id}\n\nRun: {run_id}\n"),
        hooks: Hooks::Skip,
        marker: format!("{run_id}/pin/1/commit"),
        log: site.state.git_log(run_id),
        limit: None,
    };
    record::commit(site, &request)
}
