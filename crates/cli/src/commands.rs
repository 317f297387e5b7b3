//! One file per command. Commands never see clap's own types, and print through the printer only.

pub mod completions;
pub mod demo;
pub mod doctor;
mod error;
pub mod init;
pub mod log;
pub mod procedure;
mod question;
pub mod runs;
pub mod show;
pub mod stop;
pub mod trust;
pub mod whereabouts;

pub use error::CommandError;
