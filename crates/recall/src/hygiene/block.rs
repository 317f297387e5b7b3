//! Foreign text that keeps its lines.

use super::hidden::seen;
use super::inline::harmless;

/// The deepest heading of Markdown.
const DEEPEST: usize = 6;
/// What stands for a line that would be a rule, or would make a heading of the line before it.
const DOTS: &str = "· · ·";

/// The text with its lines, none of which is structure of ours: headings are deeper than `depth`, the level of the heading
/// that the text stands under, and rules, fences and definitions are text. That holds in quotes and lists too.
pub fn block(text: &str, depth: usize) -> String {
    seen(text).lines().map(|line| harmless_line(line.trim_end(), depth)).collect::<Vec<_>>().join("\n")
}

fn harmless_line(line: &str, depth: usize) -> String {
    let (containers, core) = line.split_at(line.len() - core(line).len());
    let inner = core.trim();
    let is_rule = is_rule(inner, "-_*", 3) || is_rule(inner, "=+-", 1);
    if inner.is_empty() && !containers.trim_end().ends_with('-') {
        return containers.trim_end().to_owned();
    }
    // A list's dash without text under a line of text would make a heading of it.
    if inner.is_empty() {
        return format!("{}{DOTS}", containers.trim_end_matches(['-', ' ']));
    }
    if is_rule {
        return format!("{containers}{DOTS}");
    }
    format!("{containers}{}", heading(inner, depth).unwrap_or_else(|| harmless(core)))
}

/// What is in a line's quotes and lists.
fn core(line: &str) -> &str {
    let rest = line.trim_start();
    if let Some(quoted) = rest.strip_prefix('>') {
        return core(quoted);
    }
    let marker = match rest.as_bytes() {
        [b'-' | b'*' | b'+', ..] => 1,
        [b'0'..=b'9', ..] => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if rest[digits..].starts_with(['.', ')']) { digits + 1 } else { 0 }
        }
        _ => 0,
    };
    match rest.get(marker..) {
        // `---` and `* * *` are rules before they are lists.
        Some(_) if is_rule(rest, "-_*", 3) => rest,
        Some(item) if marker > 0 && (item.is_empty() || item.starts_with(' ')) => core(item),
        Some(_) | None => rest,
    }
}

fn is_rule(text: &str, marks: &str, at_least: usize) -> bool {
    let mut letters = text.chars().filter(|letter| *letter != ' ');
    let Some(first) = letters.next().filter(|first| marks.contains(*first)) else { return false };
    let more = letters.clone().count();
    letters.all(|letter| letter == first) && more + 1 >= at_least
}

fn heading(inner: &str, depth: usize) -> Option<String> {
    let level = inner.bytes().take_while(|byte| *byte == b'#').count();
    let title = &inner[level..];
    if level == 0 || !(title.is_empty() || title.starts_with(' ')) {
        return None;
    }
    let title = harmless(title.trim());
    // Stars around nothing are a rule.
    if title.is_empty() {
        return Some(DOTS.to_owned());
    }
    Some(match level + depth {
        deeper if deeper > DEEPEST || level == DEEPEST => format!("**{}**", title.replace('*', "&#42;")),
        deeper => format!("{} {title}", "#".repeat(deeper)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_headings_go_deeper() {
        assert_eq!(block("# A\ntext\r\n\n  - item\n## B ##\n###### C*", 1), "## A\ntext\n\n  - item\n### B ##\n**C&#42;**");
        assert_eq!(block("# A\n##### B", 2), "### A\n**B**");
        assert_eq!(block("#hash", 1), "#hash");
    }

    #[test]
    fn no_line_is_a_rule_a_fence_or_an_underline() {
        for (text, expected) in [
            ("---", DOTS),
            ("* * *", DOTS),
            ("_____", DOTS),
            ("===", DOTS),
            ("a\n-", "a\n· · ·"),
            ("a\n=", "a\n· · ·"),
            ("> ---", "> · · ·"),
            ("- ", DOTS),
            ("###### ", DOTS),
            ("#", DOTS),
            ("~~~sh", "&#126;~~sh"),
            ("```sh", "&#96;&#96;&#96;sh"),
            ("> # x", "> ## x"),
            ("1. # x", "1. ## x"),
            ("- > - ## x", "- > - ### x"),
            ("   # x", "   ## x"),
            ("[a]: https://x.example", "[a&#93;: https[:]//x.example"),
            ("-- x --", "-- x --"),
        ] {
            assert_eq!(block(text, 1), expected, "{text:?}");
        }
    }
}
