//! Tells the parts of a Rust text apart, so that a word in a comment or a string is not taken for code.

/// Two texts of the same shape as the original: what does not belong is blanked out, lines stay where they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Masked {
    /// Code without comments and without what stands inside quotes.
    pub(crate) code: String,
    /// Comments alone.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Quoted,
}

/// Splits a Rust text.
pub(crate) fn mask(text: &str) -> Masked {
    let letters: Vec<char> = text.chars().collect();
    let mut masked = Masked { code: String::with_capacity(text.len()), comments: String::new() };
    let mut position = 0;
    while position < letters.len() {
        let (part, length) = next_part(&letters, position);
        let end = (position + length.max(1)).min(letters.len());
        for &letter in &letters[position..end] {
            let blank = if letter == '\n' { '\n' } else { ' ' };
            masked.code.push(if part == Part::Code { letter } else { blank });
            masked.comments.push(if part == Part::Comment { letter } else { blank });
        }
        position = end;
    }
    masked
}

/// What stands at `position`, and how far it goes.
fn next_part(letters: &[char], position: usize) -> (Part, usize) {
    let rest = &letters[position..];
    match rest {
        ['/', '/', ..] => (Part::Comment, until(rest, |rest| rest[0] == '\n').unwrap_or(rest.len())),
        ['/', '*', ..] => (Part::Comment, nested_comment(rest)),
        ['"', ..] => (Part::Quoted, quoted(rest)),
        ['\'', ..] => match character(rest) {
            Some(length) => (Part::Quoted, length),
            // A lifetime.
            None => (Part::Code, 1),
        },
        ['r' | 'b' | 'c', ..] if !continues_a_word(letters, position) => match prefixed(rest) {
            Some(length) => (Part::Quoted, length),
            None => (Part::Code, 1),
        },
        _ => (Part::Code, 1),
    }
}

fn continues_a_word(letters: &[char], position: usize) -> bool {
    position > 0 && (letters[position - 1].is_alphanumeric() || letters[position - 1] == '_')
}

fn until(rest: &[char], found: impl Fn(&[char]) -> bool) -> Option<usize> {
    (0..rest.len()).find(|&start| found(&rest[start..]))
}

fn nested_comment(rest: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut position = 0;
    while position < rest.len() {
        let step = match &rest[position..] {
            ['/', '*', ..] => {
                depth += 1;
                2
            }
            ['*', '/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        position += step;
        if depth == 0 {
            return position;
        }
    }
    rest.len()
}

/// A text in double quotes, backslashes escaping.
fn quoted(rest: &[char]) -> usize {
    let mut position = 1;
    while position < rest.len() {
        match rest[position] {
            '\\' => position += 2,
            '"' => return position + 1,
            _ => position += 1,
        }
    }
    rest.len()
}

/// A character in single quotes, and not a lifetime.
fn character(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', ..] => until(&rest[3.min(rest.len())..], |rest| rest[0] == '\'').map(|length| length + 4),
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

/// `r"…"`, `r#"…"#`, `b"…"`, `b'…'`, `br"…"`, `c"…"`; `None` for a plain word.
fn prefixed(rest: &[char]) -> Option<usize> {
    let letters = rest.iter().take_while(|letter| matches!(letter, 'r' | 'b' | 'c')).count();
    let (prefix, after) = rest.split_at(letters);
    let raw = prefix.contains(&'r');
    let hashes = after.iter().take_while(|letter| **letter == '#').count();
    match after.get(hashes) {
        Some('"') if raw => {
            let body = &after[hashes + 1..];
            let closes = |rest: &[char]| rest[0] == '"' && rest[1..].iter().take_while(|letter| **letter == '#').count() >= hashes;
            let length = until(body, closes).map_or(body.len(), |length| length + 1 + hashes);
            Some(letters + hashes + 1 + length)
        }
        Some('"') if hashes == 0 => Some(letters + quoted(after)),
        Some('\'') if hashes == 0 && prefix == ['b'] => character(after).map(|length| letters + length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_comments_are_blanked_out_of_the_code() {
        for (text, code) in [
            ("a // b \"c\"\nd", "a d"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"a "b \" // c" d"#, "a d"),
            (r##"a r#"b " c"# d"##, "a d"),
            ("br\"x\" b\"y\" c\"z\" bar", "bar"),
            ("'a' '\\'' b'\\n' '\\u{1F}' x", "x"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("r#type = 1; raw", "r#type = 1; raw"),
        ] {
            let masked = mask(text).code;

            assert_eq!(masked.split_whitespace().collect::<Vec<_>>().join(" "), code, "{text}");
            assert_eq!(masked.len(), text.len(), "{text}");
            assert_eq!(masked.lines().count(), text.lines().count(), "{text}");
        }
    }

    #[test]
    fn comments_are_kept_apart() {
        assert_eq!(mask("x // one\n\"// no\" /* two */").comments, "  // one\n        /* two */");
    }

    #[test]
    fn unfinished_texts_end_with_the_file() {
        for text in ["\"abc", "/* abc", "r#\"abc", "'", "'\\", "b'", "//", "'\\u"] {
            assert_eq!(mask(text).code.chars().count(), text.chars().count(), "{text}");
        }
    }
}
