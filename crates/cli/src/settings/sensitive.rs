//! What a repository's settings may not decide alone.
//!
//! A repository must not reach beyond itself by being cloned: it names no program, passes no environment, and makes no
//! box weaker than the user's. What only takes effect where its own cards are run by name needs no consent, because a
//! card's shells can do as much without a box: `engine`, the names of models, limits, and the script of the scripted
//! engine, whose commands run in the box of an agent. `secrets` of a repository only add to those of the user.

use proctor_engine::agent::{EngineKind, Permission};
use proctor_process::confine::{BoxKind, Confine, Net};

use super::ability;
use super::layer::Layer;
use super::{Key, MemoryPart, NameList, Settings};

/// Settings through which a repository could reach beyond itself, in the order of [`super::KEYS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sensitive {
    /// What it asks for. What the user has anyway is not among it.
    pub asks: Vec<Ask>,
}

/// Whether a repository needs the user's consent to set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consented {
    /// It does not.
    Never,
    /// It does, where it could be weaker than what the user has.
    WhenWeaker,
    /// It does.
    Always,
}

impl Key {
    /// Whether a repository needs consent to set it.
    pub fn consent(self) -> Consented {
        match self {
            Self::Names(NameList::PassEnv | NameList::Linger) | Self::BoxImage | Self::Program(_) | Self::Servers(_) | Self::OwnEngines => {
                Consented::Always
            }
            Self::Confine | Self::Net | Self::Memory(_) | Self::Inherit(_) | Self::Permission(_) => Consented::WhenWeaker,
            Self::Layout
            | Self::Records
            | Self::Names(NameList::Secrets)
            | Self::ShellTimeout
            | Self::StateDir
            | Self::BoxProgram
            | Self::Engine
            | Self::Judge
            | Self::AgentTimeout
            | Self::AgentSilence
            | Self::Script
            | Self::Effort(_)
            | Self::FallbackModel(_)
            | Self::Model(..) => Consented::Never,
        }
    }
}

/// One sensitive setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The key.
    pub key: Key,
    /// The value, or the values of a list.
    pub values: Vec<String>,
}

impl Ask {
    /// What it would do, to be read after "asks".
    pub fn purpose(&self) -> &'static str {
        match self.key {
            Key::Names(NameList::PassEnv) => "to pass to sessions from your environment",
            Key::Names(NameList::Linger) => "to let these programs outlive sessions",
            Key::Confine => "to hold agents in this box, which can be weaker than yours",
            Key::Net => "to give agents more of the network than you do",
            Key::Memory(MemoryPart::KnownHere) => "to show agents what your memory holds",
            Key::Memory(MemoryPart::Proposals) => "to propose to your memory what its runs taught",
            Key::BoxImage => "to run agents among the programs of this image",
            Key::Program(_) => "to run this program as the engine",
            Key::OwnEngines => "to run these programs as engines",
            Key::Inherit(_) => "to take in your own settings, memory and tools of the engine",
            Key::Servers(_) => {
                "to give agents the tools of these servers, which run in the agents' box, or with your permissions where there is none"
            }
            Key::Permission(_) => "to let agents act without asking, also outside of a box",
            Key::Layout
            | Key::Records
            | Key::Names(NameList::Secrets)
            | Key::ShellTimeout
            | Key::StateDir
            | Key::BoxProgram
            | Key::Engine
            | Key::Judge
            | Key::AgentTimeout
            | Key::AgentSilence
            | Key::Script
            | Key::Effort(_)
            | Key::FallbackModel(_)
            | Key::Model(..) => "to set",
        }
    }
}

impl Sensitive {
    /// What `repository` asks for beyond `own`, which holds without it.
    pub(super) fn of(repository: &Layer, own: &Settings) -> Self {
        let mut asks = Vec::new();
        let mut ask = |key, values: Vec<String>| asks.push(Ask { key, values });
        for list in [NameList::PassEnv, NameList::Linger] {
            let names = repository.names.get(&list).cloned().unwrap_or_default();
            if !names.is_empty() {
                ask(Key::Names(list), names);
            }
        }
        if let Some(confine) = repository.confine.filter(|confine| may_be_weaker(*confine, own.confine.value)) {
            ask(Key::Confine, vec![confine.name().to_owned()]);
        }
        if repository.net == Some(Net::All) && own.net.value == Net::None {
            ask(Key::Net, vec![Net::All.name().to_owned()]);
        }
        if let Some(image) = repository.box_image.as_ref().filter(|image| own.box_image.value.as_ref() != Some(*image)) {
            ask(Key::BoxImage, vec![image.clone()]);
        }
        for (part, held) in [(MemoryPart::KnownHere, own.known_here.value), (MemoryPart::Proposals, own.proposals.value)] {
            if repository.memory.get(&part) == Some(&true) && !held {
                ask(Key::Memory(part), vec!["true".to_owned()]);
            }
        }
        for engine in &own.programs {
            let kind = engine.kind;
            if let Some(program) = repository.programs.get(&kind).filter(|program| names_another(program, &engine.program.value)) {
                ask(Key::Program(kind), vec![program.display().to_string()]);
            }
            if said(&repository.inherit, kind, true) && !engine.inherit.value {
                ask(Key::Inherit(kind), vec!["true".to_owned()]);
            }
            if said(&repository.permissions, kind, Permission::Bypass) && engine.permission.value == Permission::Ask {
                ask(Key::Permission(kind), vec!["bypass".to_owned()]);
            }
            if let Some(servers) = repository.servers.get(&kind).filter(|servers| !servers.is_empty() && **servers != engine.servers.value)
            {
                ask(Key::Servers(kind), servers.iter().map(ability::told).collect());
            }
        }
        // Also one that the user has made up alike: whose it is then would depend on who wrote it last.
        let made_up: Vec<String> = repository.own_engines.iter().map(|(name, engine)| engine.told(name)).collect();
        if !made_up.is_empty() {
            ask(Key::OwnEngines, made_up);
        }
        Self { asks }
    }

    /// Whether there is nothing to accept: lists that are absent or empty ask for nothing.
    pub fn is_harmless(&self) -> bool {
        self.asks.is_empty()
    }
}

fn said<T: PartialEq>(values: &std::collections::BTreeMap<EngineKind, T>, kind: EngineKind, value: T) -> bool {
    values.get(&kind) == Some(&value)
}

/// Whether agents could be held in a weaker box than `own` says. `auto` may come to any but a container, so only `bwrap`
/// and a container are never weaker than it, and it is never stronger than a named one.
fn may_be_weaker(asked: Confine, own: Confine) -> bool {
    let is_bwrap_enough = own != Confine::Named(BoxKind::Container);
    let never = asked == own
        || asked == Confine::Named(BoxKind::Container)
        || (asked == Confine::Named(BoxKind::Bwrap) && is_bwrap_enough)
        || own == Confine::Named(BoxKind::None);
    !never
}

/// Whether this is another program than the user's. A relative path always is: it begins in the repository.
fn names_another(asked: &std::path::Path, own: &std::path::Path) -> bool {
    let is_relative = asked.is_relative() && asked.as_os_str().as_encoded_bytes().contains(&b'/');
    is_relative || asked != own
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Layers, Reach, layer};
    use super::*;
    use crate::environment::Environment;

    /// The keys that `repository` asks for where the user says `user`.
    fn asked(user: &str, repository: &str) -> Vec<&'static str> {
        let read = |text, reach| layer::from_text(Path::new("x.toml"), text, reach).expect("settings");
        let mut layers = Layers::read(&Environment::default(), None).expect("defaults");
        layers.user = read(user, Reach::User);
        layers.repository = read(repository, Reach::Repository);
        layers.sensitive().asks.iter().map(|ask| ask.key.name()).collect()
    }

    #[test]
    fn programs_openness_and_weaker_boxes_need_consent() {
        for (key, value) in [
            ("engines.claude.program", "'/tmp/claude'"),
            ("engines.claude.program", "'tools/claude'"),
            ("engines.claude.program", "'claude-next'"),
            ("engines.claude.inherit", "true"),
            ("engines.claude.permission", "'bypass'"),
            ("confine", "'none'"),
            ("confine", "'landlock'"),
            ("box.image", "'debian:13'"),
        ] {
            assert_eq!(asked("", &format!("{key} = {value}")), [key], "{value}");
        }
    }

    #[test]
    fn the_documentation_says_of_each_key_whether_it_needs_consent() {
        // As open as a value can be.
        let engine = |kind| format!("[engines.{kind}]\nprogram = '/a'\ninherit = true\npermission = 'bypass'\n");
        let servers = "[engines.claude.mcp.a]\ncommand = 'a'\n[engines.codex.mcp.a]\ncommand = 'a'\n";
        let engines: String = super::super::WITH_PROGRAM.map(engine).concat();
        let memory = |word| format!("memory.known-here = {word}\nmemory.proposals = {word}\n");
        let here = "pass-env = ['A']\nlinger = ['a']\nconfine = 'none'\nnet = 'all'\nbox.image = 'a'\n";
        let open = [here, &memory("true"), &engines, servers].concat();
        let closed = format!("net = 'none'\n{}", memory("false"));
        let needing = super::super::KEYS.iter().filter(|facts| facts.key.consent() != Consented::Never).map(|facts| facts.name);

        assert_eq!(asked(&closed, &open), needing.collect::<Vec<_>>());
    }

    #[test]
    fn what_the_user_has_anyway_or_what_is_stricter_needs_none() {
        for (user, repository) in [
            ("", "engines.claude.program = 'claude'\nengines.claude.inherit = false\nengines.claude.permission = 'ask'"),
            (
                "engines.claude.inherit = true\nengines.claude.permission = 'bypass'",
                "[engines.claude]\ninherit = true\npermission = 'bypass'",
            ),
            ("engines.claude.program = '/opt/claude'", "engines.claude.program = '/opt/claude'"),
            ("", "engine = 'scripted'\nengines.scripted.script = 'agent.toml'\nmodels.claude.strong = 'opus-9'\nsecrets = ['A']"),
            ("", "net = 'none'"),
            ("net = 'none'", "net = 'none'"),
            ("box.image = 'debian:13'", "box.image = 'debian:13'"),
            ("", "agent-timeout = '2h'\nagent-silence = '1h'\nshell-timeout = '2h'"),
        ] {
            assert_eq!(asked(user, repository), [""; 0], "{repository}");
        }
        // The same words lead to another file from another folder.
        assert_eq!(asked("engines.claude.program = './claude'", "engines.claude.program = './claude'"), ["engines.claude.program"]);
    }

    #[test]
    fn every_pair_of_boxes_is_decided() {
        let kinds = ["none", "auto", "landlock", "bwrap", "container"];
        let weaker = |own: &str| -> Vec<&str> {
            kinds
                .into_iter()
                .filter(|asked_kind| !asked(&format!("confine = '{own}'"), &format!("confine = '{asked_kind}'")).is_empty())
                .collect()
        };

        assert_eq!(weaker("none"), [""; 0]);
        assert_eq!(weaker("auto"), ["none", "landlock"]);
        assert_eq!(weaker("landlock"), ["none", "auto"]);
        assert_eq!(weaker("bwrap"), ["none", "auto", "landlock"]);
        assert_eq!(weaker("container"), ["none", "auto", "landlock", "bwrap"]);
    }

    #[test]
    fn a_variable_neither_asks_for_consent_nor_gives_it() {
        let asked = |variable: &str| {
            let environment: Environment = [("PROCTOR_CONFINE".into(), variable.into())].into_iter().collect();
            let mut layers = Layers::read(&environment, None).expect("defaults");
            layers.repository = layer::from_text(Path::new("x.toml"), "confine = 'auto'", Reach::Repository).expect("settings");
            let auto = layers.sensitive().asks.len();
            layers.repository = layer::from_text(Path::new("x.toml"), "confine = 'none'", Reach::Repository).expect("settings");
            (auto, layers.sensitive().asks.len())
        };

        assert_eq!((asked("bwrap"), asked("none")), ((0, 1), (0, 1)));
    }

    #[test]
    fn without_consent_the_user_s_own_values_hold_and_the_rest_counts() {
        let read = |text, reach| layer::from_text(Path::new("x.toml"), text, reach).expect("settings");
        let mut layers = Layers::read(&Environment::default(), None).expect("defaults");
        layers.user = read("confine = 'bwrap'", Reach::User);
        layers.repository = read("confine = 'none'\nengine = 'scripted'\nengines.claude.inherit = true", Reach::Repository);

        let settings = layers.settle(super::super::trust::Consent::Missing);

        assert_eq!(settings.confine.value, Confine::Named(BoxKind::Bwrap));
        assert_eq!(settings.engine.value, EngineKind::Scripted.engine_name());
        assert!(!settings.programs[0].inherit.value);
    }
}
