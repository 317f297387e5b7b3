//! One file per command. Commands never see clap's own types, and print through the printer only.

pub mod answer;
pub mod completions;
pub mod cost;
pub mod demo;
pub mod dev;
pub mod doctor;
pub mod engines;
mod error;
pub mod hook;
pub mod init;
pub mod log;
pub mod mcp;
pub mod memory;
pub mod procedure;
mod question;
pub mod runs;
pub mod say;
pub mod show;
pub mod stop;
pub mod trust;
pub mod whereabouts;

pub use error::CommandError;
