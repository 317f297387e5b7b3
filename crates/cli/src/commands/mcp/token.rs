//! What lets a caller in.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use proctor_process::durable::{self, Durability, DurableError};

use crate::Invocation;
use crate::report::{Kind, Report};
use crate::settings::Layers;
use crate::state::StateHome;

/// The longest file that is read for a token, and the shortest token that is taken.
const LONGEST_FILE: u64 = 4096;
const SHORTEST: usize = 16;

/// A secret that a caller has to have, and the file that it is in. It is never printed.
pub(super) struct Token {
    secret: String,
    file: PathBuf,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Somebody keeps it.
    Given,
    /// It goes with this server.
    Drawn,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the system gives no random numbers for a token")]
    NoRandomness(#[source] getrandom::Error),
    #[error("make the folder {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Write(#[from] DurableError),
    #[error("read the token in {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} may be read by others: `chmod 600` it", path.display())]
    Open { path: PathBuf },
    #[error("{} holds no token: one line of at least {SHORTEST} letters, digits and signs", path.display())]
    NoToken { path: PathBuf },
}

impl From<TokenError> for Report {
    fn from(error: TokenError) -> Self {
        match &error {
            TokenError::NoRandomness(_) | TokenError::Folder { .. } | TokenError::Write(_) => Self::failed_to(Kind::Environment, &error),
            TokenError::Unreadable { .. } => Self::failed_to(Kind::User, &error),
            TokenError::Open { .. } | TokenError::NoToken { .. } => Self::from_error(Kind::User, &error),
        }
    }
}

impl Token {
    /// Reads the token of a file that only its owner can read.
    pub(super) fn read(file: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable { path: file.to_owned(), source };
        let opened = File::open(file).map_err(unreadable)?;
        if opened.metadata().map_err(unreadable)?.mode() & 0o077 != 0 {
            return Err(TokenError::Open { path: file.to_owned() });
        }
        let mut secret = String::new();
        opened.take(LONGEST_FILE).read_to_string(&mut secret).map_err(unreadable)?;
        let secret = secret.trim().to_owned();
        if secret.len() < SHORTEST || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NoToken { path: file.to_owned() });
        }
        Ok(Self { secret, file: file.to_owned(), origin: Origin::Given })
    }

    /// Draws one for the server at a port, into a file that goes with it.
    pub(super) fn draw(invocation: &Invocation, port: u16) -> Result<Self, Report> {
        let layers = Layers::read(&invocation.environment, None)?;
        let home = StateHome::of(layers.state_dir().value.as_deref(), &invocation.environment)?;
        let folder = home.path().join("mcp");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|source| TokenError::Folder { path: folder.clone(), source })?;
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).map_err(TokenError::NoRandomness)?;
        let secret: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = folder.join(format!("{port}.token"));
        // Mode 0600. A server that was killed at this port left one, which nobody listens for any more.
        durable::write(&file, format!("{secret}\n").as_bytes(), Durability::Renamed).map_err(TokenError::from)?;
        Ok(Self { secret, file, origin: Origin::Drawn })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the value of an `Authorization` header has it. It takes as long for every value of the same length.
    pub(super) fn is_in(&self, header: &[u8]) -> bool {
        let Some((scheme, said)) = header.split_at_checked("bearer ".len()) else { return false };
        let is_same = said.len() == self.secret.len() && said.iter().zip(self.secret.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0;
        scheme.eq_ignore_ascii_case(b"bearer ") && is_same
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.origin == Origin::Drawn {
            // What stays lets nobody in.
            let _ = fs::remove_file(&self.file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_lets_in() {
        let token = Token { secret: "s3cret-of-this-run".to_owned(), file: PathBuf::new(), origin: Origin::Given };

        for (header, is_in) in [
            ("Bearer s3cret-of-this-run", true),
            ("bearer s3cret-of-this-run", true),
            ("Bearer s3cret-of-this-ru", false),
            ("Bearer s3cret-of-this-run ", false),
            ("Bearer  s3cret-of-this-run", false),
            ("Basic s3cret-of-this-run", false),
            ("s3cret-of-this-run", false),
            ("Bearer ", false),
            ("", false),
        ] {
            assert_eq!(token.is_in(header.as_bytes()), is_in, "{header:?}");
        }
    }
}
