//! What `doctor` can say about the journal, and the part of the repair that loses nothing.

use std::path::PathBuf;

use proctor_domain::procedure::{Run, RunEvent};
use proctor_domain::{RunId, Timestamp};
use rusqlite::{Connection, Transaction};

use crate::record::{self, Undecodable};
use crate::{Journal, JournalError, RunRow, columns, row};

/// Findings about pages that are listed; a badly damaged file has thousands.
const MOST_PAGE_FINDINGS: usize = 20;

/// The state of the journal's file and of every record in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalHealth {
    /// The file.
    pub path: PathBuf,
    /// Its later format, which is read and never written.
    pub newer_format: Option<i64>,
    /// What SQLite finds wrong with the file, one sentence each.
    pub pages: Vec<String>,
    /// Records that can't be read, or that can't follow the ones before them. Each stops its own run only.
    pub damaged: Vec<DamagedRecord>,
    /// Runs with records that a newer proctor wrote.
    pub newer: Vec<RunId>,
    /// Runs whose line in the list is not what their events say; [`Journal::rebuild_rows`] makes them anew.
    pub stale: Vec<String>,
    /// How many runs there are.
    pub runs: usize,
    /// How many events there are.
    pub events: u64,
}

/// One record that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRecord {
    /// The run it belongs to, as stored.
    pub run: String,
    /// Its place in the stream, from 1; 0 where the stream as a whole is unreadable.
    pub version: u64,
    /// What is wrong.
    pub reason: String,
}

impl JournalHealth {
    /// Whether nothing is wrong. A newer format is not wrong.
    pub fn is_sound(&self) -> bool {
        self.pages.is_empty() && self.damaged.is_empty() && self.stale.is_empty()
    }
}

/// How far a stream can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Following {
    /// Events that are there, in order, and make sense.
    pub(crate) sound: u64,
    /// Events that are there at all.
    pub(crate) stored: u64,
    /// Why the stream can't be followed to its end.
    pub(crate) stop: Option<Stop>,
}

/// Why a stream can't be followed further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The next record is damaged, missing or out of order.
    Damaged(String),
    /// The next record is of a later form. What follows it can't be judged.
    Newer,
    /// SQLite can't read on.
    Unreadable(String),
}

impl Journal {
    /// Looks at every page and every record. Takes as long as reading the whole journal.
    pub fn check(&self) -> JournalHealth {
        let mut health = JournalHealth { path: self.path().to_path_buf(), newer_format: self.newer_format(), ..JournalHealth::default() };
        match quick_check(self.connection()) {
            Ok(findings) => health.pages = findings,
            Err(error) => health.pages.push(error.to_string()),
        }
        let runs = match all_runs(self.connection()) {
            Ok(runs) => runs,
            Err(error) => {
                health.pages.push(error.to_string());
                return health;
            }
        };
        health.runs = runs.len();
        for run in runs {
            self.check_run(&run, &mut health);
        }
        health
    }

    fn check_run(&self, name: &str, health: &mut JournalHealth) {
        let mut row = None;
        let Ok(run) = RunId::try_from(name.to_owned()) else {
            health.damaged.push(DamagedRecord { run: name.to_owned(), version: 0, reason: "its name is no run id".to_owned() });
            return;
        };
        let following = follow_stream(self.connection(), name, &mut |at, event| row::project(&mut row, &run, at, event));
        health.events += following.stored;
        match following.stop {
            None => {
                let listed = columns::find(self.connection(), &run);
                if !matches!(listed, Ok(Some(Ok(listed))) if Some(&listed) == row.as_ref()) {
                    health.stale.push(name.to_owned());
                }
            }
            Some(Stop::Newer) => health.newer.push(run),
            Some(Stop::Damaged(reason) | Stop::Unreadable(reason)) => {
                health.damaged.push(DamagedRecord { run: name.to_owned(), version: following.sound + 1, reason });
            }
        }
    }

    /// Makes the list of runs anew from their events, and returns how many are listed.
    ///
    /// # Errors
    /// The journal can't be read or written; then it is as it was.
    pub fn rebuild_rows(&mut self) -> Result<usize, JournalError> {
        self.write_plainly(|transaction| {
            transaction.execute_batch("DELETE FROM runs; DELETE FROM sessions")?;
            let mut listed = 0;
            for name in all_runs(transaction)? {
                let Ok(run) = RunId::try_from(name) else { continue };
                if let Some(row) = rebuild(transaction, &run)? {
                    columns::put(transaction, &row)?;
                    listed += 1;
                }
            }
            Ok(listed)
        })
    }
}

/// The row that a run's readable events make; its sessions are written on the way.
fn rebuild(transaction: &Transaction<'_>, run: &RunId) -> Result<Option<RunRow>, rusqlite::Error> {
    let mut row = None;
    let mut sessions = Vec::new();
    follow_stream(transaction, run.as_str(), &mut |at, event| {
        row::project(&mut row, run, at, event);
        if let RunEvent::SessionOpened { session, .. } = event {
            sessions.push(session.clone());
        }
    });
    let mut insert = transaction.prepare_cached("INSERT OR REPLACE INTO sessions (session, run) VALUES (?1, ?2)")?;
    for session in &sessions {
        insert.execute([session.as_str(), run.as_str()])?;
    }
    Ok(row)
}

fn quick_check(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA quick_check({MOST_PAGE_FINDINGS})"))?;
    let findings = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(findings.into_iter().filter(|finding| finding != "ok").collect())
}

/// Every run that has events, in the order in which they were started.
pub(crate) fn all_runs(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT CAST(run AS TEXT) FROM events GROUP BY run ORDER BY min(seq)")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Reads a stream as far as its records are there, readable, and can follow one another; each goes to `sink`.
pub(crate) fn follow_stream(connection: &Connection, run: &str, sink: &mut dyn FnMut(Timestamp, &RunEvent)) -> Following {
    let mut following = Following { sound: 0, stored: 0, stop: None };
    if let Err(error) = try_follow(connection, run, &mut following, sink) {
        following.stop.get_or_insert(Stop::Unreadable(error.to_string()));
    }
    following
}

fn try_follow(
    connection: &Connection,
    run: &str,
    following: &mut Following,
    sink: &mut dyn FnMut(Timestamp, &RunEvent),
) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT version, at, body FROM events WHERE run = ?1 ORDER BY version")?;
    let mut rows = statement.query([run])?;
    let mut state: Option<Run> = None;
    while let Some(row) = rows.next()? {
        following.stored += 1;
        if following.stop.is_some() {
            continue;
        }
        let in_place = row.get::<_, i64>(0).is_ok_and(|version| u64::try_from(version) == Ok(following.sound + 1));
        let decoded = match (in_place, row.get::<_, i64>(1), row.get_ref(2)?.as_str()) {
            (false, _, _) => Err(Stop::Damaged("it is missing".to_owned())),
            (true, Ok(at), Ok(body)) => decode(body).map(|event| (Timestamp(at), event)),
            (true, Err(error), _) => Err(Stop::Damaged(error.to_string())),
            (true, _, Err(error)) => Err(Stop::Damaged(error.to_string())),
        };
        match decoded.and_then(|(at, event)| advance(&mut state, at, &event).map(|()| (at, event))) {
            Ok((at, event)) => {
                sink(at, &event);
                following.sound += 1;
            }
            Err(stop) => following.stop = Some(stop),
        }
    }
    Ok(())
}

fn decode(body: &str) -> Result<RunEvent, Stop> {
    record::decode(body).map_err(|undecodable| match undecodable {
        Undecodable::Damaged(reason) => Stop::Damaged(reason),
        Undecodable::Newer(_) => Stop::Newer,
    })
}

fn advance(state: &mut Option<Run>, at: Timestamp, event: &RunEvent) -> Result<(), Stop> {
    match (state.as_mut(), event) {
        (None, RunEvent::Started(started)) => {
            *state = Some(Run::start(at, (**started).clone()));
            Ok(())
        }
        (Some(run), event) => run.apply(at, event.clone()).map_err(|unexpected| Stop::Damaged(unexpected.to_string())),
        (None, _) => Err(Stop::Damaged("it comes before the run's start".to_owned())),
    }
}
