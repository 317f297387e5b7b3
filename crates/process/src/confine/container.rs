//! Boxes by `podman` or `docker`: a container of an image, in which of this machine is only what the rules name.
//!
//! Two processes of this program stand around what runs there. The *keeper* is outside, in the place of the program: it
//! starts the container program, hands on requests to end, and sees to it that the container is removed. The *first*
//! process is inside, in the place of an init: it starts the program, and ends when the keeper is gone, however that came
//! about, and everything in the container ends with it. So nothing depends on what a container program does when its
//! client is killed.

mod first;
mod keeper;
mod order;
mod relay;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::enter::{self, Stage};
use super::{BoxRules, bwrap};
use crate::{Program, find_program};

pub(super) use first::be_first;
pub(super) use keeper::keep;
use order::Order;

/// An answer of a container program that takes longer is none.
const LIMIT: Duration = Duration::from_secs(20);

/// What container programs want to know of their surroundings, and sessions need not.
const OF_THE_PROGRAM: [&str; 9] = [
    "CONTAINERS_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "XDG_RUNTIME_DIR",
];

/// What settings say about containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerSetup {
    /// `podman`, `docker`, or the path of one; else the first of them that answers.
    pub program: Option<PathBuf>,
    /// The image; no container without one.
    pub image: Option<String>,
}

/// A container program that answers, and has the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    program: PathBuf,
    user: User,
    image: String,
}

/// How the user of a container's processes comes to be the one outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    /// Numbers mean the same in and out.
    Same,
    /// The container program runs as this user, whom it can keep.
    Kept,
    /// The container program runs as this user, who is its root.
    Root,
}

impl User {
    const ALL: [Self; 3] = [Self::Same, Self::Kept, Self::Root];

    fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Kept => "kept",
            Self::Root => "root",
        }
    }

    /// What the container program is told.
    fn arguments(self) -> Vec<String> {
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        match self {
            Self::Same => vec!["--user".into(), format!("{user}:{group}"), "--userns".into(), "host".into()],
            Self::Kept => vec!["--user".into(), format!("{user}:{group}"), "--userns".into(), "keep-id".into()],
            Self::Root => vec!["--user".into(), "0:0".into()],
        }
    }
}

impl Container {
    /// What would make a container, or one sentence about why there is none.
    pub(super) fn find(setup: &ContainerSetup) -> Result<Self, String> {
        let image = setup.image.clone().ok_or("no image is named: `box.image` names one")?;
        let candidates = setup.program.as_ref().map_or_else(|| vec!["podman".into(), "docker".into()], |program| vec![program.clone()]);
        let search = std::env::var_os("PATH").unwrap_or_default();
        let mut reasons = Vec::new();
        for candidate in &candidates {
            let Some(program) = find_program(candidate, &search) else { continue };
            match rights_of(&program) {
                Ok(user) => return Self { program, user, image }.with_its_image(),
                Err(reason) => reasons.push(format!("{} does not answer: {reason}", candidate.display())),
            }
        }
        let names = candidates.iter().map(|candidate| format!("`{}`", candidate.display())).collect::<Vec<_>>().join(" nor ");
        Err(if reasons.is_empty() { format!("there is no program {names}") } else { reasons.join("; ") })
    }

    /// Nothing is fetched: what runs here is up to the user, and so is when.
    fn with_its_image(self) -> Result<Self, String> {
        let (program, image) = (self.program.display(), &self.image);
        match ask(&self.program, &["image", "inspect", "--format", "{{.Id}}", image]) {
            Ok(_) => Ok(self),
            Err(reason) => Err(format!("the image {image} is not here ({reason}); `{program} pull {image}` gets it")),
        }
    }

    /// The program and the image, for people.
    pub fn describe(&self) -> String {
        format!("{} with {}", self.program.display(), self.image)
    }

    /// The command line of the keeper.
    pub(super) fn wrap(&self, rules: &BoxRules, own_program: &Path, argv: Vec<OsString>) -> Vec<OsString> {
        let of_the_program = OF_THE_PROGRAM.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let order = Order::new(self, rules, own_program, of_the_program.collect());
        enter::command(own_program, Stage::Keep, order.into_arguments(), argv)
    }
}

/// Whether a container program answers, and as whom it runs.
fn rights_of(program: &Path) -> Result<User, String> {
    let podman = ask(program, &["info", "--format", "{{.Host.Security.Rootless}}"]);
    if let Ok(rootless) = &podman {
        return Ok(if rootless == "true" { User::Kept } else { User::Same });
    }
    // Docker has no such field, and says so only when its daemon answers.
    let options = ask(program, &["info", "--format", "{{.ServerVersion}} {{.SecurityOptions}}"])?;
    Ok(if options.contains("name=rootless") { User::Root } else { User::Same })
}

/// What a container program answers; its complaint when it fails.
fn ask(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let known = ["HOME", "PATH"].iter().chain(&OF_THE_PROGRAM);
    let environment = known.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let asked = Program::new(program).args(arguments.iter().map(OsStr::new)).env(environment).own_group().run(Some(LIMIT));
    let finished = asked.map_err(|error| format!("failed to {error}"))?;
    if !finished.status.is_success() {
        return Err(if finished.timed_out { "it took too long".to_owned() } else { bwrap::complaint(&finished.stderr) });
    }
    Ok(String::from_utf8_lossy(&finished.stdout).trim().to_owned())
}

/// Where this process was started, which stands in the place of the program that was to be started there.
#[allow(clippy::disallowed_methods, reason = "the command line of a box says nothing of the directory, which is kept")]
fn own_directory() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}
