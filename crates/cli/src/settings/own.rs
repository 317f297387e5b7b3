//! Engines that the settings make up: another account of one that is always there, agents of a protocol, and programs that
//! print an answer.
//!
//! ```toml
//! [engines.work]
//! claude = ["claude"]
//! env = { CLAUDE_CONFIG_DIR = "/home/ann/.claude-work" }
//! ```

use std::collections::BTreeMap;

use proctor_cards::nearest;
use proctor_domain::session::EngineName;
use proctor_engine::agent::{EngineKind, Permission, TIERS, Tier};

use super::ability::{self, Abilities};
use super::file::{Entry, Mistake};
use super::value;

/// An engine that a layer of settings makes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnEngine {
    /// How it is spoken to.
    pub kind: EngineKind,
    /// Its program, as written: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// What the program is given first.
    pub arguments: Vec<String>,
    /// `env`: variables that its sessions get, by their names. A value that begins with `$` is that of the caller's variable.
    pub environment: BTreeMap<String, String>,
    /// `inherit`
    pub inherit: bool,
    /// `permission`
    pub permission: Permission,
    /// `effort`, `fallback-model` and `mcp`
    pub abilities: Abilities,
    /// `models`
    pub models: BTreeMap<Tier, String>,
}

impl OwnEngine {
    /// The whole of it in one line, for whoever is to accept it.
    pub(super) fn told(&self, name: &EngineName) -> String {
        let words: Vec<&str> = std::iter::once(&self.program).chain(&self.arguments).map(String::as_str).collect();
        let bypass = match self.permission {
            Permission::Ask => "",
            Permission::Bypass => ", which asks about nothing",
        };
        let inherits = if self.inherit { ", which takes in your own settings" } else { "" };
        let servers: String = self.abilities.servers.iter().map(|server| format!(", with the server {}", ability::told(server))).collect();
        let variables: String = self.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        format!("{name}: {variables}{} ({}{inherits}{bypass}{servers})", words.join(" "), self.kind)
    }
}

/// The keys that say how an engine is spoken to.
const WAYS: [(&str, EngineKind); 5] = [
    ("claude", EngineKind::Claude),
    ("codex", EngineKind::Codex),
    ("opencode", EngineKind::OpenCode),
    ("acp", EngineKind::Acp),
    ("command", EngineKind::Command),
];
/// The other keys of an engine.
const KEYS: [&str; 7] = ["env", "inherit", "permission", "effort", "fallback-model", "mcp", "models"];

/// Reads the table of an engine that is none of those that are always there; `None` when it makes up none, so that its name
/// is only an unknown key.
pub(super) fn read(entry: &Entry<'_>, mistakes: &mut Vec<Mistake>) -> Option<(EngineName, OwnEngine)> {
    let entries = entry.entries().ok()?;
    let ways: Vec<(&Entry<'_>, EngineKind)> = entries.iter().filter_map(|inner| Some((inner, way(inner.word())?))).collect();
    let (first, kind) = ways.first()?;
    let before = mistakes.len();
    if let Some((second, _)) = ways.get(1) {
        mistakes.push(Mistake::at(&second.key_span, format!("`{}` says a second time what the engine is", second.name)));
    }
    let name = entry.word().parse().map_err(|error| mistakes.push(Mistake::at(&entry.key_span, format!("{error}")))).ok();
    let words = words(first).map_err(|mistake| mistakes.push(mistake)).unwrap_or_default();
    let mut words = words.into_iter();
    let mut engine = OwnEngine {
        kind: *kind,
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        environment: BTreeMap::new(),
        inherit: false,
        permission: Permission::Ask,
        abilities: Abilities::default(),
        models: BTreeMap::new(),
    };
    for inner in entries.iter().filter(|inner| way(inner.word()).is_none()) {
        mistakes.extend(engine.set(inner).err());
    }
    name.filter(|_| mistakes.len() == before).map(|name| (name, engine))
}

fn way(word: &str) -> Option<EngineKind> {
    WAYS.iter().find(|(key, _)| *key == word).map(|(_, kind)| *kind)
}

/// A program and its arguments.
fn words(entry: &Entry<'_>) -> Result<Vec<String>, Mistake> {
    let words: Vec<String> = entry.texts()?.into_iter().map(|(word, _)| word).collect();
    let is_program = words.first().is_some_and(|program| !program.is_empty());
    if is_program && words.iter().all(|word| !word.contains('\0')) {
        Ok(words)
    } else {
        Err(entry.refuse(format!("`{}` wants a program and its arguments", entry.name)))
    }
}

impl OwnEngine {
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), Mistake> {
        let refuse = |reason: String| entry.refuse(format!("`{}`: {reason}", entry.name));
        if let Some(mistake) = ability::of_no_use(entry, self.kind) {
            return Err(mistake);
        }
        match entry.word() {
            "env" => {
                for inner in entry.entries()? {
                    let value = inner.text()?;
                    value::variable(inner.word(), value).map_err(|reason| inner.refuse(format!("`{}`: {reason}", inner.name)))?;
                    self.environment.insert(inner.word().to_owned(), value.to_owned());
                }
            }
            "inherit" => self.inherit = entry.switch()?,
            "permission" => self.permission = value::permission(entry.text()?).map_err(refuse)?,
            "effort" => self.abilities.effort = Some(ability::effort(self.kind, entry.text()?).map_err(refuse)?),
            "fallback-model" => self.abilities.fallback_model = Some(ability::fallback_model(entry.text()?).map_err(refuse)?),
            "mcp" => self.abilities.servers = ability::servers(entry)?,
            "models" => {
                for inner in entry.entries()? {
                    let tier = Tier::named(inner.word()).ok_or_else(|| unknown(&inner, &TIERS.map(|row| row.name)))?;
                    let model = value::model(inner.text()?).map_err(|reason| inner.refuse(format!("`{}`: {reason}", inner.name)))?;
                    self.models.insert(tier, model);
                }
            }
            _ => return Err(unknown(entry, &KEYS)),
        }
        Ok(())
    }
}

fn unknown(entry: &Entry<'_>, known: &[&'static str]) -> Mistake {
    let hint = match nearest(entry.word(), known.iter().copied()) {
        Some(nearest) => format!("did you mean `{}{nearest}`?", entry.prefix()),
        None => format!("known keys: {}", known.join(", ")),
    };
    Mistake::at(&entry.key_span, format!("unknown key `{}`", entry.name)).hint(hint)
}
