//! Where things stand: thin `main.rs`, `lib.rs` and `mod.rs` as tables of contents, documented vocabulary.

use super::Finding;
use super::source::{Source, line_of};

const LONGEST_MAIN: usize = 20;

/// Crates whose public items are their documentation.
const VOCABULARIES: [&str; 2] = ["domain", "protocol"];

/// Every rule about what a file of that name may hold.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() || source.krate().is_none() {
        return Vec::new();
    }
    [thin_main, contents_only, documented].into_iter().flat_map(|rule| rule(source)).collect()
}

fn thin_main(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().count();
    let is_main = source.path.ends_with("/src/main.rs");
    (is_main && lines > LONGEST_MAIN).then(|| {
        Finding::error(&source.path, 1, "main", format!("{lines} lines; main.rs has at most {LONGEST_MAIN}, the rest belongs to a module"))
    })
}

/// `lib.rs` and `mod.rs` hold documentation, modules and re-exports.
fn contents_only(source: &Source) -> Option<Finding> {
    let name = source.path.rsplit('/').next();
    let applies = source.path.ends_with("/src/lib.rs") || (name == Some("mod.rs") && !source.path.contains("/tests/"));
    let position = applies.then(|| first_other_item(&source.code)).flatten()?;
    let line = line_of(&source.code, position);
    Some(Finding::error(
        &source.path,
        line,
        "contents",
        "lib.rs and mod.rs hold documentation, `mod` and re-exports; move this to a module",
    ))
}

/// Where something stands that is no attribute, no `mod x;` and no re-export.
fn first_other_item(code: &str) -> Option<usize> {
    let mut position = 0;
    while let Some(gap) = code[position..].find(|letter: char| !letter.is_whitespace()) {
        position += gap;
        let rest = &code[position..];
        match attribute_length(rest).or_else(|| entry_length(rest)) {
            Some(length) => position += length,
            None => return Some(position),
        }
    }
    None
}

fn attribute_length(rest: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (position, letter) in rest.starts_with('#').then(|| rest.char_indices()).into_iter().flatten() {
        match letter {
            '[' => depth += 1,
            ']' if depth == 1 => return Some(position + 1),
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The length of a `mod x;`, or of a `use` that makes a name visible elsewhere.
fn entry_length(rest: &str) -> Option<usize> {
    let end = rest.find(';')?;
    let entry = &rest[..end];
    let bare = entry.strip_prefix("pub").map(|after| match after.strip_prefix('(').and_then(|scope| scope.split_once(')')) {
        Some((_, after)) => after.trim_start(),
        None => after.trim_start(),
    });
    let is_module = bare.unwrap_or(entry).starts_with("mod ") && !entry.contains('{');
    let is_export = bare.is_some_and(|entry| entry.starts_with("use "));
    (is_module || is_export).then_some(end + 1)
}

/// The compiler sees to the rest once it is asked to.
fn documented(source: &Source) -> Option<Finding> {
    let applies = VOCABULARIES.iter().any(|name| source.path == format!("crates/{name}/src/lib.rs"));
    let asked = ["#![warn(missing_docs)]", "#![deny(missing_docs)]"].iter().any(|attribute| source.code.contains(attribute));
    (applies && !asked)
        .then(|| Finding::error(&source.path, 1, "documented", "every public item here is documented: add `#![warn(missing_docs)]`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        check(&Source::new(path, text)).into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn a_main_that_does_things_is_found() {
        assert_eq!(broken("crates/a/src/main.rs", &"// x\n".repeat(21)), [("main", 1)]);
        assert_eq!(broken("crates/a/src/main.rs", &"// x\n".repeat(20)), []);
    }

    #[test]
    fn a_table_of_contents_with_more_in_it_is_found() {
        let contents =
            "//! Docs.\n#![warn(missing_docs)]\n\nmod a;\n#[cfg(test)]\nmod b;\npub mod c;\npub(crate) use a::{\n    B,\n    C,\n};\n";

        assert_eq!(broken("crates/a/src/lib.rs", contents), []);
        for more in
            ["fn d() {}\n", "pub struct D;\n", "use a::B;\n", "mod d { }\n", "pub const D: u8 = 1;\n", "macro_rules! d { () => {} }\n"]
        {
            assert_eq!(broken("crates/a/src/b/mod.rs", &format!("{contents}{more}")), [("contents", 12)], "{more}");
        }
        assert_eq!(broken("crates/a/tests/it/mod.rs", "fn a() {}\n"), []);
    }

    #[test]
    fn a_vocabulary_without_the_lint_is_found() {
        assert_eq!(broken("crates/domain/src/lib.rs", "mod a;\n"), [("documented", 1)]);
        assert_eq!(broken("crates/domain/src/lib.rs", "#![warn(missing_docs)]\nmod a;\n"), []);
    }
}
