//! Boxes: what a process and all that it starts may write.
//!
//! A box is made by rewriting a command line ([`wrap`]), so whoever starts programs needs to know nothing of it.
//! Two kinds are built: [`BoxKind::Bwrap`] out of mount and process namespaces, by the program `bwrap`, and
//! [`BoxKind::Landlock`] by the kernel alone. [`probe`] tries which of them this machine has, and [`choose`] takes
//! one. Both come back into this program ([`enter_and_exec`]) on the way to the command that they run.
//!
//! A box limits writing, not reading, and not the network. What each kind can't express is in `docs/boxes.md`; nothing
//! here makes a rule weaker in silence.

mod bwrap;
mod enter;
mod landlock;
mod probe;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use enter::enter_and_exec;
pub use probe::probe;

/// What a boxed process may write; everything else is read-only.
///
/// Paths are absolute, and the longest one that leads to a file decides about it. Symbolic links in them are
/// followed when the box is made, so a path that an earlier session could have replaced must be looked at first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoxRules {
    /// Folders and files that exist. A file can be written but not replaced by renaming another over it.
    pub writable: Vec<PathBuf>,
    /// Folders (or files) whose contents must not be readable. With bwrap an empty folder in memory is in their place;
    /// with Landlock they can be read, and are only not writable.
    pub hidden: Vec<PathBuf>,
    /// What is read-only although it lies in a writable folder, or readable although in a hidden one. What does not
    /// exist is passed over. Landlock can't express the former.
    pub read_only_inside: Vec<PathBuf>,
}

/// How a process is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxKind {
    /// Not at all.
    None,
    /// By the program `bwrap`: mount, process and IPC namespaces.
    Bwrap,
    /// By the kernel's Landlock.
    Landlock,
}

impl BoxKind {
    /// As it is written in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
        }
    }
}

impl fmt::Display for BoxKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What the setting `confine` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confine {
    /// The strongest that this machine has and that can express the rules, which may be none.
    #[default]
    Auto,
    /// This one, or nothing is started.
    Named(BoxKind),
}

impl Confine {
    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Named(kind) => kind.name(),
        }
    }
}

impl FromStr for Confine {
    type Err = ConfineError;

    fn from_str(text: &str) -> Result<Self, ConfineError> {
        [Self::Auto, Self::Named(BoxKind::Bwrap), Self::Named(BoxKind::Landlock), Self::Named(BoxKind::None)]
            .into_iter()
            .find(|confine| confine.name() == text)
            .ok_or_else(|| ConfineError::UnknownSetting { text: text.to_owned() })
    }
}

/// What this machine has; where it has not, one sentence says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// The program `bwrap`, which has made a box here.
    pub bwrap: Result<PathBuf, String>,
    /// The version of the kernel's Landlock, which has held a process here.
    pub landlock: Result<u32, String>,
}

/// Why a box can't be chosen, or was not entered.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// Not a value of the setting.
    #[error("read `{text}` as a kind of box: it is one of auto, bwrap, landlock and none")]
    UnknownSetting {
        /// What was written.
        text: String,
    },
    /// The kind that was named does not work here.
    #[error("make a {kind} box: {reason}")]
    Unavailable {
        /// The kind.
        kind: BoxKind,
        /// One sentence.
        reason: String,
    },
    /// Landlock has rules that allow, and none that take back.
    #[error("make a landlock box: it can't keep {} from being written inside a folder that may be; bwrap can", path.display())]
    NotExpressible {
        /// The path that would be writable.
        path: PathBuf,
    },
    /// The arguments of the hidden command are not ours.
    #[error("enter a box: this command is for Proctor itself, which gave no `{missing}`")]
    Arguments {
        /// What is missing.
        missing: &'static str,
    },
    /// A path that was to be writable can't be opened.
    #[error("enter a box in which {} can be written", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The kernel would not confine us.
    #[error("enter a landlock box")]
    Restrict {
        /// What Landlock said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The box is entered, and the program can't be started in it.
    #[error("start {} in its box", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl ConfineError {
    /// The exit code of a command that stands for the one in the box: as a shell has it, 127 for a program that is not
    /// there and 126 for one that can't be run.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. }
            | Self::UnknownSetting { .. }
            | Self::Unavailable { .. }
            | Self::NotExpressible { .. }
            | Self::Arguments { .. }
            | Self::Path { .. }
            | Self::Restrict { .. } => 126,
        }
    }
}

/// The kind of box that is used: for `auto` the strongest that can be had, else the one that was named.
///
/// # Errors
/// The one that was named can't be made here, or can't express the rules.
pub fn choose(confine: Confine, available: &Available, rules: &BoxRules) -> Result<BoxKind, ConfineError> {
    let unavailable = |kind, reason: &String| ConfineError::Unavailable { kind, reason: reason.clone() };
    match confine {
        Confine::Auto if available.bwrap.is_ok() => Ok(BoxKind::Bwrap),
        Confine::Auto if available.landlock.is_ok() && landlock::first_not_expressible(rules).is_none() => Ok(BoxKind::Landlock),
        Confine::Auto | Confine::Named(BoxKind::None) => Ok(BoxKind::None),
        Confine::Named(kind @ BoxKind::Bwrap) => match &available.bwrap {
            Ok(_) => Ok(kind),
            Err(reason) => Err(unavailable(kind, reason)),
        },
        Confine::Named(kind @ BoxKind::Landlock) => match (&available.landlock, landlock::first_not_expressible(rules)) {
            (Ok(_), None) => Ok(kind),
            (Ok(_), Some(path)) => Err(ConfineError::NotExpressible { path }),
            (Err(reason), _) => Err(unavailable(kind, reason)),
        },
    }
}

/// The command line that runs `argv` in a box. `own_program` is this program, whose hidden command `confine` is on the
/// way. The working directory and the environment are kept; `TMPDIR` is the caller's to set.
pub fn wrap(kind: BoxKind, rules: &BoxRules, own_program: &Path, argv: Vec<OsString>) -> Vec<OsString> {
    match kind {
        BoxKind::None => argv,
        BoxKind::Bwrap => bwrap::wrap(rules, own_program, argv),
        BoxKind::Landlock => {
            let writable = rules.writable.iter().map(|path| path.clone().into_os_string());
            enter::command(own_program, enter::Stage::Landlock, writable, argv)
        }
    }
}

/// The path without symbolic links; as it is when there is nothing at it.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available(bwrap: bool, landlock: bool) -> Available {
        Available {
            bwrap: bwrap.then(|| PathBuf::from("/usr/bin/bwrap")).ok_or_else(|| "it is not installed".to_owned()),
            landlock: landlock.then_some(6).ok_or_else(|| "the kernel has none".to_owned()),
        }
    }

    fn chosen(setting: &str, available: &Available, rules: &BoxRules) -> Result<&'static str, String> {
        let kind = choose(setting.parse().unwrap(), available, rules);
        kind.map(BoxKind::name).map_err(|error| error.to_string())
    }

    #[test]
    fn a_kind_that_is_named_and_can_not_be_had_is_refused_with_its_reason() {
        let nothing = available(false, false);
        let rules = BoxRules::default();

        assert_eq!(chosen("bwrap", &nothing, &rules), Err("make a bwrap box: it is not installed".to_owned()));
        assert_eq!(chosen("landlock", &nothing, &rules), Err("make a landlock box: the kernel has none".to_owned()));
        assert_eq!(chosen("none", &nothing, &rules), Ok("none"));
        assert_eq!(chosen("auto", &nothing, &rules), Ok("none"));
    }

    #[test]
    fn landlock_is_not_used_for_rules_that_it_can_not_express() {
        let rules = |inside: &str| BoxRules {
            writable: vec!["/nowhere/tree".into()],
            read_only_inside: vec![inside.into()],
            ..BoxRules::default()
        };
        let only_landlock = available(false, true);

        assert_eq!(chosen("auto", &only_landlock, &rules("/nowhere/tree/.git/config")), Ok("none"));
        assert_eq!(
            chosen("landlock", &only_landlock, &rules("/nowhere/tree/.git/config")),
            Err("make a landlock box: it can't keep /nowhere/tree/.git/config from being written inside a folder that may be; bwrap can"
                .to_owned())
        );
        assert_eq!(chosen("auto", &only_landlock, &rules("/nowhere/other")), Ok("landlock"));
        assert_eq!(chosen("auto", &available(true, true), &rules("/nowhere/tree/.git/config")), Ok("bwrap"));
    }

    #[test]
    fn a_setting_that_is_none_names_those_that_are() {
        let error = "firejail".parse::<Confine>().unwrap_err();

        assert_eq!(error.to_string(), "read `firejail` as a kind of box: it is one of auto, bwrap, landlock and none");
        assert_eq!("auto".parse::<Confine>().unwrap(), Confine::Auto);
    }
}
