//! Names that say nothing.

use super::Finding;
use super::source::{Source, line_of};

/// A file called after one of these is a noun that nobody has found yet.
const BANNED: [&str; 11] = ["manager", "service", "helper", "util", "common", "misc", "base", "data", "info", "impl", "handler"];

const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "mod", "union", "macro_rules"];

/// Types, functions, modules and files.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = path_words(&source.path)
        .filter_map(|name| banned_word(name).map(|word| Finding::error(&source.path, 1, "name", sentence(name, word))))
        .collect();
    for (position, name) in declared(&source.code) {
        let line = line_of(&source.code, position);
        // The names of tests are sentences, and sentences need all words.
        if let Some(word) = banned_word(name).filter(|_| !source.is_test(line)) {
            findings.push(Finding::error(&source.path, line, "name", sentence(name, word)));
        }
    }
    findings
}

fn sentence(name: &str, word: &str) -> String {
    format!("`{name}`: `{word}` says nothing; name what it is or what the caller gets")
}

/// The file's and its folders' names below `crates/`.
fn path_words(path: &str) -> impl Iterator<Item = &str> {
    path.strip_suffix(".rs").unwrap_or(path).split('/').skip(1)
}

/// Names that are introduced by a keyword, with where they stand.
fn declared(code: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    let mut keyword_before = false;
    for (position, word) in words(code) {
        if keyword_before {
            names.push((position, word));
        }
        // A function *type* has its parameters right after the keyword, a macro its exclamation mark.
        let after = code[position + word.len()..].chars().next();
        keyword_before = KEYWORDS.contains(&word) && matches!(after, Some(' ' | '!'));
    }
    names
}

fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.split(move |letter: char| !is_part(letter))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr().addr() - code.as_ptr().addr(), word))
}

/// Names that are not ours to choose: of methods that a trait of a dependency prescribes (`rmcp`).
const PRESCRIBED: [&str; 1] = ["get_info"];

fn banned_word(name: &str) -> Option<&'static str> {
    if PRESCRIBED.contains(&name) {
        return None;
    }
    let parts = parts(name);
    BANNED.into_iter().find(|banned| parts.iter().any(|part| part == banned || part.strip_suffix('s') == Some(banned)))
}

/// `ReadRunInfo` and `read_run_info` are three words.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut after_lower = false;
    for letter in name.chars() {
        let starts = letter == '_' || letter == '-' || (letter.is_uppercase() && after_lower);
        if starts || parts.is_empty() {
            parts.push(String::new());
        }
        if let (Some(part), true) = (parts.last_mut(), letter.is_alphanumeric()) {
            part.extend(letter.to_lowercase());
        }
        after_lower = letter.is_lowercase() || letter.is_numeric();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<(usize, String)> {
        let name = |finding: &Finding| finding.sentence.split('`').nth(1).unwrap_or_default().to_owned();
        check(&Source::new(path, text)).iter().map(|finding| (finding.line, name(finding))).collect()
    }

    #[test]
    fn empty_names_are_found_where_they_are_introduced() {
        let text = "struct RunInfo;\n\nfn load_data() {}\nmod utils;\ntrait EventHandler {}\ntype Base = u8;\n";

        let found = broken("crates/a/src/b.rs", text);

        let expected = [(1, "RunInfo"), (3, "load_data"), (4, "utils"), (5, "EventHandler"), (6, "Base")];
        assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())));
    }

    #[test]
    fn the_names_of_tests_are_sentences() {
        assert_eq!(broken("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n    fn data_is_kept() {}\n}\n"), []);
    }

    #[test]
    fn files_and_folders_count_too() {
        assert_eq!(broken("crates/a/src/common/mod.rs", ""), [(1, "common".to_owned())]);
        assert_eq!(broken("crates/a/src/run_helpers.rs", ""), [(1, "run_helpers".to_owned())]);
    }

    #[test]
    fn words_that_only_contain_one_are_fine() {
        assert_eq!(
            broken("crates/a/src/database.rs", "struct Baseline;\nfn informed() {}\nimpl A for B {}\nlet f: fn(u8);\n// struct Misc\n"),
            []
        );
    }
}
