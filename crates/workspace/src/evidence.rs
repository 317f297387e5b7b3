//! A diff as a judge reads it: whole where it fits, else with a list before it and every cut said.

use std::fmt::Write;

use proctor_domain::RepoPath;

/// A file's share below which its hunks are left out altogether.
const SMALLEST_SHARE: usize = 512;
/// What the words about a cut take.
const NOTE: usize = 160;

/// One changed file.
#[derive(Debug)]
pub(crate) struct FileChange {
    /// Its path before and after.
    pub(crate) paths: (RepoPath, RepoPath),
    /// Its mode before and after; `None` where it is not there.
    pub(crate) modes: (Option<String>, Option<String>),
    /// Its size before and after, in bytes.
    pub(crate) sizes: (u64, u64),
    pub(crate) body: Shape,
}

/// How a file's change can be shown.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Its hunks.
    Text { hunks: String, added: usize, removed: usize },
    /// Nothing that a person could read.
    Binary,
    /// Too large to be compared.
    TooLarge,
}

impl Shape {
    pub(crate) fn of(hunks: &[u8], too_large: bool) -> Self {
        if too_large {
            return Self::TooLarge;
        }
        let text = String::from_utf8_lossy(hunks);
        let zeros = text.matches('\0').count();
        // One NUL at the end of a long text would otherwise be a way to hide it from a judge.
        let unreadable = zeros + text.matches(char::REPLACEMENT_CHARACTER).count();
        if zeros > 0 && unreadable * 20 > text.chars().count() {
            return Self::Binary;
        }
        let lines = |mark: char| text.lines().filter(|line| line.starts_with(mark)).count();
        let (added, removed) = (lines('+'), lines('-'));
        Self::Text { hunks: text.replace('\0', "\u{2400}"), added, removed }
    }
}

impl FileChange {
    /// The part before the hunks, as git writes it.
    fn header(&self) -> String {
        let (old, new) = (prefixed("a/", &self.paths.0), prefixed("b/", &self.paths.1));
        let mut header = format!("diff --git {old} {new}\n");
        let _ = match (&self.modes.0, &self.modes.1) {
            (None, Some(mode)) => writeln!(header, "new file mode {mode}"),
            (Some(mode), None) => writeln!(header, "deleted file mode {mode}"),
            (Some(before), Some(after)) if before != after => writeln!(header, "old mode {before}\nnew mode {after}"),
            (_, _) => Ok(()),
        };
        if self.paths.0 != self.paths.1 {
            let _ = writeln!(header, "rename from {}\nrename to {}", self.paths.0, self.paths.1);
        }
        match &self.body {
            Shape::Text { hunks, .. } if hunks.is_empty() => {}
            Shape::Text { .. } => {
                let old = if self.modes.0.is_some() { &old } else { "/dev/null" };
                let new = if self.modes.1.is_some() { &new } else { "/dev/null" };
                let _ = writeln!(header, "--- {old}\n+++ {new}");
            }
            Shape::Binary => {
                let _ = writeln!(header, "[binary: {}]", self.size_words());
            }
            Shape::TooLarge => {
                let _ = writeln!(header, "[too large to be compared: {}]", self.size_words());
            }
        }
        header
    }

    fn hunks(&self) -> &str {
        match &self.body {
            Shape::Text { hunks, .. } => hunks,
            Shape::Binary | Shape::TooLarge => "",
        }
    }

    fn size_words(&self) -> String {
        match (&self.modes.0, &self.modes.1) {
            (None, _) => format!("{} bytes, new", self.sizes.1),
            (Some(_), None) => format!("{} bytes, deleted", self.sizes.0),
            (Some(_), Some(_)) => format!("{} bytes before, {} bytes now", self.sizes.0, self.sizes.1),
        }
    }

    /// Its line in the list.
    fn stat(&self) -> String {
        let name = if self.paths.0 == self.paths.1 { self.paths.1.to_string() } else { format!("{} => {}", self.paths.0, self.paths.1) };
        let what = match (&self.modes.0, &self.modes.1) {
            (None, _) => " (new)",
            (_, None) => " (deleted)",
            (Some(_), Some(_)) => "",
        };
        match &self.body {
            Shape::Text { added, removed, .. } => format!(" {name}{what} | +{added} -{removed}\n"),
            Shape::Binary | Shape::TooLarge => format!(" {name} | {}\n", self.size_words()),
        }
    }
}

/// A path with git's prefix, inside the quotes where there are some.
fn prefixed(prefix: &str, path: &RepoPath) -> String {
    RepoPath::new([prefix.as_bytes(), path.as_bytes()].concat()).to_string()
}

/// The whole, where it is not longer than `limit`; else the list of files and as much of each as its share allows.
pub(crate) fn render(changes: &[FileChange], limit: usize) -> String {
    let headers: Vec<String> = changes.iter().map(FileChange::header).collect();
    let lengths: Vec<usize> = changes.iter().zip(&headers).map(|(change, header)| header.len() + change.hunks().len()).collect();
    let length: usize = lengths.iter().sum();
    let mut text = String::with_capacity(length.min(limit) + NOTE);
    if length <= limit {
        for (change, header) in changes.iter().zip(&headers) {
            text.push_str(header);
            text.push_str(change.hunks());
        }
        return text;
    }
    let _ = writeln!(
        text,
        "[The whole diff has {length} bytes, which is more than the {limit} that are shown. What was cut is said where it was.]\n"
    );
    push_stat(&mut text, changes, limit / 3);
    let left = limit.saturating_sub(text.len() + NOTE);
    let shown = (left / SMALLEST_SHARE).clamp(1, changes.len());
    let share = fair_share(&lengths[..shown], left);
    for ((change, header), &length) in changes.iter().zip(&headers).zip(&lengths).take(shown) {
        text.push_str(header);
        push_hunks(&mut text, change.hunks(), if length <= share { usize::MAX } else { share.saturating_sub(header.len() + NOTE) });
    }
    if let Some(first) = changes.get(shown) {
        let _ = writeln!(text, "[The diffs of {} more files, from {} on, are not shown.]", changes.len() - shown, first.paths.1);
    }
    text
}

fn push_stat(text: &mut String, changes: &[FileChange], limit: usize) {
    let end = text.len() + limit;
    for (number, change) in changes.iter().enumerate() {
        let line = change.stat();
        if text.len() + line.len() > end {
            let _ = writeln!(text, "[{} more changed files are not listed.]", changes.len() - number);
            break;
        }
        text.push_str(&line);
    }
    let _ = writeln!(text, " {} files changed\n", changes.len());
}

/// What each may take so that all together take at most `available`: what the short ones leave goes to the long ones.
fn fair_share(lengths: &[usize], available: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut left = available;
    for (number, length) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - number);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// The beginning of the hunks, up to the last whole line, and words about the rest.
fn push_hunks(text: &mut String, hunks: &str, limit: usize) {
    if hunks.len() <= limit {
        text.push_str(hunks);
        return;
    }
    let end = hunks.floor_char_boundary(limit);
    // A line that is very long is cut in itself, or nothing would be left of a file of one line.
    let end = hunks[..end].rfind('\n').map(|newline| newline + 1).filter(|whole| *whole >= end / 2).unwrap_or(end);
    let (kept, cut) = hunks.split_at(end);
    text.push_str(kept);
    if !kept.is_empty() && !kept.ends_with('\n') {
        text.push('\n');
    }
    let _ = writeln!(text, "[Cut here: {} more bytes in {} lines of this file's diff are not shown.]", cut.len(), cut.lines().count());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, hunks: &[u8]) -> FileChange {
        let path = RepoPath::new(name);
        let mode = || Some("100644".to_owned());
        FileChange { paths: (path.clone(), path), modes: (mode(), mode()), sizes: (7, 9), body: Shape::of(hunks, false) }
    }

    #[test]
    fn what_short_files_leave_goes_to_long_ones() {
        for (lengths, available, share) in
            [(&[10, 100, 1000][..], 600, 490), (&[1, 2], 10, usize::MAX), (&[50, 50, 50], 90, 30), (&[], 5, usize::MAX)]
        {
            assert_eq!(fair_share(lengths, available), share, "{lengths:?}");
        }
    }

    #[test]
    fn a_text_is_not_hidden_by_one_nul_and_a_binary_is_not_shown() {
        let text = change("a", format!("@@ -1 +1 @@\n+{}\0\n", "x".repeat(100)).as_bytes());
        let binary = change("b", b"@@ -1 +1 @@\n+\x89\0\0\xff\0\n");

        assert!(render(&[text], 10_000).contains("xx\u{2400}\n"));
        assert_eq!(render(&[binary], 10_000), "diff --git a/b b/b\n[binary: 7 bytes before, 9 bytes now]\n");
    }

    #[test]
    fn no_limit_is_exceeded_by_more_than_the_words_about_cuts() {
        let changes: Vec<FileChange> =
            (0..500).map(|number| change(&format!("f{number}"), "+ä line\n".repeat(number).as_bytes())).collect();

        for limit in [2_000, 10_000, 100_000] {
            let text = render(&changes, limit);
            assert!(text.len() <= limit + NOTE, "{} for {limit}", text.len());
        }
    }

    #[test]
    fn one_long_line_is_cut_in_itself() {
        let text = render(&[change("a", format!("+{}\n", "ä".repeat(10_000)).as_bytes())], 4_000);

        assert!(text.contains("ää\n[Cut here: "), "{text}");
    }
}
