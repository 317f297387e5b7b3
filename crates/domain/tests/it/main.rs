//! The decisions of the domain, from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets what it did not expect has failed")]

mod gc;
mod machine;
mod purity;
mod simulator;
mod verdicts;
