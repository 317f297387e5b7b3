//! Where Claude Code keeps its state and its login.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::agent::{Login, Variable};

/// Variables that let it in, in the order in which it looks at them.
const KEYS: [&str; 3] = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"];
/// Where its folder is, when it is not in the home.
const FOLDER: &str = "CLAUDE_CONFIG_DIR";

/// Only whether these are there: a secret is never read into a value of ours.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Credentials {
    claude_ai_oauth: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GlobalConfig {
    primary_api_key: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    api_key_helper: Option<IgnoredAny>,
}

/// Its folder and its global file.
struct Places {
    folder: PathBuf,
    file: PathBuf,
}

impl Places {
    fn of(home: &Path, variable: &Variable<'_>) -> Self {
        match variable(FOLDER).filter(|folder| !folder.is_empty()).map(PathBuf::from) {
            Some(folder) => Self { file: folder.join(".claude.json"), folder },
            None => Self { folder: home.join(".claude"), file: home.join(".claude.json") },
        }
    }
}

/// What it writes, the session's temporary folder apart: conversations, a file for each live process, what it remembers of
/// projects. Its global file it replaces by a rename; where the home can't be written that file stays as it is, and the
/// client works all the same.
pub(super) fn writable(variable: &Variable<'_>) -> Vec<PathBuf> {
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    let places = Places::of(&home, variable);
    let within = places.file.starts_with(&places.folder);
    let file = (!within).then_some(places.file);
    [places.folder].into_iter().chain(file).filter(|path| path.is_absolute()).collect()
}

/// Where its conversations are kept.
pub(super) fn folder(variable: &Variable<'_>) -> Option<PathBuf> {
    writable(variable).into_iter().next()
}

/// Whether somebody is logged in.
pub(super) fn login(home: &Path, variable: &Variable<'_>) -> Login {
    if let Some(key) = KEYS.into_iter().find(|key| variable(key).is_some_and(|value| !value.is_empty())) {
        return Login::By(key.to_owned());
    }
    let places = Places::of(home, variable);
    if read::<Credentials>(&places.folder.join(".credentials.json")).claude_ai_oauth.is_some() {
        return Login::By("claude.ai account".to_owned());
    }
    if read::<GlobalConfig>(&places.file).primary_api_key.is_some() {
        return Login::By("Anthropic Console account".to_owned());
    }
    // A program that prints a key: whether it does is known when it is run.
    if read::<Settings>(&places.folder.join("settings.json")).api_key_helper.is_some() { Login::Unknown } else { Login::No }
}

/// What is in this file; nothing when it is not there or can't be read, which for a login comes to the same.
fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
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
        let put = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            durable::write(&path, text.as_bytes(), Durability::Renamed).unwrap();
        };
        let by = |name: &str| Login::By(name.to_owned());

        assert_eq!(login(home.path(), &nothing), Login::No);
        put(".claude/settings.json", r#"{"apiKeyHelper":"./key"}"#);
        assert_eq!(login(home.path(), &nothing), Login::Unknown);
        put(".claude.json", r#"{"primaryApiKey":"secret"}"#);
        assert_eq!(login(home.path(), &nothing), by("Anthropic Console account"));
        put(".claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"secret"}}"#);
        assert_eq!(login(home.path(), &nothing), by("claude.ai account"));
        assert_eq!(login(home.path(), &|name| (name == FOLDER).then(|| "/nowhere".into())), Login::No);
        assert_eq!(login(home.path(), &|name| (name == "ANTHROPIC_API_KEY").then(|| "secret".into())), by("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn what_it_writes_is_in_its_folder_and_its_file() {
        let home = |name: &str| (name == "HOME").then(|| OsString::from("/home/a"));
        let moved = |name: &str| if name == FOLDER { Some(OsString::from("/c")) } else { home(name) };

        assert_eq!(writable(&home), [PathBuf::from("/home/a/.claude"), PathBuf::from("/home/a/.claude.json")]);
        assert_eq!(writable(&moved), [PathBuf::from("/c")]);
        assert!(writable(&nothing).is_empty());
        assert_eq!([folder(&home), folder(&moved), folder(&nothing)], [Some("/home/a/.claude".into()), Some("/c".into()), None]);
    }
}
