//! What can keep the demo from being played.

use std::io;
use std::path::PathBuf;

use crate::args::setup::DemoEngine;
use proctor_process::durable::DurableError;
use proctor_process::{ProgramError, SignalsError};

/// Why the demo can't be played.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The folder for `--keep` has something in it, or is none.
    #[error("make the demo in {}: it is there already and not an empty folder", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder or file can't be made.
    #[error("make {}", path.display())]
    Make {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file can't be written.
    #[error(transparent)]
    Write(#[from] DurableError),
    /// The folder can't be removed at the end.
    #[error("remove {}", path.display())]
    Remove {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Git can't be started.
    #[error(transparent)]
    Start(#[from] ProgramError),
    /// Git refused.
    #[error("run `git {command}`: {output}")]
    Git {
        /// Its arguments.
        command: String,
        /// What it printed.
        output: String,
    },
    /// Signals can't be listened to.
    #[error(transparent)]
    Signals(SignalsError),
    /// There is no box for a real agent.
    #[error("play the demo with a real agent: no box can be made here that would hold it, because {reason}")]
    NoBox {
        /// Why not.
        reason: String,
    },
    /// A run ended otherwise than the story tells.
    #[error("play the demo: its run should have {wanted}, and it is {found}")]
    WentOtherwise {
        /// What the story needs.
        wanted: &'static str,
        /// What it is.
        found: String,
        /// Who was the agent.
        engine: DemoEngine,
    },
}
