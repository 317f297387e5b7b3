//! Finding runs and reading them.

use proctor_domain::procedure::{Definition, Run, RunEvent};
use proctor_domain::{RepoPath, RunId, SessionId, Timestamp};
use proctor_journal::{JournalStore, RunFilter, RunsWanted, SkippedRuns};
use proctor_process::lock;

use super::{ProcedureError, paths};
use crate::Site;

/// A run as the journal holds it.
#[derive(Debug, Clone)]
pub struct LoadedRun {
    /// Its id.
    pub run_id: RunId,
    /// The run, folded from its events.
    pub run: Run,
    /// The number of its events.
    pub version: u64,
    /// When its newest event was recorded, but for what people said to it: its own processes may have worked until then.
    pub newest_event: Timestamp,
}

/// Reads and folds a run.
///
/// # Errors
/// Its record is damaged, or there is none.
pub fn load_run(journal: &dyn JournalStore, run_id: &RunId) -> Result<LoadedRun, ProcedureError> {
    let events = journal.read(run_id)?;
    let version = u64::try_from(events.len()).unwrap_or(u64::MAX);
    let own = |event: &RunEvent| !matches!(event, RunEvent::Answered { .. } | RunEvent::Retained { .. });
    let newest_event = events.iter().rev().find(|(_, event)| own(event)).map_or(Timestamp(0), |(at, _)| *at);
    let damaged = |source| ProcedureError::DamagedRun { run: run_id.clone(), source };
    let run = Run::replay(events).map_err(damaged)?.ok_or_else(|| ProcedureError::EmptyRun { run: run_id.clone() })?;
    Ok(LoadedRun { run_id: run_id.clone(), run, version, newest_event })
}

/// The run that `text` means: an id or the start of one, or a run folder (its path or its last part).
///
/// # Errors
/// There is none, or several.
pub fn find_run(site: &Site, journal: &dyn JournalStore, text: &str) -> Result<RunId, ProcedureError> {
    let unresolved = match journal.resolve(text) {
        Ok(run) => return Ok(run),
        Err(error) => error,
    };
    let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
    let name = if name.ends_with(".procedure-run.card") { text.trim_end_matches('/').rsplit('/').nth(1).unwrap_or(name) } else { name };
    let all = RunFilter { skipped: SkippedRuns::Shown, ..here(site) };
    let is_meant = |folder: &RepoPath| folder.as_bytes().rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes());
    let found = journal.runs(&all)?.into_iter().find(|row| row.folder.as_ref().is_some_and(is_meant));
    found.map(|row| row.run).ok_or_else(|| unresolved.into())
}

/// The newest run of this working tree that stands as `wanted`, by the time of its start.
///
/// # Errors
/// The journal can't be read.
pub fn newest_run(site: &Site, journal: &dyn JournalStore, wanted: RunsWanted) -> Result<Option<RunId>, ProcedureError> {
    let anywhere = RunFilter { wanted, skipped: SkippedRuns::Shown, ..RunFilter::default() };
    Ok(journal.runs(&anywhere)?.into_iter().find(|row| is_here(site, &row.worktree)).map(|row| row.run))
}

/// Whether a run that works in `worktree` belongs to this working tree: it is the same, it was moved here, or it is the
/// run's own.
pub(super) fn is_here(site: &Site, worktree: &RepoPath) -> bool {
    // Of a working tree that is gone only its new place can go on with the runs. The main one alone can be moved
    // without git's knowledge.
    let is_main = site.repository.git_dir == site.repository.common_dir;
    *worktree == paths::stored(&site.repository.work_tree)
        || is_isolated(site, worktree)
        || (is_main && !paths::absolute(worktree).exists())
}

/// Whether this is a working tree that Proctor made for one run.
pub(super) fn is_isolated(site: &Site, worktree: &RepoPath) -> bool {
    paths::absolute(worktree).starts_with(site.state.root().join("worktrees"))
}

/// Every run of this working tree.
pub(super) fn here(site: &Site) -> RunFilter {
    RunFilter { worktree: Some(paths::stored(&site.repository.work_tree)), ..RunFilter::default() }
}

/// Whether the driver of a run, or the host of its current session, is alive.
///
/// # Errors
/// A lock can't be looked at.
pub fn is_alive(site: &Site, loaded: &LoadedRun) -> Result<bool, ProcedureError> {
    if lock::holder_if_held(&site.state.run_lock(&loaded.run_id))?.is_some() {
        return Ok(true);
    }
    match loaded.run.open_session() {
        Some(session) => Ok(lock::holder_if_held(&site.state.session_lock(session))?.is_some()),
        None => Ok(false),
    }
}

/// The session of this run that a host is at work for, although its driver may be dead.
pub(super) fn living_session(site: &Site, journal: &dyn JournalStore, run: &RunId) -> Result<Option<SessionId>, ProcedureError> {
    // A damaged record of another run can't say what its host was; `doctor` names it.
    let Ok(events) = journal.read(run) else { return Ok(None) };
    let Some(session) = newest_session(&events) else { return Ok(None) };
    let alive = lock::holder_if_held(&site.state.session_lock(session))?.is_some();
    Ok(alive.then(|| session.clone()))
}

/// Whether this command was started, at whatever depth, by a session of this run: it ends no earlier than we do.
pub(super) fn is_around_us(site: &Site, journal: &dyn JournalStore, run: &RunId) -> bool {
    if site.variable("PROCTOR_RUN").is_some_and(|innermost| innermost == run.as_str()) {
        return true;
    }
    let Some(sessions) = site.variable("PROCTOR_SESSION").and_then(|sessions| sessions.to_str()) else { return false };
    let Ok(events) = journal.read(run) else { return false };
    newest_session(&events).is_some_and(|session| sessions.split(':').any(|around| around == session.as_str()))
}

fn newest_session(events: &[(Timestamp, RunEvent)]) -> Option<&SessionId> {
    events.iter().rev().find_map(|(_, event)| if let RunEvent::SessionOpened { session, .. } = event { Some(session) } else { None })
}

/// The definition that a run follows: the card as it was stored, read again.
///
/// # Errors
/// It is gone, or this version can't read it any more.
pub(super) fn definition_of(site: &Site, journal: &dyn JournalStore, loaded: &LoadedRun) -> Result<Definition, ProcedureError> {
    let lost = |source| ProcedureError::LostDefinition { run: loaded.run_id.clone(), source };
    let text = journal.snapshot(&loaded.run.started.snapshot).map_err(|source| lost(Some(source)))?;
    let source = proctor_cards::Source { path: loaded.run.started.card.to_string().into(), text };
    proctor_cards::read_procedure(&source, site.layout, &site.box_defaults).map(|card| card.definition).map_err(|_| lost(None))
}
