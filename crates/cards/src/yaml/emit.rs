//! Texts as YAML that people can read: plain where nothing can be misread, block literals for several
//! lines, double quotes for the rest.

use std::fmt::Write as _;

use super::{Meaning, plain_meaning};

/// Writes block mappings and lists of a known shape.
#[derive(Default)]
pub(crate) struct Emitter {
    out: String,
}

impl Emitter {
    /// A line as it stands.
    pub(crate) fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Lines that another emitter wrote.
    pub(crate) fn raw(&mut self, lines: &str) {
        self.out.push_str(lines);
    }

    /// `key: text`, after `lead`: blank space, ending in `- ` for the first key of a list item.
    pub(crate) fn entry(&mut self, lead: &str, key: &str, text: &str) {
        self.out.push_str(lead);
        self.out.push_str(&self::key(key, lead.len()));
        match Literal::of(text) {
            Some(literal) => literal.write(&mut self.out, lead.len() + 2),
            None => {
                self.out.push(' ');
                self.out.push_str(&flow_scalar(text));
                self.out.push('\n');
            }
        }
    }

    /// `key:` of a mapping or list that follows.
    pub(crate) fn open(&mut self, lead: &str, key: &str) {
        self.out.push_str(lead);
        self.out.push_str(key);
        self.out.push_str(":\n");
    }

    /// `- text`.
    pub(crate) fn item(&mut self, lead: &str, text: &str) {
        self.out.push_str(lead);
        self.out.push_str("- ");
        self.out.push_str(&flow_scalar(text));
        self.out.push('\n');
    }

    pub(crate) fn into_text(self) -> String {
        self.out
    }
}

/// A key with its colon. YAML reads no key of more than 1,024 characters in the short form.
fn key(name: &str, indent: usize) -> String {
    let scalar = flow_scalar(name);
    if scalar.len() < 1_000 { format!("{scalar}:") } else { format!("? {scalar}\n{}:", " ".repeat(indent)) }
}

/// A text on one line: as it is where that can't be misread, else in double quotes.
pub(crate) fn flow_scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '/' | '.' | '(' | '+'));
    let allowed = |letter: char| letter.is_alphanumeric() || " _-./:()+*=,;@%^~$!?<>|&'\"#".contains(letter);
    first
        && text.len() <= 200
        && text.chars().all(allowed)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && plain_meaning(text) == Meaning::Text
        // These are no texts by the older schema that other readers still follow, nor is what looks like a time.
        && !matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off")
        && !text.starts_with("...")
        && !text.starts_with(|letter: char| letter.is_ascii_digit() && text.contains([':', '_']) && !is_time(text))
}

/// Timestamps of ours stay without quotes, as people edit them.
fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if is_printable(letter) => quoted.push(letter),
            letter => push_escape(&mut quoted, u32::from(letter)),
        }
    }
    quoted.push('"');
    quoted
}

fn push_escape(out: &mut String, code: u32) {
    // Writing to a String can't fail.
    let _ = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// What may stand in YAML as it is. Line and paragraph separators are breaks to some readers.
fn is_printable(letter: char) -> bool {
    !letter.is_control() && !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// A text of several lines that can stand as a block literal.
struct Literal<'t> {
    text: &'t str,
    chomping: &'static str,
    indicator: &'static str,
}

impl<'t> Literal<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let printable = text.chars().all(|letter| matches!(letter, '\n' | '\t') || is_printable(letter));
        let content = text.trim_end_matches('\n');
        let last_line = content.rsplit('\n').next().unwrap_or("");
        if !text.contains('\n') || !printable || last_line.trim().is_empty() {
            return None;
        }
        let chomping = match text.len() - content.len() {
            0 => "-",
            1 => "",
            _ => "+",
        };
        // Without the indicator the first line's own blank space would count as indentation.
        let indicator = if text.starts_with([' ', '\t', '\n']) { "2" } else { "" };
        Some(Self { text, chomping, indicator })
    }

    fn write(&self, out: &mut String, indent: usize) {
        out.push_str(" |");
        out.push_str(self.indicator);
        out.push_str(self.chomping);
        out.push('\n');
        for line in self.text.strip_suffix('\n').unwrap_or(self.text).split('\n') {
            if !line.is_empty() {
                out.extend(std::iter::repeat_n(' ', indent));
                out.push_str(line);
            }
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::yaml::parse;

    fn emitted(lead: &str, key: &str, text: &str) -> String {
        let mut emitter = Emitter::default();
        emitter.entry(lead, key, text);
        emitter.entry(&" ".repeat(lead.len()), "next", "end");
        emitter.into_text()
    }

    fn check(key: &str, text: &str) {
        for lead in ["", "  - ", "      "] {
            let yaml = emitted(lead, key, text);
            let root = parse(&yaml, 0).unwrap_or_else(|error| panic!("{error:?} in {yaml:?}")).unwrap();
            let mapping = match &root.value {
                crate::yaml::Value::Sequence(items) => &items[0],
                crate::yaml::Value::Mapping(_) | crate::yaml::Value::Scalar(_) => &root,
            };
            let value = mapping.get(key).unwrap_or_else(|| panic!("no {key:?} in {yaml:?}")).scalar().unwrap();

            assert_eq!(&*value.text, text, "{yaml:?}");
            assert_eq!(value.meaning(), Meaning::Text, "{yaml:?}");
            assert_eq!(&*mapping.get("next").unwrap().scalar().unwrap().text, "end", "{yaml:?}");
        }
    }

    #[test]
    fn several_lines_become_a_block_literal() {
        assert_eq!(emitted("  - ", "stdout", "a\n  b\n"), "  - stdout: |\n      a\n        b\n    next: end\n");
    }

    #[test]
    fn texts_that_yaml_could_misread_come_back_as_they_were() {
        for text in [
            "",
            " ",
            "\n",
            "\n\n",
            "a",
            "a b",
            "a: b",
            "a #b",
            "# a",
            "- a",
            "? a",
            "a:",
            "null",
            "~",
            "true",
            "1",
            "1.5",
            "0x1f",
            "yes",
            "on",
            "2026-03-02T06:00:00Z",
            "2026-03-02",
            "12:30",
            "1_000",
            "---",
            "...",
            "--- a",
            "'a'",
            "\"a\"",
            "[a]",
            "{a: b}",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a`",
            "|",
            ">",
            "a\n",
            "a\n\n",
            "\na",
            "\n\na\n",
            " a\n b",
            "\ta\nb",
            "a\n\tb",
            "a\n ",
            "a\n \n",
            "a\n \nb",
            "a\r\nb",
            "a\rb",
            "\u{0}",
            "\u{1b}[31mred\u{1b}[0m",
            "\u{85}",
            "a\u{2028}b\n",
            "\u{feff}a\n",
            "é\nü",
            "😀\n😀",
            "\\n",
            "a\\\n",
            "---\n---\n",
            "...\na",
            "a\n# b\n",
            "# a\nb\n",
            "${{ x }}",
            "=",
            "<<",
            "a\n\n\n\nb\n\n\n",
            "\u{fffe}",
            "\u{7f}",
            "  \n a",
        ] {
            check("key", text);
        }
    }

    #[test]
    fn a_key_of_any_length_is_read_back() {
        check(&"k".repeat(5_000), "v");
        check("a: b # c", "v\nw");
        check("", "v");
    }

    proptest! {
        #[test]
        fn any_text_comes_back_as_it_was(text in "(?s).{0,60}", key in "(?s).{0,20}") {
            prop_assume!(key != "next");
            check(&key, &text);
        }

        #[test]
        fn any_text_of_special_characters_comes_back_as_it_was(text in "[ \t\r\n#:'\"|>a\\-]{0,40}") {
            check("key", &text);
        }
    }
}
