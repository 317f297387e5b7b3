//! A journal that forgets everything with its process.

use std::collections::BTreeMap;

use proctor_domain::procedure::{Outcome, RunEvent};
use proctor_domain::{RunId, SessionId, Timestamp};

use crate::store::{check_place, normalised_prefix};
use crate::{
    AppendError, JournalError, JournalStore, ReadError, ResolveError, RunFilter, RunRow, RunsWanted, SessionsWanted, SkippedRuns,
    SnapshotError, row, snapshot_hash,
};

/// Streams of events in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    /// In the order in which they were started.
    runs: Vec<Stream>,
    snapshots: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
struct Stream {
    run: RunId,
    events: Vec<(Timestamp, RunEvent)>,
    row: Option<RunRow>,
}

impl Stream {
    fn has_agents(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, RunEvent::SessionOpened { work, .. } if work.needs_engine()))
    }
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    fn stream(&self, run: &RunId) -> Option<&Stream> {
        self.runs.iter().find(|stream| stream.run == *run)
    }

    fn sessions(&self) -> impl Iterator<Item = (&RunId, &SessionId)> {
        self.runs.iter().flat_map(|stream| {
            stream.events.iter().filter_map(|(_, event)| {
                let RunEvent::SessionOpened { session, .. } = event else { return None };
                Some((&stream.run, session))
            })
        })
    }
}

impl JournalStore for MemoryJournal {
    fn append(&mut self, run: &RunId, expected_version: u64, events: &[(Timestamp, RunEvent)]) -> Result<u64, AppendError> {
        check_place(run, expected_version, events)?;
        let found = self.stream(run).map_or(0, |stream| length(&stream.events));
        if found != expected_version {
            return Err(AppendError::Conflict { run: run.clone(), expected: expected_version, found });
        }
        if events.is_empty() {
            return Ok(found);
        }
        let position = self.runs.iter().position(|stream| stream.run == *run).unwrap_or_else(|| {
            self.runs.push(Stream { run: run.clone(), events: Vec::new(), row: None });
            self.runs.len() - 1
        });
        let stream = &mut self.runs[position];
        for (at, event) in events {
            row::project(&mut stream.row, run, *at, event);
            stream.events.push((*at, event.clone()));
        }
        Ok(length(&stream.events))
    }

    fn read_after(&self, run: &RunId, version: u64) -> Result<Vec<(Timestamp, RunEvent)>, ReadError> {
        let skipped = usize::try_from(version).unwrap_or(usize::MAX);
        Ok(self.stream(run).map(|stream| stream.events.iter().skip(skipped).cloned().collect()).unwrap_or_default())
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, JournalError> {
        let has_sessions = |stream: &&Stream| filter.sessions == SessionsWanted::Any || stream.has_agents();
        let rows = self.runs.iter().rev().filter(has_sessions).filter_map(|stream| stream.row.as_ref()).filter(|row| wanted(filter, row));
        Ok(rows.take(filter.limit.unwrap_or(usize::MAX)).cloned().collect())
    }

    fn resolve(&self, prefix: &str) -> Result<RunId, ResolveError> {
        let ids = self.runs.iter().map(|stream| (stream.run.as_str(), stream.run.clone()));
        only_match(ids, RunId::PREFIX, "run", prefix)
    }

    fn resolve_session(&self, prefix: &str) -> Result<(RunId, SessionId), ResolveError> {
        let ids = self.sessions().map(|(run, session)| (session.as_str(), (run.clone(), session.clone())));
        only_match(ids, SessionId::PREFIX, "session", prefix)
    }

    fn put_snapshot(&mut self, text: &str) -> Result<String, JournalError> {
        let hash = snapshot_hash(text);
        self.snapshots.insert(hash.clone(), text.to_owned());
        Ok(hash)
    }

    fn snapshot(&self, hash: &str) -> Result<String, SnapshotError> {
        self.snapshots.get(hash).cloned().ok_or_else(|| SnapshotError::Missing { hash: hash.to_owned() })
    }

    fn remove(&mut self, run: &RunId) -> Result<(), JournalError> {
        self.runs.retain(|stream| stream.run != *run);
        Ok(())
    }
}

fn length(events: &[(Timestamp, RunEvent)]) -> u64 {
    u64::try_from(events.len()).unwrap_or(u64::MAX)
}

fn wanted(filter: &RunFilter, row: &RunRow) -> bool {
    let standing = match filter.wanted {
        RunsWanted::Any => true,
        RunsWanted::Unended => row.outcome().is_none(),
        RunsWanted::Resumable => matches!(row.outcome(), None | Some(Outcome::Failed)),
        RunsWanted::Ended => row.outcome().is_some(),
    };
    let skipped = filter.skipped == SkippedRuns::Shown || row.outcome() != Some(Outcome::Skipped);
    let procedure = filter.procedure.as_ref().is_none_or(|procedure| *procedure == row.procedure);
    let worktree = filter.worktree.as_ref().is_none_or(|worktree| *worktree == row.worktree);
    standing && skipped && procedure && worktree
}

fn only_match<'id, T>(
    ids: impl Iterator<Item = (&'id str, T)>,
    kind_prefix: &str,
    kind: &'static str,
    prefix: &str,
) -> Result<T, ResolveError> {
    let not_found = || ResolveError::NotFound { prefix: prefix.to_owned(), kind };
    let wanted = normalised_prefix(kind_prefix, prefix).ok_or_else(not_found)?;
    let mut found: Vec<(&str, T)> = ids.filter(|(id, _)| id.starts_with(&wanted)).collect();
    if found.len() > 1 {
        found.sort_by_key(|(id, _)| *id);
        let candidates = found.iter().take(10).map(|(id, _)| (*id).to_owned()).collect();
        return Err(ResolveError::Ambiguous { prefix: prefix.to_owned(), kind, candidates });
    }
    found.pop().map(|(_, value)| value).ok_or_else(not_found)
}
