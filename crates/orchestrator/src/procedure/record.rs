//! The run's card in the repository, where records are kept in git.

use std::path::Path;

use proctor_cards::{RunCard, render_run_card};
use proctor_domain::procedure::Run;
use proctor_domain::{RepoPath, RunId, Timestamp};
use proctor_process::durable::{self, Durability};
use proctor_workspace::{CommitEnd, CommitRequest};

use super::{ProcedureError, paths};
use crate::Site;

/// The file name of a run card inside its run folder.
const FILE_NAME: &str = "run.procedure-run.card";

/// The card's text as it will be true of the commit that the run owes now.
pub(super) fn card(run_id: &RunId, run: &Run, at: Timestamp) -> String {
    let mut card = RunCard::of(run, at);
    card.run = Some(run_id.clone());
    render_run_card(&card)
}

/// How a card writes when the run may be removed.
pub(super) fn expires_text(expires: Option<Timestamp>) -> String {
    expires
        .map_or_else(|| "never".to_owned(), |at| jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string())
}

/// The card's path in the repository.
pub(super) fn path(folder: &RepoPath) -> RepoPath {
    let mut bytes = folder.as_bytes().to_vec();
    bytes.push(b'/');
    bytes.extend_from_slice(FILE_NAME.as_bytes());
    RepoPath::new(bytes)
}

/// Commits a change to run records that belongs to no run at work.
pub(super) fn commit(site: &Site, request: &CommitRequest) -> Result<(), ProcedureError> {
    match site.repository.commit(request)? {
        CommitEnd::Committed(_) | CommitEnd::NothingToCommit => Ok(()),
        CommitEnd::HookRefused { output } | CommitEnd::SigningFailed { output } | CommitEnd::Refused { output } => {
            Err(ProcedureError::NotCommitted { output: output.trim().to_owned() })
        }
    }
}

/// Writes the card and returns its path in the repository.
///
/// Only against readers and our own death: the commit that follows makes it survive a power cut.
pub(super) fn write(work_tree: &Path, folder: &RepoPath, text: &str) -> Result<RepoPath, ProcedureError> {
    let path = path(folder);
    let file = paths::on_disk(work_tree, &path);
    let parent = file.parent().unwrap_or(work_tree);
    let failed = |source| ProcedureError::Write { path: parent.to_path_buf(), source };
    std::fs::create_dir_all(parent).map_err(failed)?;
    // A step may have put a link in place of the folder: nothing is written outside the work tree.
    let real = parent.canonicalize().map_err(failed)?;
    if !real.starts_with(work_tree.canonicalize().map_err(failed)?) {
        return Err(ProcedureError::OutsideWorkTree { path: parent.to_path_buf() });
    }
    remove_half_written(parent)?;
    durable::write(&file, text.as_bytes(), Durability::Renamed)?;
    Ok(path)
}

/// Removes what a driver left that was killed while it wrote a card here.
fn remove_half_written(folder: &Path) -> Result<(), ProcedureError> {
    let failed = |source| ProcedureError::Write { path: folder.to_path_buf(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if durable::is_half_written(&path) {
            std::fs::remove_file(&path).map_err(failed)?;
        }
    }
    Ok(())
}
