//! The scripted agent as a program of its own, for this crate's tests: `scripted_agent scripted-agent …`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(2).collect();
    proctor_engine::run_scripted_agent(&arguments)
}
