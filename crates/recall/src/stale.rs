//! Whether a record may be out of date.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use proctor_domain::Timestamp;

use crate::record::{Record, Said, Scope};

/// How long what holds for versions is believed where no version is known.
const BELIEVED_DAYS: u64 = 90;
const DAY: u64 = 24 * 60 * 60 * 1000;
/// No lock file is larger.
const LARGEST: u64 = 64 << 20;

/// Why a record may be out of date. It is said, and hides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// A package has another version here than the record was made with.
    Version {
        /// The package.
        name: String,
        /// The version that the record names.
        recorded: String,
        /// Those that are here.
        here: Vec<String>,
    },
    /// It holds for versions, says none that could be looked up, and is old.
    Age {
        /// How old.
        days: u64,
    },
}

impl fmt::Display for Stale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { name, recorded, here } => write!(formatter, "seen with {name} {recorded}; here it is {}", here.join(" and ")),
            Self::Age { days } => write!(formatter, "it holds for versions of its time, {days} days ago"),
        }
    }
}

/// Versions of packages, as lock files have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions(BTreeMap<String, Vec<String>>);

impl Versions {
    /// What the lock files in a folder say: `Cargo.lock`, `uv.lock`, `poetry.lock`, `pdm.lock`, `package-lock.json`, `yarn.lock` in its first form,
    /// `go.mod`. One that can't be read says nothing.
    pub fn read(folder: &Path) -> Self {
        let mut versions = Self::default();
        for (name, reads) in READERS {
            let path = folder.join(name);
            let is_fit = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST);
            if let Some(text) = is_fit.then(|| fs::read_to_string(&path).ok()).flatten() {
                reads(&text, &mut versions);
            }
        }
        versions
    }

    /// The versions of a package; none where nobody knows it.
    pub fn of(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, name: &str, version: &str) {
        let known = self.0.entry(name.to_owned()).or_default();
        if !known.iter().any(|other| other == version) {
            known.push(version.to_owned());
        }
    }
}

type ReadLock = fn(&str, &mut Versions);

const READERS: [(&str, ReadLock); 7] = [
    ("Cargo.lock", read_toml),
    ("uv.lock", read_toml),
    ("poetry.lock", read_toml),
    ("pdm.lock", read_toml),
    ("package-lock.json", read_npm),
    ("yarn.lock", read_yarn),
    ("go.mod", read_go),
];

/// `[[package]]`, `name = "…"`, `version = "…"`.
fn read_toml(text: &str, versions: &mut Versions) {
    let value = |line: &str, key: &str| Some(line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().trim_matches('"').to_owned());
    let mut name = None;
    for line in text.lines() {
        if line.starts_with('[') {
            name = None;
        } else if let Some(found) = value(line, "name") {
            name = Some(found);
        } else if let (Some(name), Some(version)) = (&name, value(line, "version")) {
            versions.add(name, &version);
        }
    }
}

fn read_npm(text: &str, versions: &mut Versions) {
    let Ok(lock) = serde_json::from_str::<serde_json::Value>(text) else { return };
    for (path, package) in lock["packages"].as_object().into_iter().flatten() {
        if let (Some((_, name)), Some(version)) = (path.rsplit_once("node_modules/"), package["version"].as_str()) {
            versions.add(name, version);
        }
    }
}

/// `"name@range", name@range:` and an indented `version "…"`.
fn read_yarn(text: &str, versions: &mut Versions) {
    let mut name: Option<String> = None;
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            if let (Some(name), Some(version)) = (&name, line.trim().strip_prefix("version ")) {
                versions.add(name, version.trim_matches('"'));
            }
        } else if line.ends_with(':') {
            let first = line.split(',').next().unwrap_or_default().trim_matches(['"', ':', ' ']);
            name = first.rsplit_once('@').map(|(name, _)| name.to_owned()).filter(|name| !name.is_empty());
        }
    }
}

/// `require x v1.2.3`, and the same lines in a block.
fn read_go(text: &str, versions: &mut Versions) {
    for line in text.lines() {
        let line = line.trim().strip_prefix("require ").unwrap_or(line.trim());
        if let Some((name, version)) = line.split_once(' ')
            && let Some(version) = version.split_whitespace().next().filter(|version| version.starts_with('v'))
        {
            versions.add(name, version);
        }
    }
}

/// Whether a record may be out of date here and now.
///
/// Where a package that it names is known here, its version decides; else its age does, if it says that it holds for versions. What holds
/// everywhere does not age.
pub fn stale(record: &Record, versions: &Versions, now: Timestamp) -> Option<Stale> {
    let scope = record.scope.as_ref().and_then(Said::known);
    if scope == Some(Scope::General) {
        return None;
    }
    let mut is_known = false;
    for dependency in &record.dependencies {
        let Some(recorded) = dependency.version.as_deref() else { continue };
        let here = versions.of(&dependency.name);
        let fitting: Vec<bool> = here.iter().filter_map(|version| fits(recorded, version)).collect();
        is_known |= !fitting.is_empty();
        if !fitting.is_empty() && !fitting.contains(&true) {
            return Some(Stale::Version { name: dependency.name.clone(), recorded: recorded.to_owned(), here: here.to_vec() });
        }
    }
    // A clock that was set back makes nothing old.
    let days = now.millis_since(record.created?) / DAY;
    (!is_known && scope == Some(Scope::VersionBound) && days > BELIEVED_DAYS).then_some(Stale::Age { days })
}

/// Whether a version is one that a record means, where that can be told.
fn fits(recorded: &str, here: &str) -> Option<bool> {
    let (how, wanted) = match recorded.trim() {
        text if text.starts_with(">=") => (">=", &text[2..]),
        text if text.starts_with('^') => ("^", &text[1..]),
        text if text.starts_with('~') => ("~", &text[1..]),
        text => ("=", text.trim_start_matches('=')),
    };
    let (wanted, here) = (numbers(wanted)?, numbers(here)?);
    let same = |count: usize| wanted.iter().zip(&here).take(count).all(|(one, other)| one == other);
    let is_later = || {
        here.iter().zip(wanted.iter().chain(std::iter::repeat(&0))).find(|(one, other)| one != other).is_none_or(|(one, other)| one > other)
    };
    Some(match how {
        ">=" => is_later(),
        // Up to the first number that is not zero.
        "^" => same(wanted.iter().take_while(|number| **number == 0).count() + 1) && is_later(),
        "~" => same(2.min(wanted.len())) && is_later(),
        // A version that says less means all that say more: `1.2` is any `1.2.x`.
        _ => wanted.len() <= here.len() && same(wanted.len()),
    })
}

/// `v1.2.x` is 1 and 2; what is behind a `-` or `+` names builds.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let text = text.trim().trim_start_matches('v');
    let plain = text.split(['-', '+']).next().unwrap_or(text);
    let parts = plain.split('.').take_while(|part| !matches!(*part, "x" | "X" | "*"));
    let numbers = parts.map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Dependency, Polarity};

    #[test]
    fn versions_fit_or_do_not_or_nobody_knows() {
        for (recorded, here, expected) in [
            ("1.2", "1.2.9", Some(true)),
            ("1.2.3", "1.2.4", Some(false)),
            ("1", "2.0.0", Some(false)),
            ("^1.2", "1.9.0", Some(true)),
            ("^1.2", "1.1.0", Some(false)),
            ("^0.3", "0.4.0", Some(false)),
            ("~1.2.3", "1.2.9", Some(true)),
            ("~1.2", "1.3.0", Some(false)),
            (">=2", "10.0.1", Some(true)),
            (">=2.1", "2.0.9", Some(false)),
            ("v1.4.x", "v1.4.0-rc1", Some(true)),
            ("latest", "1.0.0", None),
        ] {
            assert_eq!(fits(recorded, here), expected, "{recorded} {here}");
        }
    }

    #[test]
    fn lock_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "Cargo.lock",
                "[[package]]\nname = \"serde\"\nversion = \"1.0.2\"\n\n[[package]]\nname = \"syn\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"syn\"\nversion = \"2.0.0\"\n",
            ),
            (
                "package-lock.json",
                r#"{"packages":{"":{"version":"9"},"node_modules/a":{"version":"1.0.0"},"node_modules/a/node_modules/@s/b":{"version":"2.0.0"}}}"#,
            ),
            ("yarn.lock", "# yarn\n\n\"@s/c@^3.0.0\", \"@s/c@^3.1.0\":\n  version \"3.1.4\"\n  resolved \"x\"\n"),
            ("go.mod", "module m\n\nrequire (\n\texample.com/d v1.4.0 // indirect\n)\nrequire example.com/e v2.0.0\n"),
            ("poetry.lock", "not toml at all"),
        ] {
            proctor_process::durable::write(&folder.path().join(name), text.as_bytes(), proctor_process::durable::Durability::Renamed)
                .unwrap();
        }

        let versions = Versions::read(folder.path());

        for (name, expected) in [
            ("serde", &["1.0.2"][..]),
            ("syn", &["1.0.0", "2.0.0"]),
            ("a", &["1.0.0"]),
            ("@s/b", &["2.0.0"]),
            ("@s/c", &["3.1.4"]),
            ("example.com/d", &["v1.4.0"]),
            ("example.com/e", &["v2.0.0"]),
            ("unknown", &[]),
        ] {
            assert_eq!(versions.of(name), expected, "{name}");
        }
    }

    #[test]
    fn a_version_decides_where_it_is_known_and_age_where_it_is_not() {
        let now = Timestamp(1_000 * 24 * 60 * 60 * 1000);
        let days_ago = |days: i64| Some(Timestamp(now.0 - days * 24 * 60 * 60 * 1000));
        let mut versions = Versions::default();
        versions.add("serde", "1.0.9");
        let check = |scope: Option<Scope>, dependency: &str, days: i64, expected: Option<&str>| {
            let dependencies = Some(dependency).filter(|text| !text.is_empty()).map(Dependency::parse).into_iter().collect();
            let record =
                Record { scope: scope.map(Said::Known), dependencies, created: days_ago(days), ..Record::draft(Polarity::Fails, "route") };

            assert_eq!(stale(&record, &versions, now).map(|stale| stale.to_string()).as_deref(), expected, "{scope:?} {dependency} {days}");
        };
        check(Some(Scope::VersionBound), "", 90, None);
        check(Some(Scope::VersionBound), "", 120, Some("it holds for versions of its time, 120 days ago"));
        check(Some(Scope::VersionBound), "", -5, None);
        check(Some(Scope::VersionBound), "serde@1.0", 120, None);
        check(Some(Scope::VersionBound), "serde@0.9", 1, Some("seen with serde 0.9; here it is 1.0.9"));
        check(Some(Scope::VersionBound), "unheard@1", 120, Some("it holds for versions of its time, 120 days ago"));
        check(None, "serde@2", 1, Some("seen with serde 2; here it is 1.0.9"));
        check(Some(Scope::General), "serde@2", 1000, None);
        check(Some(Scope::Local), "", 1000, None);
    }
}
