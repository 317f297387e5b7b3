//! What changed in a working tree after the last moment at which a dead run can have done it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use proctor_domain::{RepoPath, Timestamp};

use super::lookup::LoadedRun;
use super::paths;
use crate::Site;

/// A host shows that it lives once a second, and file systems stamp in ticks: a change this long after
/// its last sign of life was somebody else's.
const SLACK_MILLIS: u64 = 1_500;
/// File systems stamp with the time of the last tick.
const TICK_MILLIS: u64 = 20;

/// The last moment at which the run's own processes can have changed the tree.
pub(super) fn last_activity(site: &Site, loaded: &LoadedRun) -> Timestamp {
    let Some(session) = loaded.run.open_session() else { return loaded.newest_event.plus_millis(SLACK_MILLIS) };
    let folder = site.state.session(session);
    // A report is written when everything of the session has ended: what changes later is not its doing.
    if let Some(reported) = modified(&folder.join("report.json")) {
        return loaded.newest_event.max(reported).plus_millis(TICK_MILLIS);
    }
    // Without the host's own file nothing of it ever ran, and its lock was made by whoever looked for it. The run itself did
    // nothing in the tree after it had opened the session, however often somebody tried to go on with it since.
    if !folder.join("host.json").exists() {
        let opened = loaded.run.current_step().and_then(|step| step.sessions.last()).map(|session| session.opened_at);
        return opened.unwrap_or(loaded.newest_event).plus_millis(TICK_MILLIS);
    }
    let sign_of_life = proctor_engine::last_sign_of_life(&site.state.session_lock(session)).and_then(timestamp);
    loaded.newest_event.max(sign_of_life.unwrap_or(loaded.newest_event)).plus_millis(SLACK_MILLIS)
}

/// The last moment at which the run is known to have lived: of one that stands still, when it came to that.
pub fn last_sign(site: &Site, loaded: &LoadedRun) -> Timestamp {
    let recorded = loaded.run.last_event();
    let Some(session) = loaded.run.open_session().filter(|_| loaded.run.halt.is_none()) else { return recorded };
    let folder = site.state.session(session);
    let lived = folder.join("host.json").exists();
    let touched = || lived.then(|| proctor_engine::last_sign_of_life(&site.state.session_lock(session)).and_then(timestamp)).flatten();
    recorded.max(modified(&folder.join("report.json")).or_else(touched).unwrap_or(recorded))
}

fn modified(file: &Path) -> Option<Timestamp> {
    file.metadata().ok()?.modified().ok().and_then(timestamp)
}

fn timestamp(time: SystemTime) -> Option<Timestamp> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok().map(Timestamp)
}

/// Those of `changed` that were changed after `moment`.
///
/// The change time can't be set by a program, unlike the modification time. A deleted path has none;
/// the nearest folder that is left tells when something was last added or removed in it.
pub(super) fn changed_after(work_tree: &Path, changed: &[RepoPath], moment: Timestamp) -> Vec<RepoPath> {
    changed.iter().filter(|path| change_time(work_tree, path).is_some_and(|at| at > moment)).cloned().collect()
}

fn change_time(work_tree: &Path, path: &RepoPath) -> Option<Timestamp> {
    let file = paths::on_disk(work_tree, path);
    if let Ok(metadata) = file.symlink_metadata() {
        return Some(stamp(metadata.ctime(), metadata.ctime_nsec()));
    }
    let folder = file.ancestors().skip(1).find_map(|folder| folder.symlink_metadata().ok())?;
    Some(stamp(folder.mtime(), folder.mtime_nsec()))
}

fn stamp(seconds: i64, nanoseconds: i64) -> Timestamp {
    Timestamp(seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000))
}
