//! Boxes: what a process and all that it starts may write, read and reach.
//!
//! A box is made by rewriting a command line ([`ChosenBox::wrap`]), so whoever starts programs needs to know nothing of it.
//! Three kinds are built: [`BoxKind::Bwrap`] out of mount and process namespaces, by the program `bwrap`,
//! [`BoxKind::Landlock`] by the kernel alone, and [`BoxKind::Container`] by `podman` or `docker`. [`probe`] tries which
//! of them this machine has, and [`choose`] takes one. All come back into this program ([`enter`]) on the way to the
//! command that they run.
//!
//! What each kind holds and what it leaves open is one table, [`CONTRACT`]; nothing here makes a rule weaker in silence.

mod bwrap;
mod container;
mod contract;
mod enter;
mod landlock;
mod mounts;
mod probe;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use container::{Container, ContainerSetup};
pub use contract::{CONTRACT, Cell, CellFacts, Hold, OpenCell};
pub use enter::enter;
pub use probe::probe;

/// What a process in a box reaches of the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Net {
    /// Whatever this machine reaches, and this machine itself.
    #[default]
    All,
    /// Nothing, not even this machine.
    None,
}

impl Net {
    /// As it is written in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::None => "none",
        }
    }
}

impl FromStr for Net {
    type Err = ConfineError;

    fn from_str(text: &str) -> Result<Self, ConfineError> {
        let known = [Self::All, Self::None].into_iter().find(|net| net.name() == text);
        known.ok_or_else(|| ConfineError::UnknownNet { text: text.to_owned() })
    }
}

/// What a boxed process may write and reach; everything else is read-only, or not there at all.
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
    /// exist is passed over. Landlock can't express the former. A container has of this machine what is in here and
    /// what is writable, and nothing else.
    pub read_only_inside: Vec<PathBuf>,
    /// What it reaches of the network.
    pub net: Net,
    /// Sockets outside at which it is heard although only descendants of the box's maker are: a container's processes
    /// descend from nobody here, so what they say there is handed on.
    pub doors: Vec<PathBuf>,
    /// A program of this machine as the command line names it, there or behind our own program's name. In a container it is
    /// called by its path, where it is among what can be read and an image can run it without an interpreter.
    pub program: Option<PathBuf>,
    /// A folder that nothing in the box can write, for what has to lie somewhere while a box is there.
    pub place: Option<PathBuf>,
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
    /// By `podman` or `docker`, out of an image.
    Container,
}

impl BoxKind {
    /// As it is written in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
            Self::Container => "container",
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
        let named = [BoxKind::Bwrap, BoxKind::Landlock, BoxKind::Container, BoxKind::None].map(Self::Named);
        std::iter::once(Self::Auto)
            .chain(named)
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
    /// What makes containers, and has made one here.
    pub container: Result<Container, String>,
}

/// A box that can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenBox {
    /// None.
    None,
    /// By `bwrap`.
    Bwrap,
    /// By the kernel's Landlock.
    Landlock {
        /// Its version.
        version: u32,
    },
    /// By this container program.
    Container(Container),
}

/// Why a box can't be chosen, or was not entered.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// Not a value of the setting.
    #[error("read `{text}` as a kind of box: it is one of auto, bwrap, landlock, container and none")]
    UnknownSetting {
        /// What was written.
        text: String,
    },
    /// Not a value of the setting.
    #[error("read `{text}` as what is reached of the network: it is one of all and none")]
    UnknownNet {
        /// What was written.
        text: String,
    },
    /// There is no box that could keep a process from the network.
    #[error("keep a process from the network: {reason}")]
    Network {
        /// One sentence.
        reason: String,
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
    /// A path that no container program could be told.
    #[error("enter a container: {} is not UTF-8", path.display())]
    OddPath {
        /// The path.
        path: PathBuf,
    },
    /// The container program can't be started or watched.
    #[error("run a container")]
    Container(#[from] crate::ProgramError),
    /// What the process outside and the first one inside talk through can't be made.
    #[error("keep watch over a container")]
    Watch(#[source] io::Error),
    /// Signals can't be listened for.
    #[error("keep watch over a container")]
    Signals(#[from] crate::SignalsError),
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
            | Self::UnknownNet { .. }
            | Self::Network { .. }
            | Self::OddPath { .. }
            | Self::Container(_)
            | Self::Watch(_)
            | Self::Signals(_)
            | Self::Unavailable { .. }
            | Self::NotExpressible { .. }
            | Self::Arguments { .. }
            | Self::Path { .. }
            | Self::Restrict { .. } => 126,
        }
    }
}

/// The box that is used: for `auto` the strongest that can be had, else the one that was named. `auto` takes no container,
/// because which programs there are in it is up to its image.
///
/// # Errors
/// The one that was named can't be made here or can't express the rules, or the network is to be kept away and no box does.
pub fn choose(confine: Confine, available: &Available, rules: &BoxRules) -> Result<ChosenBox, ConfineError> {
    let unavailable = |kind, reason: &String| ConfineError::Unavailable { kind, reason: reason.clone() };
    match confine {
        Confine::Auto => choose_strongest(available, rules),
        Confine::Named(BoxKind::None) if rules.net == Net::None => {
            Err(ConfineError::Network { reason: "only a box can, and `confine` is none".to_owned() })
        }
        Confine::Named(BoxKind::None) => Ok(ChosenBox::None),
        Confine::Named(kind @ BoxKind::Bwrap) => match &available.bwrap {
            Ok(_) => Ok(ChosenBox::Bwrap),
            Err(reason) => Err(unavailable(kind, reason)),
        },
        Confine::Named(kind @ BoxKind::Landlock) => match (&available.landlock, landlock::first_not_expressible(rules)) {
            (Err(reason), _) => Err(unavailable(kind, reason)),
            (Ok(version), _) if rules.net == Net::None && *version < landlock::KNOWS_TCP => Err(ConfineError::Network {
                reason: format!("the kernel's Landlock is version {version}, and only from 4 (Linux 6.7) does it know of TCP"),
            }),
            (Ok(version), None) => Ok(ChosenBox::Landlock { version: *version }),
            (Ok(_), Some(path)) => Err(ConfineError::NotExpressible { path }),
        },
        Confine::Named(kind @ BoxKind::Container) => match &available.container {
            Ok(container) => Ok(ChosenBox::Container(container.clone())),
            Err(reason) => Err(unavailable(kind, reason)),
        },
    }
}

fn choose_strongest(available: &Available, rules: &BoxRules) -> Result<ChosenBox, ConfineError> {
    match (&available.bwrap, &available.landlock, rules.net) {
        (Ok(_), _, _) => Ok(ChosenBox::Bwrap),
        // Landlock would leave everything but TCP open. Who wants that has to name it.
        (Err(reason), _, Net::None) => Err(ConfineError::Network { reason: format!("no bwrap box can be made: {reason}") }),
        (Err(_), Ok(version), Net::All) if landlock::first_not_expressible(rules).is_none() => {
            Ok(ChosenBox::Landlock { version: *version })
        }
        (Err(_), Ok(_) | Err(_), Net::All) => Ok(ChosenBox::None),
    }
}

impl ChosenBox {
    /// Its kind.
    pub fn kind(&self) -> BoxKind {
        match self {
            Self::None => BoxKind::None,
            Self::Bwrap => BoxKind::Bwrap,
            Self::Landlock { .. } => BoxKind::Landlock,
            Self::Container(_) => BoxKind::Container,
        }
    }

    /// The command line that runs `argv` in the box. `own_program` is this program, whose hidden command `confine` is on the
    /// way. The working directory and the environment are kept, as far as a container's image does not decide about them;
    /// `TMPDIR` is the caller's to set.
    pub fn wrap(&self, rules: &BoxRules, own_program: &Path, argv: Vec<OsString>) -> Vec<OsString> {
        match self {
            Self::None => argv,
            Self::Bwrap => bwrap::wrap(rules, own_program, argv),
            Self::Landlock { .. } => {
                let writable = rules.writable.iter().map(|path| path.clone().into_os_string());
                enter::command(own_program, enter::Stage::landlock(rules.net), writable, argv)
            }
            Self::Container(container) => container.wrap(rules, own_program, argv),
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
            container: Err("no image is named".to_owned()),
        }
    }

    fn chosen(setting: &str, available: &Available, rules: &BoxRules) -> Result<&'static str, String> {
        let kind = choose(setting.parse().unwrap(), available, rules);
        kind.map(|chosen| chosen.kind().name()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_kind_that_is_named_and_can_not_be_had_is_refused_with_its_reason() {
        let nothing = available(false, false);
        let rules = BoxRules::default();

        assert_eq!(chosen("bwrap", &nothing, &rules), Err("make a bwrap box: it is not installed".to_owned()));
        assert_eq!(chosen("landlock", &nothing, &rules), Err("make a landlock box: the kernel has none".to_owned()));
        assert_eq!(chosen("container", &nothing, &rules), Err("make a container box: no image is named".to_owned()));
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
    fn a_network_that_is_to_be_kept_away_is_refused_where_no_box_does_it() {
        let rules = BoxRules { net: Net::None, ..BoxRules::default() };
        let refused = |reason: &str| Err(format!("keep a process from the network: {reason}"));

        assert_eq!(chosen("auto", &available(true, true), &rules), Ok("bwrap"));
        assert_eq!(chosen("none", &available(true, true), &rules), refused("only a box can, and `confine` is none"));
        // It would leave UDP.
        assert_eq!(chosen("auto", &available(false, true), &rules), refused("no bwrap box can be made: it is not installed"));
        assert_eq!(chosen("landlock", &available(false, true), &rules), Ok("landlock"));
        let old = Available { landlock: Ok(3), ..available(false, true) };
        assert_eq!(
            chosen("landlock", &old, &rules),
            refused("the kernel's Landlock is version 3, and only from 4 (Linux 6.7) does it know of TCP")
        );
    }

    #[test]
    fn a_setting_that_is_none_names_those_that_are() {
        let error = "firejail".parse::<Confine>().unwrap_err();

        assert_eq!(error.to_string(), "read `firejail` as a kind of box: it is one of auto, bwrap, landlock, container and none");
        assert_eq!("auto".parse::<Confine>().unwrap(), Confine::Auto);
    }
}
