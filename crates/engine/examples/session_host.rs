//! The session host as a program of its own, for this crate's tests: `session_host host <folder>`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    match arguments.get(2) {
        Some(folder) => proctor_engine::run_host(Path::new(folder)),
        None => ExitCode::from(2),
    }
}
