//! Which boxes this machine has, found out by making one.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::{Available, BoxRules, ChosenBox, Container, ContainerSetup, Net, bwrap, landlock};
use crate::Program;

/// A box is made in milliseconds; a machine that needs longer than this has other troubles.
const LIMIT: Duration = Duration::from_secs(10);

/// Tries every kind, with that much of the network. `program` is this program: boxes are entered through its hidden command
/// `confine`. A container is tried only where an image is named.
///
/// That `bwrap` is installed proves little: containers and hardened kernels forbid what it does.
pub fn probe(program: &Path, net: Net, setup: &ContainerSetup) -> Available {
    let rules = BoxRules { net, ..BoxRules::default() };
    let bwrap = bwrap::find()
        .ok_or_else(|| "the program `bwrap` (package bubblewrap) is not installed".to_owned())
        .and_then(|path| try_out(&ChosenBox::Bwrap, &rules, program).map(|()| path));
    // A network that its version can't keep away is no reason against Landlock: `choose` looks at the version.
    let landlock =
        landlock::version().and_then(|version| try_out(&ChosenBox::Landlock { version }, &BoxRules::default(), program).map(|()| version));
    let container = Container::find(setup).and_then(|container| {
        let chosen = ChosenBox::Container(container.clone());
        try_out(&chosen, &rules, program).map(|()| container)
    });
    Available { bwrap, landlock, container }
}

fn try_out(chosen: &ChosenBox, rules: &BoxRules, program: &Path) -> Result<(), String> {
    // Of its image a container is asked nothing but to start this program, which it has to anyway.
    let tried: OsString = match chosen {
        ChosenBox::Container(_) => program.into(),
        ChosenBox::None | ChosenBox::Bwrap | ChosenBox::Landlock { .. } => "true".into(),
    };
    let mut command = chosen.wrap(rules, program, vec![tried, "--version".into()]).into_iter();
    let first = command.next().unwrap_or_default();
    let variables = ["PATH", "HOME"].iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let finished = Program::new(first).args(command).env(variables).own_group().run(Some(LIMIT));
    match finished {
        Ok(finished) if finished.status.is_success() => Ok(()),
        Ok(finished) => Err(format!("an attempt failed here: {}", bwrap::complaint(&finished.stderr))),
        Err(error) => Err(format!("an attempt failed here: failed to {error}")),
    }
}
