//! `proctor hook`: what the programs of agents call by themselves.
//!
//! INVARIANT: a call by such a program exits with 0, whatever happens: a host takes other codes for a no.

mod answer;
mod call;
mod guard;
mod install;
mod marks;
mod pre_edit;
mod session_start;

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use proctor_domain::ExitCode;

use self::answer::Reply;
use self::call::Call;
use crate::Invocation;
use crate::args::hook::{HookCommand, HookEvent, Host};
use crate::report::Report;

/// Runs one of the commands.
pub fn run(invocation: &Invocation, command: &HookCommand) -> Result<ExitCode, Report> {
    match command {
        HookCommand::ClaudeCode(event) => respond(invocation, Host::ClaudeCode, event),
        HookCommand::Codex(event) => respond(invocation, Host::Codex, event),
        HookCommand::Cursor(event) => respond(invocation, Host::Cursor, event),
        HookCommand::Install(args) => return install::install(invocation, args),
        HookCommand::Uninstall(args) => return install::uninstall(invocation, args),
        HookCommand::Status(args) => return install::status(invocation, args),
    }
    Ok(ExitCode::Done)
}

/// The exit code of this command line: that of a host's call is always 0, also where it could not be understood, as that of a
/// newer Proctor's settings.
pub fn harmless(arguments: &[OsString], code: ExitCode) -> ExitCode {
    if is_call(arguments) { ExitCode::Done } else { code }
}

fn is_call(arguments: &[OsString]) -> bool {
    let mut rest = arguments.iter().filter_map(|argument| argument.to_str());
    while let Some(argument) = rest.next() {
        match argument {
            "-C" | "--directory" | "--color" => drop(rest.next()),
            "hook" => {
                let is_host = rest.next().is_some_and(|host| Host::ALL.iter().any(|known| known.word() == host));
                return is_host && rest.next().is_some();
            }
            option if option.starts_with('-') => {}
            _ => return false,
        }
    }
    false
}

fn respond(invocation: &Invocation, host: Host, event: &HookEvent) {
    if io::stdin().is_terminal() {
        invocation.printer.warn("a hook reads the JSON of its host on standard input; nothing calls it here");
        return;
    }
    let reply = Call::read(io::stdin().lock()).map_err(|error| error.to_string()).and_then(|call| {
        let reply = match event {
            HookEvent::SessionStart => session_start::reply(invocation, host, &call),
            HookEvent::PreEdit => pre_edit::reply(invocation, host, &call),
            HookEvent::PreRead(args) if args.read_budget => Ok(guard::reply(invocation, host.word(), &call)),
            HookEvent::PreRead(_) => Ok(Reply::Nothing),
        };
        reply.map_err(|report| std::iter::once(report.message).chain(report.causes).collect::<Vec<_>>().join(": "))
    });
    let reply = reply.unwrap_or_else(|why| {
        invocation.printer.warn(&format!("the hook says nothing: {why}"));
        Reply::Nothing
    });
    if let Some(document) = answer::document(host, event, &reply) {
        invocation.printer.line(&document.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_host_calls_never_fails() {
        for (line, expected) in [
            ("hook claude-code pre-edit", true),
            ("-q -C /x --color never hook codex session-start --no-such", true),
            ("hook cursor no-such-event", true),
            ("hook cursor", false),
            ("hook install cursor", false),
            ("memory try hook codex x", false),
            ("", false),
        ] {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();

            assert_eq!(is_call(&arguments), expected, "{line}");
        }
    }
}
