//! `proctor hook install`, `uninstall` and `status`: our commands in other programs' settings.
//!
//! INVARIANT: of a file that is not ours, nothing changes but our own entries, and a file that is not understood does not change.

mod entries;
mod json;
mod settings_file;

use std::path::{Path, PathBuf};

use proctor_domain::ExitCode;
use serde::Serialize;

use self::entries::Entry;
use self::settings_file::SettingsFile;
use crate::Invocation;
use crate::args::hook::{HookPlaceArgs, HookStatusArgs, Host, InstallHookArgs, UninstallHookArgs};
use crate::commands::question::refuse_under_session;
use crate::environment;
use crate::place::own_program;
use crate::printer::visible_line;
use crate::report::{Kind, Report};

/// How often a change begins anew because somebody wrote the file meanwhile.
const ATTEMPTS: usize = 20;

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// It is as it is to be.
    None,
    Write(String),
    /// It was made by us and holds nothing else.
    Remove,
}

#[derive(Serialize)]
struct Receipt {
    version: u32,
    host: &'static str,
    file: String,
    /// `unchanged`, `written` or `removed`.
    change: &'static str,
    dry_run: bool,
    /// A copy of the file as it was without hooks of ours.
    backup: Option<String>,
    /// The commands that it holds then.
    commands: Vec<String>,
}

/// Enters the hooks.
pub(super) fn install(invocation: &Invocation, args: &InstallHookArgs) -> Result<ExitCode, Report> {
    let entries = Entry::all(args.host, &program(args.place)?, args.read_budget);
    let file = SettingsFile::find(invocation, args.host, args.place)?;
    let plan = |text: Option<&str>| {
        if text.is_some_and(|text| entries::holds(args.host, text, &entries)) {
            return Some(Change::None);
        }
        let base = text.map_or_else(|| entries::fresh(args.host).to_owned(), |text| entries::without(args.host, text));
        entries::with(args.host, &base, &entries).map(Change::Write)
    };
    let receipt = carry_out(invocation, &file, args.dry_run, plan)?;
    tell(invocation, &receipt, args.json);
    if args.host == Host::Codex && receipt.change == "written" {
        invocation.printer.say("Codex runs them once you have accepted them: start it and type /hooks");
    }
    Ok(ExitCode::Done)
}

/// Takes the hooks out.
pub(super) fn uninstall(invocation: &Invocation, args: &UninstallHookArgs) -> Result<ExitCode, Report> {
    let file = SettingsFile::find(invocation, args.host, args.place)?;
    let before = file.backup()?;
    let plan = |text: Option<&str>| {
        let Some(text) = text else { return Some(Change::None) };
        let commands = entries::commands(args.host, text);
        let Some(program) = commands.first().and_then(|command| Some(command.rsplit_once(" hook ")?.0)) else { return Some(Change::None) };
        let entries = Entry::all(args.host, program, commands.iter().any(|command| command.contains(" pre-read")));
        // Where entering them into what was there gives what is there, nobody else changed it, and what was there is known to the byte.
        let from = |before: &str| entries::with(args.host, before, &entries).is_some_and(|with| with == text);
        Some(match &before {
            Some(before) if from(before) => Change::Write(before.clone()),
            None if from(entries::fresh(args.host)) => Change::Remove,
            Some(_) | None => Change::Write(entries::without(args.host, text)),
        })
    };
    let receipt = carry_out(invocation, &file, args.dry_run, plan)?;
    if !args.dry_run {
        file.forget_backup();
    }
    tell(invocation, &receipt, args.json);
    Ok(ExitCode::Done)
}

/// What a shell is to start: our own path for a user, and for everybody who works on a repository the name.
fn program(place: HookPlaceArgs) -> Result<String, Report> {
    if place.project {
        return Ok("proctor".to_owned());
    }
    let program = own_program()?;
    let text = program.to_str().filter(|text| !text.starts_with("/proc/") && program.file_name().is_some_and(|name| name == "proctor"));
    let text = text.ok_or_else(|| {
        Report::new(Kind::Environment, format!("hooks can't call {}: it has to be a file of the name `proctor`", program.display()))
    })?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    Ok(if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) })
}

fn carry_out(
    invocation: &Invocation,
    file: &SettingsFile,
    dry_run: bool,
    plan: impl Fn(Option<&str>) -> Option<Change>,
) -> Result<Receipt, Report> {
    if !dry_run {
        refuse_under_session(invocation)?;
    }
    for _ in 0..ATTEMPTS {
        let text = file.read()?;
        let change = plan(text.as_deref()).ok_or_else(|| file.refused("it is not understood"))?;
        if dry_run || file.change(text.as_deref(), &change)? {
            let (word, after) = match &change {
                Change::None => ("unchanged", text),
                Change::Write(after) => ("written", Some(after.clone())),
                Change::Remove => ("removed", None),
            };
            return Ok(Receipt {
                version: 1,
                host: file.host.word(),
                file: file.path.display().to_string(),
                change: word,
                dry_run,
                backup: file.backup_path().filter(|path| path.exists()).map(|path| path.display().to_string()),
                commands: after.map(|after| entries::commands(file.host, &after)).unwrap_or_default(),
            });
        }
    }
    Err(Report::new(Kind::Environment, format!("{} is changed all the time", file.path.display())).hint("try again"))
}

fn tell(invocation: &Invocation, receipt: &Receipt, json: bool) {
    if json {
        invocation.printer.json(receipt);
        return;
    }
    let file = visible_line(&receipt.file);
    invocation.printer.say(&match (receipt.change, receipt.dry_run) {
        ("unchanged", _) => format!("{file} stays as it is"),
        (change, true) => format!("{file} would be {change}"),
        (change, false) => format!("{file} is {change}"),
    });
    for command in &receipt.commands {
        invocation.printer.say(&format!("  {}", visible_line(command)));
    }
    if let Some(backup) = &receipt.backup {
        invocation.printer.say(&format!("as it was before: {}", visible_line(backup)));
    }
}

#[derive(Serialize)]
struct Status {
    version: u32,
    hosts: Vec<HostStatus>,
}

#[derive(Serialize)]
struct HostStatus {
    host: &'static str,
    /// `project` or `user`.
    place: &'static str,
    file: String,
    commands: Vec<CommandStatus>,
    /// Why the file can't be read.
    problem: Option<String>,
}

#[derive(Serialize)]
struct CommandStatus {
    command: String,
    /// Whether the program that it starts is there.
    works: bool,
}

/// Says where hooks are installed.
pub(super) fn status(invocation: &Invocation, args: &HookStatusArgs) -> Result<ExitCode, Report> {
    let mut hosts = Vec::new();
    for host in Host::ALL {
        for (place, project) in [("project", true), ("user", false)] {
            // Without a repository, or without a home, there is nothing to say about it.
            if let Ok(file) = SettingsFile::find(invocation, host, HookPlaceArgs { project, user: !project }) {
                hosts.push(status_of(invocation, &file, place));
            }
        }
    }
    if args.json {
        invocation.printer.json(&Status { version: 1, hosts });
        return Ok(ExitCode::Done);
    }
    for host in &hosts {
        let said = match (&host.problem, host.commands.is_empty()) {
            (Some(problem), _) => problem.clone(),
            (None, true) => "not installed".to_owned(),
            (None, false) => "installed".to_owned(),
        };
        invocation.printer.line(&format!("{} ({}): {}, {}", host.host, host.place, visible_line(&host.file), visible_line(&said)));
        for command in &host.commands {
            let lost = if command.works { "" } else { ", whose program is not there" };
            invocation.printer.line(&format!("  {}{lost}", visible_line(&command.command)));
        }
    }
    Ok(ExitCode::Done)
}

fn status_of(invocation: &Invocation, file: &SettingsFile, place: &'static str) -> HostStatus {
    let (text, problem) = match file.read() {
        Ok(text) => (text.unwrap_or_default(), None),
        Err(report) => (String::new(), Some(report.message)),
    };
    let commands = entries::commands(file.host, &text).into_iter().map(|command| {
        let program = entries::program_of(file.host, &command).unwrap_or_default();
        CommandStatus { works: is_there(invocation, &program), command }
    });
    HostStatus { host: file.host.word(), place, file: file.path.display().to_string(), commands: commands.collect(), problem }
}

fn is_there(invocation: &Invocation, program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = invocation.environment.get(&environment::PATH).unwrap_or_default();
    std::env::split_paths(path).any(|folder: PathBuf| folder.join(program).is_file())
}
