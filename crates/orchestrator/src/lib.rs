//! Does what the domain decides; owns the event loop and the clock.
//!
//! [`procedure::start_run`] and [`procedure::resume_run`] are the two ways into a run. Both end in the same
//! loop: ask the run what it owes, record the decision, carry it out. There is no other recovery code.

mod chance;
mod clock;
mod limits;
mod memory;
pub mod procedure;
mod session;
mod site;
mod state_folder;

pub use chance::random_bits;
pub use clock::SystemClock;
pub use memory::Memory;
pub use site::{AgentSettings, RunSettings, Site, UnknownEngine};
pub use state_folder::StateFolder;
