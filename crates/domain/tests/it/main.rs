//! The decisions of the domain, from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets what it did not expect has failed")]

mod agents;
mod fixtures;
mod gc;
mod led;
mod lessons;
mod machine;
mod oracle;
mod properties;
mod purity;
mod simulator;
mod verdicts;
