//! Which files a command line prints, and which part of each.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::extent::Part;
use super::shell;
use crate::environment::{self, Environment};

/// What one command reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) files: Vec<(PathBuf, Part)>,
    /// The value of `AOP_WAIVE` that the command sets for itself.
    pub(super) waives: Option<String>,
}

/// Words after which a line may mean anything, or change where it works in a way that is not followed.
const DOUBTFUL: [&str; 35] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function", "time", "coproc",
    "[[", "pushd", "popd", "eval", "exec", "source", ".", "alias", "unalias", "set", "shopt", "trap", "exit", "return", "builtin",
    "command", "enable", "hash", "CDPATH",
];

/// What the commands of a line read; `None` where it is not understood.
pub(super) fn readings(line: &str, directory: &Path, environment: &Environment) -> Option<Vec<Reading>> {
    let mut directory = directory.to_owned();
    let mut readings = Vec::new();
    for words in shell::commands(line)? {
        let is_assignment = |word: &&String| assignment(word).is_some();
        let own: Vec<(&str, &str)> = words.iter().take_while(is_assignment).filter_map(|word| assignment(word)).collect();
        if own.iter().any(|(name, _)| matches!(*name, "PATH" | "CDPATH")) {
            return None;
        }
        let Some((name, arguments)) = words[own.len()..].split_first() else { continue };
        if DOUBTFUL.contains(&name.as_str()) {
            return None;
        }
        if name == "cd" {
            directory = change(&directory, arguments, environment)?;
            continue;
        }
        let waives = own.iter().find(|(name, _)| *name == environment::WAIVE.name).map(|(_, value)| (*value).to_owned());
        if let Some(files) = files(name, arguments, &directory, environment) {
            readings.push(Reading { files, waives });
        }
    }
    Some(readings)
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (is_name && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then_some((name, value))
}

/// Where a `cd` leads that says so plainly, and can go there.
fn change(directory: &Path, arguments: &[String], environment: &Environment) -> Option<PathBuf> {
    let [target] = arguments else { return None };
    if target.starts_with('-') || target.is_empty() || environment.value_of("CDPATH").is_some() {
        return None;
    }
    Some(directory.join(target)).filter(|directory| directory.is_dir())
}

fn files(name: &str, arguments: &[String], directory: &Path, environment: &Environment) -> Option<Vec<(PathBuf, Part)>> {
    let program = Path::new(name).file_name()?.to_str()?;
    let (part, operands) = match program {
        "cat" => (Part::All, cat(arguments)?),
        "head" => lines(arguments, Part::Head(10), |number| match number.strip_prefix('-') {
            Some(left_off) => count(left_off).map(Part::HeadBut),
            None => count(number).map(Part::Head),
        })?,
        "tail" => lines(arguments, Part::Tail(10), |number| match number.strip_prefix('+') {
            Some(from) => count(from).map(Part::From),
            None => count(number.strip_prefix('-').unwrap_or(number)).map(Part::Tail),
        })?,
        _ => return None,
    };
    if !is_program(name, directory, environment) {
        return None;
    }
    let named = operands.into_iter().filter(|operand| *operand != "-");
    Some(named.map(|operand| (directory.join(operand), part)).collect())
}

/// The operands, if every option only decorates.
fn cat(arguments: &[String]) -> Option<Vec<&str>> {
    const LONG: [&str; 7] =
        ["--number", "--number-nonblank", "--show-all", "--show-ends", "--show-nonprinting", "--show-tabs", "--squeeze-blank"];
    let is_known = |option: &str| {
        LONG.contains(&option)
            || option.strip_prefix('-').is_some_and(|letters| letters.chars().all(|letter| "AbeEnstTuv".contains(letter)))
    };
    let mut operands = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--" => {
                operands.extend(rest.by_ref());
            }
            option if option.starts_with('-') && option != "-" => is_known(option).then_some(())?,
            operand => operands.push(operand),
        }
    }
    Some(operands)
}

/// The part that the options choose, and the operands.
fn lines(arguments: &[String], usual: Part, part: impl Fn(&str) -> Option<Part>) -> Option<(Part, Vec<&str>)> {
    let mut chosen = usual;
    let mut operands = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--" => {
                operands.extend(rest.by_ref());
            }
            "-q" | "-v" | "--quiet" | "--silent" | "--verbose" => {}
            "-n" | "--lines" => chosen = part(rest.next()?)?,
            option if option.starts_with('-') && option != "-" => {
                let number = option.strip_prefix("--lines=").or_else(|| option.strip_prefix("-n"));
                // The old form: a number by itself.
                chosen = match number {
                    Some(number) => part(number)?,
                    None => part(&count(&option[1..])?.to_string())?,
                };
            }
            // The old form of `tail`.
            operand if operand.starts_with('+') => return None,
            operand => operands.push(operand),
        }
    }
    Some((chosen, operands))
}

/// Digits and nothing else: `1k` counts otherwise.
fn count(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Whether a shell would find a program of this name.
fn is_program(name: &str, directory: &Path, environment: &Environment) -> bool {
    let is_executable =
        |path: PathBuf| path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    if name.contains('/') {
        return is_executable(directory.join(name));
    }
    let path = environment.get(&environment::PATH).unwrap_or_default();
    std::env::split_paths(path).any(|folder| is_executable(directory.join(folder).join(name)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn parts(line: &str) -> Option<Vec<Vec<(String, Part)>>> {
        let environment: Environment = [(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))].into_iter().collect();
        let name = |(file, part): (PathBuf, Part)| (file.to_string_lossy().into_owned(), part);
        let readings = readings(line, Path::new("/"), &environment)?;
        Some(readings.into_iter().map(|reading| reading.files.into_iter().map(name).collect()).collect())
    }

    #[test]
    fn the_part_that_is_read_is_told_from_the_options() {
        for (line, file, part) in [
            ("cat a", "/a", Part::All),
            ("cat -n -- -a", "/-a", Part::All),
            ("/bin/cat a", "/a", Part::All),
            ("LC_ALL=C cat --number a", "/a", Part::All),
            ("head a", "/a", Part::Head(10)),
            ("head -n 5 a", "/a", Part::Head(5)),
            ("head -n5 a", "/a", Part::Head(5)),
            ("head -5 a", "/a", Part::Head(5)),
            ("head --lines=5 a", "/a", Part::Head(5)),
            ("head --lines 5 a", "/a", Part::Head(5)),
            ("head -n -5 a", "/a", Part::HeadBut(5)),
            ("tail a", "/a", Part::Tail(10)),
            ("tail -n 5 a", "/a", Part::Tail(5)),
            ("tail -n -5 a", "/a", Part::Tail(5)),
            ("tail -5 a", "/a", Part::Tail(5)),
            ("tail -n +5 a", "/a", Part::From(5)),
            ("tail -q -n 99999999999999999999 a", "/a", Part::Tail(u64::MAX)),
            ("cd /usr && cat a", "/usr/a", Part::All),
            ("ls; echo x && cat a", "/a", Part::All),
        ] {
            assert_eq!(parts(line), Some(vec![vec![(file.to_owned(), part)]]), "{line}");
        }
    }

    #[test]
    fn what_is_not_known_for_sure_is_nothing() {
        for line in [
            "head -c 5 a",
            "tail -f a",
            "tail -F a",
            "tail -n 5 --follow a",
            "head -n 1k a",
            "head -n a",
            "cat --help",
            "cat --no-such a",
            "head -zn5 a",
            "tail +5 a",
            "grep -n x a",
            "sed -n 1,400p a",
            "git status",
            "less a",
            "sudo cat a",
            "/no/such/cat a",
            "head -n",
        ] {
            assert_eq!(parts(line).unwrap_or_default().concat(), [], "{line}");
        }
        for line in [
            "cd && cat a",
            "cd - && cat a",
            "cd /no/such && cat a",
            "pushd /usr; cat a",
            "if x; then cat a; fi",
            "PATH=/x cat a",
            "eval cat a",
        ] {
            assert_eq!(parts(line), None, "{line}");
        }
    }

    #[test]
    fn a_waiver_is_of_the_command_that_it_stands_before() {
        let environment: Environment = [(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))].into_iter().collect();

        let readings = readings("AOP_WAIVE=x X=1 cat a; cat b", Path::new("/"), &environment).unwrap();

        assert_eq!(readings.iter().map(|reading| reading.waives.as_deref()).collect::<Vec<_>>(), [Some("x"), None]);
    }
}
