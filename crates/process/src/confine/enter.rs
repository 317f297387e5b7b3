//! The hidden command `confine`: what happens in this program between the command line that [`super::wrap`] made and the
//! program that runs in the box.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use super::{ConfineError, landlock};

/// Where between the two a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// About to become `bwrap`.
    Outside,
    /// In the box that `bwrap` made.
    Inside,
    /// About to confine itself by Landlock.
    Landlock,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Outside, Self::Inside, Self::Landlock];

    fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Inside => "inside",
            Self::Landlock => "landlock",
        }
    }
}

/// Signals that ask a program to end.
const REQUESTS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

const END_OF_PATHS: &str = "--";

/// The command line of this program that goes through `stage` and becomes `argv`.
pub(super) fn command(
    own_program: &Path,
    stage: Stage,
    writable: impl IntoIterator<Item = OsString>,
    argv: Vec<OsString>,
) -> Vec<OsString> {
    let mut command = vec![own_program.into(), "confine".into(), stage.name().into()];
    command.extend(writable);
    command.push(END_OF_PATHS.into());
    command.extend(argv);
    command
}

/// Does what the hidden command `confine` is for, and becomes the program that it names; so it returns only when that
/// failed. `arguments` are those behind the command's name. This process must have one thread, because
/// Landlock confines threads.
pub fn enter_and_exec(arguments: impl IntoIterator<Item = OsString>) -> ConfineError {
    match enter(arguments) {
        Ok(argv) => become_program(argv),
        Err(error) => error,
    }
}

fn enter(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, ConfineError> {
    let mut arguments = arguments.into_iter();
    let stage = arguments.next().and_then(|name| Stage::ALL.into_iter().find(|stage| name == stage.name()));
    let stage = stage.ok_or(ConfineError::Arguments { missing: "stage" })?;
    let writable: Vec<PathBuf> = arguments.by_ref().take_while(|argument| argument != END_OF_PATHS).map(PathBuf::from).collect();
    match stage {
        Stage::Outside => dispose(libc::SIG_IGN),
        Stage::Inside => dispose(libc::SIG_DFL),
        Stage::Landlock => landlock::restrict(&writable)?,
    }
    Ok(arguments.collect())
}

#[allow(unsafe_code, reason = "neither the standard library nor rustix sets the disposition of a signal")]
fn dispose(disposition: libc::sighandler_t) {
    for signal in REQUESTS {
        // SAFETY: `signal` takes integers, and these dispositions are no functions that could run at a wrong time.
        // It fails only for signals that do not exist.
        let _ = unsafe { libc::signal(signal, disposition) };
    }
}

#[allow(clippy::disallowed_methods, reason = "this process becomes the program, which `Program`, made to start children, can't do")]
fn become_program(argv: Vec<OsString>) -> ConfineError {
    let mut argv = argv.into_iter();
    let Some(program) = argv.next() else { return ConfineError::Arguments { missing: "program" } };
    let source = std::process::Command::new(&program).args(argv).exec();
    ConfineError::Start { program: PathBuf::from(&program), source }
}
