//! One file of the repository as the rules see it.

use super::mask::mask;

/// A text file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the repository's top, `/`-separated.
    pub(crate) path: String,
    pub(crate) text: String,
    /// For Rust: code alone, comments and quotes blanked out; line numbers agree with `text`.
    pub(crate) code: String,
    /// For Rust: comments alone.
    pub(crate) comments: String,
    /// For Rust: which lines are compiled for tests only.
    tests: Vec<bool>,
}

impl Source {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        if !is_rust(&path) {
            return Self { path, text, code: String::new(), comments: String::new(), tests: Vec::new() };
        }
        let masked = mask(&text);
        let tests = test_lines(&path, &masked.code);
        Self { path, text, code: masked.code, comments: masked.comments, tests }
    }

    pub(crate) fn is_rust(&self) -> bool {
        is_rust(&self.path)
    }

    /// The folder under `crates/` that it belongs to.
    pub(crate) fn krate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether this line (from 1) exists for tests only.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.tests.get(line.saturating_sub(1)).copied().unwrap_or(false)
    }

    /// Lines that are not for tests only.
    pub(crate) fn shipped_lines(&self) -> usize {
        self.tests.iter().filter(|test| !**test).count()
    }

    /// Lines of code with their numbers.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

/// The line (from 1) in which this byte of a text stands.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    text.get(..position).map_or(1, |before| before.matches('\n').count() + 1)
}

/// Where a word stands by itself.
pub(crate) fn find_words<'text>(text: &'text str, word: &'text str) -> impl Iterator<Item = usize> + 'text {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).map(|(position, _)| position).filter(move |&position| {
        let before = text[..position].chars().next_back();
        let after = text[position + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Files that only tests use, and in others whatever follows `#[cfg(test)]`.
fn test_lines(path: &str, code: &str) -> Vec<bool> {
    let inside = path.strip_prefix("crates/").unwrap_or(path);
    let whole = inside.starts_with("testkit/") || inside.contains("/tests/") || inside.ends_with("/tests.rs");
    let mut lines = vec![whole; code.lines().count()];
    for (start, _) in code.match_indices("#[cfg(test)]") {
        let end = start + item_length(&code[start..]);
        for line in line_of(code, start)..=line_of(code, end) {
            if let Some(test) = lines.get_mut(line - 1) {
                *test = true;
            }
        }
    }
    lines
}

/// How far the item goes that begins with attributes here: to its `;` or to its closing brace.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (position, letter) in code.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth <= 1 => return position,
            '}' => depth -= 1,
            ';' if depth == 0 => return position,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_module_is_told_from_what_is_shipped() {
        let source = Source::new("crates/a/src/b.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { {} }\n}\nfn c() {}\n");

        let tests: Vec<bool> = (1..=6).map(|line| source.is_test(line)).collect();

        assert_eq!(tests, [false, true, true, true, true, false]);
        assert_eq!(source.shipped_lines(), 2);
    }

    #[test]
    fn a_test_module_in_another_file_covers_one_declaration() {
        let source = Source::new("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;\nfn c() {}\n");

        assert!(source.is_test(2) && !source.is_test(3));
        assert!(Source::new("crates/a/src/b/tests.rs", "fn a() {}\n").is_test(1));
        assert!(Source::new("crates/a/tests/it/main.rs", "mod b;\n").is_test(1));
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert_eq!(find_words("a ab a_b (a)", "a").collect::<Vec<_>>(), [0, 10]);
    }
}
