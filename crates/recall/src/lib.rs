//! Memory: records of dead ends, and of procedures with their trap.
//!
//! A [`Record`] says either what *works*, with the trap that whoever does it otherwise falls into, or what *fails*.
//! [`store`] keeps records in Markdown that people edit, [`mod@line`] is the form of one, [`hygiene`] makes them harmless to keep
//! and to show, [`matching`] finds those that speak about an approach, a [`Library`] is several folders of them seen as one, [`embedding`] knows what a text means, and [`logos`] reads
//! and writes what another program keeps.
//!
//! Nothing here decides about runs, starts a program or talks to the network.

#![warn(missing_docs)]

pub mod advice;
pub mod cap;
pub mod corroboration;
pub mod embedding;
mod escape;
pub mod hygiene;
mod library;
pub mod line;
pub mod logos;
pub mod matching;
mod naming;
pub mod record;
pub mod stale;
pub mod store;

pub use library::{Found, Library, Most, Sense, Shelf, Vectored};
pub use line::{Line, Remark};
pub use record::{Action, Approval, Degree, Dependency, Evidence, Incomplete, Layer, Polarity, Record, Said, Scope, Word};
pub use store::{Added, Contents, Damage, Effect, Entry, FileKind, Folder, Problem, StoreError, Weight};
