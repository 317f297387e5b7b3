//! The tables, how a new file comes to be, and how an older one is brought up.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::JournalError;

/// The newest format this program knows; `PRAGMA user_version` of a file.
pub(crate) const KNOWN: i64 = 1;

/// The migration at index `n` turns format `n` into format `n + 1`; a new file goes through all of them. Changes
/// are additive, so that the previous minor version can still read.
const MIGRATIONS: [&str; 1] = ["
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (run, version)
);
CREATE TABLE runs (
    ordinal INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    procedure TEXT NOT NULL,
    worktree TEXT NOT NULL,
    records TEXT NOT NULL,
    folder TEXT,
    started_at INTEGER NOT NULL,
    halted TEXT,
    outcome TEXT,
    ended_at INTEGER,
    expires ANY,
    steps INTEGER NOT NULL,
    latest_step TEXT
);
CREATE TABLE sessions (session TEXT PRIMARY KEY, run TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX sessions_by_run ON sessions (run);
CREATE TABLE snapshots (hash TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"];

/// Marks the file as ours, whatever format it has: "Proc" in ASCII, as `PRAGMA application_id`.
const OURS: i64 = 0x5072_6F63;

/// What stands at the place where the journal should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A journal of the newest format.
    Current,
    /// A journal of this later format.
    Newer(i64),
}

/// Looks at the format and brings an older file up to the newest.
pub(crate) fn settle(connection: &mut Connection, path: &Path) -> Result<Format, JournalError> {
    let failed = |error| JournalError::from_sqlite(path, error);
    match identify(connection).map_err(failed)? {
        Identity::Journal(KNOWN) => Ok(Format::Current),
        Identity::Journal(found) if found > KNOWN => Ok(Format::Newer(found)),
        Identity::Journal(_) => {
            migrate(connection, &MIGRATIONS).map_err(failed)?;
            Ok(Format::Current)
        }
        Identity::Empty => Err(JournalError::Truncated { path: path.to_path_buf() }),
        Identity::Foreign => Err(JournalError::Foreign { path: path.to_path_buf() }),
    }
}

/// What a database is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A journal of this format.
    Journal(i64),
    /// A file without content. Ours appear under their name only when they are complete, so it was cut off.
    Empty,
    /// Another program's.
    Foreign,
}

pub(crate) fn identify(connection: &Connection) -> Result<Identity, rusqlite::Error> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (format, owner) = (number("PRAGMA user_version")?, number("PRAGMA application_id")?);
    if owner == OURS && format > 0 {
        return Ok(Identity::Journal(format));
    }
    Ok(if number("SELECT count(*) FROM sqlite_schema")? == 0 { Identity::Empty } else { Identity::Foreign })
}

fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    // Asked again under the lock: another process may have been quicker.
    let format: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let from = usize::try_from(format).unwrap_or(0);
    for migration in migrations.iter().skip(from) {
        transaction.execute_batch(migration)?;
    }
    let reached = i64::try_from(migrations.len()).unwrap_or(KNOWN);
    transaction.pragma_update(None, "user_version", reached)?;
    transaction.commit()
}

/// Makes the state folder and an empty journal in it, unless somebody else does so first.
pub(crate) fn create(state: &Path, path: &Path) -> Result<(), JournalError> {
    let io = |doing: &'static str, path: &Path| {
        let path = path.to_path_buf();
        move |source| JournalError::Io { doing, path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(io("make the folder", state))?;
    // Built beside its place and put there in one move: nobody ever opens half a journal, and an empty file under
    // its name is therefore known to be damage.
    let workshop = tempfile::Builder::new().prefix(".journal-").tempdir_in(state).map_err(io("make a folder in", state))?;
    let draft = workshop.path().join("journal.db");
    build(&draft)?;
    match fs::hard_link(&draft, path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        // A file system without hard links. Two processes that meet here could replace each other's empty file,
        // which the check for a moved file reports before anything is lost.
        Err(_) => fs::rename(&draft, path).map_err(io("make the journal", path))?,
    }
    File::open(state).and_then(|folder| folder.sync_all()).map_err(io("save the folder", state))
}

/// Writes an empty journal of the newest format, complete and synced, at a path that nobody else knows.
pub(crate) fn build(path: &Path) -> Result<(), JournalError> {
    let failed = |error| JournalError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    // One sync at the end does for all of it.
    connection.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(failed)?;
    connection.pragma_update(None, "application_id", OURS).map_err(failed)?;
    migrate(&mut connection, &MIGRATIONS).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    seal(path).map_err(|source| JournalError::Io { doing: "save", path: path.to_path_buf(), source })
}

/// Makes a closed database file private and durable.
pub(crate) fn seal(path: &Path) -> Result<(), std::io::Error> {
    let file = File::open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_of(connection: &Connection) -> i64 {
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn there_is_a_migration_to_every_known_format() {
        assert_eq!(i64::try_from(MIGRATIONS.len()), Ok(KNOWN));
    }

    #[test]
    fn an_older_file_goes_through_the_missing_migrations_only() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &["CREATE TABLE first (x)"]).unwrap();

        migrate(&mut connection, &["CREATE TABLE first (x)", "CREATE TABLE second (x)"]).unwrap();

        assert_eq!(format_of(&connection), 2);
        assert!(connection.execute("INSERT INTO second VALUES (1)", []).is_ok());
    }

    #[test]
    fn a_migration_that_fails_leaves_the_file_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &["CREATE TABLE first (x)"]).unwrap();

        let failed = migrate(&mut connection, &["", "CREATE TABLE second (x)", "NONSENSE"]);

        assert!(failed.is_err());
        assert_eq!(format_of(&connection), 1);
        assert!(connection.execute("INSERT INTO second VALUES (1)", []).is_err());
    }
}
