//! [`World`]: the real binary, a real repository and an empty environment, for tests.
//!
//! Nothing here uses the crates under test: a tool that shared their code would share their faults. The loopback model, which
//! shares none of it, is the exception. What can't be set up panics and says what it was, because a test has nothing better
//! to do.
#![allow(clippy::expect_used, clippy::panic, reason = "a world that can't be made ends its test")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]
#![allow(clippy::disallowed_methods, reason = "a test's world starts programs and writes files as a user's shell would")]

mod agents;
mod background;
mod output;
mod processes;
mod redact;
mod waiting;
mod world;

pub use agents::{claude, claude_agent_acp, codex, loopback, mcp_conformance, mcp_inspector, opencode};
pub use background::Background;
pub use output::Output;
pub use processes::Leftover;
pub use proctor_loopback::Server;
pub use redact::redact;
pub use waiting::wait_for;
pub use world::World;
