//! The session host and its driver against real processes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "clippy's exemption covers only the test functions themselves")]

mod acp;
mod agents;
mod asking;
mod claude;
mod codex;
mod conformance;
mod death;
mod disk;
mod limits;
mod opencode;
mod orphans;
mod output;
mod recordings;
mod redaction;
mod reuse;
mod scene;
mod scripted;
mod shells;
mod tools;
mod world;
