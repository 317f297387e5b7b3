//! Which boxes this machine has, found out by making one.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::{Available, BoxKind, BoxRules, bwrap, landlock, wrap};
use crate::Program;

/// A box is made in milliseconds; a machine that needs longer than this has other troubles.
const LIMIT: Duration = Duration::from_secs(10);

/// Tries both kinds. `program` is this program: boxes are entered through its hidden command `confine`.
///
/// That `bwrap` is installed proves little: containers and hardened kernels forbid what it does.
pub fn probe(program: &Path) -> Available {
    let bwrap = bwrap::find()
        .ok_or_else(|| "the program `bwrap` (package bubblewrap) is not installed".to_owned())
        .and_then(|path| try_out(BoxKind::Bwrap, program).map(|()| path));
    let landlock = landlock::version().and_then(|version| try_out(BoxKind::Landlock, program).map(|()| version));
    Available { bwrap, landlock }
}

fn try_out(kind: BoxKind, program: &Path) -> Result<(), String> {
    let mut command = wrap(kind, &BoxRules::default(), program, vec!["true".into()]).into_iter();
    let first = command.next().unwrap_or_default();
    let path = std::env::var_os("PATH").map(|path| (OsString::from("PATH"), path));
    let finished = Program::new(first).args(command).env(path).own_group().run(Some(LIMIT));
    match finished {
        Ok(finished) if finished.status.is_success() => Ok(()),
        Ok(finished) => Err(format!("an attempt failed here: {}", bwrap::complaint(&finished.stderr))),
        Err(error) => Err(format!("an attempt failed here: failed to {error}")),
    }
}
