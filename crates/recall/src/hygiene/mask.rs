//! Secrets, taken out of a record before it is written.

use proctor_engine::redact::{REDACTED, Secrets, redact_text};

use super::random;
use crate::record::Record;

/// What is to be taken out: values that are known, what has the shape of a token, and what looks drawn at random.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    secrets: Secrets,
}

/// What was taken out of a record, for the receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masked {
    /// How many secrets.
    pub count: usize,
    /// The fields in which they were.
    pub fields: Vec<&'static str>,
}

impl Masked {
    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, field: &'static str, count: usize) {
        self.count += count;
        if count > 0 && !self.fields.contains(&field) {
            self.fields.push(field);
        }
    }
}

impl Mask {
    /// Takes out these values too, wherever they stand.
    pub fn new(values: &[Vec<u8>]) -> Self {
        Self { secrets: Secrets::new(values) }
    }

    /// The text without its secrets, and how many there were.
    pub fn text(&self, text: &str) -> (String, usize) {
        let (masked, count) = self.once(text);
        let joined: String = masked.split(['\n', '\r']).map(str::trim).collect();
        if joined == masked {
            return (masked, count);
        }
        // A secret that was broken over two lines is one only when they are joined. Where that is so, the lines are given up.
        let (whole, more) = self.once(&joined);
        if more > 0 { (whole, count + more) } else { (masked, count) }
    }

    fn once(&self, text: &str) -> (String, usize) {
        let before = text.matches(REDACTED).count();
        let shaped = redact_text(&self.secrets, text);
        let (masked, random) = random::mask(&shaped);
        (masked, (shaped.matches(REDACTED).count() + random).saturating_sub(before))
    }

    /// Takes the secrets out of every text of a record.
    pub fn record(&self, record: &mut Record) -> Masked {
        let mut masked = Masked::default();
        let mut clean = |field: &'static str, text: &mut String| {
            let (without, count) = self.text(text);
            *text = without;
            masked.add(field, count);
        };
        clean("route", &mut record.route);
        for (field, text) in [
            ("trap", &mut record.trap),
            ("observation", &mut record.observation),
            ("alternative", &mut record.alternative),
            ("verify", &mut record.verify),
            ("project", &mut record.project),
            ("worktree", &mut record.worktree),
            ("agent", &mut record.agent),
            // These come from the environment, in which anything may stand.
            ("session", &mut record.session),
            ("commit", &mut record.commit),
        ] {
            if let Some(text) = text {
                clean(field, text);
            }
        }
        record.files.iter_mut().for_each(|file| clean("files", file));
        for dependency in &mut record.dependencies {
            clean("deps", &mut dependency.name);
            dependency.version.iter_mut().for_each(|version| clean("deps", version));
        }
        record.other.iter_mut().for_each(|(_, value)| clean("metadata", value));
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_shapes_and_random_words_are_taken_out() {
        let mask = Mask::new(&[b"canary-value-1".to_vec()]);

        assert_eq!(mask.text("it says canary-value-1 here"), ("it says [redacted] here".to_owned(), 1));
        assert_eq!(mask.text("ghp_0123456789012345678901234567890123456789"), ("[redacted]".to_owned(), 1));
        assert_eq!(mask.text("Zk3vQ9xT1mB7rN5cW8yH2jL6 [redacted]"), ("[redacted] [redacted]".to_owned(), 1));
        assert_eq!(mask.text("two\nlines"), ("two\nlines".to_owned(), 0));
    }

    #[test]
    fn a_secret_that_was_broken_over_two_lines_is_taken_out() {
        let mask = Mask::new(&[b"canary-value-1".to_vec()]);

        for text in ["it is canary-\n  value-1", "it is canary-\r\nvalue-1", "it is ghp_01234567890123456\n78901234567890123456789"] {
            assert_eq!(mask.text(text), ("it is [redacted]".to_owned(), 1), "{text:?}");
        }
    }
}
