//! Characters that can't be seen, and the escape sequences of terminals.

/// Whether a character shows nothing, or changes how others are shown: marks of direction, joiners, fillers, variants, tags.
pub fn is_hidden(letter: char) -> bool {
    matches!(u32::from(letter),
        0xad | 0x034f | 0x061c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164
        | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
        | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// The text without what can't be seen and without the escape sequences of terminals. Every way to break a line is a line
/// break, and a tab a space.
pub fn seen(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\u{1b}' => rest = &rest[sequence(rest)..],
            '\u{9b}' => rest = &rest[control_sequence(rest)..],
            '\r' if rest.starts_with('\n') => {}
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\t' => out.push(' '),
            other if other.is_control() || is_hidden(other) => {}
            other => out.push(other),
        }
    }
    out
}

/// The length of what follows an escape character and belongs to it.
fn sequence(rest: &str) -> usize {
    match rest.bytes().next() {
        Some(b'[') => 1 + control_sequence(&rest[1..]),
        // Titles, links and other strings, which end with a bell or a terminator. One that does not end would take everything
        // with it, so of that only the beginning goes.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => rest
            .find(['\u{7}', '\u{9c}'])
            .map(|end| end + rest[end..].chars().next().map_or(1, char::len_utf8))
            .into_iter()
            .chain(rest.find("\u{1b}\\").map(|end| end + 2))
            .min()
            .unwrap_or(1),
        Some(b'(' | b')' | b'*' | b'+' | b'#' | b'%' | b' ') => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        Some(0x30..=0x7e) => 1,
        Some(_) | None => 0,
    }
}

/// The length of parameters and final byte.
fn control_sequence(rest: &str) -> usize {
    let parameters = rest.bytes().take_while(|byte| (0x20..=0x3f).contains(byte)).count();
    let is_final = rest.as_bytes().get(parameters).is_some_and(|byte| (0x40..=0x7e).contains(byte));
    parameters + usize::from(is_final)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_seen_goes_and_every_line_break_becomes_one() {
        for (text, expected) in [
            ("plain äöü 漢字 עברית", "plain äöü 漢字 עברית"),
            ("a\u{1b}[31;1mred\u{1b}[0m", "ared"),
            ("\u{9b}2Jgone", "gone"),
            ("\u{1b}]8;;https://x.example\u{7}link\u{1b}]8;;\u{1b}\\ more", "link more"),
            ("\u{1b}]0;a title that never ends", "0;a title that never ends"),
            ("\u{1b}(Bx \u{1b}cy \u{1b}", "x y "),
            ("a\u{200b}b\u{202e}c\u{2066}d\u{feff}e\u{e0041}f\u{fe0f}", "abcdef"),
            ("a\r\nb\rc\u{2028}d\u{85}e\u{b}f", "a\nb\nc\nd\ne\nf"),
            ("nul\0 bell\u{7} delete\u{7f}\ttab", "nul bell delete tab"),
            ("\u{1b}é", "é"),
        ] {
            assert_eq!(seen(text), expected, "{text:?}");
        }
    }
}
