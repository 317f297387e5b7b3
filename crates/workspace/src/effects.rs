//! What an earlier driver began and may have left: git processes that still run, and locks of killed ones.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use proctor_process::{ProcessIdentity, Signal, family};

use crate::processes::at_work;
use crate::repository::file_error;
use crate::tree_path::metadata_of;
use crate::{Repository, WorkspaceError};

/// The variable that marks what Proctor starts for an effect, with all that it starts itself.
pub const EFFECT_VARIABLE: &str = "PROCTOR_EFFECT";

/// Between asking an effect's processes to end and making them end.
const GRACE: Duration = Duration::from_secs(5);
/// How long a lock must have nobody who can hold it before it counts as left: a process is between its
/// start and its first look at the repository for far less.
const SETTLED: Duration = Duration::from_secs(1);
/// How far a file's time stamp, which the kernel takes from its last tick, can lag behind the clock.
const TICK: Duration = Duration::from_millis(50);

/// What became of an earlier driver's effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectsEnd {
    /// There were none.
    NoneAlive,
    /// They ended by themselves.
    Ended,
    /// They were still alive at the limit and were ended.
    Killed {
        /// How many processes.
        count: usize,
    },
}

/// Pauses that begin short and grow.
#[derive(Debug)]
struct Pause(Duration);

impl Pause {
    fn new() -> Self {
        Self(Duration::from_millis(2))
    }

    fn take(&mut self, at_most: Duration) {
        sleep(self.0.min(at_most));
        self.0 = (self.0 * 2).min(Duration::from_millis(200));
    }
}

fn live_effects(marker_prefix: &str) -> Vec<ProcessIdentity> {
    at_work(family::marked_others(EFFECT_VARIABLE, |value| value.starts_with(marker_prefix.as_bytes())))
}

impl Repository {
    /// Waits until no git or hook lives whose `PROCTOR_EFFECT` begins with `marker_prefix`, and ends those that are left at the limit.
    pub fn wait_for_or_end_effects(&self, marker_prefix: &str, limit: Duration) -> Result<EffectsEnd, WorkspaceError> {
        if live_effects(marker_prefix).is_empty() {
            return Ok(EffectsEnd::NoneAlive);
        }
        if effects_end(marker_prefix, limit) {
            return Ok(EffectsEnd::Ended);
        }
        let left = live_effects(marker_prefix);
        let count = left.len();
        signal_all(&left, Signal::Terminate);
        if !effects_end(marker_prefix, GRACE) {
            // What was started in the meantime is among them.
            signal_all(&live_effects(marker_prefix), Signal::Kill);
            effects_end(marker_prefix, GRACE);
        }
        Ok(EffectsEnd::Killed { count })
    }

    /// `Ok` where `index.lock` is not there; else waits up to `limit` for a living holder, and then says whose it is.
    pub fn wait_for_index(&self, limit: Duration) -> Result<(), WorkspaceError> {
        self.wait_for_lock(&self.git_dir.join("index.lock"), limit)
    }

    fn wait_for_lock(&self, lock: &Path, limit: Duration) -> Result<(), WorkspaceError> {
        let begun = Instant::now();
        let mut pause = Pause::new();
        let mut held = begun;
        loop {
            if metadata_of(lock)?.is_none() {
                return Ok(());
            }
            let live = self.lock_holder_lives(lock);
            if live {
                held = Instant::now();
            }
            if begun.elapsed() >= limit || held.elapsed() >= SETTLED {
                return Err(WorkspaceError::Locked { path: lock.to_owned(), live });
            }
            pause.take(limit.saturating_sub(begun.elapsed()));
        }
    }

    /// Does what needs a lock of the repository's, and again after somebody else's lock has gone.
    pub(crate) fn patiently<T>(&self, mut act: impl FnMut() -> Result<T, WorkspaceError>) -> Result<T, WorkspaceError> {
        let begun = Instant::now();
        loop {
            let path = match act() {
                Err(WorkspaceError::Locked { path, .. }) => path,
                done => return done,
            };
            let left = self.lock_patience.saturating_sub(begun.elapsed());
            self.wait_for_lock(&path, left)?;
            if left.is_zero() {
                return Err(WorkspaceError::Locked { path, live: true });
            }
        }
    }

    /// Removes lock files that our own killed effect left, and says which.
    ///
    /// Ours are those that nobody who lives can hold, that were made after the effect began at `started`,
    /// and only while no process carries a `PROCTOR_EFFECT` that begins with `marker_prefix`. All others
    /// are the user's and stay.
    pub fn clear_own_stale_locks(&self, marker_prefix: &str, started: SystemTime) -> Result<Vec<PathBuf>, WorkspaceError> {
        let mut removed = Vec::new();
        if !live_effects(marker_prefix).is_empty() {
            return Ok(removed);
        }
        self.remove_left_indexes();
        for lock in self.lock_files() {
            let Some(metadata) = metadata_of(&lock)? else {
                continue;
            };
            let made = metadata.created().or_else(|_| metadata.modified()).map_err(file_error(&lock, "look at"))?;
            if made + TICK < started || self.lock_holder_lives(&lock) {
                continue;
            }
            std::fs::remove_file(&lock).map_err(file_error(&lock, "remove"))?;
            removed.push(lock);
        }
        Ok(removed)
    }

    /// The locks that our git takes: the index and the one it prepares, HEAD, the branch, and references of our own.
    fn lock_files(&self) -> Vec<PathBuf> {
        let mut locks = vec![self.git_dir.join("index.lock"), self.git_dir.join("HEAD.lock")];
        if let Ok(head) = std::fs::read_to_string(self.git_dir.join("HEAD"))
            && let Some(name) = head.strip_prefix("ref: ")
        {
            locks.push(self.common_dir.join(format!("{}.lock", name.trim_end())));
        }
        locks.extend(locks_below(&self.common_dir.join("refs/proctor")));
        let entries = std::fs::read_dir(&self.git_dir).into_iter().flatten().flatten();
        locks.extend(entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.starts_with(b"next-index-") && name.ends_with(b".lock")
        }));
        locks
    }
}

/// Every lock of a reference below this folder.
fn locks_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)));
    paths
        .flat_map(|(path, kind)| match kind.is_dir() {
            true => locks_below(&path),
            false => Some(path).filter(|path| path.extension().is_some_and(|ending| ending == "lock")).into_iter().collect(),
        })
        .collect()
}

/// Whether all effects ended within the limit.
fn effects_end(marker_prefix: &str, limit: Duration) -> bool {
    let begun = Instant::now();
    let mut pause = Pause::new();
    loop {
        if live_effects(marker_prefix).is_empty() {
            return true;
        }
        if begun.elapsed() >= limit {
            return false;
        }
        pause.take(limit.saturating_sub(begun.elapsed()));
    }
}

/// Signals each; one that is gone or not ours to signal shows at the next look.
fn signal_all(processes: &[ProcessIdentity], signal: Signal) {
    for process in processes {
        let _ = process.signal(signal);
    }
}
