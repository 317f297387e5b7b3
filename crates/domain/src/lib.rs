//! What Proctor's words mean, and every decision about them.
//!
//! Nothing here reads a clock, a disk, the network or randomness: times, ids and facts come in as
//! values, decisions go out as values. The journal stores the events of [`procedure::RunEvent`],
//! which are therefore the only types here that derive serde (with what they carry).

#![warn(missing_docs)]

pub mod clock;
pub mod duration;
pub mod exit;
pub mod git;
pub mod ids;
pub mod money;
pub mod path;
pub mod procedure;
pub mod retention;
pub mod session;

pub use clock::{Clock, Timestamp};
pub use duration::{CardDuration, Expiry};
pub use exit::ExitCode;
pub use git::{Branch, Oid};
pub use ids::{RecordId, RunId, SessionId};
pub use money::{Cost, MicroDollars};
pub use path::RepoPath;
