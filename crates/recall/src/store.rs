//! The files of memory: `works.md`, `fails.md` and, for what nobody approved yet, `pending.md`.
//!
//! The files are the truth. People edit them, git merges them, so nothing is ever assumed to be as it was left: a change
//! reads them anew under a lock, takes in what it finds, and is carried out only if nobody wrote meanwhile. A file that is
//! damaged is refused by name and never written.

mod contents;
mod damage;
mod diagnosis;
mod document;
mod error;
mod folder;

pub use contents::{Added, Contents};
pub use damage::Damage;
pub use diagnosis::{Problem, Weight};
pub use document::{Entry, FileKind};
pub use error::StoreError;
pub use folder::{Effect, Folder};
