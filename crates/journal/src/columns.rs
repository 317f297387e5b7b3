//! How a row of the `runs` table is written and read.

use proctor_domain::procedure::{Outcome, Records, StepId};
use proctor_domain::retention::Expires;
use proctor_domain::{RepoPath, RunId, Timestamp};
use rusqlite::types::{Null, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::{RunRow, Standing};

/// The columns that [`read`] takes, in its order.
pub(crate) const COLUMNS: &str =
    "run, procedure, worktree, records, folder, started_at, halted, outcome, ended_at, expires, steps, latest_step";

/// The outcome of a run that is completed with a warning.
const WITH_WARNINGS: &str = "completed with warnings";

const FIND: &str = "SELECT run, procedure, worktree, records, folder, started_at, halted, outcome, ended_at, expires, steps, latest_step
     FROM runs WHERE run = ?1";

const INSERT: &str = "INSERT INTO runs
     (run, procedure, worktree, records, folder, started_at, halted, outcome, ended_at, expires, steps, latest_step)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
     ON CONFLICT (run) DO UPDATE SET halted = ?7, outcome = ?8, ended_at = ?9, expires = ?10, steps = ?11, latest_step = ?12";

/// The row of a run; the inner `Err` says why what is stored is none.
pub(crate) fn find(connection: &Connection, run: &RunId) -> Result<Option<Result<RunRow, String>>, rusqlite::Error> {
    connection.prepare_cached(FIND)?.query_row([run.as_str()], |row| Ok(read(row))).optional()
}

/// Writes a run's row: a new one, or what can change of one that is there.
pub(crate) fn put(connection: &Connection, row: &RunRow) -> Result<(), rusqlite::Error> {
    let halted = row.halted().and_then(|reason| serde_json::to_string(reason).ok());
    connection.prepare_cached(INSERT)?.execute(params![
        row.run.as_str(),
        row.procedure,
        row.worktree.to_string(),
        records_name(row.records),
        row.folder.as_ref().map(ToString::to_string),
        row.started_at.0,
        halted,
        row.outcome().map(|outcome| if row.has_warnings() { WITH_WARNINGS } else { outcome.name() }),
        row.ended_at().map(|at| at.0),
        StoredExpires(&row.expires),
        i64::try_from(row.steps).unwrap_or(i64::MAX),
        row.latest_step.as_ref().map(StepId::as_str),
    ])?;
    Ok(())
}

/// Reads a row of [`COLUMNS`], or says why it is none.
pub(crate) fn read(row: &Row<'_>) -> Result<RunRow, String> {
    let text = |index: usize| optional_text(row, index);
    let needed = |index: usize| text(index)?.ok_or_else(|| format!("column {index} is empty"));
    let number = |index: usize| row.get::<_, Option<i64>>(index).map_err(|error| error.to_string());
    let run = needed(0)?.to_owned();
    Ok(RunRow {
        run: RunId::try_from(run).map_err(|error| error.to_string())?,
        procedure: needed(1)?.to_owned(),
        worktree: RepoPath::parse(needed(2)?),
        records: records(needed(3)?)?,
        folder: text(4)?.map(RepoPath::parse),
        started_at: Timestamp(number(5)?.ok_or("it has no start")?),
        standing: standing(text(6)?, text(7)?, number(8)?)?,
        expires: expires(row.get_ref(9).map_err(|error| error.to_string())?)?,
        steps: number(10)?.and_then(|steps| usize::try_from(steps).ok()).ok_or("it has no number of steps")?,
        latest_step: text(11)?.map(|step| StepId::try_from(step.to_owned())).transpose().map_err(|error| error.to_string())?,
    })
}

fn optional_text<'row>(row: &'row Row<'_>, index: usize) -> Result<Option<&'row str>, String> {
    row.get_ref(index).map_err(|error| error.to_string())?.as_str_or_null().map_err(|error| error.to_string())
}

fn standing(halted: Option<&str>, outcome: Option<&str>, ended_at: Option<i64>) -> Result<Standing, String> {
    match (halted, outcome, ended_at) {
        (None, None, None) => Ok(Standing::Open),
        (Some(reason), None, None) => {
            serde_json::from_str(reason).map(|reason| Standing::Halted(Box::new(reason))).map_err(|error| error.to_string())
        }
        (None, Some(name), Some(at)) => {
            let outcomes = [Outcome::Completed, Outcome::Failed, Outcome::Inconclusive, Outcome::Skipped];
            let with_warnings = name == WITH_WARNINGS;
            let name = if with_warnings { Outcome::Completed.name() } else { name };
            let outcome = outcomes.into_iter().find(|outcome| outcome.name() == name).ok_or_else(|| format!("`{name}` is no outcome"))?;
            Ok(Standing::Ended { outcome, at: Timestamp(at), with_warnings })
        }
        (_, _, _) => Err("its halt and its end contradict each other".to_owned()),
    }
}

fn records_name(records: Records) -> &'static str {
    match records {
        Records::State => "state",
        Records::Git => "git",
    }
}

fn records(name: &str) -> Result<Records, String> {
    match name {
        "state" => Ok(Records::State),
        "git" => Ok(Records::Git),
        name => Err(format!("`{name}` is no place for records")),
    }
}

/// Null where nothing is said, else a time or `never`.
struct StoredExpires<'row>(&'row Expires);

impl ToSql for StoredExpires<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Expires::Unset => ToSqlOutput::from(Null),
            Expires::At(at) => ToSqlOutput::from(at.0),
            Expires::Never => ToSqlOutput::from("never"),
            Expires::Unreadable(text) => ToSqlOutput::Owned(Value::Text(text.clone())),
        })
    }
}

fn expires(value: ValueRef<'_>) -> Result<Expires, String> {
    Ok(match value {
        ValueRef::Null => Expires::Unset,
        ValueRef::Integer(at) => Expires::At(Timestamp(at)),
        ValueRef::Text(b"never") => Expires::Never,
        ValueRef::Text(text) => Expires::Unreadable(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Real(_) | ValueRef::Blob(_) => return Err("its expiry is neither a time nor a text".to_owned()),
    })
}
