//! One call of the program: from its arguments to its exit code.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Parser;
use proctor_domain::ExitCode;
use proctor_process::{Signal, Signals};

use crate::args::{ColorChoice, Command, CommandLine, Glimpse};
use crate::commands::CommandError;
use crate::environment::Environment;
use crate::printer::{Printer, Talk};
use crate::report::{Kind, Report};

/// What every command gets.
pub struct Invocation {
    /// Where to work: where Proctor was started, or what `-C` says.
    pub directory: PathBuf,
    /// The environment that Proctor was started with.
    pub environment: Environment,
    /// Where everything is printed.
    pub printer: Printer,
}

impl Invocation {
    /// The same command, at work in another folder.
    pub fn at(&self, directory: PathBuf) -> Self {
        let printer = Printer::on_process(self.printer.talk(), ColorChoice::Never, &self.environment);
        Self { directory, environment: self.environment.clone(), printer }
    }
}

/// Runs the command line of this process.
pub fn main() -> std::process::ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    shortcut(&arguments).unwrap_or_else(|| exit(crate::commands::hook::harmless(&arguments, run(&arguments))))
}

/// What has to be quick or small is answered before anything is parsed or read: the version, which scripts ask
/// for often, the host, which lives as long as its session, what is on the way into a box, and scripted agents, the
/// tools of sessions and what stands beside their agents, of which there are many at once.
fn shortcut(arguments: &[OsString]) -> Option<std::process::ExitCode> {
    let texts: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    match texts.as_slice() {
        [flag] if *flag == "--version" || *flag == "-V" => {
            let printer = Printer::on_process(Talk::Normal, ColorChoice::Never, &Environment::default());
            printer.line(concat!("proctor ", env!("CARGO_PKG_VERSION")));
            Some(exit(close(&printer, ExitCode::Done)))
        }
        [command, folder] if *command == "host" => Some(proctor_engine::run_host(Path::new(folder))),
        [command, ..] if *command == "confine" => Some(confine(&arguments[1..])),
        [command, ..] if *command == "tools" => Some(proctor_engine::run_session_tools(&arguments[1..])),
        [command, ..] if *command == "acp-relay" => Some(proctor_engine::run_acp_relay(&arguments[1..])),
        [command, ..] if *command == "scripted-agent" => Some(proctor_engine::run_scripted_agent(&arguments[1..])),
        _ => None,
    }
}

/// Becomes the program that is to run in a box, or stays around it; what is left to do here is to say why it did not run.
fn confine(arguments: &[OsString]) -> std::process::ExitCode {
    let error = match proctor_process::confine::enter(arguments.iter().cloned()) {
        Ok(code) => return std::process::ExitCode::from(code),
        Err(error) => error,
    };
    let printer = Printer::on_process(Talk::Normal, ColorChoice::Never, &Environment::default());
    Report::failed_to(Kind::Environment, &error).print(&printer, crate::args::Format::Text);
    let _ = close(&printer, ExitCode::Failed);
    std::process::ExitCode::from(error.exit_code())
}

fn exit(code: ExitCode) -> std::process::ExitCode {
    std::process::ExitCode::from(code.code())
}

fn run(arguments: &[OsString]) -> ExitCode {
    // A file over the user's size limit is an error like a full disk, not a death. Children get the default back.
    let _listening = Signals::listen(&[Signal::FileSize]);
    let environment = Environment::of_process();
    let glimpse = Glimpse::of(arguments);
    let line = match CommandLine::try_parse_from(std::iter::once(&OsString::from("proctor")).chain(arguments)) {
        Ok(line) => line,
        Err(error) => {
            let printer = Printer::on_process(Talk::Normal, glimpse.color, &environment);
            let code = crate::usage::explain(&error, &printer, glimpse.format);
            return close(&printer, code);
        }
    };
    let talk = if line.quiet { Talk::Quiet } else { Talk::Normal };
    let printer = Printer::on_process(talk, line.color, &environment);
    let code = match start_directory(line.directory.as_deref()) {
        Ok(directory) => {
            let invocation = Invocation { directory, environment, printer };
            let code = dispatch(&invocation, &line.command).unwrap_or_else(|report| fail(&report, &invocation.printer, glimpse.format));
            return close(&invocation.printer, code);
        }
        Err(error) => fail(&error.into(), &printer, glimpse.format),
    };
    close(&printer, code)
}

fn dispatch(invocation: &Invocation, command: &Command) -> Result<ExitCode, Report> {
    match command {
        Command::Init(args) => crate::commands::init::run(invocation, args),
        Command::Where(args) => crate::commands::whereabouts::run(invocation, args),
        Command::Procedure(command) => crate::commands::procedure::run(invocation, command),
        Command::Runs(args) => crate::commands::runs::run(invocation, args),
        Command::Show(args) => crate::commands::show::run(invocation, args),
        Command::Log(args) => crate::commands::log::run(invocation, args),
        Command::Cost(args) => crate::commands::cost::run(invocation, args),
        Command::Answer(args) => crate::commands::answer::run(invocation, args),
        Command::Say(args) => crate::commands::say::run(invocation, args),
        Command::Stop(args) => crate::commands::stop::run(invocation, args),
        Command::Memory(command) => crate::commands::memory::run(invocation, command),
        Command::Mcp(args) => crate::commands::mcp::run(invocation, args),
        Command::Hook(command) => crate::commands::hook::run(invocation, command),
        Command::Doctor(args) => crate::commands::doctor::run(invocation, args),
        Command::Engines(args) => crate::commands::engines::run(invocation, args),
        Command::Demo(args) => crate::commands::demo::run(invocation, args),
        Command::Trust(args) => crate::commands::trust::run(invocation, args),
        Command::Completions(args) => crate::commands::completions::run(invocation, args),
        Command::Dev(command) => crate::commands::dev::run(invocation, command),
    }
}

fn fail(report: &Report, printer: &Printer, format: crate::args::Format) -> ExitCode {
    report.print(printer, format);
    report.exit_code()
}

/// Writes out what is left. Data that did not arrive turns success into failure.
fn close(printer: &Printer, code: ExitCode) -> ExitCode {
    match printer.finish() {
        Ok(()) => code,
        Err(error) => {
            let report = Report::new(Kind::Environment, "failed to write to standard output").because(&error);
            report.print(printer, crate::args::Format::Text);
            if code == ExitCode::Done { report.exit_code() } else { code }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is where the command line asks where it was started; everything below gets a path")]
fn start_directory(wanted: Option<&Path>) -> Result<PathBuf, CommandError> {
    let unusable = |path: &Path, source| CommandError::Directory { path: path.to_owned(), source };
    let started = std::env::current_dir().map_err(|source| unusable(Path::new("."), source))?;
    // Resolved at once, so that the walk up to the repository's top meets the same names as git does.
    let directory = started.join(wanted.unwrap_or(Path::new("")));
    let resolved = directory.canonicalize().map_err(|source| unusable(&directory, source))?;
    if resolved.is_dir() { Ok(resolved) } else { Err(unusable(&directory, std::io::ErrorKind::NotADirectory.into())) }
}
