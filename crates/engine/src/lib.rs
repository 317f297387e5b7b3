//! Drives sessions. A session is what the shells of one phase of a step, or one agent, run as:
//! children under a small host process that outlives whoever asked for it.
//!
//! The *driver* calls [`start`] or [`find`], then [`Attached::wait`]. The *host* is the same binary in
//! another role, [`run_host`]. They share nothing but the session's folder, its lock and a socket.

mod acp;
pub mod agent;
mod claude;
mod codex;
mod command;
pub mod host;
mod opencode;
pub mod redact;
mod scripted;
pub mod tools;
mod words;

pub use acp::run_acp_relay;
pub use host::{
    AgentPlace, AgentRun, Attached, Found, HostError, LONGEST_WORD, Progress, Said, SessionSpec, SessionWork, Stream, TRANSCRIPT, Waited,
    agent_files, dismiss_hosts, ended_orphans, fence, find, last_sign_of_life, replay_transcript, run_host, say, start,
};
pub use scripted::{ScriptError, check_script, run_scripted_agent};
pub use tools::run_session_tools;
pub use words::in_words;
