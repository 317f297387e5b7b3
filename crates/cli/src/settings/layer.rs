//! One layer of settings: a file's or the environment's.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use proctor_cards::{Finding, Layout, Level, nearest};
use proctor_domain::CardDuration;
use proctor_domain::procedure::Records;

use super::file::{Entry, Mistake, TomlText};
use super::{LayoutRule, RecordsRule, SettingsError};
use crate::environment::{self, Environment, Variable};

/// Settings files are small; a larger one is something else by mistake.
const LARGEST: u64 = 1024 * 1024;

/// Which files may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The user's file only.
    User,
    /// The user's and the repository's file.
    Repository,
}

/// One key that settings files know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyFacts {
    /// As written in a file.
    pub key: &'static str,
    /// Which files may set it.
    pub reach: Reach,
    /// The variable that overrides it.
    pub variable: &'static Variable,
}

/// Every key, in the order of the documentation.
pub static KEYS: &[KeyFacts] = &[
    KeyFacts { key: "layout", reach: Reach::Repository, variable: &environment::LAYOUT },
    KeyFacts { key: "records", reach: Reach::Repository, variable: &environment::RECORDS },
    KeyFacts { key: "pass-env", reach: Reach::Repository, variable: &environment::PASS_ENV },
    KeyFacts { key: "linger", reach: Reach::Repository, variable: &environment::LINGER },
    KeyFacts { key: "shell-timeout", reach: Reach::Repository, variable: &environment::SHELL_TIMEOUT },
    KeyFacts { key: "state-dir", reach: Reach::User, variable: &environment::STATE_DIR },
];

/// What one layer says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) layout: Option<LayoutRule>,
    pub(super) records: Option<RecordsRule>,
    pub(super) pass_env: Option<Vec<String>>,
    pub(super) linger: Option<Vec<String>>,
    pub(super) shell_timeout: Option<CardDuration>,
    pub(super) state_dir: Option<PathBuf>,
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
    let mistakes: Vec<Mistake> = toml.entries().filter_map(|entry| layer.set(&entry, reach).err()).collect();
    if mistakes.is_empty() { Ok(layer) } else { Err(wrong(toml.findings(mistakes))) }
}

impl Layer {
    fn set(&mut self, entry: &Entry<'_>, reach: Reach) -> Result<(), Mistake> {
        let known = KEYS.iter().find(|facts| facts.key == entry.key).ok_or_else(|| unknown_key(entry, reach))?;
        if known.reach == Reach::User && reach == Reach::Repository {
            return Err(Mistake::at(&entry.key_span, format!("`{}` can't be set by a repository", known.key))
                .hint(format!("set it in your own settings file or with {}", known.variable.name)));
        }
        match known.key {
            "pass-env" => self.pass_env = Some(checked(entry, check_variable)?),
            "linger" => self.linger = Some(checked(entry, check_program)?),
            key => self.set_text(key, entry.text()?).map_err(|reason| entry.refuse(format!("`{key}`: {reason}")))?,
        }
        Ok(())
    }

    /// Sets a key whose value is one text, wherever the text comes from.
    fn set_text(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "layout" => self.layout = Some(layout(text)?),
            "records" => self.records = Some(records(text)?),
            "shell-timeout" => self.shell_timeout = Some(shell_timeout(text)?),
            "state-dir" => self.state_dir = Some(state_dir(text)?),
            _ => self.set_list(key, text)?,
        }
        Ok(())
    }

    /// Sets a key whose value is a list, written with commas.
    fn set_list(&mut self, key: &str, text: &str) -> Result<(), String> {
        let names: Vec<String> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let check = if key == "linger" { check_program } else { check_variable };
        names.iter().try_for_each(|name| check(name))?;
        *(if key == "linger" { &mut self.linger } else { &mut self.pass_env }) = Some(names);
        Ok(())
    }
}

/// What the environment says.
pub(super) fn from_environment(environment: &Environment) -> Result<Layer, SettingsError> {
    let mut layer = Layer::default();
    for facts in KEYS {
        let Some(value) = environment.get(facts.variable) else { continue };
        let wrong = |reason| SettingsError::Variable { name: facts.variable.name, reason };
        let text = value.to_str().ok_or_else(|| wrong("it is not UTF-8".to_owned()))?;
        layer.set_text(facts.key, text).map_err(wrong)?;
    }
    Ok(layer)
}

fn checked(entry: &Entry<'_>, check: fn(&str) -> Result<(), String>) -> Result<Vec<String>, Mistake> {
    let checked = |(text, span): (String, Range<usize>)| match check(&text) {
        Ok(()) => Ok(text),
        Err(reason) => Err(Mistake::at(&span, format!("`{}`: {reason}", entry.key))),
    };
    entry.texts()?.into_iter().map(checked).collect()
}

fn unknown_key(entry: &Entry<'_>, reach: Reach) -> Mistake {
    let keys = KEYS.iter().filter(|facts| reach == Reach::User || facts.reach == Reach::Repository).map(|facts| facts.key);
    let hint = nearest(entry.key, keys.clone())
        .map_or_else(|| format!("known keys: {}", keys.collect::<Vec<_>>().join(", ")), |nearest| format!("did you mean `{nearest}`?"));
    Mistake::at(&entry.key_span, format!("unknown key `{}`", entry.key)).hint(hint)
}

fn layout(text: &str) -> Result<LayoutRule, String> {
    match text {
        "auto" => Ok(LayoutRule::Find),
        "proctor" => Ok(LayoutRule::Fixed(Layout::Proctor)),
        "beebox" => Ok(LayoutRule::Fixed(Layout::BeeBox)),
        other => Err(format!("`{other}` is none of auto, proctor, beebox")),
    }
}

fn records(text: &str) -> Result<RecordsRule, String> {
    match text {
        "auto" => Ok(RecordsRule::ByLayout),
        "state" => Ok(RecordsRule::Fixed(Records::State)),
        "git" => Ok(RecordsRule::Fixed(Records::Git)),
        other => Err(format!("`{other}` is none of auto, state, git")),
    }
}

fn shell_timeout(text: &str) -> Result<CardDuration, String> {
    let duration: CardDuration = text.parse().map_err(|error: proctor_domain::duration::InvalidDuration| error.to_string())?;
    if duration.millis() == 0 { Err("no shell can finish in no time".to_owned()) } else { Ok(duration) }
}

fn state_dir(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(format!("`{text}` is not an absolute path")) }
}

fn check_variable(name: &str) -> Result<(), String> {
    let starts_well = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if starts_well && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Ok(());
    }
    Err(format!("`{name}` is no name of an environment variable"))
}

fn check_program(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(['/', '\0']) {
        return Err(format!("`{name}` is no program's name: give the name without its folder"));
    }
    Ok(())
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

    #[test]
    fn unknown_keys_are_errors_with_place_and_nearest_key() {
        assert_eq!(
            findings("layout = 'auto'\n  recrods = 'git'\npass_env = []\nzebra = 1", Reach::Repository),
            [
                (2, 3, "unknown key `recrods`".to_owned(), Some("did you mean `records`?".to_owned())),
                (3, 1, "unknown key `pass_env`".to_owned(), Some("did you mean `pass-env`?".to_owned())),
                (4, 1, "unknown key `zebra`".to_owned(), Some("known keys: layout, records, pass-env, linger, shell-timeout".to_owned())),
            ]
        );
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

        assert_eq!(read("PROCTOR_LINGER", "sccache, gradle").expect("a list").linger, Some(vec!["sccache".into(), "gradle".into()]));
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
