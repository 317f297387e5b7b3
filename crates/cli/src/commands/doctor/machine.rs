//! What has to be on the machine: git, bash, `/proc`, a kernel that is new enough.

use std::time::Duration;

use proctor_process::{ProcessIdentity, Program, family};

use super::Check;
use crate::Invocation;

/// `rev-parse --path-format` is as old as this.
const OLDEST_GIT: (u32, u32) = (2, 31);
/// `set -u` with empty arrays works from here on.
const OLDEST_BASH: (u32, u32) = (4, 4);
/// What the architecture promises to work on.
const OLDEST_KERNEL: (u32, u32) = (5, 13);
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn check(invocation: &Invocation) -> Vec<Check> {
    vec![git(invocation), bash(invocation), supervision()]
}

fn git(invocation: &Invocation) -> Check {
    let remedy = format!("install git {}.{} or later", OLDEST_GIT.0, OLDEST_GIT.1);
    match first_line(invocation, "git", &["--version"]) {
        Err(reason) => Check::failure("git", reason, remedy),
        Ok(line) => match version(line.trim_start_matches("git version ")) {
            Some(found) if found >= OLDEST_GIT => Check::ok("git", line),
            Some(_) => Check::failure("git", format!("{line} is too old"), remedy),
            None => Check::warning("git", format!("`git --version` says `{line}`, which is no version"), remedy),
        },
    }
}

fn bash(invocation: &Invocation) -> Check {
    let remedy = format!("install bash {}.{} or later", OLDEST_BASH.0, OLDEST_BASH.1);
    match first_line(invocation, "bash", &["-c", "echo \"$BASH_VERSION\""]) {
        Err(reason) => Check::failure("bash", reason, remedy),
        Ok(line) => match version(&line) {
            Some(found) if found >= OLDEST_BASH => Check::ok("bash", format!("bash {line}")),
            Some(_) | None => Check::warning("bash", format!("bash `{line}` may be too old for strict shells"), remedy),
        },
    }
}

/// How well processes of a session are kept together here.
fn supervision() -> Check {
    const NAME: &str = "supervision";
    if let Err(error) = ProcessIdentity::current() {
        return Check::failure(NAME, format!("processes can't be told apart: failed to {error}"), "mount /proc");
    }
    if let Err(error) = family::become_subreaper() {
        return Check::failure(NAME, format!("the kernel hands orphans to nobody: {error}"), kernel_remedy());
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if version(&release).is_some_and(|found| found < OLDEST_KERNEL) {
        return Check::warning(NAME, format!("the kernel is {release}, older than what is tested"), kernel_remedy());
    }
    Check::ok(
        NAME,
        "level: subreaper and marker sweep. Nothing outlives a session whose host lives; after a killed host, what kept its environment \
         is found and ended. In a bwrap box the kernel ends everything",
    )
}

fn kernel_remedy() -> String {
    format!("use Linux {}.{} or later", OLDEST_KERNEL.0, OLDEST_KERNEL.1)
}

/// The first line that a program prints.
fn first_line(invocation: &Invocation, program: &str, arguments: &[&str]) -> Result<String, String> {
    let finished = Program::new(program)
        .args(arguments.iter().copied())
        .dir(invocation.directory.as_path())
        .env(invocation.environment.pairs())
        .run(Some(PATIENCE))
        .map_err(|error| format!("failed to {error}"))?;
    let line = String::from_utf8_lossy(&finished.stdout).lines().next().unwrap_or_default().trim().to_owned();
    if finished.timed_out {
        Err(format!("`{program} {}` does not end", arguments.join(" ")))
    } else if finished.status.is_success() {
        Ok(line)
    } else {
        Err(format!("`{program} {}` fails (exit {})", arguments.join(" "), finished.status.shell_code()))
    }
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (text, expected) in [
            ("2.43.0", Some((2, 43))),
            ("2.9.5 (Apple Git-1)", Some((2, 9))),
            ("5.2.21(1)-release", Some((5, 2))),
            ("6.8.0-45-generic", Some((6, 8))),
            ("none", None),
            ("", None),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
        assert!((2, 9) < OLDEST_GIT);
    }
}
