//! Settings: what holds, and which layer said so.
//!
//! Layers, each over the one before: defaults (`settings/defaults.toml`), the user's file, the repository's
//! `proctor.toml`, the environment, a flag. Lists replace each other whole.
//!
//! INVARIANT: what a repository says about [`Sensitive`] settings never reaches [`Settings`] before the user has
//! accepted exactly those values ([`trust`]).

mod file;
mod layer;
pub mod trust;

use std::fmt;
use std::path::{Path, PathBuf};

use proctor_cards::{Finding, Layout};
use proctor_domain::CardDuration;
use proctor_domain::procedure::Records;

pub use layer::{KEYS, KeyFacts, Reach};

use crate::environment::{self, Environment, Variable};
use layer::Layer;

/// The defaults, with comments: also what `init` writes, commented out.
pub const DEFAULTS: &str = include_str!("settings/defaults.toml");

/// Name of a repository's settings file.
pub const REPOSITORY_FILE: &str = "proctor.toml";

/// A value and the layer that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// What holds.
    pub value: T,
    /// Who says so.
    pub source: Source,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The user's settings file.
    User(PathBuf),
    /// The repository's settings file.
    Repository(PathBuf),
    /// This environment variable.
    Environment(&'static str),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::User(path) | Self::Repository(path) => write!(formatter, "{}", path.display()),
            Self::Environment(name) | Self::Flag(name) => formatter.write_str(name),
        }
    }
}

impl<T> Setting<T> {
    /// The same with a flag's value over it, if one was given.
    #[must_use]
    pub fn or_flag(self, flag: &'static str, value: Option<T>) -> Self {
        value.map_or(self, |value| Self { value, source: Source::Flag(flag) })
    }
}

/// The setting `layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutRule {
    /// What is found at the card root.
    Find,
    /// This one.
    Fixed(Layout),
}

/// The setting `records`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordsRule {
    /// What the layout is used to.
    ByLayout,
    /// This.
    Fixed(Records),
}

/// What holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `layout`
    pub layout: Setting<LayoutRule>,
    /// `records`
    pub records: Setting<RecordsRule>,
    /// `pass-env`
    pub pass_env: Setting<Vec<String>>,
    /// `linger`
    pub linger: Setting<Vec<String>>,
    /// `shell-timeout`
    pub shell_timeout: Setting<CardDuration>,
    /// `state-dir`; `None` means the XDG place.
    pub state_dir: Setting<Option<PathBuf>>,
}

/// Settings through which a repository could reach beyond itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sensitive {
    /// `pass-env`, if the file sets it.
    pub pass_env: Option<Vec<String>>,
    /// `linger`, if the file sets it.
    pub linger: Option<Vec<String>>,
}

impl Sensitive {
    /// Whether there is nothing to accept: lists that are absent or empty ask for nothing.
    pub fn is_harmless(&self) -> bool {
        [&self.pass_env, &self.linger].into_iter().all(|list| list.as_ref().is_none_or(Vec::is_empty))
    }
}

/// Settings that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file has errors.
    #[error("{} has errors", path.display())]
    Findings {
        /// The file.
        path: PathBuf,
        /// All of them.
        findings: Vec<Finding>,
    },
    /// The file can't be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A variable's value is no value of its setting.
    #[error("environment variable {name}: {reason}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// The layers below the flags, read but not yet merged: whether the repository's sensitive values count is known
/// only once its state is found, and where state is, is a setting too.
#[derive(Debug)]
pub struct Layers {
    /// The user's file, whether or not it exists; `None` where there is no home.
    pub user_file: Option<PathBuf>,
    /// The repository's file, if there is one.
    pub repository_file: Option<PathBuf>,
    defaults: Layer,
    user: Layer,
    repository: Layer,
    environment: Layer,
}

impl Layers {
    /// Reads every layer.
    ///
    /// # Errors
    /// A file or a variable can't be used.
    pub fn read(environment: &Environment, repository_file: Option<&Path>) -> Result<Self, SettingsError> {
        let user_file = user_file(environment);
        let user = user_file.as_deref().map_or(Ok(None), |path| layer::read_file(path, Reach::User))?;
        let repository = repository_file.map_or(Ok(None), |path| layer::read_file(path, Reach::Repository))?;
        let defaults = layer::from_text(Path::new("defaults.toml"), DEFAULTS, Reach::User)?;
        Ok(Self {
            user_file,
            repository_file: repository_file.map(Path::to_owned),
            defaults,
            user: user.unwrap_or_default(),
            repository: repository.unwrap_or_default(),
            environment: layer::from_environment(environment)?,
        })
    }

    /// What the repository asks for that needs the user's consent.
    pub fn sensitive(&self) -> Sensitive {
        Sensitive { pass_env: self.repository.pass_env.clone(), linger: self.repository.linger.clone() }
    }

    /// Where the state of all repositories is, if a setting says so. No repository can.
    pub fn state_dir(&self) -> Setting<Option<PathBuf>> {
        self.pick(&self.repository, &environment::STATE_DIR, None, |layer| layer.state_dir.clone().map(Some))
    }

    /// What holds. Without consent the repository's sensitive values are left out.
    pub fn settle(&self, consent: trust::Consent) -> Settings {
        match consent {
            trust::Consent::Given | trust::Consent::NotNeeded => self.merge(&self.repository),
            trust::Consent::Missing => self.merge(&Layer { pass_env: None, linger: None, ..self.repository.clone() }),
        }
    }

    fn merge(&self, repository: &Layer) -> Settings {
        Settings {
            layout: self.pick(repository, &environment::LAYOUT, LayoutRule::Find, |layer| layer.layout),
            records: self.pick(repository, &environment::RECORDS, RecordsRule::ByLayout, |layer| layer.records),
            pass_env: self.pick(repository, &environment::PASS_ENV, Vec::new(), |layer| layer.pass_env.clone()),
            linger: self.pick(repository, &environment::LINGER, Vec::new(), |layer| layer.linger.clone()),
            shell_timeout: self.pick(repository, &environment::SHELL_TIMEOUT, CardDuration::minutes(30), |layer| layer.shell_timeout),
            state_dir: self.state_dir(),
        }
    }

    /// The value of the topmost layer that has one. `otherwise` is what the program would do without the file of
    /// defaults; a test holds the two together.
    fn pick<T>(&self, repository: &Layer, variable: &Variable, otherwise: T, value: impl Fn(&Layer) -> Option<T>) -> Setting<T> {
        let path = |file: &Option<PathBuf>| file.clone().unwrap_or_default();
        if let Some(value) = value(&self.environment) {
            return Setting { value, source: Source::Environment(variable.name) };
        }
        if let Some(value) = value(repository) {
            return Setting { value, source: Source::Repository(path(&self.repository_file)) };
        }
        if let Some(value) = value(&self.user) {
            return Setting { value, source: Source::User(path(&self.user_file)) };
        }
        Setting { value: value(&self.defaults).unwrap_or(otherwise), source: Source::Default }
    }
}

/// Where the user's settings are, whether or not the file exists.
pub fn user_file(environment: &Environment) -> Option<PathBuf> {
    let folder = environment
        .folder(&environment::XDG_CONFIG_HOME)
        .or_else(|| environment.folder(&environment::HOME).map(|home| home.join(".config")))?;
    Some(folder.join("proctor").join("config.toml"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn layers(user: &str, repository: &str, variables: &[(&str, &str)]) -> Layers {
        let environment: Environment = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        Layers {
            user_file: Some(PathBuf::from("/u/config.toml")),
            repository_file: Some(PathBuf::from("/r/proctor.toml")),
            defaults: layer::from_text(Path::new("defaults.toml"), DEFAULTS, Reach::User).expect("defaults"),
            user: layer::from_text(Path::new("/u/config.toml"), user, Reach::User).expect("user"),
            repository: layer::from_text(Path::new("/r/proctor.toml"), repository, Reach::Repository).expect("repository"),
            environment: layer::from_environment(&environment).expect("environment"),
        }
    }

    #[test]
    fn the_file_of_defaults_says_what_the_program_does_without_it() {
        let with = layers("", "", &[]);
        let without = Layers { defaults: Layer::default(), ..layers("", "", &[]) };

        assert_eq!(with.settle(trust::Consent::NotNeeded), without.settle(trust::Consent::NotNeeded));
    }

    #[test]
    fn each_layer_wins_over_the_one_before_and_is_named() {
        let timeouts = |user, repository, variables: &[(&str, &str)]| {
            layers(user, repository, variables).settle(trust::Consent::NotNeeded).shell_timeout
        };
        let (user, repository) = ("shell-timeout = '1m'", "shell-timeout = '2m'");
        let variable = [("PROCTOR_SHELL_TIMEOUT", "3m")];

        assert_eq!(timeouts("", "", &[]), Setting { value: CardDuration::minutes(30), source: Source::Default });
        assert_eq!(timeouts(user, "", &[]), Setting { value: CardDuration::minutes(1), source: Source::User("/u/config.toml".into()) });
        assert_eq!(
            timeouts(user, repository, &[]),
            Setting { value: CardDuration::minutes(2), source: Source::Repository("/r/proctor.toml".into()) }
        );
        assert_eq!(
            timeouts(user, repository, &variable),
            Setting { value: CardDuration::minutes(3), source: Source::Environment("PROCTOR_SHELL_TIMEOUT") }
        );
        assert_eq!(
            timeouts(user, repository, &variable).or_flag("--shell-timeout", Some(CardDuration::minutes(4))),
            Setting { value: CardDuration::minutes(4), source: Source::Flag("--shell-timeout") }
        );
    }

    #[test]
    fn sensitive_values_of_a_repository_count_only_with_consent() {
        let layers = layers("pass-env = ['MINE']", "pass-env = ['THEIRS']\nlinger = ['daemon']", &[]);

        assert_eq!(layers.settle(trust::Consent::Missing).pass_env.value, ["MINE"]);
        assert!(layers.settle(trust::Consent::Missing).linger.value.is_empty());
        assert_eq!(layers.settle(trust::Consent::Given).pass_env.value, ["THEIRS"]);
        assert_eq!(layers.settle(trust::Consent::Given).linger.value, ["daemon"]);
    }
}
