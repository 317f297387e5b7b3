//! What git finds in its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::WorkspaceError;

/// Variables that would point git at another repository, index or object store, or change what a path means.
///
/// The first group is `git rev-parse --local-env-vars` without `GIT_CONFIG_PARAMETERS` and `GIT_CONFIG_COUNT`:
/// those two carry settings that the user gave (`git -c …` around an alias, a wrapper's configuration) and
/// say nothing about where the repository is. A Proctor that is started from a hook or an alias finds all
/// the others set for the repository that the hook belongs to.
const FOREIGN: [&str; 26] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_ATTR_SOURCE",
    "GIT_INDEX_VERSION",
    "GIT_REFLOG_ACTION",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    // These change what a pathspec means; we say it with every path.
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    // A Proctor that a commit's hook started would pass on the mark of that commit.
    "PROCTOR_EFFECT",
];

/// What is the same for every git that Proctor starts: its words are to be parsed, nobody answers its
/// questions, and a command that only reads takes no lock.
const FIXED: [(&str, &str); 4] = [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "true"), ("GIT_OPTIONAL_LOCKS", "0")];

/// The variables for git: the user's, without those that would point it at another repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitEnvironment {
    variables: Vec<(OsString, OsString)>,
}

impl GitEnvironment {
    /// The environment made of the user's variables.
    pub fn from_user(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let kept = variables.into_iter().filter(|(name, _)| !FOREIGN.iter().any(|foreign| name == foreign));
        let environment = Self { variables: kept.collect() };
        FIXED.iter().fold(environment, |environment, (name, value)| environment.with(name, value))
    }

    /// The same with one variable more, or replaced: how a caller passes an identity of its own.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.into()));
        self
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    pub(crate) fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// The git program. Looked up once per repository, so that each call spares the failed attempts along PATH.
    pub(crate) fn find_git(&self) -> Result<PathBuf, WorkspaceError> {
        let path = self.get("PATH").unwrap_or_default();
        std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("git"))
            .find(|candidate| is_executable(candidate))
            .ok_or(WorkspaceError::GitMissing)
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.get("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    /// Where the user's own settings may be. Git reads a file there as soon as it exists, so all are watched.
    pub(crate) fn user_config_files(&self) -> Vec<PathBuf> {
        if let Some(global) = self.get("GIT_CONFIG_GLOBAL") {
            return vec![PathBuf::from(global)];
        }
        let config_home = self.get("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let config_home = config_home.or_else(|| self.home().map(|home| home.join(".config")));
        let in_config_home = config_home.map(|folder| folder.join("git/config"));
        in_config_home.into_iter().chain(self.home().map(|home| home.join(".gitconfig"))).collect()
    }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// A path as git writes it in its settings: `~/` is the home folder.
pub(crate) fn expand_home(text: &[u8], home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix(b"~/"), home) {
        (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
        (Some(_) | None, _) => PathBuf::from(OsStr::from_bytes(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> GitEnvironment {
        GitEnvironment::from_user(variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
    }

    #[test]
    fn variables_that_point_elsewhere_are_dropped_and_settings_are_kept() {
        let environment = environment(&[
            ("GIT_DIR", "/elsewhere"),
            ("GIT_INDEX_FILE", "/elsewhere/index"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_GLOBAL", "/home/a/gitconfig"),
            ("GIT_AUTHOR_NAME", "A"),
            ("LC_ALL", "de_DE.UTF-8"),
        ]);

        for gone in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_LITERAL_PATHSPECS"] {
            assert_eq!(environment.get(gone), None, "{gone}");
        }
        for (kept, value) in
            [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_GLOBAL", "/home/a/gitconfig"), ("GIT_AUTHOR_NAME", "A"), ("LC_ALL", "C")]
        {
            assert_eq!(environment.get(kept), Some(OsStr::new(value)), "{kept}");
        }
    }

    #[test]
    fn without_git_on_the_path_the_error_says_so() {
        assert!(matches!(environment(&[("PATH", "/nonexistent:relative")]).find_git(), Err(WorkspaceError::GitMissing)));
        assert!(matches!(environment(&[]).find_git(), Err(WorkspaceError::GitMissing)));
    }

    #[test]
    fn settings_of_the_user_are_looked_for_where_git_looks() {
        let default = environment(&[("HOME", "/home/a")]).user_config_files();
        let named = environment(&[("HOME", "/home/a"), ("GIT_CONFIG_GLOBAL", "/etc/g")]).user_config_files();

        assert_eq!(default, [PathBuf::from("/home/a/.config/git/config"), PathBuf::from("/home/a/.gitconfig")]);
        assert_eq!(named, [PathBuf::from("/etc/g")]);
    }
}
