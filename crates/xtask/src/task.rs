//! The command line of the chores.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::{eval, generate, tidy};

const USAGE: &str = "\
cargo xtask tidy                the gates of the style guide that no compiler lint covers
cargo xtask generate            write the documents that are made from the program
cargo xtask generate --check    compare them instead
cargo xtask eval memory         say how well records of memory are found, on the rows of evals/memory
cargo xtask eval memory --json  the same as one object; --losses names the rows of the tuning part that went wrong
";

/// Runs the chore that the arguments name.
pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let end = match arguments.as_slice() {
        ["tidy"] => root().and_then(|root| tidy(&root)),
        ["generate"] => root().and_then(|root| generate(&root)),
        ["generate", "--check"] => root().and_then(|root| check_generated(&root)),
        ["eval", "memory"] => root().and_then(|root| eval_memory(&root, eval::Form::Table)),
        ["eval", "memory", "--losses"] => root().and_then(|root| eval_memory(&root, eval::Form::Losses)),
        ["eval", "memory", "--json"] => root().and_then(|root| eval_memory(&root, eval::Form::Json)),
        _ => say(USAGE).map(|()| ExitCode::from(2)),
    };
    end.unwrap_or_else(|error| {
        // Nothing is left to do when even this can't be said.
        let _ = writeln!(std::io::stderr(), "xtask: {error:#}");
        ExitCode::from(2)
    })
}

/// The repository this program was built from.
fn root() -> anyhow::Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.ancestors().nth(2).map(Path::to_path_buf).context("find the repository above crates/xtask")
}

fn say(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("write to standard output")
}

fn tidy(root: &Path) -> anyhow::Result<ExitCode> {
    let findings = tidy::findings(root)?;
    for finding in &findings {
        say(&format!("{finding}\n"))?;
    }
    let errors = findings.iter().filter(|finding| finding.weight == tidy::Weight::Error).count();
    say(&format!("tidy: {errors} errors, {} warnings\n", findings.len() - errors))?;
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn generate(root: &Path) -> anyhow::Result<ExitCode> {
    for path in generate::write(root)? {
        say(&format!("wrote {path}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check_generated(root: &Path) -> anyhow::Result<ExitCode> {
    let stale = generate::stale(root)?;
    for path in &stale {
        say(&format!("{path}:1: stale: it is not what the program says; run `cargo xtask generate` and commit\n"))?;
    }
    Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn eval_memory(root: &Path, form: eval::Form) -> anyhow::Result<ExitCode> {
    say(&eval::report(root, form)?)?;
    Ok(ExitCode::SUCCESS)
}
