//! Where a command works: repository, cards, state and settings, resolved by the command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use proctor_cards::{BoxDefaults, Layout};
use proctor_domain::procedure::Records;
use proctor_workspace::Repository;

use crate::StateFolder;

/// Everything about a place that a run needs to know. It does not change while a command runs.
pub struct Site {
    /// The repository and working tree.
    pub repository: Repository,
    /// The folder of `proctor.toml`: where cards are looked up and shells run.
    pub card_root: PathBuf,
    /// Where cards and run folders lie.
    pub layout: Layout,
    /// What the layout's own settings file says (`_config/box.json`).
    pub box_defaults: BoxDefaults,
    /// The repository's state.
    pub state: StateFolder,
    /// The settings that concern runs.
    pub settings: RunSettings,
    /// Our own program, which hosts sessions.
    pub program: PathBuf,
    /// The caller's environment; sessions get a list of it.
    pub environment: Vec<(OsString, OsString)>,
}

/// Settings that concern runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// Where runs are recorded; the card decides first, then this, then the layout.
    pub records: Option<Records>,
    /// Variables that shells get beyond the list.
    pub pass_env: Vec<String>,
    /// Programs that may outlive a session.
    pub linger: Vec<String>,
    /// Wall-clock limit of a shell phase without a `timeout` of its own.
    pub shell_timeout: Duration,
}

impl Site {
    /// A variable of the caller's environment.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }
}
