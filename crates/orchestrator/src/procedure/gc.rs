//! Removing runs whose time has come.

use proctor_cards::read_run_card;
use proctor_domain::retention::{Expires, GcPlan, RunFacts, plan_gc};
use proctor_domain::{Clock, RepoPath, RunId};
use proctor_journal::{JournalStore, RunFilter, RunRow, SkippedRuns};
use proctor_workspace::{CommitRequest, Hooks};

use super::lookup::{is_alive, load_run};
use super::start::{WhenBusy, lock_run, lock_tree};
use super::{Notice, ProcedureError, commit, isolated, paths, record, restore};
use crate::Site;

/// What `gc` decided and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcReport {
    /// What was decided about every run.
    pub plan: GcPlan,
    /// Runs whose card says something about its removal that can't be read, with that text.
    pub unreadable: Vec<(RunId, String)>,
}

/// What `gc` would do now. Touches nothing.
///
/// # Errors
/// The journal can't be read.
pub fn plan_garbage(site: &Site, journal: &dyn JournalStore, clock: &dyn Clock) -> Result<GcReport, ProcedureError> {
    let rows = journal.runs(&RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() })?;
    let facts: Vec<RunFacts> = rows.iter().map(|row| facts(site, journal, row)).collect::<Result<_, _>>()?;
    let unreadable = facts.iter().filter_map(|facts| match &facts.expires {
        Expires::Unreadable(text) => Some((facts.run.clone(), text.clone())),
        Expires::Never | Expires::At(_) | Expires::Unset => None,
    });
    Ok(GcReport { unreadable: unreadable.collect(), plan: plan_gc(&facts, clock.now()) })
}

/// Removes what [`plan_garbage`] plans. Killed anywhere, the next call finishes it: the journal's row goes last.
///
/// # Errors
/// The journal, a folder or the commit of removed run folders fails.
pub fn collect_garbage(site: &Site, journal: &mut dyn JournalStore, clock: &dyn Clock) -> Result<GcReport, ProcedureError> {
    let report = plan_garbage(site, journal, clock)?;
    let removed: Vec<RunId> = report.plan.remove.iter().map(|(run, _)| run.clone()).collect();
    if removed.is_empty() {
        return Ok(report);
    }
    let rows = journal.runs(&RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() })?;
    let folders: Vec<RepoPath> =
        rows.iter().filter(|row| removed.contains(&row.run) && is_here(site, row)).filter_map(|row| row.folder.clone()).collect();
    remove_folders(site, journal, &folders)?;
    // What can't be removed, like a worktree that somebody has locked, must not keep all that comes after it.
    let mut failed = None;
    for run in &removed {
        if let Err(error) = remove_state(site, journal, run) {
            failed.get_or_insert(error);
        }
    }
    failed.map_or(Ok(report), Err)
}

fn is_here(site: &Site, row: &RunRow) -> bool {
    row.worktree == paths::stored(&site.repository.work_tree)
}

fn facts(site: &Site, journal: &dyn JournalStore, row: &RunRow) -> Result<RunFacts, ProcedureError> {
    // A run that ended can't be alive, so only the others cost a look at their record and locks.
    let live = row.outcome().is_none() && load_run(journal, &row.run).is_ok_and(|loaded| is_alive(site, &loaded).unwrap_or(true));
    Ok(RunFacts {
        run: row.run.clone(),
        procedure: row.procedure.clone(),
        started_at: row.started_at,
        ended_at: row.ended_at(),
        outcome: row.outcome(),
        live,
        expires: edited_expires(site, row).unwrap_or_else(|| row.expires.clone()),
    })
}

/// What the run card in the repository says, which a person may have edited.
fn edited_expires(site: &Site, row: &RunRow) -> Option<Expires> {
    let folder = row.folder.as_ref().filter(|_| is_here(site, row))?;
    let text = std::fs::read_to_string(paths::on_disk(&site.repository.work_tree, &record::path(folder))).ok()?;
    match read_run_card(&text).ok()?.expires {
        Expires::Unset => None,
        said @ (Expires::Never | Expires::At(_) | Expires::Unreadable(_)) => Some(said),
    }
}

/// Removes run folders from the repository, with one commit for all that git knew.
///
/// What counts is what git misses, not what is on the disk: an earlier `gc` may have been killed between the two.
fn remove_folders(site: &Site, journal: &dyn JournalStore, folders: &[RepoPath]) -> Result<(), ProcedureError> {
    if folders.is_empty() {
        return Ok(());
    }
    let run_id = RunId::from_bits(crate::random_bits()?);
    let _tree = lock_tree(site, journal, &mut |_: Notice<'_>| {}, &run_id, WhenBusy::Refuse)?;
    for folder in folders {
        remove_folder(site, folder)?;
    }
    let is_inside = |path: &RepoPath, folder: &RepoPath| {
        path.as_bytes().strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
    };
    let mut paths = site.repository.status()?.paths();
    paths.retain(|path| folders.iter().any(|folder| is_inside(path, folder)));
    if paths.is_empty() {
        return Ok(());
    }
    let count = folders.iter().filter(|folder| paths.iter().any(|path| is_inside(path, folder))).count();
    let request = CommitRequest {
        paths,
        untracked: Vec::new(),
        message: format!("GC procedure runs: removed {count} expired run dir(s)\n\nCommit-Source: procedure-gc\n"),
        hooks: Hooks::Skip,
        marker: format!("{run_id}/gc/1/commit"),
        log: site.state.git_log(&run_id),
        limit: None,
    };
    record::commit(site, &request)?;
    remove(&site.state.git_log(&run_id))
}

fn remove_folder(site: &Site, folder: &RepoPath) -> Result<(), ProcedureError> {
    let path = paths::on_disk(&site.repository.work_tree, folder);
    let Some(parent) = path.parent().and_then(|parent| parent.canonicalize().ok()) else { return Ok(()) };
    // A step may have put a link in place of the folder of all runs: nothing is removed outside the work tree.
    if !site.repository.work_tree.canonicalize().is_ok_and(|work_tree| parent.starts_with(work_tree)) {
        return Err(ProcedureError::OutsideWorkTree { path });
    }
    remove(&path)
}

fn remove_state(site: &Site, journal: &mut dyn JournalStore, run: &RunId) -> Result<(), ProcedureError> {
    // Somebody resumed it since the plan was made.
    let Some(_run) = lock_run(site, run)? else { return Ok(()) };
    if let Ok(loaded) = load_run(journal, run) {
        for session in loaded.run.steps.iter().flat_map(|step| &step.sessions) {
            remove(&site.state.session(&session.id))?;
            remove(&site.state.session_lock(&session.id))?;
        }
        isolated::remove_for_good(site, run, &loaded.run)?;
    }
    remove(&site.state.git_log(run))?;
    remove(&site.state.git_settings(run))?;
    remove(&site.state.run_lock(run))?;
    site.repository.delete_refs(&format!("{}/", restore::salvage_prefix(run)))?;
    site.repository.delete_refs(&commit::detached_reference(run))?;
    Ok(journal.remove(run)?)
}

/// Removes a file or a folder; one that is gone already is fine.
pub(super) fn remove(path: &std::path::Path) -> Result<(), ProcedureError> {
    // A link to a folder is removed itself, never what it leads to.
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(ProcedureError::Write { path: path.to_path_buf(), source }),
        _ => Ok(()),
    }
}
