//! Foreign text on one line of ours.

use super::hidden::seen;

/// The text on one line. White space of any length is one space, nothing is cut off, and nothing in it is markup: no tag or
/// comment, no code span, no link or image, no address that a viewer would call.
pub fn inline(text: &str) -> String {
    let text = seen(text);
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Text without control characters, with what means something in Markdown or HTML as text.
pub(super) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for (position, letter) in text.char_indices() {
        let (before, rest) = (&text[..position], &text[position + letter.len_utf8()..]);
        match letter {
            '`' => out.push_str("&#96;"),
            // Behind a mark of a quote or a list, a fence.
            '~' if rest.starts_with("~~") && !before.ends_with('~') => out.push_str("&#126;"),
            '<' if opens_a_tag(rest) => out.push_str("&lt;"),
            '>' if before.ends_with("--") => out.push_str("&gt;"),
            // `](`, `][` and `]:` make links, and `![` an image.
            ']' if rest.starts_with(['(', '[', ':']) => out.push_str("&#93;"),
            // A footnote, or a link to a page of a wiki.
            '[' if rest.starts_with(['^', '[']) => out.push_str("&#91;"),
            '!' if rest.starts_with('[') => out.push_str("&#33;"),
            ':' if is_scheme(before, rest) => out.push_str("[:]"),
            '.' if is_www(before) => out.push_str("[.]"),
            '@' if is_mail(before, rest) => out.push_str("[@]"),
            other => out.push(other),
        }
    }
    out
}

fn opens_a_tag(rest: &str) -> bool {
    rest.starts_with(|next: char| next.is_alphabetic() || matches!(next, '/' | '!' | '?' | '|'))
}

/// Schemes that mean something without two slashes.
const BARE_SCHEMES: [&str; 6] = ["javascript", "vbscript", "data", "mailto", "file", "tel"];

fn is_scheme(before: &str, rest: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '.' | '-');
    let start = before.rfind(|letter: char| !is_part(letter)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let scheme = &before[start..];
    let is_known = BARE_SCHEMES.iter().any(|bare| scheme.eq_ignore_ascii_case(bare));
    rest.starts_with("//") || is_known && rest.starts_with(|next: char| !next.is_whitespace())
}

fn is_www(before: &str) -> bool {
    let Some(start) = before.len().checked_sub(3) else { return false };
    let is_word = before.get(start..).is_some_and(|word| word.eq_ignore_ascii_case("www"));
    is_word && before[..start].chars().next_back().is_none_or(|letter| !letter.is_alphanumeric())
}

/// `a@b.c` is a link for many viewers; `serde@1.0` is a version and none.
fn is_mail(before: &str, rest: &str) -> bool {
    let domain: &str = rest.split(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '.' | '-'))).next().unwrap_or_default();
    let has_name = before.ends_with(|letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '+'));
    has_name && domain.trim_end_matches('.').rsplit_once('.').is_some_and(|(_, last)| last.starts_with(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_one_space_and_nothing_is_cut_off() {
        assert_eq!(inline("  a \n\n# b\t\u{a0}c  "), "a # b c");
        assert_eq!(inline(&"long ".repeat(1000)).len(), 4999);
    }

    #[test]
    fn nothing_is_markup() {
        for (text, expected) in [
            ("run `rm -rf`", "run &#96;rm -rf&#96;"),
            ("a < b, <b>bold</b>, x --> y <!-- z", "a < b, &lt;b>bold&lt;/b>, x --&gt; y &lt;!-- z"),
            ("[text](https://x.example/?q=1)", "[text&#93;(https[:]//x.example/?q=1)"),
            ("![x](y) [a][b] [a]: c", "&#33;[x&#93;(y) [a&#93;[b] [a&#93;: c"),
            ("javascript:alert(1) DATA:text/html,x mailto:a", "javascript[:]alert(1) DATA[:]text/html,x mailto[:]a"),
            ("www.x.example, wwww.y", "www[.]x.example, wwww.y"),
            ("ann@x.example, serde@1.0.2, @scope/pkg", "ann[@]x.example, serde@1.0.2, @scope/pkg"),
            ("data: three rows; file: a.rs; std::fs", "data: three rows; file: a.rs; std::fs"),
        ] {
            assert_eq!(inline(text), expected);
        }
    }
}
