//! Where Codex keeps its state and its login, and the home of its own that it gets here.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::agent::{AgentFiles, Login, Variable};

/// Where its folder is, when it is not in the home.
pub(super) const FOLDER: &str = "CODEX_HOME";
/// A key in a variable.
pub(super) const API_KEY: &str = "CODEX_API_KEY";
/// Variables that let it in, in the order in which it looks at them.
const KEYS: [&str; 2] = [API_KEY, "CODEX_ACCESS_TOKEN"];
/// The key that it does not look at itself.
const PROVIDER_KEY: &str = "OPENAI_API_KEY";
/// The file with a login, in its folder.
const LOGIN: &str = "auth.json";

/// Only whether these are there: a secret is never read into a value of ours.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Credentials {
    tokens: Option<IgnoredAny>,
    #[serde(rename = "OPENAI_API_KEY")]
    key: Option<IgnoredAny>,
}

/// The user's own folder.
fn folder_in(home: &Path, variable: &Variable<'_>) -> PathBuf {
    variable(FOLDER).filter(|folder| !folder.is_empty()).map_or_else(|| home.join(".codex"), PathBuf::from)
}

/// The user's own folder; none where there is no home.
pub(super) fn folder(variable: &Variable<'_>) -> Option<PathBuf> {
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    Some(folder_in(&home, variable)).filter(|folder| folder.is_absolute())
}

/// The folder that it has here instead of the user's, so that neither their instructions nor their settings, skills and
/// plugins get into a session. Only the login is theirs.
pub(super) fn own_home(files: &AgentFiles) -> PathBuf {
    files.conversations.join("codex")
}

/// Makes [`own_home`], with a link to the login: that is renewed now and then, and a copy would be worth nothing then, or
/// make the user's own worth nothing. Codex writes it by way of the link.
pub(super) fn make_home(files: &AgentFiles, variable: &Variable<'_>) -> io::Result<()> {
    let home = own_home(files);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&home)?;
    let Some(login) = folder(variable).map(|folder| folder.join(LOGIN)) else { return Ok(()) };
    let link = home.join(LOGIN);
    if std::fs::read_link(&link).is_ok_and(|target| target == login) {
        return Ok(());
    }
    // Another session may be at the same; whichever link is there then leads to the same login.
    match std::fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    match std::os::unix::fs::symlink(&login, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The provider's key, where that is all there is: Codex takes it under another name only, and a user who is logged in
/// with a plan would pay twice.
pub(super) fn provider_key(variable: &Variable<'_>) -> Option<OsString> {
    let has_login =
        KEYS.into_iter().any(|name| variable(name).is_some()) || folder(variable).is_some_and(|folder| folder.join(LOGIN).exists());
    variable(PROVIDER_KEY).filter(|key| !key.is_empty() && !has_login)
}

/// Whether it is let in by [`API_KEY`].
pub(super) fn has_key(variable: &Variable<'_>) -> bool {
    variable(API_KEY).is_some_and(|key| !key.is_empty()) || provider_key(variable).is_some()
}

/// Whether somebody is logged in.
pub(super) fn login(home: &Path, variable: &Variable<'_>) -> Login {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    if let Some(key) = KEYS.into_iter().find(|key| is_set(key)) {
        return Login::By(key.to_owned());
    }
    let folder = folder_in(home, variable);
    let bytes = std::fs::read(folder.join(LOGIN)).unwrap_or_default();
    let credentials: Credentials = serde_json::from_slice(&bytes).unwrap_or_default();
    if credentials.tokens.is_some() {
        return Login::By("ChatGPT account".to_owned());
    }
    if credentials.key.is_some() {
        return Login::By("API key".to_owned());
    }
    if is_set(PROVIDER_KEY) {
        return Login::By(PROVIDER_KEY.to_owned());
    }
    // Where it keeps logins in the system's own store, only that knows.
    let settings = std::fs::read_to_string(folder.join("config.toml")).unwrap_or_default();
    if settings.contains("cli_auth_credentials_store") { Login::Unknown } else { Login::No }
}

#[cfg(test)]
mod tests {
    use proctor_process::durable::{self, Durability};

    use super::*;

    fn nothing(_name: &str) -> Option<OsString> {
        None
    }

    fn put(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        durable::write(path, text.as_bytes(), Durability::Renamed).unwrap();
    }

    fn files(conversations: &Path) -> AgentFiles {
        let place = |name: &str| PathBuf::from("/s").join(name);
        AgentFiles {
            system: place("system.md"),
            prompt: place("prompt.md"),
            conversations: conversations.to_owned(),
            own: place("own"),
            tools: None,
        }
    }

    #[test]
    fn a_login_is_found_where_the_client_looks_for_it() {
        let home = tempfile::tempdir().unwrap();
        let (file, settings) = (home.path().join(".codex/auth.json"), home.path().join(".codex/config.toml"));
        let by = |name: &str| Login::By(name.to_owned());
        let with = |set: &'static str| move |name: &str| (name == set).then(|| OsString::from("secret"));

        assert_eq!(login(home.path(), &nothing), Login::No);
        put(&settings, "cli_auth_credentials_store = \"keyring\"\n");
        assert_eq!(login(home.path(), &nothing), Login::Unknown);
        assert_eq!(login(home.path(), &with("OPENAI_API_KEY")), by("OPENAI_API_KEY"));
        put(&file, r#"{"OPENAI_API_KEY":"secret","tokens":null}"#);
        assert_eq!(login(home.path(), &with("OPENAI_API_KEY")), by("API key"));
        put(&file, r#"{"OPENAI_API_KEY":null,"tokens":{"access_token":"secret"}}"#);
        assert_eq!(login(home.path(), &nothing), by("ChatGPT account"));
        assert_eq!(login(home.path(), &with("CODEX_API_KEY")), by("CODEX_API_KEY"));
        assert_eq!(login(home.path(), &|name| (name == FOLDER).then(|| "/nowhere".into())), Login::No);
    }

    #[test]
    fn the_providers_key_is_for_those_who_have_no_other_login() {
        let home = tempfile::tempdir().unwrap();
        let variables = |name: &str| match name {
            "HOME" => Some(home.path().as_os_str().to_owned()),
            "OPENAI_API_KEY" => Some("key".into()),
            _ => None,
        };

        let alone = provider_key(&variables);
        let beside_another = provider_key(&|name| if name == "CODEX_API_KEY" { Some("other".into()) } else { variables(name) });
        put(&home.path().join(".codex/auth.json"), "{}");

        assert_eq!((alone, beside_another, provider_key(&variables)), (Some("key".into()), None, None));
    }

    #[test]
    fn a_home_of_its_own_has_the_login_and_nothing_else_of_the_user() {
        let place = tempfile::tempdir().unwrap();
        let user = place.path().join("user");
        put(&user.join(".codex/auth.json"), "first");
        put(&user.join(".codex/AGENTS.md"), "theirs");
        let home = |name: &str| (name == "HOME").then(|| user.clone().into_os_string());
        let moved = |name: &str| (name == FOLDER).then(|| place.path().join("moved").into_os_string());
        let files = files(&place.path().join("conversations"));
        let link = own_home(&files).join("auth.json");

        make_home(&files, &home).unwrap();
        make_home(&files, &home).unwrap();
        let names: Vec<_> = own_home(&files).read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let text = std::fs::read_to_string(&link).unwrap();
        make_home(&files, &moved).unwrap();

        assert_eq!((names, text.as_str()), (vec![OsString::from("auth.json")], "first"));
        assert_eq!(std::fs::read_link(&link).unwrap(), place.path().join("moved/auth.json"));
    }
}
