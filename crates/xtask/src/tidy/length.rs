//! Files that have become two.

use std::collections::BTreeMap;

use super::Finding;
use super::source::Source;

/// From here on a file should be split.
const SPLIT_AT: usize = 600;
/// No file is longer than this, unless it is on the list.
const LONGEST: usize = 800;

/// The list of files that may be longer: a path and a number of lines in each row.
pub(crate) const LIST: &str = "crates/xtask/long-files.txt";

/// Lengths without the tests inside the file, against the list of exceptions.
pub(crate) fn check(sources: &[Source], list: &str) -> Vec<Finding> {
    let mut exceptions: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (index, row) in list.lines().enumerate().filter(|(_, row)| !row.trim().is_empty() && !row.starts_with('#')) {
        match row.rsplit_once(' ').and_then(|(path, lines)| Some((path, lines.parse().ok()?))) {
            Some((path, lines)) => {
                exceptions.insert(path, (lines, index + 1));
            }
            None => findings.push(Finding::error(LIST, index + 1, "length", "write a path, a space and a number of lines")),
        }
    }
    for source in sources.iter().filter(|source| source.is_rust()) {
        let lines = counted_lines(source);
        let exception = exceptions.remove(source.path.as_str());
        findings.extend(judge(&source.path, lines, exception));
    }
    for (path, (_, row)) in exceptions {
        findings.push(Finding::error(LIST, row, "length", format!("there is no {path}; take it off the list")));
    }
    findings
}

fn judge(path: &str, lines: usize, exception: Option<(usize, usize)>) -> Option<Finding> {
    match exception {
        Some((_, row)) if lines <= LONGEST => {
            Some(Finding::error(LIST, row, "length", format!("{path} has {lines} lines now; take it off the list")))
        }
        Some((allowed, row)) if lines < allowed => {
            Some(Finding::error(LIST, row, "length", format!("{path} has {lines} lines now; the list only shrinks, so write that")))
        }
        Some((allowed, _)) if lines == allowed => None,
        Some(_) | None if lines > LONGEST => {
            Some(Finding::error(path, 1, "length", format!("{lines} lines without tests, and the longest allowed is {LONGEST}: split it")))
        }
        Some(_) | None if lines > SPLIT_AT => {
            Some(Finding::warning(path, 1, "length", format!("{lines} lines without tests; split it before it grows")))
        }
        Some(_) | None => None,
    }
}

fn counted_lines(source: &Source) -> usize {
    match source.shipped_lines() {
        // A file of tests alone.
        0 => source.text.lines().count(),
        lines => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::*;

    const PATH: &str = "crates/a/src/b.rs";

    fn found(lines: usize, list: &str) -> Vec<(String, Weight)> {
        let source = Source::new(PATH, "fn a() {}\n".repeat(lines));
        check(&[source], list).into_iter().map(|finding| (finding.path, finding.weight)).collect()
    }

    fn error(path: &str) -> Vec<(String, Weight)> {
        vec![(path.to_owned(), Weight::Error)]
    }

    #[test]
    fn a_file_that_is_too_long_fails_and_a_long_one_warns() {
        assert_eq!(found(801, ""), error(PATH));
        assert_eq!(found(601, ""), [(PATH.to_owned(), Weight::Warning)]);
        assert_eq!(found(600, ""), []);
    }

    #[test]
    fn the_list_may_only_shrink() {
        assert_eq!(found(900, &format!("# reason\n{PATH} 900\n")), []);
        assert_eq!(found(901, &format!("{PATH} 900\n")), error(PATH));
        assert_eq!(found(850, &format!("{PATH} 900\n")), error(LIST));
        assert_eq!(found(700, &format!("{PATH} 900\n")), error(LIST));
        assert_eq!(found(10, "crates/gone.rs 900\n"), error(LIST));
        assert_eq!(found(10, "nonsense\n"), error(LIST));
    }

    #[test]
    fn tests_inside_a_file_do_not_count_and_files_of_tests_do() {
        let tests = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "    // x\n".repeat(900));
        assert_eq!(check(&[Source::new(PATH, tests)], ""), []);

        let file = Source::new("crates/a/tests/it/b.rs", "fn a() {}\n".repeat(801));
        assert_eq!(check(&[file], "").len(), 1);
    }
}
