//! Starting a child with everything about it said: program, arguments, directory, environment, streams.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use rustix::fs::Access;
use rustix::pipe::PipeFlags;

use crate::child::{self, Started};
use crate::spawn::{Company, Recipe, Source, spawn};
use crate::{Child, Finished, Watch};

/// A child to be started, without a shell in between.
///
/// Until the builder says otherwise it runs in `/` with an empty environment, reads `/dev/null` and
/// writes into pipes that [`Child`] and [`Program::run`] empty.
#[derive(Debug)]
pub struct Program {
    name: OsString,
    arguments: Vec<OsString>,
    directory: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    stdin: Stdin,
    stdout: Sink,
    stderr: Sink,
    company: Company,
}

/// What a child reads.
#[derive(Debug)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// These bytes, then the end of the file.
    Bytes(Vec<u8>),
    /// Whatever this descriptor is.
    Descriptor(OwnedFd),
}

/// Where a child writes.
#[derive(Debug)]
pub enum Sink {
    /// A pipe to us.
    Capture,
    /// This file, at its present position.
    File(File),
    /// `/dev/null`.
    Null,
}

/// Why a child could not be started or watched.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// No such program.
    #[error("start {}: there is no such program in {search}", program.display())]
    NotFound {
        /// As it was named.
        program: PathBuf,
        /// Where it was looked for.
        search: String,
    },
    /// The directory it was to run in can't be entered.
    #[error("start {} in {}: the directory can't be entered", program.display(), directory.display())]
    Directory {
        /// The program.
        program: PathBuf,
        /// The directory.
        directory: PathBuf,
    },
    /// Arguments and environment together, or one of them, are longer than the system takes.
    #[error("start {}: its arguments or its environment are too long", program.display())]
    TooLong {
        /// The program.
        program: PathBuf,
    },
    /// A NUL byte somewhere, or a variable name that is empty or has `=` in it.
    #[error("start {}: {what} can't be passed to a program", program.display())]
    Invalid {
        /// The program.
        program: PathBuf,
        /// What can't be passed.
        what: String,
    },
    /// The system refuses: not executable, out of processes, memory or descriptors.
    #[error("start {}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It runs or ran, and the system would not say how.
    #[error("watch {}", program.display())]
    Watch {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What is searched when the child's environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The program that a name or path means, where `search` is a list of folders like `PATH`.
pub fn find_program(name: &Path, search: &OsStr) -> Option<PathBuf> {
    let can_be_run = |candidate: &PathBuf| rustix::fs::access(candidate, Access::EXEC_OK).is_ok() && candidate.is_file();
    if name.components().count() > 1 || name.is_absolute() {
        return Some(name.to_owned()).filter(can_be_run);
    }
    std::env::split_paths(search).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(can_be_run)
}

impl Program {
    /// A program by its path, or by its name, which is then looked up in the *child's* `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            name: program.into(),
            arguments: Vec::new(),
            directory: PathBuf::from("/"),
            environment: BTreeMap::new(),
            stdin: Stdin::Null,
            stdout: Sink::Capture,
            stderr: Sink::Capture,
            company: Company::Ours,
        }
    }

    /// Adds an argument, as it is.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments, as they are.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The directory it runs in.
    #[must_use]
    pub fn dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Adds variables to its environment, which is empty at first; a later value replaces an earlier one.
    #[must_use]
    pub fn env<N: Into<OsString>, V: Into<OsString>>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// What it reads.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Where its standard output goes.
    #[must_use]
    pub fn stdout(mut self, sink: Sink) -> Self {
        self.stdout = sink;
        self
    }

    /// Where its standard error goes.
    #[must_use]
    pub fn stderr(mut self, sink: Sink) -> Self {
        self.stderr = sink;
        self
    }

    /// Gives it a session of its own: no terminal, and no signal of ours reaches it by accident.
    #[must_use]
    pub fn own_session(mut self) -> Self {
        self.company = Company::OwnSession;
        self
    }

    /// Gives it a process group of its own: Ctrl-C in our terminal does not reach it.
    #[must_use]
    pub fn own_group(mut self) -> Self {
        self.company = Company::OwnGroup;
        self
    }

    /// Runs it to its end. At the limit it is ended (with its group, where it has its own): asked first,
    /// then made to. What its own children still hold open does not keep this waiting.
    ///
    /// # Errors
    /// It could not be started or watched. How it ended is not an error.
    pub fn run(self, limit: Option<Duration>) -> Result<Finished, ProgramError> {
        // Without a watch nothing but its end ends the wait.
        let name = PathBuf::from(&self.name);
        let unended = || ProgramError::Watch { program: name, source: io::Error::from(io::ErrorKind::Interrupted) };
        self.run_watched(limit, None)?.ok_or_else(unended)
    }

    /// As [`Program::run`]; `None` when `watch` ended the wait before the program did, which then goes on by itself.
    ///
    /// # Errors
    /// It could not be started or watched. How it ended is not an error.
    pub fn run_watched(self, limit: Option<Duration>, watch: Option<&mut Watch<'_>>) -> Result<Option<Finished>, ProgramError> {
        let mut program = self;
        let input = match &mut program.stdin {
            Stdin::Bytes(bytes) => std::mem::take(bytes),
            Stdin::Null | Stdin::Descriptor(_) => Vec::new(),
        };
        let name = PathBuf::from(&program.name);
        let child = program.spawn()?;
        child.finish(&input, limit, watch).map_err(|source| ProgramError::Watch { program: name, source })
    }

    /// Starts it. Bytes for its standard input are the caller's to write, to [`Child::stdin`].
    ///
    /// # Errors
    /// It could not be started.
    pub fn spawn(self) -> Result<Child, ProgramError> {
        static SEALED: Once = Once::new();
        SEALED.call_once(crate::descriptors::seal);
        child::reap_left();
        let path = self.locate()?;
        let failed = |source| self.start_error(&path, source);
        let (stdin, stdin_writer) = self.input().map_err(failed)?;
        let (stdout, stdout_reader) = output(&self.stdout).map_err(failed)?;
        let (stderr, stderr_reader) = output(&self.stderr).map_err(failed)?;
        let recipe = Recipe {
            program: self.c_string(path.as_os_str(), "its path")?,
            arguments: self.c_arguments()?,
            environment: self.c_environment()?,
            directory: self.c_string(self.directory.as_os_str(), "its directory")?,
            streams: [stdin.source(), stdout.source(), stderr.source()],
            company: self.company,
        };
        let started =
            Started { stdin: stdin_writer, stdout: stdout_reader, stderr: stderr_reader, leads_group: self.company != Company::Ours };
        child::start(|| spawn(&recipe), started).map_err(failed)
    }

    /// The program's file. Relative entries of `PATH` are passed over: the child's directory is often
    /// one whose contents are not trusted, and a `git` that lies there must not be run.
    fn locate(&self) -> Result<PathBuf, ProgramError> {
        let name = Path::new(&self.name);
        if name.components().count() > 1 || name.is_absolute() {
            return Ok(self.directory.join(name));
        }
        let search = self.environment.get(OsStr::new("PATH")).map_or_else(|| OsString::from(DEFAULT_PATH), OsString::clone);
        find_program(name, &search)
            .ok_or_else(|| ProgramError::NotFound { program: name.to_owned(), search: search.to_string_lossy().into_owned() })
    }

    fn input(&self) -> io::Result<(End<'_>, Option<OwnedFd>)> {
        Ok(match &self.stdin {
            Stdin::Null => (End::Null, None),
            Stdin::Descriptor(descriptor) => (End::Theirs(descriptor.as_fd()), None),
            Stdin::Bytes(_) => {
                let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
                (End::Ours(reader), Some(writer))
            }
        })
    }

    fn c_string(&self, text: &OsStr, what: &str) -> Result<CString, ProgramError> {
        CString::new(text.to_owned().into_vec())
            .map_err(|_| ProgramError::Invalid { program: PathBuf::from(&self.name), what: what.to_owned() })
    }

    fn c_arguments(&self) -> Result<Vec<CString>, ProgramError> {
        std::iter::once(&self.name).chain(&self.arguments).map(|argument| self.c_string(argument, "an argument")).collect()
    }

    fn c_environment(&self) -> Result<Vec<CString>, ProgramError> {
        self.environment
            .iter()
            .map(|(name, value)| {
                let what = format!("the variable `{}`", name.to_string_lossy());
                if name.is_empty() || name.as_encoded_bytes().contains(&b'=') {
                    return Err(ProgramError::Invalid { program: PathBuf::from(&self.name), what });
                }
                let mut entry = name.clone();
                entry.push("=");
                entry.push(value);
                self.c_string(&entry, &what)
            })
            .collect()
    }

    /// The system says only "no such file", so what it can have meant is looked at afterwards.
    fn start_error(&self, path: &Path, source: io::Error) -> ProgramError {
        let program = PathBuf::from(&self.name);
        let is_missing = matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let enterable = self.directory.is_dir() && rustix::fs::access(&self.directory, Access::EXEC_OK).is_ok();
        if !enterable && (is_missing || source.kind() == io::ErrorKind::PermissionDenied) {
            ProgramError::Directory { program, directory: self.directory.clone() }
        } else if is_missing && !path.exists() {
            ProgramError::NotFound { program, search: path.parent().unwrap_or(Path::new("/")).display().to_string() }
        } else if source.kind() == io::ErrorKind::ArgumentListTooLong {
            ProgramError::TooLong { program }
        } else {
            ProgramError::Spawn { program, source }
        }
    }
}

/// The child's end of a stream while it is being started.
enum End<'a> {
    Null,
    Theirs(rustix::fd::BorrowedFd<'a>),
    Ours(OwnedFd),
}

impl End<'_> {
    fn source(&self) -> Source<'_> {
        match self {
            Self::Null => Source::Null,
            Self::Theirs(descriptor) => Source::Descriptor(*descriptor),
            Self::Ours(descriptor) => Source::Descriptor(descriptor.as_fd()),
        }
    }
}

fn output(sink: &Sink) -> io::Result<(End<'_>, Option<OwnedFd>)> {
    Ok(match sink {
        Sink::Null => (End::Null, None),
        Sink::File(file) => (End::Theirs(file.as_fd()), None),
        Sink::Capture => {
            let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            (End::Ours(writer), Some(reader))
        }
    })
}
