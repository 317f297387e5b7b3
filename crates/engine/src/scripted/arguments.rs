//! The command line of a scripted agent: what the engine writes, the agent reads.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use proctor_domain::MicroDollars;

use crate::agent::{Access, AgentFiles, AgentTask, EngineSetup};

/// The hidden command of our own program.
const COMMAND: &str = "scripted-agent";

/// How a scripted agent is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) script: PathBuf,
    pub(super) conversations: PathBuf,
    pub(super) system: Option<PathBuf>,
    pub(super) resume: Option<String>,
    pub(super) model: Option<String>,
    pub(super) schema: Option<String>,
    pub(super) max_turns: Option<u32>,
    pub(super) max_cost: Option<MicroDollars>,
    /// The socket by which the session's tools are called.
    pub(super) tools: Option<PathBuf>,
    pub(super) access: Access,
}

/// A command line that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentError {
    #[error("unknown argument `{0}`")]
    Unknown(String),
    #[error("`{0}` needs a value")]
    Valueless(&'static str),
    #[error("`{option}` can't be `{value}`")]
    Value { option: &'static str, value: String },
    #[error("`{0}` is missing")]
    Missing(&'static str),
}

const OPTIONS: [&str; 9] =
    ["--script", "--conversations", "--system", "--resume", "--model", "--schema", "--max-turns", "--max-budget-usd", "--tools"];
const READ_ONLY: &str = "--read-only";

/// The command line for a task.
pub(super) fn write(setup: &EngineSetup, task: &AgentTask, files: &AgentFiles) -> Vec<OsString> {
    let mut argv = vec![setup.program.clone().into_os_string(), COMMAND.into()];
    let mut option = |name: &str, value: Option<OsString>| argv.extend(value.into_iter().flat_map(|value| [name.into(), value]));
    option("--script", setup.script.clone().map(PathBuf::into_os_string));
    option("--conversations", Some(files.conversations.clone().into()));
    option("--system", Some(files.system.clone().into()));
    option("--resume", task.resume.clone().map(OsString::from));
    option("--model", task.model.clone().map(OsString::from));
    option("--schema", task.schema.clone().map(OsString::from));
    option("--max-turns", task.max_turns.map(|turns| turns.to_string().into()));
    option("--max-budget-usd", task.max_cost.map(|cost| cost.to_string().into()));
    option("--tools", files.tools.as_ref().map(|tools| tools.socket().into()));
    argv.extend((task.access == Access::ReadOnly).then(|| READ_ONLY.into()));
    argv
}

/// Reads what [`write()`] wrote after the program and the command.
pub(super) fn read(arguments: &[OsString]) -> Result<Arguments, ArgumentError> {
    let mut values: [Option<&OsStr>; OPTIONS.len()] = [None; OPTIONS.len()];
    let mut access = Access::Full;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == READ_ONLY {
            access = Access::ReadOnly;
            continue;
        }
        let position = OPTIONS.iter().position(|option| argument == option);
        let at = position.ok_or_else(|| ArgumentError::Unknown(argument.to_string_lossy().into_owned()))?;
        values[at] = Some(rest.next().ok_or(ArgumentError::Valueless(OPTIONS[at]))?);
    }
    let [script, conversations, system, resume, model, schema, max_turns, max_cost, tools] = values;
    let path = |value: Option<&OsStr>| value.map(PathBuf::from);
    Ok(Arguments {
        script: path(script).ok_or(ArgumentError::Missing("--script"))?,
        conversations: path(conversations).ok_or(ArgumentError::Missing("--conversations"))?,
        system: path(system),
        resume: text("--resume", resume)?,
        model: text("--model", model)?,
        schema: text("--schema", schema)?,
        max_turns: text("--max-turns", max_turns)?.map(|text| parsed("--max-turns", &text)).transpose()?,
        max_cost: text("--max-budget-usd", max_cost)?.map(|text| parsed("--max-budget-usd", &text)).transpose()?,
        tools: path(tools),
        access,
    })
}

fn text(option: &'static str, value: Option<&OsStr>) -> Result<Option<String>, ArgumentError> {
    let invalid = |value: &OsStr| ArgumentError::Value { option, value: value.to_string_lossy().into_owned() };
    value.map(|value| value.to_str().map(str::to_owned).ok_or_else(|| invalid(value))).transpose()
}

fn parsed<T: std::str::FromStr>(option: &'static str, value: &str) -> Result<T, ArgumentError> {
    value.parse().map_err(|_| ArgumentError::Value { option, value: value.to_owned() })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::agent::{EngineKind, Permission};

    fn arguments(words: &[&str]) -> Result<Arguments, ArgumentError> {
        read(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_no_command_line_is_refused_by_name() {
        let errors =
            [&["--scripts", "a"][..], &["--script"], &["--script", "a"], &["--max-turns", "many", "--script", "a", "--conversations", "b"]]
                .map(|words| arguments(words).unwrap_err());

        assert_eq!(
            errors,
            [
                ArgumentError::Unknown("--scripts".to_owned()),
                ArgumentError::Valueless("--script"),
                ArgumentError::Missing("--conversations"),
                ArgumentError::Value { option: "--max-turns", value: "many".to_owned() },
            ]
        );
    }

    #[test]
    fn the_agent_reads_what_the_engine_wrote() {
        let setup = EngineSetup {
            program: "/bin/proctor".into(),
            permission: Permission::Bypass,
            script: Some("agent.toml".into()),
            ..EngineSetup::usual(EngineKind::Scripted)
        };
        let task = AgentTask {
            system: "You test.".to_owned(),
            prompt: "--read-only".to_owned(),
            resume: Some("scripted-1".to_owned()),
            model: Some("strong".to_owned()),
            schema: Some("{}".to_owned()),
            max_turns: Some(3),
            max_cost: Some(MicroDollars(250_000)),
            access: Access::ReadOnly,
        };
        let files = AgentFiles { system: "/s".into(), prompt: "/p".into(), conversations: "/c".into(), own: "/o".into(), tools: None };

        let argv = write(&setup, &task, &files);

        assert_eq!(argv[..2], ["/bin/proctor", "scripted-agent"]);
        let read = read(&argv[2..]).unwrap();
        assert_eq!((read.script, read.conversations, read.system), ("agent.toml".into(), "/c".into(), Some("/s".into())));
        assert_eq!((read.resume, read.model, read.schema), (task.resume, task.model, task.schema));
        assert_eq!((read.max_turns, read.max_cost, read.access), (Some(3), Some(MicroDollars(250_000)), Access::ReadOnly));
    }
}
