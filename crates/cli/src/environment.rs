//! Every environment variable that Proctor reads or sets, in one table. The code that reads one names its entry
//! here, and `docs/environment.md` is generated from the table, so neither can fall behind the other.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Who gives a variable its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBy {
    /// The person or program that starts Proctor.
    Caller,
    /// Proctor, for the shells of steps.
    Proctor,
    /// Proctor, for the git commands that it runs.
    ProctorForGit,
    /// Tests of Proctor.
    Tests,
}

/// One environment variable.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name; `<…>` stands for a part that varies.
    pub name: &'static str,
    /// Who gives it its value.
    pub set_by: SetBy,
    /// What it means, in one or more sentences.
    pub meaning: &'static str,
}

const fn by_caller(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, set_by: SetBy::Caller, meaning }
}

const fn by_proctor(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, set_by: SetBy::Proctor, meaning }
}

/// Where the model of meaning is.
pub static MODEL: Variable = by_caller(
    "PROCTOR_MEANING",
    "The folder with the files of the model of meaning (`model.onnx`, `tokenizer.json`), instead of those that are part of the program.",
);
/// Setting `layout`.
pub static LAYOUT: Variable = by_caller("PROCTOR_LAYOUT", "Overrides the setting `layout`.");
/// Setting `records`.
pub static RECORDS: Variable = by_caller("PROCTOR_RECORDS", "Overrides the setting `records`.");
/// Setting `pass-env`.
pub static PASS_ENV: Variable = by_caller("PROCTOR_PASS_ENV", "Overrides the setting `pass-env`: names separated by commas.");
/// Setting `linger`.
pub static LINGER: Variable = by_caller("PROCTOR_LINGER", "Overrides the setting `linger`: program names separated by commas.");
/// Setting `shell-timeout`.
pub static SHELL_TIMEOUT: Variable = by_caller("PROCTOR_SHELL_TIMEOUT", "Overrides the setting `shell-timeout`.");
/// Setting `secrets`.
pub static SECRETS: Variable =
    by_caller("PROCTOR_SECRETS", "Adds to the setting `secrets`: names, separated by commas, of variables whose values are never written.");
/// Setting `agent-timeout`.
pub static AGENT_TIMEOUT: Variable = by_caller("PROCTOR_AGENT_TIMEOUT", "Overrides the setting `agent-timeout`.");
/// Setting `agent-silence`.
pub static AGENT_SILENCE: Variable = by_caller("PROCTOR_AGENT_SILENCE", "Overrides the setting `agent-silence`.");
/// Setting `confine`.
pub static CONFINE: Variable = by_caller("PROCTOR_CONFINE", "Overrides the setting `confine`.");
/// Setting `net`.
pub static NET: Variable = by_caller("PROCTOR_NET", "Overrides the setting `net`.");
/// Setting `engine`.
pub static ENGINE: Variable =
    by_caller("PROCTOR_ENGINE", "Overrides the setting `engine`, and the setting `judge` with it unless `PROCTOR_JUDGE` is set.");
/// See its description.
pub static JUDGE: Variable = by_caller("PROCTOR_JUDGE", "Overrides the setting `judge`.");
/// Setting `engines.scripted.script`.
pub static SCRIPT: Variable = by_caller(
    "PROCTOR_SCRIPT",
    "Overrides the setting `engines.scripted.script`: a file, whose relative path begins in the folder in which Proctor works.",
);
/// Setting `state-dir`.
pub static STATE_DIR: Variable =
    by_caller("PROCTOR_STATE_DIR", "Overrides the setting `state-dir`: the absolute folder that holds the state of all repositories.");
/// The marker of a session's processes.
pub static SESSION: Variable = by_proctor(
    "PROCTOR_SESSION",
    "The ids of the sessions around this process, outermost first, separated by colons. Marks the processes of a session, so that none is \
     left behind; commands that speak for a person refuse to run under it.",
);
/// Where user settings are.
pub static XDG_CONFIG_HOME: Variable =
    by_caller("XDG_CONFIG_HOME", "Where your settings are: `$XDG_CONFIG_HOME/proctor/config.toml`; `$HOME/.config` when unset.");
/// Where state is.
pub static XDG_STATE_HOME: Variable =
    by_caller("XDG_STATE_HOME", "Where state is: `$XDG_STATE_HOME/proctor`; `$HOME/.local/state` when unset.");
/// Where the user's data is.
pub static XDG_DATA_HOME: Variable =
    by_caller("XDG_DATA_HOME", "Where your own memory is: `$XDG_DATA_HOME/proctor/memory`; `$HOME/.local/share` when unset.");
/// Where what can be made again is.
pub static XDG_CACHE_HOME: Variable =
    by_caller("XDG_CACHE_HOME", "Where indexes of memory are kept: `$XDG_CACHE_HOME/proctor/memory`; `$HOME/.cache` when unset.");
/// Where files of the login are.
pub static XDG_RUNTIME_DIR: Variable = by_caller(
    "XDG_RUNTIME_DIR",
    "Where hooks note what they said to a session: `$XDG_RUNTIME_DIR/proctor/hooks`; beside the state when unset.",
);
/// Where Claude Code keeps its settings.
pub static CLAUDE_CONFIG_DIR: Variable = by_caller(
    "CLAUDE_CONFIG_DIR",
    "Where Claude Code keeps its state and settings; its sessions may write there, and `proctor hook install claude-code` does.",
);
/// Where Codex keeps its settings.
pub static CODEX_HOME: Variable =
    by_caller("CODEX_HOME", "Where Codex keeps its settings, for `proctor hook install codex`; `$HOME/.codex` when unset.");
/// The read budget.
pub static READ_BUDGET: Variable = by_caller(
    "AOP_READ_BUDGET_LINES",
    "How many lines `proctor hook … pre-read --read-budget` lets be read at once; 350 unless it is a number above 0.",
);
/// What the read budget lets pass.
pub static WAIVE: Variable = by_caller(
    "AOP_WAIVE",
    "Names of rules, separated by commas or spaces, that do not hold; with `core.context:unbounded-read` the read budget lets everything pass.",
);
/// Turns the read budget off.
pub static HOOKS_DISABLED: Variable = by_caller("AGENTOPS_HOOKS_DISABLED", "`1`: the read budget lets everything pass and says nothing.");
/// The editor.
pub static VISUAL: Variable = by_caller("VISUAL", "The editor of `proctor memory edit`: a program, and its options after spaces.");
/// The editor.
pub static EDITOR: Variable = by_caller("EDITOR", "The same, where `VISUAL` is unset; `vi` where both are.");
/// Where programs are.
pub static PATH: Variable = by_caller("PATH", "Where git, bash and the programs of engines are looked up.");
/// The fallback of these four.
pub static HOME: Variable = by_caller("HOME", "Your home folder; where the four variables above point when they are unset.");
/// Colour.
pub static NO_COLOR: Variable = by_caller("NO_COLOR", "Set and not empty: no colour, unless `--color always` is given.");
/// Colour.
pub static TERM: Variable = by_caller("TERM", "`dumb`: no colour and no live progress.");

/// Every variable, in the order of the documentation.
pub static VARIABLES: &[&Variable] = &[
    &MODEL,
    &LAYOUT,
    &RECORDS,
    &PASS_ENV,
    &LINGER,
    &SECRETS,
    &SHELL_TIMEOUT,
    &AGENT_TIMEOUT,
    &AGENT_SILENCE,
    &CONFINE,
    &NET,
    &ENGINE,
    &JUDGE,
    &SCRIPT,
    &STATE_DIR,
    &XDG_CONFIG_HOME,
    &XDG_STATE_HOME,
    &XDG_DATA_HOME,
    &XDG_CACHE_HOME,
    &HOME,
    &PATH,
    &by_caller("ANTHROPIC_API_KEY", "One of the ways in which Claude Code is let in; passed to its sessions."),
    &by_caller("ANTHROPIC_AUTH_TOKEN", "Another one; passed to its sessions."),
    &by_caller("CLAUDE_CODE_OAUTH_TOKEN", "Another one; passed to its sessions."),
    &by_caller("ANTHROPIC_BASE_URL", "Where the sessions of Claude Code send their requests."),
    &by_caller("ANTHROPIC_CUSTOM_HEADERS", "What they send with them."),
    &by_caller("ANTHROPIC_MODEL", "The model of sessions whose card names none."),
    &CLAUDE_CONFIG_DIR,
    &CODEX_HOME,
    &by_caller("NODE_EXTRA_CA_CERTS", "Certificates for sessions of Claude Code."),
    &XDG_RUNTIME_DIR,
    &READ_BUDGET,
    &WAIVE,
    &HOOKS_DISABLED,
    &VISUAL,
    &EDITOR,
    &NO_COLOR,
    &TERM,
    &by_proctor("CHECK_SKIP", "`75`: the exit code with which a precheck skips its step."),
    &by_proctor("PROCTOR_RUN", "The run's id."),
    &by_proctor("PROCTOR_PROCEDURE", "The procedure's name."),
    &by_proctor("PROCTOR_STEP", "The step's id."),
    &by_proctor("PROCTOR_ATTEMPT", "Which attempt at the step this is, from 1."),
    &by_proctor("PROCTOR_DIRECTIVE", "The text given with `--directive`, or empty."),
    &by_proctor("PROCTOR_OUTPUT", "The file to which a shell appends its outputs as `name=value` lines."),
    &by_proctor("INPUT_<NAME>", "The value of an input, its name in upper case with `_` for everything but letters and digits."),
    &by_proctor("STEP_<ID>_<NAME>", "An output of an earlier step, or of an earlier shell of this one."),
    &by_proctor(
        "GIT_CONFIG_COUNT",
        "Together with `GIT_CONFIG_KEY_0` and `GIT_CONFIG_VALUE_0`: git commands of a step write objects and references durably, as \
         Proctor's own do.",
    ),
    &SESSION,
    &Variable {
        name: "PROCTOR_EFFECT",
        set_by: SetBy::ProctorForGit,
        meaning: "`<run>/<step>/<attempt>/<effect>`: marks a git command and its hooks, so that a resumed run finds the one that it left \
                  behind.",
    },
    &Variable {
        name: "PROCTOR_KILLPOINT",
        set_by: SetBy::Tests,
        meaning: "`driver:<n>`, `host:<n>` or `both:<n>`: dies at the n-th point between two effects.",
    },
    &Variable {
        name: "PROCTOR_KILLPOINT_LOG",
        set_by: SetBy::Tests,
        meaning: "A file to which each such point is appended as it is reached.",
    },
    &Variable {
        name: "PROCTOR_HOST_KILLPOINT",
        set_by: SetBy::Tests,
        meaning: "`<session ordinal>:<point>`: a session's host dies at this point of its own.",
    },
];

/// The environment as it was when the command started. Commands read this, never the process's own, so tests
/// can hand in what they like.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    values: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        Self { values: std::env::vars_os().collect() }
    }

    /// The value of `variable`; an empty value counts as unset, as the XDG rules have it.
    pub fn get(&self, variable: &Variable) -> Option<&OsStr> {
        self.values.get(OsStr::new(variable.name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The folder that `variable` names; `None` unless it is an absolute path, as the XDG rules have it.
    pub fn folder(&self, variable: &Variable) -> Option<PathBuf> {
        self.get(variable).map(Path::new).filter(|path| path.is_absolute()).map(Path::to_owned)
    }

    /// The value of a variable that somebody named, say in a setting.
    pub fn value_of(&self, name: &str) -> Option<Vec<u8>> {
        self.values.get(OsStr::new(name)).map(|value| value.as_bytes().to_vec())
    }

    /// Everything, as lists of programs' environments want it.
    pub fn pairs(&self) -> Vec<(OsString, OsString)> {
        self.values.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<Pairs: IntoIterator<Item = (OsString, OsString)>>(pairs: Pairs) -> Self {
        Self { values: pairs.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_listed_twice() {
        let mut names: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
        names.sort_unstable();

        let count = names.len();
        names.dedup();

        assert_eq!(names.len(), count);
    }

    #[test]
    fn empty_and_relative_folders_count_as_unset() {
        let environment: Environment = [("HOME", "/home/ann"), ("XDG_CONFIG_HOME", ""), ("XDG_STATE_HOME", "state")]
            .into_iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();

        assert_eq!(environment.folder(&HOME), Some(PathBuf::from("/home/ann")));
        assert_eq!(environment.folder(&XDG_CONFIG_HOME), None);
        assert_eq!(environment.folder(&XDG_STATE_HOME), None);
    }
}
