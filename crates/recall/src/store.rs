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
mod own;
mod replacements;

pub use contents::{Added, Contents};
pub use damage::Damage;
pub use diagnosis::{Problem, Weight};
pub use document::{Entry, FileKind};
pub(crate) use document::{MARK, is_header};
pub use error::StoreError;
pub(crate) use folder::read_ordinary;
pub use folder::{Effect, Folder};
pub(crate) use own::{read_own_file, read_own_folder};
