//! Repositories, commits and salvage, all through the git program.
//!
//! [`Repository`] is one work tree with the git directory that was recorded when it was found. Every
//! call names both explicitly, so that a `.git` which a step replaced or removed changes nothing.
//! Commands that only read run nothing that a step planted (see [`ConfigGuard`]); commits run the
//! user's hooks, filters and signing, and take exactly the paths that the caller names.
//!
//! What this crate must never do: stage, reset or delete a path that the caller did not name; decide
//! whether a change is foreign; read a clock other than the one that is passed in.

mod commit;
mod effects;
mod environment;
mod error;
mod guard;
mod history;
mod identity;
mod index_lock;
mod repository;
mod salvage;
mod status;

pub use commit::{CommitEnd, CommitRequest, Hooks};
pub use effects::EffectsEnd;
pub use environment::GitEnvironment;
pub use error::WorkspaceError;
pub use guard::ConfigGuard;
pub use history::CommitFacts;
pub use identity::worktree_key;
pub use repository::{Head, ObjectFormat, Repository};
pub use status::{Change, ChangeKind, Status, TooMuch, too_much};
