//! What must not be written: unfinished work, sleeping tests, serde forms that hide mistakes, clocks in the domain.

use super::Finding;
use super::source::{Source, find_words, line_of};

/// Every rule about a single Rust file's text.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    [unfinished, promises, sleeping_tests, serde_forms, ambient_domain, test_prefixes].into_iter().flat_map(|rule| rule(source)).collect()
}

/// Code that says about itself that it is not done, or not meant to stay.
fn unfinished(source: &Source) -> Vec<Finding> {
    let phrases = [
        ("todo!", "write it, or leave it out"),
        ("unimplemented!", "write it, or leave it out"),
        ("dbg!", "a leftover of debugging"),
        ("#[ignore", "assert what happens today and link the issue instead"),
    ];
    source
        .code_lines()
        .flat_map(|(line, code)| phrases.iter().filter(move |(phrase, _)| code.contains(phrase)).map(move |found| (line, found)))
        .map(|(line, (phrase, reason))| Finding::error(&source.path, line, "unfinished", format!("`{phrase}`: {reason}")))
        .collect()
}

/// A remark about later work names its issue.
fn promises(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, comment) in source.comments.lines().enumerate() {
        for word in ["TODO", "FIXME", "XXX"] {
            for position in find_words(comment, word) {
                let rest = &comment[position + word.len()..];
                let number = rest.strip_prefix("(#").and_then(|rest| rest.split_once(')')).map_or("", |(number, _)| number);
                let named = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
                if !(named && word == "TODO") {
                    findings.push(Finding::error(
                        &source.path,
                        index + 1,
                        "promise",
                        format!("write `{word}` as `TODO(#123)`, with its issue"),
                    ));
                }
            }
        }
    }
    findings
}

/// The one place where tests wait: it looks for a condition again and again, and needs a pause between two looks.
const WAITING: &str = "crates/testkit/src/waiting.rs";

/// Tests wait for a condition, never for a time.
fn sleeping_tests(source: &Source) -> Vec<Finding> {
    if source.path == WAITING {
        return Vec::new();
    }
    source
        .code_lines()
        .filter(|(line, code)| source.is_test(*line) && (code.contains("thread::sleep") || code.contains("time::sleep")))
        .map(|(line, _)| Finding::error(&source.path, line, "sleep", "a test waits for a condition, with a limit, and not for a time"))
        .collect()
}

/// `flatten` and `untagged` turn a misspelt key into silence and an error into a riddle.
fn serde_forms(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (start, _) in source.code.match_indices("#[serde(") {
        let rest = &source.code[start..];
        let attribute = &rest[..rest.find(")]").unwrap_or(rest.len())];
        for form in ["flatten", "untagged"] {
            if find_words(attribute, form).next().is_some() {
                let line = line_of(&source.code, start);
                findings.push(Finding::error(
                    &source.path,
                    line,
                    "serde",
                    format!("no serde `{form}`: it hides unknown keys and where they stand"),
                ));
            }
        }
    }
    findings
}

/// The domain reads no clock, disk, network or randomness.
fn ambient_domain(source: &Source) -> Vec<Finding> {
    if source.krate() != Some("domain") {
        return Vec::new();
    }
    let outside = ["std::fs", "std::net", "std::env", "std::process", "std::thread", "SystemTime", "Instant", "std::io"];
    source
        .code_lines()
        .filter(|(line, _)| !source.is_test(*line))
        .flat_map(|(line, code)| outside.iter().filter(move |name| find_words(code, name).next().is_some()).map(move |name| (line, name)))
        .map(|(line, name)| Finding::error(&source.path, line, "domain", format!("`{name}`: the domain gets times and facts as values")))
        .collect()
}

/// `#[test]` says that it is one.
fn test_prefixes(source: &Source) -> Vec<Finding> {
    source
        .code_lines()
        .filter(|(line, code)| source.is_test(*line) && code.trim_start().starts_with("fn test_"))
        .map(|(line, _)| Finding::error(&source.path, line, "test-name", "say what is shown; `test_` says nothing"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that a text breaks, with their lines.
    fn broken(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        check(&Source::new(path, text)).into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    const SHIPPED: &str = "crates/a/src/b.rs";

    #[test]
    fn unfinished_code_is_found_outside_comments_and_quotes() {
        assert_eq!(broken(SHIPPED, "fn a() {\n    todo!()\n}\n"), [("unfinished", 2)]);
        assert_eq!(
            broken(SHIPPED, "#[test]\n#[ignore = \"slow\"]\nfn a() { dbg!(1); unimplemented!() }"),
            [("unfinished", 2), ("unfinished", 3), ("unfinished", 3)]
        );
        assert_eq!(broken(SHIPPED, "// todo!()\nconst A: &str = \"todo!()\";\n"), []);
    }

    #[test]
    fn a_promise_without_its_issue_is_found() {
        assert_eq!(
            broken(SHIPPED, "// TODO: later\n/// FIXME\n// TODO(#12): with its issue\n// TODO(soon)\nfn todo() {}\n"),
            [("promise", 1), ("promise", 2), ("promise", 4)]
        );
    }

    #[test]
    fn a_sleeping_test_is_found_and_a_sleeping_program_is_not() {
        let text = "fn a() { std::thread::sleep(b) }\n#[cfg(test)]\nmod tests {\n    fn c() { thread::sleep(d) }\n}\n";

        assert_eq!(broken(SHIPPED, text), [("sleep", 4)]);
        assert_eq!(broken("crates/a/tests/it/b.rs", "async fn a() { tokio::time::sleep(b).await }"), [("sleep", 1)]);
        assert_eq!(broken("crates/testkit/src/b.rs", "use std::thread::sleep;"), [("sleep", 1)]);
        assert_eq!(broken(WAITING, "use std::thread::sleep;"), []);
    }

    #[test]
    fn serde_forms_that_hide_keys_are_found() {
        assert_eq!(
            broken(
                SHIPPED,
                "#[serde(untagged)]\nenum A {}\nstruct B {\n    #[serde(\n        default,\n        flatten\n    )]\n    c: D,\n}"
            ),
            [("serde", 4), ("serde", 1)].into_iter().rev().collect::<Vec<_>>()
        );
        assert_eq!(broken(SHIPPED, "#[serde(rename = \"flatten\")]\nstruct A;\nfn flatten() {}"), []);
    }

    #[test]
    fn a_domain_that_looks_around_is_found() {
        assert_eq!(
            broken("crates/domain/src/b.rs", "use std::time::SystemTime;\nfn a() { std::fs::read(b) }"),
            [("domain", 1), ("domain", 2)]
        );
        assert_eq!(broken(SHIPPED, "use std::fs::File;"), []);
    }

    #[test]
    fn a_test_named_test_is_found() {
        assert_eq!(broken("crates/a/tests/it/b.rs", "#[test]\nfn test_it() {}\n"), [("test-name", 2)]);
    }
}
