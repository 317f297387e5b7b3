//! What commands themselves can't do.

use std::io;
use std::path::PathBuf;

/// Why a command can't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The directory to work in can't be used.
    #[error("can't work in {}", path.display())]
    Directory {
        /// As given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The repository's settings ask for what the user has not accepted.
    #[error("{} asks for what you have not accepted: {}", path.display(), keys.join(", "))]
    NeedsConsent {
        /// The settings file.
        path: PathBuf,
        /// The settings that need consent.
        keys: Vec<&'static str>,
    },
    /// There is nobody to ask.
    #[error("there is no terminal to ask on")]
    NobodyToAsk {
        /// The flag that answers beforehand.
        flag: &'static str,
    },
    /// The answer can't be read.
    #[error("failed to read the answer")]
    Answer(#[source] io::Error),
    /// A session tries to speak for a person.
    #[error("this command speaks for a person, and it was started by a session of Proctor")]
    UnderSession,
    /// A file can't be made.
    #[error("failed to make {}", path.display())]
    Make {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Our own program can't be found again, so no session could be hosted.
    #[error("failed to find the path of this program")]
    OwnProgram(#[source] io::Error),
}
