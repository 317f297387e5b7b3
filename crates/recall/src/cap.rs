//! How much of a record is shown at once.

/// Bytes of one record that are shown to who tries something: about 300 tokens.
pub const CAP: usize = 1200;

/// A text, cut where it was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capped<'text> {
    /// What is shown.
    pub text: &'text str,
    /// How many bytes are not.
    pub left_off: usize,
}

impl<'text> Capped<'text> {
    /// The first `most` bytes, or a few less: a character is never cut.
    pub fn of(text: &'text str, most: usize) -> Self {
        let end = text.floor_char_boundary(most);
        Self { text: &text[..end], left_off: text.len() - end }
    }

    /// What to say where something was left off.
    pub fn notice(&self, id: &str) -> Option<String> {
        (self.left_off > 0).then(|| format!("[{} bytes more: `proctor memory show {id}`]", self.left_off))
    }
}

/// Cuts several texts of one record, in order, to [`CAP`] bytes together. No text takes more than half of what is left, as
/// long as others follow: a long route does not push its trap out.
pub fn share(texts: &[&str]) -> Vec<usize> {
    let mut left = CAP;
    let mut shares = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let rest: usize = texts[index + 1..].iter().map(|text| text.len()).sum();
        let most = left.saturating_sub(rest).max(left / 2);
        let share = text.floor_char_boundary(most.min(text.len()));
        left -= share;
        shares.push(share);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character_and_says_so() {
        let text = "é".repeat(700);

        let capped = Capped::of(&text, 1201);

        assert_eq!((capped.text.len(), capped.left_off), (1200, 200));
        assert_eq!(capped.notice("mem_1"), Some("[200 bytes more: `proctor memory show mem_1`]".to_owned()));
        assert_eq!(Capped::of("short", CAP).notice("mem_1"), None);
    }

    #[test]
    fn a_long_route_does_not_push_its_trap_out() {
        let (route, trap) = ("r".repeat(5000), "t".repeat(300));

        assert_eq!(share(&[&route, &trap]), [900, 300]);
        assert_eq!(share(&[&route, &route]), [600, 600]);
        assert_eq!(share(&["a", "b"]), [1, 1]);
    }
}
