//! One call of the git program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_process::{Finished, Program, Sink, Stdin, Watch};

use crate::error::complaint;
use crate::guard::{Defence, Fetch};
use crate::{Repository, WorkspaceError};

/// How long a command that is not a commit may take. Far beyond any honest one: it turns a file system
/// that hangs into an error, instead of a run that stands still without a word.
const PATIENCE: Duration = Duration::from_secs(600);

/// A git command that is being put together.
#[derive(Debug)]
pub(crate) struct Git {
    command: &'static str,
    program: PathBuf,
    directory: PathBuf,
    before: Vec<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: Option<Vec<u8>>,
    accepted: &'static [i32],
    stderr: Option<std::fs::File>,
    limit: Duration,
    own_session: bool,
}

/// What a command printed; its exit code was one of those that the caller accepts.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Git {
    /// `git <command>` in `directory`, with nothing said about the repository.
    pub(crate) fn new(program: &Path, command: &'static str, directory: &Path, environment: Vec<(OsString, OsString)>) -> Self {
        Self {
            command,
            program: program.to_owned(),
            directory: directory.to_owned(),
            before: Vec::new(),
            arguments: Vec::new(),
            environment,
            input: None,
            accepted: &[0],
            stderr: None,
            limit: PATIENCE,
            own_session: false,
        }
    }

    /// An argument that goes before the command's name.
    pub(crate) fn option(mut self, option: impl Into<OsString>) -> Self {
        self.before.push(option.into());
        self
    }

    /// A setting for this call.
    pub(crate) fn set(self, setting: &str) -> Self {
        self.option("-c").option(setting)
    }

    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// The exit codes that are answers; only 0 where nothing is said.
    pub(crate) fn accept(mut self, codes: &'static [i32]) -> Self {
        self.accepted = codes;
        self
    }

    /// Sends stderr into a file, and lets the command outlive us: it gets a session of its own.
    pub(crate) fn detached(mut self, stderr: std::fs::File, limit: Option<Duration>) -> Self {
        self.stderr = Some(stderr);
        self.own_session = true;
        self.limit = limit.unwrap_or(Duration::MAX);
        self
    }

    fn program(self) -> Program {
        let company = if self.own_session { Program::own_session } else { Program::own_group };
        company(Program::new(self.program))
            .args(self.before)
            .arg(self.command)
            .args(self.arguments)
            .dir(self.directory)
            .env(self.environment)
            .stdin(self.input.map_or(Stdin::Null, Stdin::Bytes))
            .stderr(self.stderr.map_or(Sink::Capture, Sink::File))
    }

    /// Runs it, whatever its exit code.
    pub(crate) fn finish(self) -> Result<Finished, WorkspaceError> {
        let command = self.command;
        self.finish_watched(None)?.ok_or_else(|| complaint(command, "nobody waited for it".to_owned(), ""))
    }

    /// As [`Self::finish`]; `None` when `watch` ended the wait and it goes on by itself.
    pub(crate) fn finish_watched(self, watch: Option<&mut Watch<'_>>) -> Result<Option<Finished>, WorkspaceError> {
        let (command, limit) = (self.command, self.limit);
        let limit = (limit != Duration::MAX).then_some(limit);
        let finished = self.program().run_watched(limit, watch).map_err(|source| WorkspaceError::Start { command, source })?;
        match (limit, &finished) {
            (Some(limit), Some(ended)) if ended.timed_out => Err(WorkspaceError::TimedOut { command, seconds: limit.as_secs() }),
            (_, _) => Ok(finished),
        }
    }

    /// Runs it and takes an exit code that is not accepted for a complaint.
    pub(crate) fn run(self) -> Result<Output, WorkspaceError> {
        let (command, accepted) = (self.command, self.accepted);
        let finished = self.finish()?;
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        match finished.status.code {
            Some(code) if accepted.contains(&code) => Ok(Output { code, stdout: finished.stdout, stderr }),
            Some(_) | None => Err(complaint(command, ending(&finished), &stderr)),
        }
    }

    /// Starts it in a session of its own and does not wait for it.
    pub(crate) fn leave(mut self) -> Result<(), WorkspaceError> {
        let command = self.command;
        self.own_session = true;
        let program = self.program().stdout(Sink::Null).stderr(Sink::Null);
        program.spawn().map(drop).map_err(|source| WorkspaceError::Start { command, source })
    }
}

/// How a program ended, for people.
pub(crate) fn ending(finished: &Finished) -> String {
    match (finished.status.code, finished.status.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "it is gone".to_owned(),
    }
}

impl Output {
    /// Standard output as one line of text.
    pub(crate) fn line(&self, command: &'static str) -> Result<String, WorkspaceError> {
        match std::str::from_utf8(&self.stdout) {
            Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
            Err(_) => Err(unreadable(command, &self.stdout)),
        }
    }
}

/// The error for output that is not what git documents.
pub(crate) fn unreadable(command: &'static str, output: &[u8]) -> WorkspaceError {
    let start = &output[..output.len().min(200)];
    WorkspaceError::Unreadable { command, output: String::from_utf8_lossy(start).escape_debug().to_string() }
}

impl Repository {
    /// A command that runs nothing that a step planted: no hooks, and no programs that the settings
    /// name since the run began. Everything but a commit is one.
    pub(crate) fn quiet(&self, command: &'static str) -> Result<Git, WorkspaceError> {
        let Defence { overrides, fetch } = self.defence()?;
        let mut git = self.git(command).set("core.hooksPath=/dev/null");
        if self.common_dir != self.git_dir {
            // The pointer from a linked work tree to the shared directory is a file that a step can replace.
            // Not said to commits: their hooks would inherit it into calls for other repositories.
            git = git.env("GIT_COMMON_DIR", &self.common_dir);
        }
        if fetch == Fetch::Nothing {
            // Twice, because git learned the first in version 2.44.
            git = git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        }
        // By environment, because `-c` can't carry a name with `=` in it, which a planted filter may have.
        let earlier = self.environment.get("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse::<usize>().ok()).unwrap_or(0);
        let count = earlier + overrides.len();
        for (number, (name, value)) in (earlier..).zip(overrides) {
            git = git.env(format!("GIT_CONFIG_KEY_{number}"), name).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        Ok(if count == earlier { git } else { git.env("GIT_CONFIG_COUNT", count.to_string()) })
    }

    /// A command as the user would run it: hooks, filters, signing and all.
    pub(crate) fn git(&self, command: &'static str) -> Git {
        let mut git_dir = OsString::from("--git-dir=");
        git_dir.push(&self.git_dir);
        let mut work_tree = OsString::from("--work-tree=");
        work_tree.push(&self.work_tree);
        Git::new(&self.program, command, &self.work_tree, self.environment.variables().to_vec())
            .option(git_dir)
            .option(work_tree)
            .option("--no-pager")
            .set("core.fsmonitor=false")
            .set("core.fsync=committed,reference")
    }
}
