//! Memory: records of dead ends, and of procedures with their trap.
//!
//! A [`Record`] says either what *works*, with the trap that whoever does it otherwise falls into, or what *fails*.
//! Nothing here decides about runs, starts a program or talks to the network.

#![warn(missing_docs)]

pub mod matching;
pub mod record;

pub use record::{Action, Approval, Degree, Dependency, Evidence, Incomplete, Layer, Polarity, Record, Said, Scope, Word};
