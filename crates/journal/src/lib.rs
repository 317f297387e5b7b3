//! Durable facts: what happened in each run, in the order in which it happened.
//!
//! A run is a stream of [`RunEvent`](proctor_domain::procedure::RunEvent)s. [`JournalStore::append`] makes them
//! durable before anyone acts on them, [`JournalStore::read`] gives them back for replay, and
//! [`JournalStore::runs`] lists what can be known about every run without replaying it.
//! [`Journal`] keeps them in SQLite, [`MemoryJournal`] in memory; one conformance suite covers both.
//!
//! What must never happen here: an event is lost or doubled, a stream has a gap, a file newer than this
//! program is written, a damaged record of one run hides another run. Nothing here reads a clock or decides
//! anything about a run.

mod columns;
mod error;
mod health;
mod memory;
mod record;
mod row;
mod salvage;
mod schema;
mod sqlite;
mod store;

pub use error::{AppendError, JournalError, ReadError, ResolveError, SnapshotError};
pub use health::{DamagedRecord, JournalHealth};
pub use memory::MemoryJournal;
pub use row::{RunRow, Standing};
pub use salvage::{SalvageReport, SalvagedRun};
pub use sqlite::{FILE_NAME, Journal};
pub use store::{JournalStore, RunFilter, RunsWanted, SessionsWanted, SkippedRuns, snapshot_hash};
