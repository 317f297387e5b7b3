//! Finds the front matter of a card.

use crate::finding::At;

/// Where the parts of a card are in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    /// The YAML between the fences.
    pub(crate) yaml: At,
    /// The closing fence, without its line break.
    pub(crate) closing: At,
    /// What follows the closing fence.
    pub(crate) body: At,
}

/// Why a text has no front matter, and where to point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoFrontMatter {
    #[error("a card begins with a line `---`, and this text does not")]
    NoOpening(At),
    #[error("the front matter that begins here has no closing line `---`")]
    NoClosing(At),
}

impl NoFrontMatter {
    pub(crate) fn at(&self) -> At {
        match self {
            Self::NoOpening(at) | Self::NoClosing(at) => *at,
        }
    }
}

/// Splits a card. A byte order mark before the first fence is fine, as are carriage returns.
pub(crate) fn split(text: &str) -> Result<FrontMatter, NoFrontMatter> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (opening, mut next) = line_at(text, start);
    if !is_fence(opening) {
        return Err(NoFrontMatter::NoOpening(At::new(start, start + opening.len())));
    }
    let yaml_start = next;
    while next < text.len() {
        let (line, after) = line_at(text, next);
        if is_fence(line) {
            return Ok(FrontMatter {
                yaml: At::new(yaml_start, next),
                closing: At::new(next, next + line.len()),
                body: At::new(after, text.len()),
            });
        }
        next = after;
    }
    Err(NoFrontMatter::NoClosing(At::new(start, start + opening.len())))
}

/// The line that begins at `start`, without its break, and the offset after the break.
fn line_at(text: &str, start: usize) -> (&str, usize) {
    let rest = &text[start..];
    match rest.find('\n') {
        Some(end) => (rest[..end].trim_end_matches('\r'), start + end + 1),
        None => (rest.trim_end_matches('\r'), text.len()),
    }
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim_matches([' ', '\t']).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, yaml: &str, body: &str) {
        let front = split(text).unwrap();

        assert_eq!(&text[front.yaml.start()..front.yaml.end()], yaml, "{text:?}");
        assert_eq!(&text[front.body.start()..front.body.end()], body, "{text:?}");
    }

    #[test]
    fn fences_are_found_whatever_ends_their_lines() {
        check("---\na: 1\n---\nbody\n", "a: 1\n", "body\n");
        check("---\r\na: 1\r\n---\r\n", "a: 1\r\n", "");
        check("\u{feff}--- \n---", "", "");
        check("---\na: |\n  ---\n---\n", "a: |\n  ---\n", "");
        check("---\n----\n---", "----\n", "");
    }

    #[test]
    fn a_text_without_fences_says_which_is_missing() {
        for text in ["", "a: 1", "--\n", " ---\n---\n"] {
            assert!(matches!(split(text), Err(NoFrontMatter::NoOpening(_))), "{text:?}");
        }
        for text in ["---", "---\na: 1\n", "---\n ---\n"] {
            assert!(matches!(split(text), Err(NoFrontMatter::NoClosing(_))), "{text:?}");
        }
    }
}
