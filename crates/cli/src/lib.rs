//! The `proctor` command line: arguments, settings, printing, exit codes, and the wiring of everything below.
//!
//! A command is a function of an [`Invocation`] and its arguments that prints through the [`printer`] and returns
//! an exit code or a [`report::Report`]. Decisions about runs belong to `proctor_domain`, doing them to
//! `proctor_orchestrator`; what is here must never do either.

mod app;
pub mod archive;
pub mod args;
pub mod commands;
pub mod docs;
pub mod environment;
pub mod memory;
pub mod place;
pub mod printer;
pub mod progress;
pub mod report;
pub mod run_document;
pub mod run_text;
pub mod settings;
pub mod spending;
pub mod standing;
pub mod state;
pub mod usage;

pub use app::{Invocation, main};
