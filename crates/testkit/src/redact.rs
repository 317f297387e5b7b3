//! Replaces what differs from run to run: paths, ids, commits, times.

use std::collections::HashMap;
use std::path::Path;

const CROCKFORD: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// `text` with the world's root, ids, commits, times and durations replaced. Ids and commits are numbered in the
/// order in which they first appear, so that a snapshot still shows which are the same.
pub fn redact(text: &str, root: &Path) -> String {
    let text = text.replace(&root.display().to_string(), "[root]");
    let mut seen = Seen::default();
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut after_word = false;
    while let Some(letter) = rest.chars().next() {
        if !after_word && let Some(length) = time(rest) {
            shown.push_str("[time]");
            rest = &rest[length..];
            continue;
        }
        let word = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()).len();
        let prefixed = if rest.starts_with("run_") || rest.starts_with("ses_") { 14.min(rest.len()) } else { 0 };
        if !after_word && prefixed == 14 && rest.is_char_boundary(14) && is_id(&rest[..14]) {
            shown.push_str(&seen.label(&rest[..14]));
            rest = &rest[14..];
            continue;
        }
        if word == 0 {
            shown.push(letter);
            // A run folder is `<name>_<time>`.
            after_word = false;
            rest = &rest[letter.len_utf8()..];
            continue;
        }
        let (token, tail) = rest.split_at(word);
        shown.push_str(&seen.word(token, &shown));
        after_word = true;
        rest = tail;
    }
    shown
}

#[derive(Default)]
struct Seen {
    labels: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
}

impl Seen {
    fn label(&mut self, text: &str) -> String {
        let kind = match text.get(..4) {
            Some("run_") => "run",
            Some("ses_") => "session",
            _ => "commit",
        };
        if let Some(label) = self.labels.get(text) {
            return label.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let label = format!("[{kind} {count}]");
        self.labels.insert(text.to_owned(), label.clone());
        label
    }

    fn word(&mut self, word: &str, before: &str) -> String {
        let hex = word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if hex
            && word.len() == 8
            && before.ends_with('-')
            && before.rsplit(char::is_whitespace).next().is_some_and(|path| path.contains("/repos/"))
        {
            return "[id]".to_owned();
        }
        // People are shown the first twelve digits; both forms of one commit get one label.
        if hex && matches!(word.len(), 12 | 40 | 64) {
            return self.label(&word[..12]);
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) && before.ends_with("\"duration_ms\":") {
            return "[ms]".to_owned();
        }
        word.to_owned()
    }
}

fn is_id(text: &str) -> bool {
    text[4..].bytes().all(|byte| CROCKFORD.contains(&byte))
}

/// The length of the time at the start of `text`: `2026-03-02T06:00:00.123Z`, `2026-03-02 06:00`, or the
/// `2026-03-02T0600` of a run folder.
fn time(text: &str) -> Option<usize> {
    let fits = |pattern: &str, from: usize| {
        let part = text.as_bytes().get(from..from + pattern.len())?;
        let same =
            part.iter().zip(pattern.bytes()).all(|(byte, wanted)| if wanted == b'd' { byte.is_ascii_digit() } else { *byte == wanted });
        same.then_some(from + pattern.len())
    };
    let day = fits("dddd-dd-dd", 0)?;
    let hour = fits("T", day).or_else(|| fits(" ", day))?;
    let Some(minute) = fits("dd:dd", hour) else { return fits("dddd", hour) };
    let Some(second) = fits(":dd", minute) else { return Some(minute) };
    let fraction = fits(".", second).map_or(second, |from| from + text[from..].bytes().take_while(u8::is_ascii_digit).count());
    Some(fits("Z", fraction).or_else(|| fits("+dd:dd", fraction)).or_else(|| fits("-dd:dd", fraction)).unwrap_or(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_replaced() {
        for (text, expected) in [
            ("at /tmp/w1/repository/a.txt", "at [root]/repository/a.txt"),
            ("run_0000000011 and run_0000000012, run_0000000011", "[run 1] and [run 2], [run 1]"),
            ("ses_zzzzzzzzzz.lock", "[session 1].lock"),
            ("run_8x2 is short", "run_8x2 is short"),
            ("commit 0123456789ab of 0123456789abcdef0123456789abcdef01234567", "commit [commit 1] of [commit 1]"),
            ("/s/repos/name-0123abcd/journal.db", "/s/repos/name-[id]/journal.db"),
            ("name-0123abcd", "name-0123abcd"),
            ("\"started_at\":\"2026-03-02T06:00:00.123Z\"", "\"started_at\":\"[time]\""),
            ("hello_2026-03-02T0600/run", "hello_[time]/run"),
            ("2026-03-02 06:00 done", "[time] done"),
            ("\"duration_ms\":123,\"attempts\":1", "\"duration_ms\":[ms],\"attempts\":1"),
            ("ä plain — text", "ä plain — text"),
        ] {
            assert_eq!(redact(text, Path::new("/tmp/w1")), expected);
        }
    }
}
