//! Settings: what holds, and which layer said so.
//!
//! Layers, each over the one before: defaults (`settings/defaults.toml`), the user's file, the repository's
//! `proctor.toml`, the environment, a flag. Lists replace each other whole, but for `secrets`, which add up: no layer
//! may make a value readable that another one keeps.
//!
//! INVARIANT: what a repository says about [`Sensitive`] settings never reaches [`Settings`] before the user has
//! accepted exactly those values ([`trust`]).

mod ability;
mod file;
mod key;
mod layer;
mod own;
mod sensitive;
pub mod trust;
mod value;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use proctor_cards::{Finding, Layout};
use proctor_domain::CardDuration;
use proctor_domain::procedure::Records;
use proctor_domain::session::EngineName;
use proctor_engine::agent::{EngineKind, EngineSetup, ModelTable, Permission, TIERS, Tier};
use proctor_process::confine::{Confine, Net};
use serde_json::{Map, Value};

pub use ability::Abilities;
pub use key::{KEYS, Key, KeyFacts, MemoryPart, NameList, Reach};
pub use own::OwnEngine;
pub use sensitive::{Ask, Consented, Sensitive};

use crate::environment::{self, Environment};
use key::WITH_PROGRAM;
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

impl Setting<PathBuf> {
    /// The path, where a relative one begins at the folder of the file that says it, and else at `directory`. A name
    /// without a slash stays what it is, to be looked up in `PATH`.
    pub fn program(&self, directory: &Path) -> PathBuf {
        if !self.value.as_os_str().as_encoded_bytes().contains(&b'/') {
            return self.value.clone();
        }
        self.source.folder(directory).join(&self.value)
    }
}

impl Source {
    /// Where relative paths begin that it says.
    pub fn folder<'source>(&'source self, directory: &'source Path) -> &'source Path {
        match self {
            Self::User(file) | Self::Repository(file) => file.parent().unwrap_or(directory),
            Self::Default | Self::Environment(_) | Self::Flag(_) => directory,
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
    /// `secrets`, of all layers together.
    pub secrets: Setting<Vec<String>>,
    /// `agent-timeout`
    pub agent_timeout: Setting<CardDuration>,
    /// `agent-silence`
    pub agent_silence: Setting<CardDuration>,
    /// `confine`
    pub confine: Setting<Confine>,
    /// `net`
    pub net: Setting<Net>,
    /// `box.image`
    pub box_image: Setting<Option<String>>,
    /// `box.program`, as written.
    pub box_program: Setting<Option<PathBuf>>,
    /// `memory.known-here`
    pub known_here: Setting<bool>,
    /// `memory.proposals`
    pub proposals: Setting<bool>,
    /// `engine`
    pub engine: Setting<EngineName>,
    /// `judge`; `None` for the engine that drives agents.
    pub judge: Setting<Option<EngineName>>,
    /// `engines.scripted.script`, as written.
    pub script: Setting<Option<PathBuf>>,
    /// `engines.….…` of every engine that has a program of its own.
    pub programs: Vec<ProgramSettings>,
    /// `models.….…`
    pub models: Vec<ModelSetting>,
    /// `engines.NAME` of engines that the settings make up.
    pub own_engines: Vec<(EngineName, Setting<OwnEngine>)>,
}

/// How an engine with a program of its own is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSettings {
    /// The engine.
    pub kind: EngineKind,
    /// Its program, as written.
    pub program: Setting<PathBuf>,
    /// `inherit`
    pub inherit: Setting<bool>,
    /// `permission`
    pub permission: Setting<Permission>,
    /// `effort`
    pub effort: Setting<Option<String>>,
    /// `fallback-model`
    pub fallback_model: Setting<Option<String>>,
    /// `mcp`
    pub servers: Setting<Map<String, Value>>,
}

/// What an engine's model of one tier is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSetting {
    /// The engine.
    pub kind: EngineKind,
    /// The tier.
    pub tier: Tier,
    /// The model, as the engine calls it.
    pub model: Setting<String>,
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
#[derive(Debug, Clone)]
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

    /// What the repository asks for that needs the user's consent, measured by the user's file: if variables counted, an
    /// answer given once would not hold for the next command.
    pub fn sensitive(&self) -> Sensitive {
        let own = Self { environment: Layer::default(), ..self.clone() };
        Sensitive::of(&self.repository, &own.merge(&Layer::default()))
    }

    /// Where the state of all repositories is, if a setting says so. No repository can.
    pub fn state_dir(&self) -> Setting<Option<PathBuf>> {
        self.pick(&self.repository, Key::StateDir, None, |layer| layer.state_dir.clone().map(Some))
    }

    /// What holds. Without consent the repository's sensitive values are left out.
    pub fn settle(&self, consent: trust::Consent) -> Settings {
        match consent {
            trust::Consent::Given | trust::Consent::NotNeeded => self.merge(&self.repository),
            trust::Consent::Missing => {
                let asks = self.sensitive().asks;
                self.merge(&asks.iter().fold(self.repository.clone(), |repository, ask| repository.without(ask.key)))
            }
        }
    }

    fn merge(&self, repository: &Layer) -> Settings {
        let names = |list| self.pick(repository, Key::Names(list), Vec::new(), move |layer| layer.names.get(&list).cloned());
        let minutes = CardDuration::minutes;
        Settings {
            layout: self.pick(repository, Key::Layout, LayoutRule::Find, |layer| layer.layout),
            records: self.pick(repository, Key::Records, RecordsRule::ByLayout, |layer| layer.records),
            pass_env: names(NameList::PassEnv),
            linger: names(NameList::Linger),
            shell_timeout: self.pick(repository, Key::ShellTimeout, minutes(30), |layer| layer.shell_timeout),
            state_dir: self.state_dir(),
            secrets: Setting { value: self.all_secrets(repository), source: names(NameList::Secrets).source },
            agent_timeout: self.pick(repository, Key::AgentTimeout, minutes(60), |layer| layer.agent_timeout),
            agent_silence: self.pick(repository, Key::AgentSilence, minutes(15), |layer| layer.agent_silence),
            confine: self.pick(repository, Key::Confine, Confine::Auto, |layer| layer.confine),
            net: self.pick(repository, Key::Net, Net::All, |layer| layer.net),
            box_image: self.pick(repository, Key::BoxImage, None, |layer| layer.box_image.clone().map(Some)),
            box_program: self.pick(repository, Key::BoxProgram, None, |layer| layer.box_program.clone().map(Some)),
            known_here: self.memory(repository, MemoryPart::KnownHere),
            proposals: self.memory(repository, MemoryPart::Proposals),
            engine: self.pick(repository, Key::Engine, EngineKind::Claude.engine_name(), |layer| layer.engine.clone()),
            judge: self.judge(repository),
            script: self.pick(repository, Key::Script, None, |layer| layer.script.clone().map(Some)),
            programs: WITH_PROGRAM.map(|kind| self.program(repository, kind)).into(),
            own_engines: self.own_engines(repository),
            models: WITH_PROGRAM.iter().flat_map(|kind| self.models(repository, *kind)).collect(),
        }
    }

    fn memory(&self, repository: &Layer, part: MemoryPart) -> Setting<bool> {
        self.pick(repository, Key::Memory(part), true, |layer| layer.memory.get(&part).copied())
    }

    /// Whoever says by a variable what drives agents, mostly a script, must not start a real judge by it.
    fn judge(&self, repository: &Layer) -> Setting<Option<EngineName>> {
        match (&self.environment.engine, &self.environment.judge) {
            (Some(_), None) => Setting { value: None, source: Source::Environment(environment::ENGINE.name) },
            (Some(_) | None, _) => self.pick(repository, Key::Judge, None, |layer| layer.judge.clone().map(Some)),
        }
    }

    fn all_secrets(&self, repository: &Layer) -> Vec<String> {
        let layers = [&self.defaults, &self.user, repository, &self.environment];
        let mut secrets: Vec<String> = layers.iter().filter_map(|layer| layer.names.get(&NameList::Secrets)).flatten().cloned().collect();
        secrets.sort_unstable();
        secrets.dedup();
        secrets
    }

    fn program(&self, repository: &Layer, kind: EngineKind) -> ProgramSettings {
        let usual = EngineSetup::usual(kind);
        ProgramSettings {
            kind,
            program: self.pick(repository, Key::Program(kind), usual.program, |layer| layer.programs.get(&kind).cloned()),
            inherit: self.pick(repository, Key::Inherit(kind), usual.inherit, |layer| layer.inherit.get(&kind).copied()),
            permission: self.pick(repository, Key::Permission(kind), usual.permission, |layer| layer.permissions.get(&kind).copied()),
            effort: self.pick(repository, Key::Effort(kind), None, |layer| layer.efforts.get(&kind).cloned().map(Some)),
            fallback_model: self
                .pick(repository, Key::FallbackModel(kind), None, |layer| layer.fallback_models.get(&kind).cloned().map(Some)),
            servers: self.pick(repository, Key::Servers(kind), Map::new(), |layer| layer.servers.get(&kind).cloned()),
        }
    }

    fn own_engines(&self, repository: &Layer) -> Vec<(EngineName, Setting<OwnEngine>)> {
        let names: BTreeSet<&EngineName> = repository.own_engines.keys().chain(self.user.own_engines.keys()).collect();
        let file = |file: &Option<PathBuf>| file.clone().unwrap_or_default();
        let topmost = |name: &EngineName| match repository.own_engines.get(name) {
            Some(engine) => Some(Setting { value: engine.clone(), source: Source::Repository(file(&self.repository_file)) }),
            None => Some(Setting { value: self.user.own_engines.get(name)?.clone(), source: Source::User(file(&self.user_file)) }),
        };
        names.into_iter().filter_map(|name| Some((name.clone(), topmost(name)?))).collect()
    }

    fn models(&self, repository: &Layer, kind: EngineKind) -> impl Iterator<Item = ModelSetting> {
        TIERS.iter().map(move |row| {
            let usual = ModelTable::default().model(&kind.engine_name(), kind, row.name);
            let said = |layer: &Layer| layer.models.get(&(kind, row.tier)).cloned();
            ModelSetting { kind, tier: row.tier, model: self.pick(repository, Key::Model(kind, row.tier), usual, said) }
        })
    }

    /// The value of the topmost layer that has one. `otherwise` is what the program would do without the file of
    /// defaults; a test holds the two together.
    fn pick<T>(&self, repository: &Layer, key: Key, otherwise: T, value: impl Fn(&Layer) -> Option<T>) -> Setting<T> {
        let path = |file: &Option<PathBuf>| file.clone().unwrap_or_default();
        let variable = key.facts().and_then(|facts| facts.variable);
        if let (Some(variable), Some(value)) = (variable, value(&self.environment)) {
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

    #[test]
    fn secrets_of_all_layers_are_kept() {
        let layers = layers("secrets = ['MINE']", "secrets = ['THEIRS']", &[("PROCTOR_SECRETS", "MINE, HERE")]);

        assert_eq!(layers.settle(trust::Consent::Missing).secrets.value, ["HERE", "MINE", "THEIRS"]);
    }

    #[test]
    fn a_relative_path_begins_where_it_is_said() {
        let said = |source, value: &str| Setting { value: PathBuf::from(value), source };
        let program = |setting: Setting<PathBuf>| setting.program(Path::new("/here"));

        assert_eq!(program(said(Source::Repository("/r/proctor.toml".into()), "tools/claude")), Path::new("/r/tools/claude"));
        assert_eq!(program(said(Source::User("/u/config.toml".into()), "./claude")), Path::new("/u/./claude"));
        assert_eq!(program(said(Source::Flag("--script"), "./claude")), Path::new("/here/./claude"));
        assert_eq!(program(said(Source::Repository("/r/proctor.toml".into()), "claude")), Path::new("claude"));
        assert_eq!(program(said(Source::Repository("/r/proctor.toml".into()), "/bin/claude")), Path::new("/bin/claude"));
    }
}
