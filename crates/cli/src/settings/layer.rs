//! One layer of settings: a file's or the environment's.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use proctor_cards::{Finding, Level};
use proctor_domain::CardDuration;
use proctor_domain::session::EngineName;
use proctor_engine::agent::{EngineKind, Permission, Tier};
use proctor_process::confine::{Confine, Net};
use serde_json::{Map, Value};

use super::ability;
use super::file::{Entry, Mistake, TomlText};
use super::key::{self, KEYS, KeyFacts, Known};
use super::own::{self, OwnEngine};
use super::{Key, LayoutRule, MemoryPart, NameList, Reach, RecordsRule, SettingsError, value};
use crate::environment::Environment;

/// Settings files are small; a larger one is something else by mistake.
const LARGEST: u64 = 1024 * 1024;

/// What one layer says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) layout: Option<LayoutRule>,
    pub(super) records: Option<RecordsRule>,
    pub(super) names: BTreeMap<NameList, Vec<String>>,
    pub(super) shell_timeout: Option<CardDuration>,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) engine: Option<EngineName>,
    pub(super) judge: Option<EngineName>,
    pub(super) agent_timeout: Option<CardDuration>,
    pub(super) agent_silence: Option<CardDuration>,
    pub(super) confine: Option<Confine>,
    pub(super) net: Option<Net>,
    pub(super) box_image: Option<String>,
    pub(super) box_program: Option<PathBuf>,
    pub(super) memory: BTreeMap<MemoryPart, bool>,
    pub(super) script: Option<PathBuf>,
    pub(super) programs: BTreeMap<EngineKind, PathBuf>,
    pub(super) inherit: BTreeMap<EngineKind, bool>,
    pub(super) permissions: BTreeMap<EngineKind, Permission>,
    pub(super) efforts: BTreeMap<EngineKind, String>,
    pub(super) fallback_models: BTreeMap<EngineKind, String>,
    pub(super) servers: BTreeMap<EngineKind, Map<String, Value>>,
    pub(super) models: BTreeMap<(EngineKind, Tier), String>,
    pub(super) own_engines: BTreeMap<EngineName, OwnEngine>,
}

/// Reads a file; `None` where there is none.
pub(super) fn read_file(path: &Path, reach: Reach) -> Result<Option<Layer>, SettingsError> {
    let unreadable = |source| SettingsError::Unreadable { path: path.to_owned(), source };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(unreadable(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it is larger than 1 MiB")));
    }
    let text = String::from_utf8(bytes).map_err(|error| SettingsError::Findings {
        path: path.to_owned(),
        findings: vec![not_utf8(path, error.as_bytes(), error.utf8_error().valid_up_to())],
    })?;
    from_text(path, &text, reach).map(Some)
}

/// `valid` is how many bytes are good; the replacement of the others begins at the same place.
fn not_utf8(path: &Path, bytes: &[u8], valid: usize) -> Finding {
    Finding::in_text(Level::Error, path, &String::from_utf8_lossy(bytes), valid..valid + 1, "this is not UTF-8")
}

/// Reads a text.
pub(super) fn from_text(path: &Path, text: &str, reach: Reach) -> Result<Layer, SettingsError> {
    let wrong = |findings| SettingsError::Findings { path: path.to_owned(), findings };
    let toml = TomlText::parse(path, text).map_err(wrong)?;
    let mut layer = Layer::default();
    let mut mistakes = Vec::new();
    layer.read(toml.entries(), reach, &mut mistakes);
    if mistakes.is_empty() { Ok(layer) } else { Err(wrong(toml.findings(mistakes))) }
}

impl Layer {
    /// Takes in the entries of one table and of those in it.
    fn read<'text>(&mut self, entries: Vec<Entry<'text>>, reach: Reach, mistakes: &mut Vec<Mistake>) {
        for entry in entries {
            let outcome = match key::look_up(&entry.name) {
                Known::Table => entry.entries().map(|inner| self.read(inner, reach, mistakes)),
                Known::Key(facts) if facts.reach == Reach::User && reach == Reach::Repository => Err(for_users_only(&entry, facts)),
                Known::Key(facts) => self.set(facts.key, &entry),
                Known::Nothing if entry.prefix() == "engines." && self.make_up_engine(&entry, mistakes) => Ok(()),
                Known::Nothing => Err(of_no_use(&entry).unwrap_or_else(|| {
                    let hint = key::suggestion(entry.prefix(), entry.word(), reach);
                    Mistake::at(&entry.key_span, format!("unknown key `{}`", entry.name)).hint(hint)
                })),
            };
            mistakes.extend(outcome.err());
        }
    }

    /// Whether the entry makes up an engine, rightly or not.
    fn make_up_engine(&mut self, entry: &Entry<'_>, mistakes: &mut Vec<Mistake>) -> bool {
        let before = mistakes.len();
        let made_up = own::read(entry, mistakes);
        let is_one = made_up.is_some() || mistakes.len() > before;
        self.own_engines.extend(made_up);
        is_one
    }

    fn set(&mut self, key: Key, entry: &Entry<'_>) -> Result<(), Mistake> {
        match key {
            Key::Names(list) => {
                self.names.insert(list, checked(entry, list)?);
                Ok(())
            }
            Key::Inherit(kind) => {
                self.inherit.insert(kind, entry.switch()?);
                Ok(())
            }
            Key::Memory(part) => {
                self.memory.insert(part, entry.switch()?);
                Ok(())
            }
            Key::Servers(kind) => {
                self.servers.insert(kind, ability::servers(entry)?);
                Ok(())
            }
            Key::Layout
            | Key::Records
            | Key::ShellTimeout
            | Key::StateDir
            | Key::Engine
            | Key::Judge
            | Key::AgentTimeout
            | Key::AgentSilence
            | Key::Confine
            | Key::Net
            | Key::BoxImage
            | Key::BoxProgram
            | Key::Script
            | Key::Program(_)
            | Key::Permission(_)
            | Key::Effort(_)
            | Key::FallbackModel(_)
            | Key::Model(..)
            | Key::OwnEngines => self.set_text(key, entry.text()?).map_err(|reason| entry.refuse(format!("`{}`: {reason}", entry.name))),
        }
    }

    /// Sets a key whose value is one text, wherever the text comes from; lists are written with commas.
    fn set_text(&mut self, key: Key, text: &str) -> Result<(), String> {
        match key {
            Key::Layout => self.layout = Some(value::layout(text)?),
            Key::Records => self.records = Some(value::records(text)?),
            Key::ShellTimeout => self.shell_timeout = Some(value::limit(text, "shell")?),
            Key::StateDir => self.state_dir = Some(value::state_dir(text)?),
            Key::Engine => self.engine = Some(value::engine(text)?),
            Key::Judge => self.judge = Some(value::engine(text)?),
            Key::AgentTimeout => self.agent_timeout = Some(value::limit(text, "agent")?),
            Key::AgentSilence => self.agent_silence = Some(value::limit(text, "agent")?),
            Key::Confine => self.confine = Some(value::confine(text)?),
            Key::Net => self.net = Some(value::net(text)?),
            Key::BoxImage => self.box_image = Some(value::image(text)?),
            Key::BoxProgram => self.box_program = Some(value::path(text)?),
            Key::Script => self.script = Some(value::path(text)?),
            Key::Names(list) => _ = self.names.insert(list, value::names(list, text)?),
            Key::Program(kind) => _ = self.programs.insert(kind, value::path(text)?),
            Key::Memory(part) => _ = self.memory.insert(part, value::switch(text)?),
            Key::Inherit(kind) => _ = self.inherit.insert(kind, value::switch(text)?),
            Key::Permission(kind) => _ = self.permissions.insert(kind, value::permission(text)?),
            Key::Effort(kind) => _ = self.efforts.insert(kind, ability::effort(kind, text)?),
            Key::FallbackModel(kind) => _ = self.fallback_models.insert(kind, ability::fallback_model(text)?),
            Key::Model(kind, tier) => _ = self.models.insert((kind, tier), value::model(text)?),
            Key::Servers(_) => return Err("servers are tables".to_owned()),
            Key::OwnEngines => return Err("engines are made up in tables".to_owned()),
        }
        Ok(())
    }

    /// The same without what it says about this key.
    pub(super) fn without(mut self, key: Key) -> Self {
        match key {
            Key::Layout => self.layout = None,
            Key::Records => self.records = None,
            Key::ShellTimeout => self.shell_timeout = None,
            Key::StateDir => self.state_dir = None,
            Key::Engine => self.engine = None,
            Key::Judge => self.judge = None,
            Key::AgentTimeout => self.agent_timeout = None,
            Key::AgentSilence => self.agent_silence = None,
            Key::Confine => self.confine = None,
            Key::Net => self.net = None,
            Key::BoxImage => self.box_image = None,
            Key::BoxProgram => self.box_program = None,
            Key::Script => self.script = None,
            Key::Names(list) => _ = self.names.remove(&list),
            Key::Program(kind) => _ = self.programs.remove(&kind),
            Key::Memory(part) => _ = self.memory.remove(&part),
            Key::Inherit(kind) => _ = self.inherit.remove(&kind),
            Key::Permission(kind) => _ = self.permissions.remove(&kind),
            Key::Effort(kind) => _ = self.efforts.remove(&kind),
            Key::FallbackModel(kind) => _ = self.fallback_models.remove(&kind),
            Key::Servers(kind) => _ = self.servers.remove(&kind),
            Key::Model(kind, tier) => _ = self.models.remove(&(kind, tier)),
            Key::OwnEngines => {
                let own = std::mem::take(&mut self.own_engines);
                self.engine = self.engine.filter(|name| !own.contains_key(name));
                self.judge = self.judge.filter(|name| !own.contains_key(name));
            }
        }
        self
    }
}

/// What the environment says.
pub(super) fn from_environment(environment: &Environment) -> Result<Layer, SettingsError> {
    let mut layer = Layer::default();
    for facts in KEYS {
        let Some(variable) = facts.variable else { continue };
        let Some(given) = environment.get(variable) else { continue };
        let wrong = |reason| SettingsError::Variable { name: variable.name, reason };
        let text = given.to_str().ok_or_else(|| wrong("it is not UTF-8".to_owned()))?;
        layer.set_text(facts.key, text).map_err(wrong)?;
    }
    Ok(layer)
}

/// The mistake where the key is one of other engines.
fn of_no_use(entry: &Entry<'_>) -> Option<Mistake> {
    let kind = entry.prefix().strip_prefix("engines.")?.strip_suffix('.')?.parse::<EngineName>().ok()?;
    ability::of_no_use(entry, EngineKind::built_in(&kind)?)
}

fn checked(entry: &Entry<'_>, list: NameList) -> Result<Vec<String>, Mistake> {
    let checked = |(text, span): (String, Range<usize>)| match value::check_name(list, &text) {
        Ok(()) => Ok(text),
        Err(reason) => Err(Mistake::at(&span, format!("`{}`: {reason}", entry.name))),
    };
    entry.texts()?.into_iter().map(checked).collect()
}

fn for_users_only(entry: &Entry<'_>, facts: &KeyFacts) -> Mistake {
    let variable = facts.variable.map(|variable| format!(" or with {}", variable.name)).unwrap_or_default();
    Mistake::at(&entry.key_span, format!("`{}` can't be set by a repository", facts.name))
        .hint(format!("set it in your own settings file{variable}"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn findings(text: &str, reach: Reach) -> Vec<(usize, usize, String, Option<String>)> {
        match from_text(Path::new("proctor.toml"), text, reach) {
            Err(SettingsError::Findings { findings, .. }) => {
                findings.into_iter().map(|finding| (finding.line, finding.column, finding.message, finding.hint)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    const KNOWN: &str = "known keys: layout, records, pass-env, linger, secrets, shell-timeout, agent-timeout, agent-silence, confine, net, box, memory, engine, judge, engines, models";

    #[test]
    fn unknown_keys_are_errors_with_place_and_nearest_key() {
        assert_eq!(
            findings("layout = 'auto'\n  recrods = 'git'\npass_env = []\nzebra = 1", Reach::Repository),
            [
                (2, 3, "unknown key `recrods`".to_owned(), Some("did you mean `records`?".to_owned())),
                (3, 1, "unknown key `pass_env`".to_owned(), Some("did you mean `pass-env`?".to_owned())),
                (4, 1, "unknown key `zebra`".to_owned(), Some(KNOWN.to_owned())),
            ]
        );
    }

    #[test]
    fn keys_in_tables_are_checked_like_those_outside_however_the_tables_are_written() {
        let wrong = |line, column, message: &str, hint: &str| (line, column, message.to_owned(), Some(hint.to_owned()));

        assert_eq!(
            findings("[engines.cluade]\nprogram = 'x'\n[engines.claude]\ninherits = true\n[models]\nclaude.best = 'opus'", Reach::User),
            [
                wrong(1, 10, "unknown key `engines.cluade`", "did you mean `engines.claude`?"),
                wrong(4, 1, "unknown key `engines.claude.inherits`", "did you mean `engines.claude.inherit`?"),
                wrong(
                    6,
                    8,
                    "unknown key `models.claude.best`",
                    "known keys: models.claude.efficient, models.claude.balanced, models.claude.strong, models.claude.strongest"
                ),
            ]
        );
        assert_eq!(
            findings("engines = { scripted = { scrpt = 'a.toml' } }", Reach::User),
            [wrong(1, 26, "unknown key `engines.scripted.scrpt`", "did you mean `engines.scripted.script`?")]
        );
        assert_eq!(findings("'engines.claude.inherit' = true", Reach::User)[0].2, "unknown key `\"engines.claude.inherit\"`");
    }

    #[test]
    fn tables_and_dotted_keys_say_the_same() {
        let read = |text| from_text(Path::new("proctor.toml"), text, Reach::Repository).expect("settings");

        let table = read("[engines.claude]\ninherit = true\npermission = 'bypass'\n[models.claude]\nstrong = 'claude-opus-4-5'");

        assert_eq!(
            table,
            read("engines.claude.inherit = true\nengines.claude.permission = 'bypass'\nmodels.claude.strong = 'claude-opus-4-5'")
        );
        assert!(table.inherit[&EngineKind::Claude]);
        assert_eq!(table.models[&(EngineKind::Claude, Tier::Strong)], "claude-opus-4-5");
    }

    #[test]
    fn values_of_the_wrong_kind_are_errors_at_the_value() {
        for (text, column, message) in [
            ("layout = 1", 10, "`layout` wants a string, this is an integer"),
            ("layout = 'bee'", 10, "`layout`: `bee` is none of auto, proctor, beebox"),
            ("records = 'both'", 11, "`records`: `both` is none of auto, state, git"),
            ("pass-env = 'A'", 12, "`pass-env` wants a list of strings, this is a string"),
            ("pass-env = ['A', 2]", 18, "`pass-env` wants strings, this is an integer"),
            ("pass-env = ['A', 'B=C']", 18, "`pass-env`: `B=C` is no name of an environment variable"),
            ("linger = ['/bin/sccache']", 11, "`linger`: `/bin/sccache` is no program's name: give the name without its folder"),
            (
                "engine = 'Codex'",
                10,
                "`engine`: `Codex` is no name of an engine: it wants at most 40 lower-case letters, digits and `-`, a letter first",
            ),
            ("engine = { claude = 1 }", 10, "`engine` wants a string, this is an inline table"),
            ("engines = 'claude'", 11, "`engines` wants a table, this is a string"),
            ("engines.claude.inherit = 'yes'", 26, "`engines.claude.inherit` wants true or false, this is a string"),
            ("engines.claude.permission = 'all'", 29, "`engines.claude.permission`: `all` is none of ask, bypass"),
            ("engines.scripted.script = ''", 27, "`engines.scripted.script`: `` is no path"),
            ("models.claude.strong = '--verbose'", 24, "`models.claude.strong`: `--verbose` is no model's name"),
            ("confine = 'firejail'", 11, "`confine`: `firejail` is none of auto, bwrap, landlock, container, none"),
            ("secrets = ['A-B']", 12, "`secrets`: `A-B` is no name of an environment variable"),
            ("agent-silence = '0m'", 17, "`agent-silence`: no agent can finish in no time"),
            ("shell-timeout = '0s'", 17, "`shell-timeout`: no shell can finish in no time"),
        ] {
            assert_eq!(findings(text, Reach::Repository), [(1, column, message.to_owned(), None)], "{text}");
        }
    }

    #[test]
    fn a_repository_can_not_say_where_state_is() {
        let [(line, column, message, _)] = &findings("state-dir = '/tmp'", Reach::Repository)[..] else { panic!("one finding") };

        assert_eq!((*line, *column, message.as_str()), (1, 1, "`state-dir` can't be set by a repository"));
        let user = from_text(Path::new("config.toml"), "state-dir = '/srv/state'", Reach::User).expect("a user may");
        assert_eq!(user.state_dir, Some(PathBuf::from("/srv/state")));
    }

    #[test]
    fn variables_are_checked_like_values_in_files() {
        let read = |name: &str, value: &str| from_environment(&[(OsString::from(name), OsString::from(value))].into_iter().collect());

        assert_eq!(read("PROCTOR_LINGER", "sccache, gradle").expect("a list").names[&NameList::Linger], ["sccache", "gradle"]);
        assert_eq!(
            read("PROCTOR_LAYOUT", "bee").expect_err("no layout").to_string(),
            "environment variable PROCTOR_LAYOUT: `bee` is none of auto, proctor, beebox"
        );
        assert_eq!(
            read("PROCTOR_STATE_DIR", "state").expect_err("relative").to_string(),
            "environment variable PROCTOR_STATE_DIR: `state` is not an absolute path"
        );
    }
}
