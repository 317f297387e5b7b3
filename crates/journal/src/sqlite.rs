//! The journal that people have: one SQLite file per repository, shared by all its worktrees.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::procedure::RunEvent;
use proctor_domain::{RunId, SessionId, Timestamp};
use rusqlite::{Connection, ErrorCode, FileControl, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::record::{self, Undecodable};
use crate::schema::{self, Format};
use crate::store::normalised_prefix;
use crate::{
    AppendError, JournalError, JournalStore, ReadError, ResolveError, RunFilter, RunRow, RunsWanted, SessionsWanted, SkippedRuns,
    SnapshotError, columns, row, snapshot_hash,
};

/// The journal's name in the state folder.
pub const FILE_NAME: &str = "journal.db";

/// How long a statement waits for another process. Writers hold the lock for one append, so only a stuck machine
/// makes anyone wait this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open journal.
///
/// INVARIANT: an append is one `BEGIN IMMEDIATE` transaction with its version check inside, and no transaction is
/// open between two calls. So a process that dies anywhere leaves whole appends only.
#[derive(Debug)]
pub struct Journal {
    connection: Connection,
    path: PathBuf,
    access: Access,
}

/// What this process may do with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadWrite,
    ReadOnly,
    /// Opened as a file that nobody changes, because the folder does not let us take part in its locking.
    Immutable,
    /// Made by a later version, which may rely on rules that this one does not know.
    Newer(i64),
}

impl Journal {
    /// Opens the journal in the folder `state`, and makes both where they don't exist.
    ///
    /// A journal of a later format opens; it can be read as far as its tables allow, and every write is refused.
    ///
    /// # Errors
    /// It can't be made, is damaged, or is another program's.
    pub fn open(state: &Path) -> Result<Self, JournalError> {
        let path = state.join(FILE_NAME);
        if path.symlink_metadata().is_err() {
            schema::create(state, &path)?;
        }
        Self::open_existing(path, Access::ReadWrite).map_err(|error| explain(error, state))
    }

    /// Opens the journal in the folder `state` for reading; nothing is created.
    ///
    /// Where the folder is read-only for this user, [`Self::warning`] says what that means for what is read.
    ///
    /// # Errors
    /// There is none, it is damaged, or is another program's.
    pub fn open_read_only(state: &Path) -> Result<Self, JournalError> {
        let path = state.join(FILE_NAME);
        if path.symlink_metadata().is_err() {
            return Err(JournalError::Missing { path });
        }
        match Self::open_existing(path.clone(), Access::ReadOnly) {
            // Readers of a WAL database share a file beside it. Without the right to make that file, SQLite can't open.
            Err(JournalError::Storage { source, .. } | JournalError::ReadOnly { source: Some(source), .. })
                if matches!(source.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) =>
            {
                Self::open_existing(path, Access::Immutable)
            }
            end => end,
        }
    }

    fn open_existing(path: PathBuf, access: Access) -> Result<Self, JournalError> {
        let failed = |error| JournalError::from_sqlite(&path, error);
        let mut connection = connect(&path, access).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        let format = schema::settle(&mut connection, &path)?;
        if access == Access::ReadWrite {
            // A connection starts with the compiled-in levels, so they are said here and not left to the build. The log
            // is merged after 100 pages and not after 1,000: from then on it is written in place, and a sync of a file
            // that does not grow takes half the time.
            connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 100").map_err(failed)?;
        }
        let access = match format {
            Format::Current => access,
            Format::Newer(found) => Access::Newer(found),
        };
        Ok(Self { connection, path, access })
    }

    /// The journal's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The later format that this program only reads, if the file has one.
    pub fn newer_format(&self) -> Option<i64> {
        match self.access {
            Access::Newer(found) => Some(found),
            Access::ReadWrite | Access::ReadOnly | Access::Immutable => None,
        }
    }

    /// One sentence for the user about what reading may miss.
    pub fn warning(&self) -> Option<String> {
        match self.access {
            Access::Immutable => Some(format!(
                "the folder of {} can't be written, so it is read as it was last saved; what a proctor that is still running \
                 has recorded since may be missing",
                self.path.display()
            )),
            Access::Newer(found) => Some(format!(
                "{} was made by a newer proctor (format {found}, this one knows {}), so it is only read",
                self.path.display(),
                schema::KNOWN
            )),
            Access::ReadWrite | Access::ReadOnly => None,
        }
    }

    /// Opens a journal that is being built at a path that nobody else knows.
    pub(crate) fn open_draft(path: PathBuf) -> Result<Self, JournalError> {
        Self::open_existing(path, Access::ReadWrite)
    }

    /// Closes the file and reports what a drop would swallow.
    pub(crate) fn close(self) -> Result<(), JournalError> {
        let path = self.path;
        self.connection.close().map_err(|(_, error)| JournalError::from_sqlite(&path, error))
    }

    /// A write that no rule of ours forbids.
    pub(crate) fn write_plainly<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, JournalError> {
        self.write::<_, JournalError>(|transaction| work(transaction).map_err(WriteEnd::Failed))
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn failed(&self, error: rusqlite::Error) -> JournalError {
        JournalError::from_sqlite(&self.path, error)
    }

    /// Refuses early what the file or this process does not allow.
    fn writable(&self) -> Result<(), JournalError> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly | Access::Immutable => Err(JournalError::ReadOnly { path: self.path.clone(), source: None }),
            Access::Newer(found) => Err(JournalError::Newer { path: self.path.clone(), found, known: schema::KNOWN }),
        }
    }

    /// Does one write under the write lock: all of it or nothing.
    fn write<T, E: From<JournalError>>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T, WriteEnd<E>>) -> Result<T, E> {
        self.writable()?;
        let path = self.path.clone();
        let failed = |error| JournalError::from_sqlite(&path, error);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let mut moved = 0;
        transaction.file_control::<&str>(None, FileControl::HasMoved(&mut moved)).map_err(failed)?;
        if moved != 0 {
            return Err(JournalError::Moved { path }.into());
        }
        // An early return drops the transaction, which rolls it back.
        let value = match work(&transaction) {
            Ok(value) => value,
            Err(WriteEnd::Refused(reason)) => return Err(reason),
            Err(WriteEnd::Failed(error)) => return Err(failed(error).into()),
        };
        transaction.commit().map_err(failed)?;
        Ok(value)
    }

    fn candidates(&self, sql: &str, prefix: &str) -> Result<Vec<(String, String)>, JournalError> {
        let find = || {
            // Ids are lower-case letters and digits, and `{` comes right after `z`.
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([prefix, &format!("{prefix}{{")], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        find().map_err(|error| self.failed(error))
    }

    fn resolve_id(&self, kind: Kind, prefix: &str) -> Result<(String, String), ResolveError> {
        let not_found = || ResolveError::NotFound { prefix: prefix.to_owned(), kind: kind.noun() };
        let wanted = normalised_prefix(kind.prefix(), prefix).ok_or_else(not_found)?;
        let mut found = self.candidates(kind.query(), &wanted)?;
        if found.len() > 1 {
            let candidates = found.into_iter().map(|(id, _)| id).collect();
            return Err(ResolveError::Ambiguous { prefix: prefix.to_owned(), kind: kind.noun(), candidates });
        }
        found.pop().ok_or_else(not_found)
    }
}

/// Why a write is not kept.
enum WriteEnd<E> {
    /// SQLite failed.
    Failed(rusqlite::Error),
    /// Our own rules forbid it.
    Refused(E),
}

impl<E> From<rusqlite::Error> for WriteEnd<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

/// The two kinds of ids that can be looked up.
#[derive(Clone, Copy)]
enum Kind {
    Run,
    Session,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Session => "session",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Run => RunId::PREFIX,
            Self::Session => SessionId::PREFIX,
        }
    }

    fn query(self) -> &'static str {
        match self {
            Self::Run => "SELECT run, run FROM runs WHERE run >= ?1 AND run < ?2 ORDER BY run LIMIT 10",
            Self::Session => "SELECT session, run FROM sessions WHERE session >= ?1 AND session < ?2 ORDER BY session LIMIT 10",
        }
    }
}

fn connect(path: &Path, access: Access) -> Result<Connection, rusqlite::Error> {
    // One connection belongs to one thread at a time, which the type system sees to.
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match access {
        // Without CREATE: a file that SQLite makes would be readable by others.
        Access::ReadWrite | Access::Newer(_) => Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE),
        Access::ReadOnly => Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY),
        Access::Immutable => {
            let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), flags)
        }
    }
}

/// SQLite says only that it can't open a file, and means one that it would have to make beside the journal. Making
/// one ourselves tells why.
fn explain(error: JournalError, state: &Path) -> JournalError {
    let JournalError::Storage { path, source } = error else { return error };
    let kind = tempfile::tempfile_in(state).map_err(|error| error.kind()).err();
    match kind {
        Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => JournalError::ReadOnly { path, source: Some(source) },
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => JournalError::Full { path, source },
        _ => JournalError::Storage { path, source },
    }
}

/// The path as a `file:` URI with the promise that nobody changes the file.
fn immutable_uri(path: &Path) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(byte);
        } else {
            uri.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    uri.extend_from_slice(b"?immutable=1");
    PathBuf::from(OsString::from_vec(uri))
}

fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many events a stream has.
fn version_of(connection: &Connection, run: &RunId) -> Result<u64, rusqlite::Error> {
    let newest: Option<i64> = connection
        .prepare_cached("SELECT version FROM events WHERE run = ?1 ORDER BY version DESC LIMIT 1")?
        .query_row([run.as_str()], |row| row.get(0))
        .optional()?;
    Ok(newest.and_then(|version| u64::try_from(version).ok()).unwrap_or(0))
}

/// Brings the run's row and its sessions up to date with events that are being added.
fn follow(transaction: &Transaction<'_>, run: &RunId, events: &[(Timestamp, RunEvent)]) -> Result<(), rusqlite::Error> {
    for (_, event) in events {
        if let RunEvent::SessionOpened { session, .. } = event {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO sessions (session, run) VALUES (?1, ?2)")?
                .execute([session.as_str(), run.as_str()])?;
        }
    }
    if !events.iter().any(|(_, event)| row::concerns(event)) {
        return Ok(());
    }
    // A row that can't be read is left for `doctor`: it must not keep the run itself from going on.
    let mut current = match columns::find(transaction, run)? {
        None => None,
        Some(Ok(current)) => Some(current),
        Some(Err(_)) => return Ok(()),
    };
    for (at, event) in events {
        row::project(&mut current, run, *at, event);
    }
    current.map_or(Ok(()), |current| columns::put(transaction, &current))
}

impl JournalStore for Journal {
    fn append(&mut self, run: &RunId, expected_version: u64, events: &[(Timestamp, RunEvent)]) -> Result<u64, AppendError> {
        // Written as text before the lock is taken: others wait for as short a time as possible.
        let bodies = encode(run, expected_version, events)?;
        self.write(|transaction| {
            let found = version_of(transaction, run)?;
            if found != expected_version {
                return Err(WriteEnd::Refused(AppendError::Conflict { run: run.clone(), expected: expected_version, found }));
            }
            let mut version = found;
            {
                let mut insert = transaction.prepare_cached("INSERT INTO events (run, version, at, body) VALUES (?1, ?2, ?3, ?4)")?;
                for ((at, _), body) in events.iter().zip(&bodies) {
                    version += 1;
                    insert.execute(params![run.as_str(), stored(version), at.0, body])?;
                }
            }
            follow(transaction, run, events)?;
            Ok(version)
        })
    }

    fn read_after(&self, run: &RunId, version: u64) -> Result<Vec<(Timestamp, RunEvent)>, ReadError> {
        let failed = |error| ReadError::from(self.failed(error));
        let mut statement = self
            .connection
            .prepare_cached("SELECT version, at, body FROM events WHERE run = ?1 AND version > ?2 ORDER BY version")
            .map_err(failed)?;
        let mut rows = statement.query(params![run.as_str(), stored(version)]).map_err(failed)?;
        let mut events = Vec::new();
        let mut expected = version;
        while let Some(row) = rows.next().map_err(failed)? {
            expected += 1;
            let damaged = |reason: String| ReadError::Damaged { run: run.clone(), version: expected, reason };
            if row.get::<_, i64>(0).map_err(failed)? != stored(expected) {
                return Err(damaged("it is missing".to_owned()));
            }
            let at = row.get(1).map_err(|error| damaged(error.to_string()))?;
            let body = row.get_ref(2).map_err(failed)?.as_str().map_err(|error| damaged(error.to_string()))?;
            match record::decode(body) {
                Ok(event) => events.push((Timestamp(at), event)),
                Err(Undecodable::Damaged(reason)) => return Err(damaged(reason)),
                Err(Undecodable::Newer(found)) => {
                    return Err(ReadError::Newer { run: run.clone(), version: expected, found, known: record::CURRENT });
                }
            }
        }
        Ok(events)
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, JournalError> {
        let standing = match filter.wanted {
            RunsWanted::Any => "1",
            RunsWanted::Unended => "outcome IS NULL",
            RunsWanted::Resumable => "(outcome IS NULL OR outcome = 'failed')",
            RunsWanted::Ended => "outcome IS NOT NULL",
        };
        let skipped = match filter.skipped {
            SkippedRuns::Hidden => "outcome IS NOT 'skipped'",
            SkippedRuns::Shown => "1",
        };
        let sessions = match filter.sessions {
            SessionsWanted::Any => "1",
            SessionsWanted::OfAgents => OPENED_FOR_AN_AGENT,
        };
        let sql = format!(
            "SELECT {} FROM runs WHERE {standing} AND {skipped} AND {sessions} AND (?1 IS NULL OR procedure = ?1)
             AND (?2 IS NULL OR worktree = ?2) ORDER BY ordinal DESC LIMIT ?3",
            columns::COLUMNS
        );
        let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let list = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let worktree = filter.worktree.as_ref().map(ToString::to_string);
            let rows = statement.query_map(params![filter.procedure, worktree, limit], |row| Ok(columns::read(row)))?;
            // A row that can't be read is named by `doctor` and made anew from its events; it hides no other.
            let readable = |row: Result<Result<RunRow, String>, rusqlite::Error>| row.map(Result::ok).transpose();
            rows.filter_map(readable).collect::<Result<Vec<_>, rusqlite::Error>>()
        };
        list().map_err(|error| self.failed(error))
    }

    fn resolve(&self, prefix: &str) -> Result<RunId, ResolveError> {
        let (run, _) = self.resolve_id(Kind::Run, prefix)?;
        RunId::try_from(run).map_err(|_| ResolveError::NotFound { prefix: prefix.to_owned(), kind: Kind::Run.noun() })
    }

    fn resolve_session(&self, prefix: &str) -> Result<(RunId, SessionId), ResolveError> {
        let not_found = || ResolveError::NotFound { prefix: prefix.to_owned(), kind: Kind::Session.noun() };
        let (session, run) = self.resolve_id(Kind::Session, prefix)?;
        Ok((RunId::try_from(run).map_err(|_| not_found())?, SessionId::try_from(session).map_err(|_| not_found())?))
    }

    fn put_snapshot(&mut self, text: &str) -> Result<String, JournalError> {
        let hash = snapshot_hash(text);
        // Most runs use a card that is already kept; finding that out needs no lock and no sync.
        if self.snapshot(&hash).is_ok_and(|kept| kept == text) {
            return Ok(hash);
        }
        self.write::<_, JournalError>(|transaction| {
            transaction.execute("INSERT OR REPLACE INTO snapshots (hash, text) VALUES (?1, ?2)", [hash.as_str(), text])?;
            Ok(())
        })?;
        Ok(hash)
    }

    fn snapshot(&self, hash: &str) -> Result<String, SnapshotError> {
        let find = || {
            self.connection
                .prepare_cached("SELECT text FROM snapshots WHERE hash = ?1")?
                .query_row([hash], |row| Ok(row.get_ref(0)?.as_str().ok().map(ToOwned::to_owned)))
                .optional()
        };
        let found = find().map_err(|error| self.failed(error))?;
        let kept = found.ok_or_else(|| SnapshotError::Missing { hash: hash.to_owned() })?;
        kept.filter(|text| snapshot_hash(text) == hash).ok_or_else(|| SnapshotError::Damaged { hash: hash.to_owned() })
    }

    fn remove(&mut self, run: &RunId) -> Result<(), JournalError> {
        self.write(|transaction| {
            for sql in ["DELETE FROM events WHERE run = ?1", "DELETE FROM runs WHERE run = ?1", "DELETE FROM sessions WHERE run = ?1"] {
                transaction.prepare_cached(sql)?.execute([run.as_str()])?;
            }
            Ok(())
        })
    }
}

/// Whether a run has a session that an agent engine was opened for. Its events are searched as text, which takes a
/// hundredth of what decoding them does, and needs no column that older programs would not keep up. The kind of an event
/// stands at its beginning, so most are passed over after a few bytes. Inside of a JSON text the quotes would be escaped, so
/// nothing that somebody wrote is taken for it.
const OPENED_FOR_AN_AGENT: &str = r#"run IN (SELECT run FROM events WHERE instr(substr(body, 1, 64), '"event":"session-opened"')
    AND (instr(body, '"work":{"agent":') OR instr(body, '"work":{"judge":') OR instr(body, '"work":"repair"')))"#;

/// The stored form of events, or why they can't be the next ones of any stream.
fn encode(run: &RunId, expected_version: u64, events: &[(Timestamp, RunEvent)]) -> Result<Vec<String>, AppendError> {
    crate::store::check_place(run, expected_version, events)?;
    events.iter().map(|(_, event)| record::encode(event).map_err(|source| AppendError::Unwritable { run: run.clone(), source })).collect()
}
