//! How text lies on one line of Markdown: what would end the line, a part of it, or a comment, stands as a character
//! reference, which every reader of Markdown shows as the character that it means.
//!
//! Characters that can't be seen are written that way too, so that whoever looks over a change sees that they are there.

use std::fmt::Write;

use crate::hygiene::is_hidden;

/// References that are read beside numbers.
const NAMES: [(&str, char); 3] = [("amp;", '&'), ("lt;", '<'), ("gt;", '>')];
/// The longest number that is one of ours, with its semicolon: `#1114111;`.
const LONGEST: usize = 9;

/// The text as it stands on a line.
pub(crate) fn escape(text: &str) -> String {
    refer_where(text, |position| stands_alone(text, position))
}

/// The text that stands there as `escaped`.
pub(crate) fn unescape(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(position) = rest.find('&') {
        out.push_str(&rest[..position]);
        rest = &rest[position + 1..];
        match reference(rest) {
            Some((letter, length)) => {
                out.push(letter);
                rest = &rest[length..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

/// Text of others, on one line, made to read as what it says: what would be a reference for us is none, and a line break is one.
/// Pipes stay pipes.
pub(crate) fn protect(text: &str) -> String {
    refer_where(text, |_| false)
}

/// A line's text with references for what can't be seen; what it means stays.
pub(crate) fn show_hidden(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    escaped.chars().for_each(|letter| if must_be_seen(letter) { refer(letter, &mut out) } else { out.push(letter) });
    out
}

/// The text with references where they are needed; `separates` says which pipes need one.
fn refer_where(text: &str, separates: impl Fn(usize) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for (position, letter) in text.char_indices() {
        let rest = &text[position..];
        let is_safe = match letter {
            '&' => reference(&rest[1..]).is_none(),
            '|' => !separates(position),
            '<' => !rest.starts_with("<!--"),
            '>' => !text[..position].ends_with("--"),
            other => !must_be_seen(other),
        };
        if is_safe { out.push(letter) } else { refer(letter, &mut out) }
    }
    out
}

/// A pipe with nothing but white space or an end on both sides, where it would end a part of the line.
fn stands_alone(text: &str, position: usize) -> bool {
    let before = text[..position].chars().next_back().is_none_or(char::is_whitespace);
    before && text[position + 1..].chars().next().is_none_or(char::is_whitespace)
}

fn must_be_seen(letter: char) -> bool {
    letter.is_control() || is_hidden(letter)
}

fn refer(letter: char, out: &mut String) {
    match NAMES.iter().find(|(_, named)| *named == letter) {
        Some((name, _)) => {
            out.push('&');
            out.push_str(name);
        }
        // Writing to a string can't fail.
        None => {
            let _ = write!(out, "&#{};", u32::from(letter));
        }
    }
}

/// The character that a reference means whose text behind the `&` is at the start of `rest`, and how long that is.
///
/// Only references that [`escape`] writes are read, so a line that somebody wrote by hand means what it says.
fn reference(rest: &str) -> Option<(char, usize)> {
    if let Some((name, letter)) = NAMES.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((*letter, name.len()));
    }
    let end = rest.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let number = rest[..end].strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let letter = number.parse().ok().and_then(char::from_u32)?;
    (letter == '|' || must_be_seen(letter)).then_some((letter, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_part_a_line_or_a_comment_is_written_as_a_reference() {
        for (text, escaped) in [
            ("grep a | wc -l", "grep a &#124; wc -l"),
            ("a || b, a|b and |", "a || b, a|b and &#124;"),
            ("two\nlines\r\n", "two&#10;lines&#13;&#10;"),
            ("x --> y, <!-- z -->", "x --&gt; y, &lt;!-- z --&gt;"),
            ("a < b && c > d", "a < b && c > d"),
            ("AT&T &amp; &#124; &copy; &#38; &#32;", "AT&T &amp;amp; &amp;#124; &copy; &#38; &#32;"),
            ("\u{202e}drow\u{200b}", "&#8238;drow&#8203;"),
            ("&\n", "&&#10;"),
        ] {
            assert_eq!(escape(text), escaped);
            assert_eq!(unescape(escaped), text);
        }
    }
}
