//! The process crate against the real system.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "clippy's exemption covers only the test functions themselves")]

mod durable;
mod family;
mod identity;
mod killpoint;
mod lock;
mod program;
mod scene;
mod signals;
mod world;
