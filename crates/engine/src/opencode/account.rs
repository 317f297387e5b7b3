//! Where OpenCode keeps its state and its logins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use crate::agent::{Login, Variable};

/// Variables that let it in.
pub(super) const KEYS: [&str; 6] =
    ["OPENCODE_AUTH_CONTENT", "OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"];
/// The folder of its data: conversations, logins, logs.
const DATA: (&str, &str) = ("XDG_DATA_HOME", ".local/share");
/// What else it writes: what it remembers of its use, and what it fetched.
const REST: [(&str, &str); 2] = [("XDG_STATE_HOME", ".local/state"), ("XDG_CACHE_HOME", ".cache")];

fn place((name, usual): (&str, &str), home: &Path, variable: &Variable<'_>) -> PathBuf {
    let parent = variable(name).filter(|folder| !folder.is_empty()).map_or_else(|| home.join(usual), PathBuf::from);
    parent.join("opencode")
}

/// What it writes, the session's temporary folder apart. It makes all of them when it starts, and ends where it can't.
pub(super) fn folders(variable: &Variable<'_>) -> Vec<PathBuf> {
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    let all = [DATA].into_iter().chain(REST);
    all.map(|kind| place(kind, &home, variable)).filter(|path| path.is_absolute()).collect()
}

/// Whether somebody is logged in. Nobody has to be: some models are free, and a configuration may hold keys.
pub(super) fn login(home: &Path, variable: &Variable<'_>) -> Login {
    if let Some(key) = KEYS.into_iter().find(|key| variable(key).is_some_and(|value| !value.is_empty())) {
        return Login::By(key.to_owned());
    }
    let names = providers(&place(DATA, home, variable).join("auth.json"));
    if names.is_empty() { Login::Unknown } else { Login::By(format!("login at {}", names.join(", "))) }
}

/// Whose logins are in this file. What is in them is never read into a value of ours.
fn providers(path: &Path) -> Vec<String> {
    let logins = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(&bytes).ok());
    logins.unwrap_or_default().into_keys().collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use proctor_process::durable::{self, Durability};

    use super::*;

    fn nothing(_name: &str) -> Option<OsString> {
        None
    }

    #[test]
    fn a_login_is_found_where_the_client_looks_for_it() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".local/share/opencode/auth.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let elsewhere = |name: &str| (name == "XDG_DATA_HOME").then(|| "/nowhere".into());

        assert_eq!(login(home.path(), &nothing), Login::Unknown);
        durable::write(&file, br#"{"openai":{"type":"oauth"},"anthropic":{"type":"api","key":"secret"}}"#, Durability::Renamed).unwrap();
        assert_eq!(login(home.path(), &nothing), Login::By("login at anthropic, openai".to_owned()));
        assert_eq!(login(home.path(), &elsewhere), Login::Unknown);
        let key = |name: &str| (name == "OPENAI_API_KEY").then(|| "secret".into());
        assert_eq!(login(home.path(), &key), Login::By("OPENAI_API_KEY".to_owned()));
    }

    #[test]
    fn what_it_writes_is_where_its_variables_say() {
        let home = |name: &str| (name == "HOME").then(|| OsString::from("/home/a"));
        let moved = |name: &str| if name == "XDG_CACHE_HOME" { Some(OsString::from("/c")) } else { home(name) };
        let found = |places: &[&str]| places.iter().map(PathBuf::from).collect::<Vec<_>>();

        let usual = ["/home/a/.local/share/opencode", "/home/a/.local/state/opencode", "/home/a/.cache/opencode"];
        assert_eq!(folders(&home), found(&usual));
        assert_eq!(folders(&moved), found(&[usual[0], usual[1], "/c/opencode"]));
        assert!(folders(&nothing).is_empty());
    }
}
