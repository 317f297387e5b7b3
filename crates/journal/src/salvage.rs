//! Going on after damage: what can be read moves to a new file, the damaged one is kept beside it.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::RunId;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};

use crate::health::{Stop, all_runs, follow_stream};
use crate::schema::Identity;
use crate::{FILE_NAME, Journal, JournalError, schema, snapshot_hash};

/// More rows than fit on a page of 4 KiB: bounds the search for rows behind damaged pages.
const MOST_ROWS_PER_PAGE: i64 = 128;

/// Who has the journal open keeps it open for the length of a run, so waiting longer is of no use.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a salvage kept and what it could not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvageReport {
    /// Where the damaged file is now.
    pub set_aside: PathBuf,
    /// Every run of which something could be read.
    pub runs: Vec<SalvagedRun>,
    /// How many kept card texts moved to the new file.
    pub snapshots: usize,
    /// Why nothing of the damaged file could be read.
    pub unreadable: Option<String>,
}

/// What became of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvagedRun {
    /// The run.
    pub run: RunId,
    /// Events that were kept: the longest beginning of its stream that is whole. The run can be resumed from there.
    pub kept: u64,
    /// Events after those that are only in the damaged file.
    pub left_behind: u64,
    /// Why its stream could not be followed further.
    pub reason: Option<String>,
}

impl Journal {
    /// Moves everything readable of a damaged journal to a new one, and sets the damaged one aside.
    ///
    /// A crash in the middle leaves either the old file in its place or the new one.
    ///
    /// # Errors
    /// A process has it open, it is newer or another program's, or there is no room for the copy.
    pub fn salvage(state: &Path) -> Result<SalvageReport, JournalError> {
        let path = state.join(FILE_NAME);
        if path.symlink_metadata().is_err() {
            return Err(JournalError::Missing { path });
        }
        let source = open_alone(&path)?;
        let workshop = tempfile::Builder::new().prefix(".journal-").tempdir_in(state).map_err(io("make a folder in", state))?;
        let draft = workshop.path().join(FILE_NAME);
        schema::build(&draft)?;
        let mut report = SalvageReport { set_aside: PathBuf::new(), runs: Vec::new(), snapshots: 0, unreadable: None };
        let held = match source {
            Source::Readable { connection, held } => {
                let mut target = Self::open_draft(draft.clone())?;
                report.snapshots = copy(&connection, &target)?;
                report.runs = trim(&target)?;
                target.rebuild_rows()?;
                target.close()?;
                // While this connection lives, whoever waits to write to the damaged file keeps waiting; afterwards
                // they find that the file was moved.
                held.then_some(connection)
            }
            Source::Unreadable(reason) => {
                report.unreadable = Some(reason);
                None
            }
        };
        schema::seal(&draft).map_err(io("save", &draft))?;
        report.set_aside = set_aside(&path)?;
        fs::rename(&draft, &path).map_err(io("put the new journal at", &path))?;
        File::open(state).and_then(|folder| folder.sync_all()).map_err(io("save the folder", state))?;
        drop(held);
        Ok(report)
    }
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> JournalError {
    let path = path.to_path_buf();
    move |source| JournalError::Io { doing, path, source }
}

/// The damaged file, as far as it opens.
enum Source {
    /// SQLite finds its way in it. `held` says that our lock keeps others from writing to it.
    Readable { connection: Connection, held: bool },
    /// It does not; why.
    Unreadable(String),
}

/// Opens the file with a lock that nobody else can share, so that nothing is added while it is copied.
fn open_alone(path: &Path) -> Result<Source, JournalError> {
    let failed = |error| JournalError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    // Must come before the first read: then the lock on the file itself is taken instead of the shared-memory locks.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(failed)?;
    match schema::identify(&connection) {
        Ok(Identity::Journal(found)) if found > schema::KNOWN => {
            return Err(JournalError::Newer { path: path.to_path_buf(), found, known: schema::KNOWN });
        }
        Ok(Identity::Journal(_)) => {}
        Ok(Identity::Empty) => return Ok(Source::Unreadable("it is empty".to_owned())),
        Ok(Identity::Foreign) => return Err(JournalError::Foreign { path: path.to_path_buf() }),
        Err(error) if is_damage(&error) => return Ok(Source::Unreadable(error.to_string())),
        Err(error) => return Err(failed(error)),
    }
    // Brings in what is only in the write-ahead log, and removes the log: it must not meet the new file.
    let merged = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
    let held = matches!(merged, Ok(mode) if mode.eq_ignore_ascii_case("delete"));
    Ok(Source::Readable { connection, held })
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Keeps the damaged file (and its log, if it still has one) under the first free name.
fn set_aside(path: &Path) -> Result<PathBuf, JournalError> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    for number in 1_u32.. {
        let aside = beside(&format!(".damaged-{number}"));
        match fs::hard_link(path, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) if aside.exists() => return Err(io("keep the damaged journal as", &aside)(error)),
            // A file system without hard links.
            Err(_) => {
                fs::copy(path, &aside).map_err(io("keep the damaged journal as", &aside))?;
                schema::seal(&aside).map_err(io("save", &aside))?;
            }
        }
        let log = beside("-wal");
        if log.exists() {
            fs::rename(&log, beside(&format!(".damaged-{number}-wal"))).map_err(io("keep the damaged log", &log))?;
        }
        remove_if_there(&beside("-shm"))?;
        return Ok(aside);
    }
    Ok(path.to_path_buf())
}

fn remove_if_there(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Copies every readable event and card text, and returns the number of texts.
fn copy(source: &Connection, target: &Journal) -> Result<usize, JournalError> {
    let failed = |error| target.failed(error);
    let into = target.connection();
    into.execute_batch("PRAGMA synchronous = OFF; BEGIN").map_err(failed)?;
    sweep(source, "events", "run, version, at, body", &mut |row| {
        let (run, version, at, body): (String, i64, i64, String) = match (row.get(1), row.get(2), row.get(3), row.get(4)) {
            (Ok(run), Ok(version), Ok(at), Ok(body)) => (run, version, at, body),
            // A row whose cells have become something else.
            _ => return Ok(()),
        };
        into.prepare_cached("INSERT OR IGNORE INTO events (seq, run, version, at, body) VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
            row.get::<_, i64>(0)?,
            run,
            version,
            at,
            body
        ])?;
        Ok(())
    })
    .map_err(failed)?;
    let mut texts = 0;
    sweep(source, "snapshots", "hash, text", &mut |row| {
        let (Ok(hash), Ok(text)) = (row.get::<_, String>(1), row.get::<_, String>(2)) else { return Ok(()) };
        if snapshot_hash(&text) == hash {
            texts += into.prepare_cached("INSERT OR IGNORE INTO snapshots (hash, text) VALUES (?1, ?2)")?.execute([hash, text])?;
        }
        Ok(())
    })
    .map_err(failed)?;
    into.execute_batch("COMMIT").map_err(failed)?;
    Ok(texts)
}

/// Takes the target's rows, so its errors are the target's.
type Sink<'sink> = dyn FnMut(&Row<'_>) -> Result<(), rusqlite::Error> + 'sink;

/// Visits every row of a table that can be reached: from the front to the first damaged page, from the back to the
/// last one, and between them one by one, which finds rows on sound pages that scans can't get to.
fn sweep(source: &Connection, table: &str, columns: &str, sink: &mut Sink<'_>) -> Result<(), rusqlite::Error> {
    let mut first: Option<i64> = None;
    let mut last: Option<i64> = None;
    let forward = format!("SELECT rowid, {columns} FROM {table} ORDER BY rowid");
    if scan(source, &forward, &mut |row| {
        last = Some(row.get(0)?);
        sink(row)
    })? == Scan::Whole
    {
        return Ok(());
    }
    let reached = last.unwrap_or(0);
    let backward = format!("SELECT rowid, {columns} FROM {table} WHERE rowid > {reached} ORDER BY rowid DESC");
    scan(source, &backward, &mut |row| {
        first = Some(row.get(0)?);
        sink(row)
    })?;
    let pages = source.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0)).unwrap_or(0);
    let end = first.unwrap_or_else(|| reached.saturating_add(pages.saturating_mul(MOST_ROWS_PER_PAGE)));
    let Ok(mut one) = source.prepare(&format!("SELECT rowid, {columns} FROM {table} WHERE rowid = ?1")) else { return Ok(()) };
    for number in reached.saturating_add(1)..end {
        // Two layers: the outer error is the damaged page's, the inner one the target's.
        if let Ok(Some(end)) = one.query_row([number], |row| Ok(sink(row))).optional() {
            end?;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scan {
    Whole,
    Broken,
}

fn scan(source: &Connection, sql: &str, sink: &mut Sink<'_>) -> Result<Scan, rusqlite::Error> {
    let Ok(mut statement) = source.prepare(sql) else { return Ok(Scan::Broken) };
    let Ok(mut rows) = statement.query([]) else { return Ok(Scan::Broken) };
    loop {
        match rows.next() {
            Ok(Some(row)) => sink(row)?,
            Ok(None) => return Ok(Scan::Whole),
            Err(_) => return Ok(Scan::Broken),
        }
    }
}

/// Cuts every stream where it can't be followed any more: a prefix of a run is a state it was once in.
fn trim(target: &Journal) -> Result<Vec<SalvagedRun>, JournalError> {
    let failed = |error| target.failed(error);
    let into = target.connection();
    let mut salvaged = Vec::new();
    into.execute_batch("BEGIN").map_err(failed)?;
    for name in all_runs(into).map_err(failed)? {
        let following = follow_stream(into, &name, &mut |_, _| {});
        let Ok(run) = RunId::try_from(name.clone()) else {
            into.execute("DELETE FROM events WHERE run = ?1", [&name]).map_err(failed)?;
            continue;
        };
        let (kept, reason) = match following.stop {
            None => (following.sound, None),
            // Whether what a newer proctor wrote makes sense, only a newer proctor can say.
            Some(Stop::Newer) => (following.stored, None),
            Some(Stop::Damaged(reason) | Stop::Unreadable(reason)) => (following.sound, Some(reason)),
        };
        let kept_until = i64::try_from(kept).unwrap_or(i64::MAX);
        let left_behind = following.stored.saturating_sub(kept);
        if left_behind > 0 {
            into.execute("DELETE FROM events WHERE run = ?1 AND version > ?2", params![name, kept_until]).map_err(failed)?;
        }
        salvaged.push(SalvagedRun { run, kept, left_behind, reason });
    }
    into.execute_batch("COMMIT").map_err(failed)?;
    Ok(salvaged)
}
