//! The seam: what any journal can do.

use proctor_domain::procedure::RunEvent;
use proctor_domain::{RepoPath, RunId, SessionId, Timestamp};
use sha2::{Digest, Sha256};

use crate::{AppendError, JournalError, ReadError, ResolveError, RunRow, SnapshotError};

/// A durable store of run events. [`crate::Journal`] is the one people have; [`crate::MemoryJournal`] serves tests
/// and dry runs.
pub trait JournalStore {
    /// Adds `events` to the stream of `run`, all or none, and returns the stream's new version.
    ///
    /// The version of a stream is the number of its events. When this returns, the events survive a power failure.
    ///
    /// # Errors
    /// [`AppendError::Conflict`] when the stream is not at `expected_version`: somebody else appended.
    fn append(&mut self, run: &RunId, expected_version: u64, events: &[(Timestamp, RunEvent)]) -> Result<u64, AppendError>;

    /// The events of `run` that come after its first `version` ones; empty for a run that does not exist.
    ///
    /// # Errors
    /// [`ReadError::Damaged`] at the first record that can't be read, or where one is missing.
    fn read_after(&self, run: &RunId, version: u64) -> Result<Vec<(Timestamp, RunEvent)>, ReadError>;

    /// All events of `run`; empty for a run that does not exist.
    ///
    /// # Errors
    /// As [`Self::read_after`].
    fn read(&self, run: &RunId) -> Result<Vec<(Timestamp, RunEvent)>, ReadError> {
        self.read_after(run, 0)
    }

    /// What is known about the runs that `filter` asks for, newest first.
    ///
    /// # Errors
    /// The journal can't be read.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, JournalError>;

    /// The run whose id is `prefix` or begins with it. The `run_` belongs to it.
    ///
    /// # Errors
    /// No run or several have that prefix.
    fn resolve(&self, prefix: &str) -> Result<RunId, ResolveError>;

    /// The session whose id is `prefix` or begins with it, and its run. The `ses_` belongs to it.
    ///
    /// # Errors
    /// No session or several have that prefix.
    fn resolve_session(&self, prefix: &str) -> Result<(RunId, SessionId), ResolveError>;

    /// Keeps `text` (a card as it was when a run started) and returns its name: [`snapshot_hash`].
    ///
    /// # Errors
    /// The journal can't be written.
    fn put_snapshot(&mut self, text: &str) -> Result<String, JournalError>;

    /// The text that [`Self::put_snapshot`] kept under this name.
    ///
    /// # Errors
    /// It is missing or damaged.
    fn snapshot(&self, hash: &str) -> Result<String, SnapshotError>;

    /// Forgets everything about `run`; no error when it does not exist.
    ///
    /// Snapshots stay: another process may have just been told the name of one for a run that it is about to
    /// start, and there are only as many as there were versions of cards.
    ///
    /// # Errors
    /// The journal can't be written.
    fn remove(&mut self, run: &RunId) -> Result<(), JournalError>;
}

/// Which runs to list. The default is every run, except those in which every step was skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of this procedure.
    pub procedure: Option<String>,
    /// Only those in this working tree.
    pub worktree: Option<RepoPath>,
    /// Only those that stand like this.
    pub wanted: RunsWanted,
    /// Whether runs with nothing to do are listed.
    pub skipped: SkippedRuns,
    /// Only those with such sessions.
    pub sessions: SessionsWanted,
    /// At most this many, the newest.
    pub limit: Option<usize>,
}

/// How the listed runs stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunsWanted {
    /// In any way.
    #[default]
    Any,
    /// Not ended: running, halted, or left by a driver that died.
    Unended,
    /// Not ended, or failed: what `resume` can go on with.
    Resumable,
    /// Ended.
    Ended,
}

/// What sessions a listed run has to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionsWanted {
    /// Any, or none.
    #[default]
    Any,
    /// At least one that an agent engine was opened for: an agent, a judge, a repair.
    OfAgents,
}

/// What to do with runs in which every step was skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SkippedRuns {
    /// Leave them out: a schedule makes many, and nothing happened in them.
    #[default]
    Hidden,
    /// List them too.
    Shown,
}

/// The name of a snapshot: the SHA-256 of its text, in lower-case hex.
pub fn snapshot_hash(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hash = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        hash.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hash.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hash
}

/// Refuses events that can't come next in any stream: `Started` is the first event, and no other one.
pub(crate) fn check_place(run: &RunId, expected_version: u64, events: &[(Timestamp, RunEvent)]) -> Result<(), AppendError> {
    let fits = events.iter().enumerate().all(|(index, (_, event))| {
        let first = expected_version == 0 && index == 0;
        first == matches!(event, RunEvent::Started(_))
    });
    if fits { Ok(()) } else { Err(AppendError::OutOfPlace { run: run.clone() }) }
}

/// The part of an id that decides, in the form in which ids are stored; `None` when no id can begin like that.
pub(crate) fn normalised_prefix(kind: &str, prefix: &str) -> Option<String> {
    let lower = prefix.trim().to_ascii_lowercase();
    // Without its kind, a text is as likely a procedure's name.
    let rest = lower.strip_prefix(kind)?;
    let plausible = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plausible.then(|| format!("{kind}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_that_no_id_can_have_is_refused() {
        for prefix in ["", "run_", "run_%", "../x", "run_a b", "0ab"] {
            assert_eq!(normalised_prefix("run_", prefix), None, "{prefix}");
        }
    }

    #[test]
    fn a_prefix_may_use_capitals() {
        for prefix in ["run_0ab", " run_0AB ", "RUN_0ab"] {
            assert_eq!(normalised_prefix("run_", prefix).as_deref(), Some("run_0ab"), "{prefix}");
        }
    }

    #[test]
    fn a_snapshot_is_named_by_the_sha256_of_its_text() {
        assert_eq!(snapshot_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
