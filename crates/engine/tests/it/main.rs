//! The session host and its driver against real processes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "clippy's exemption covers only the test functions themselves")]

mod death;
mod disk;
mod limits;
mod orphans;
mod output;
mod reuse;
mod scene;
mod shells;
mod world;
