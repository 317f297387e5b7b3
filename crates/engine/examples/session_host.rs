//! The session host as a program of its own, for this crate's tests: `session_host host <folder>`, and what it is told of:
//! `session_host tools <socket>`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [command, folder] if command == "host" => proctor_engine::run_host(Path::new(folder)),
        [command, rest @ ..] if command == "tools" => proctor_engine::run_session_tools(rest),
        _ => ExitCode::from(2),
    }
}
