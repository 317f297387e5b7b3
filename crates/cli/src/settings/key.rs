//! The keys that settings files know.

use proctor_cards::nearest;
use proctor_engine::agent::{EngineKind, Tier};

use crate::environment::{self, Variable};

/// Which files may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The user's file only.
    User,
    /// The user's and the repository's file.
    Repository,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `layout`
    Layout,
    /// `records`
    Records,
    /// One of the lists of names.
    Names(NameList),
    /// `shell-timeout`
    ShellTimeout,
    /// `state-dir`
    StateDir,
    /// `memory.…`
    Memory(MemoryPart),
    /// `engine`
    Engine,
    /// `judge`
    Judge,
    /// `agent-timeout`
    AgentTimeout,
    /// `agent-silence`
    AgentSilence,
    /// `confine`
    Confine,
    /// `net`
    Net,
    /// `box.image`
    BoxImage,
    /// `box.program`
    BoxProgram,
    /// `engines.scripted.script`
    Script,
    /// `engines.….program`
    Program(EngineKind),
    /// `engines.….inherit`
    Inherit(EngineKind),
    /// `engines.….permission`
    Permission(EngineKind),
    /// `engines.….effort`
    Effort(EngineKind),
    /// `engines.….fallback-model`
    FallbackModel(EngineKind),
    /// `engines.….mcp`
    Servers(EngineKind),
    /// `models.….…`
    Model(EngineKind, Tier),
    /// `engines.NAME` of engines that the settings make up. They are tables, so it is in no list of keys.
    OwnEngines,
}

/// The lists of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameList {
    /// `pass-env`
    PassEnv,
    /// `linger`
    Linger,
    /// `secrets`
    Secrets,
}

/// What memory does in runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryPart {
    /// `memory.known-here`
    KnownHere,
    /// `memory.proposals`
    Proposals,
}

/// One key as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyFacts {
    /// The key.
    pub key: Key,
    /// As written in a file; a dot leads into a table.
    pub name: &'static str,
    /// Which files may set it.
    pub reach: Reach,
    /// The variable that overrides it, if there is one.
    pub variable: Option<&'static Variable>,
}

/// Engines whose program is not this one, so that the settings name it.
pub(super) const WITH_PROGRAM: [EngineKind; 3] = [EngineKind::Claude, EngineKind::Codex, EngineKind::OpenCode];

const fn anywhere(key: Key, name: &'static str, variable: &'static Variable) -> KeyFacts {
    KeyFacts { key, name, reach: Reach::Repository, variable: Some(variable) }
}

const fn in_files(key: Key, name: &'static str) -> KeyFacts {
    KeyFacts { key, name, reach: Reach::Repository, variable: None }
}

/// Every key, in the order of the documentation.
pub static KEYS: &[KeyFacts] = &[
    anywhere(Key::Layout, "layout", &environment::LAYOUT),
    anywhere(Key::Records, "records", &environment::RECORDS),
    anywhere(Key::Names(NameList::PassEnv), "pass-env", &environment::PASS_ENV),
    anywhere(Key::Names(NameList::Linger), "linger", &environment::LINGER),
    anywhere(Key::Names(NameList::Secrets), "secrets", &environment::SECRETS),
    anywhere(Key::ShellTimeout, "shell-timeout", &environment::SHELL_TIMEOUT),
    anywhere(Key::AgentTimeout, "agent-timeout", &environment::AGENT_TIMEOUT),
    anywhere(Key::AgentSilence, "agent-silence", &environment::AGENT_SILENCE),
    anywhere(Key::Confine, "confine", &environment::CONFINE),
    anywhere(Key::Net, "net", &environment::NET),
    in_files(Key::BoxImage, "box.image"),
    KeyFacts { key: Key::BoxProgram, name: "box.program", reach: Reach::User, variable: None },
    in_files(Key::Memory(MemoryPart::KnownHere), "memory.known-here"),
    in_files(Key::Memory(MemoryPart::Proposals), "memory.proposals"),
    anywhere(Key::Engine, "engine", &environment::ENGINE),
    anywhere(Key::Judge, "judge", &environment::JUDGE),
    in_files(Key::Program(EngineKind::Claude), "engines.claude.program"),
    in_files(Key::Inherit(EngineKind::Claude), "engines.claude.inherit"),
    in_files(Key::Permission(EngineKind::Claude), "engines.claude.permission"),
    in_files(Key::Effort(EngineKind::Claude), "engines.claude.effort"),
    in_files(Key::FallbackModel(EngineKind::Claude), "engines.claude.fallback-model"),
    in_files(Key::Servers(EngineKind::Claude), "engines.claude.mcp"),
    in_files(Key::Program(EngineKind::Codex), "engines.codex.program"),
    in_files(Key::Inherit(EngineKind::Codex), "engines.codex.inherit"),
    in_files(Key::Permission(EngineKind::Codex), "engines.codex.permission"),
    in_files(Key::Effort(EngineKind::Codex), "engines.codex.effort"),
    in_files(Key::Servers(EngineKind::Codex), "engines.codex.mcp"),
    in_files(Key::Program(EngineKind::OpenCode), "engines.opencode.program"),
    in_files(Key::Inherit(EngineKind::OpenCode), "engines.opencode.inherit"),
    in_files(Key::Permission(EngineKind::OpenCode), "engines.opencode.permission"),
    anywhere(Key::Script, "engines.scripted.script", &environment::SCRIPT),
    in_files(Key::Model(EngineKind::Claude, Tier::Efficient), "models.claude.efficient"),
    in_files(Key::Model(EngineKind::Claude, Tier::Balanced), "models.claude.balanced"),
    in_files(Key::Model(EngineKind::Claude, Tier::Strong), "models.claude.strong"),
    in_files(Key::Model(EngineKind::Claude, Tier::Strongest), "models.claude.strongest"),
    in_files(Key::Model(EngineKind::Codex, Tier::Efficient), "models.codex.efficient"),
    in_files(Key::Model(EngineKind::Codex, Tier::Balanced), "models.codex.balanced"),
    in_files(Key::Model(EngineKind::Codex, Tier::Strong), "models.codex.strong"),
    in_files(Key::Model(EngineKind::Codex, Tier::Strongest), "models.codex.strongest"),
    in_files(Key::Model(EngineKind::OpenCode, Tier::Efficient), "models.opencode.efficient"),
    in_files(Key::Model(EngineKind::OpenCode, Tier::Balanced), "models.opencode.balanced"),
    in_files(Key::Model(EngineKind::OpenCode, Tier::Strong), "models.opencode.strong"),
    in_files(Key::Model(EngineKind::OpenCode, Tier::Strongest), "models.opencode.strongest"),
    KeyFacts { key: Key::StateDir, name: "state-dir", reach: Reach::User, variable: Some(&environment::STATE_DIR) },
];

impl Key {
    /// What is known of it.
    pub(super) fn facts(self) -> Option<&'static KeyFacts> {
        KEYS.iter().find(|facts| facts.key == self)
    }

    /// As written in a file.
    pub fn name(self) -> &'static str {
        self.facts().map_or("engines", |facts| facts.name)
    }
}

/// What a dotted name in a file is.
pub(super) enum Known {
    /// A key with a value.
    Key(&'static KeyFacts),
    /// A table of keys.
    Table,
    /// Nothing.
    Nothing,
}

/// What `name` is.
pub(super) fn look_up(name: &str) -> Known {
    let below = |facts: &KeyFacts| facts.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    match KEYS.iter().find(|facts| facts.name == name) {
        Some(facts) => Known::Key(facts),
        None if KEYS.iter().any(below) => Known::Table,
        None => Known::Nothing,
    }
}

/// What to say about a key that the table `prefix` (empty, or ending in a dot) does not know.
pub(super) fn suggestion(prefix: &str, key: &str, reach: Reach) -> String {
    let allowed = KEYS.iter().filter(|facts| reach == Reach::User || facts.reach == Reach::Repository);
    let mut words: Vec<&str> = allowed.filter_map(|facts| facts.name.strip_prefix(prefix)?.split('.').next()).collect();
    words.dedup();
    match nearest(key, words.iter().copied()) {
        Some(nearest) => format!("did you mean `{prefix}{nearest}`?"),
        None => format!("known keys: {}", words.iter().map(|word| format!("{prefix}{word}")).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_name_is_listed_once() {
        for (position, facts) in KEYS.iter().enumerate() {
            let same = |other: &&KeyFacts| other.key == facts.key || other.name == facts.name;

            assert_eq!(KEYS.iter().position(|other| same(&other)), Some(position), "{}", facts.name);
        }
    }

    #[test]
    fn every_engine_with_a_program_has_its_keys_and_a_model_for_each_tier() {
        for kind in WITH_PROGRAM {
            for key in [Key::Program(kind), Key::Inherit(kind), Key::Permission(kind)] {
                assert!(key.name().starts_with(&format!("engines.{kind}.")), "{key:?}");
            }
            for row in proctor_engine::agent::TIERS {
                assert_eq!(Key::Model(kind, row.tier).name(), format!("models.{kind}.{}", row.name));
            }
        }
    }
}
