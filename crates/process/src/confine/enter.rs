//! The hidden command `confine`: what happens in this program between the command line that [`super::ChosenBox::wrap`] made
//! and the program that runs in the box.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use super::{ConfineError, Net, container, landlock};

/// Where between the two a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// About to become `bwrap`.
    Outside,
    /// In the box that `bwrap` made.
    Inside,
    /// About to confine itself by Landlock.
    Landlock,
    /// The same, and to give up the network.
    LandlockWithoutNetwork,
    /// Outside of a container, for as long as it is there.
    Keep,
    /// The first process in a container.
    First,
}

impl Stage {
    const ALL: [Self; 6] = [Self::Outside, Self::Inside, Self::Landlock, Self::LandlockWithoutNetwork, Self::Keep, Self::First];

    pub(super) fn landlock(net: Net) -> Self {
        match net {
            Net::All => Self::Landlock,
            Net::None => Self::LandlockWithoutNetwork,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Inside => "inside",
            Self::Landlock => "landlock",
            Self::LandlockWithoutNetwork => "landlock-without-network",
            Self::Keep => "keep",
            Self::First => "first",
        }
    }
}

/// Signals that ask a program to end.
const REQUESTS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

const END_OF_OWN: &str = "--";

/// The command line of this program that goes through `stage`, for which it is told `own`, and becomes `argv`.
pub(super) fn command(own_program: &Path, stage: Stage, own: impl IntoIterator<Item = OsString>, argv: Vec<OsString>) -> Vec<OsString> {
    let mut command = vec![own_program.into(), "confine".into(), stage.name().into()];
    command.extend(own);
    command.push(END_OF_OWN.into());
    command.extend(argv);
    command
}

/// Does what the hidden command `confine` is for. Mostly it becomes the program that it is told, and returns only when that
/// failed; around a container it stays, and returns the exit code of that program. `arguments` are those behind the
/// command's name. This process must have one thread, because Landlock confines threads.
///
/// # Errors
/// The box can't be entered, or the program can't be started in it.
pub fn enter(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, ConfineError> {
    let mut arguments = arguments.into_iter();
    let stage = arguments.next().and_then(|name| Stage::ALL.into_iter().find(|stage| name == stage.name()));
    let stage = stage.ok_or(ConfineError::Arguments { missing: "stage" })?;
    let own: Vec<OsString> = arguments.by_ref().take_while(|argument| argument != END_OF_OWN).collect();
    let argv: Vec<OsString> = arguments.collect();
    let paths = || own.iter().map(PathBuf::from).collect::<Vec<_>>();
    match stage {
        Stage::Outside => dispose(libc::SIG_IGN),
        Stage::Inside => dispose(libc::SIG_DFL),
        Stage::Landlock => landlock::restrict(&paths(), Net::All)?,
        Stage::LandlockWithoutNetwork => landlock::restrict(&paths(), Net::None)?,
        Stage::Keep => return container::keep(own, argv),
        Stage::First => return container::be_first(own, argv),
    }
    Err(become_program(argv))
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
