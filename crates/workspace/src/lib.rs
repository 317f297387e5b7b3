//! Repositories, commits and salvage, all through the git program.
//!
//! [`Repository`] is one work tree with the git directory that was recorded when it was found. Every
//! call names both explicitly, so that a `.git` which a step replaced or removed changes nothing.
//! Commands that only read run nothing that a step planted: no hooks, and no program that the settings
//! name since [`Repository::guard_config`]. Commits run the user's hooks, filters and signing, and take
//! exactly the paths that the caller names.
//!
//! What this crate must never do: stage, reset or delete a path that the caller did not name; decide
//! whether a change is foreign; change a reference outside `refs/proctor/` other than by a commit, a merge
//! or with a worktree of a run's; remove a lock that may be somebody else's.

mod commit;
mod diff;
mod effects;
mod environment;
mod error;
mod evidence;
mod git;
mod guard;
mod hidden;
mod history;
mod identity;
mod keepsake;
mod merge;
mod processes;
mod programs;
mod refusal;
mod repository;
mod restore;
mod salvage;
mod staging;
mod status;
mod submodule;
mod tree_path;
mod ways;
mod worktrees;

pub use commit::{CommitEnd, CommitRequest, Hooks};
pub use effects::{EFFECT_VARIABLE, EffectsEnd};
pub use environment::GitEnvironment;
pub use error::WorkspaceError;
pub use history::CommitFacts;
pub use identity::worktree_key;
pub use merge::{MergeEnd, MergeRequest};
pub use programs::Programs;
pub use refusal::Refusal;
pub use repository::{Head, ObjectFormat, Repository};
pub use status::{Change, ChangeKind, NEW_BYTES_LIMIT, NEW_FILES_LIMIT, Status, TooMuch, too_much};
