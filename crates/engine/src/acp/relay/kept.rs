//! What is kept of a command's output: its end.

/// The end of a stream.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

impl Kept {
    /// Keeps at most so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, is_cut: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Twice as much at most, so that not every byte moves all the others.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.bytes.len().saturating_sub(self.limit);
        if over > 0 {
            self.bytes.drain(..over);
            self.is_cut = true;
        }
    }

    /// The text, and whether there was more before it. A character that was cut in two is left out.
    pub(super) fn text(&mut self) -> (String, bool) {
        self.cut();
        let is_rest = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let torn = if self.is_cut { self.bytes.iter().take(3).take_while(|byte| is_rest(byte)).count() } else { 0 };
        let text = String::from_utf8_lossy(&self.bytes[torn..]);
        // What is no text has become longer.
        let from = (text.len().saturating_sub(self.limit)..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        (text[from..].to_owned(), self.is_cut || from > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: usize, parts: &[&[u8]]) -> (String, bool) {
        let mut kept = Kept::new(limit);
        parts.iter().for_each(|part| kept.push(part));
        kept.text()
    }

    #[test]
    fn the_end_is_kept_and_no_character_is_torn() {
        let text = |limit| kept(limit, &["äöü€".as_bytes()]);
        let expected = |text: &str, is_cut| (text.to_owned(), is_cut);

        assert_eq!(text(9), expected("äöü€", false));
        assert_eq!([text(8), text(7), text(3), text(2), text(0)], ["öü€", "öü€", "€", "", ""].map(|text| expected(text, true)));
        assert_eq!(kept(0, &[]), expected("", false));
    }

    #[test]
    fn it_is_the_same_in_however_many_parts_it_came() {
        let whole: String = (0..500).map(|number| format!("{number}é\n")).collect();
        for size in [1, 7, 1000] {
            let parts: Vec<&[u8]> = whole.as_bytes().chunks(size).collect();

            let (text, is_cut) = kept(100, &parts);

            assert!(whole.ends_with(&text) && is_cut && (99..=100).contains(&text.len()), "{text}");
        }
    }

    #[test]
    fn what_is_no_text_stays_within_the_limit_too() {
        let (text, is_cut) = kept(10, &[&[0xff; 10]]);

        assert_eq!((text.as_str(), is_cut), ("\u{fffd}\u{fffd}\u{fffd}", true));
    }
}
