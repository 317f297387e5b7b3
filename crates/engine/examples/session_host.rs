//! The session host as a program of its own, for this crate's tests: `session_host host <folder>`, and what it is told of:
//! `session_host tools <socket>`,
//! `session_host acp-relay …`, `session_host confine …`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [command, folder] if command == "host" => proctor_engine::run_host(Path::new(folder)),
        [command, rest @ ..] if command == "acp-relay" => proctor_engine::run_acp_relay(rest),
        [command, rest @ ..] if command == "confine" => {
            ExitCode::from(proctor_process::confine::enter(rest.iter().cloned()).unwrap_or_else(|error| error.exit_code()))
        }
        [command, rest @ ..] if command == "tools" => proctor_engine::run_session_tools(rest),
        _ => ExitCode::from(2),
    }
}
