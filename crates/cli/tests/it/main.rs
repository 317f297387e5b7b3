//! The command line as its users meet it: the real binary in a world of its own.

mod docs;
mod init;
mod lint;
mod list;
mod output;
mod settings;
mod show;
mod state;
mod trust;
mod usage;
mod whereabouts;

use proctor_testkit::World;

/// A world with a repository that has one commit.
fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_proctor"))
}

/// A procedure without findings.
const GOOD: &str = "description: Does nothing\nsteps:\n  - id: look\n    run:\n      shells:\n        - 'true'\n";

/// A procedure with two errors.
const BAD: &str = "descripton: Does nothing\nsteps:\n  - id: look\n    run:\n      shels:\n        - 'true'\n";
