//! Bytes that arrive in pieces, as text that is harmless on a screen.
//!
//! Sequences that colour text or move the cursor (`ESC [ … letter`) are left out: escaped, they would only be in the way.

use std::borrow::Cow;

use crate::printer::visible;

/// Turns pieces of a stream into text. A character, or a line break of two bytes, that is cut by the end of a piece
/// waits for the rest, and so does a sequence; nothing else does, so a line without end costs no memory.
#[derive(Debug, Default)]
pub(super) struct Escaper {
    waiting: Vec<u8>,
    /// Whether the last line that was given out has not ended.
    inside_line: bool,
}

impl Escaper {
    /// The text of the next piece.
    pub(super) fn feed(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.waiting);
        bytes.extend_from_slice(piece);
        let whole = bytes.len() - unfinished(&bytes);
        self.waiting = bytes.split_off(whole);
        self.give(&bytes)
    }

    /// What still waits, and a line break if the last line has none.
    pub(super) fn finish_line(&mut self) -> String {
        let waiting = std::mem::take(&mut self.waiting);
        let mut text = self.give(&waiting);
        if self.inside_line {
            text.push('\n');
            self.inside_line = false;
        }
        text
    }

    fn give(&mut self, bytes: &[u8]) -> String {
        let text = visible(&without_sequences(&String::from_utf8_lossy(bytes))).into_owned();
        if let Some(last) = text.chars().last() {
            self.inside_line = last != '\n';
        }
        text
    }
}

/// A longer sequence is none.
const LONGEST_SEQUENCE: usize = 64;

/// How far a text that begins with an escape is a sequence.
enum Sequence {
    Whole(usize),
    Begun,
    None,
}

fn sequence(bytes: &[u8]) -> Sequence {
    let Some(inner) = bytes.strip_prefix(b"\x1b[") else {
        return if bytes == b"\x1b" { Sequence::Begun } else { Sequence::None };
    };
    let parameters = inner.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    match inner.get(parameters) {
        _ if parameters > LONGEST_SEQUENCE => Sequence::None,
        Some(0x40..=0x7e) => Sequence::Whole("\x1b[".len() + parameters + 1),
        Some(_) => Sequence::None,
        None => Sequence::Begun,
    }
}

fn without_sequences(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(found) = text[at..].find('\x1b') {
        at += found;
        if let Sequence::Whole(length) = sequence(&text.as_bytes()[at..]) {
            kept.push_str(&text[from..at]);
            at += length;
            from = at;
        } else {
            at += 1;
        }
    }
    if from == 0 { Cow::Borrowed(text) } else { Cow::Owned(kept + &text[from..]) }
}

/// How many bytes at the end may belong to something that goes on in the next piece.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(LONGEST_SEQUENCE + 2).position(|byte| *byte == b'\x1b');
    if let Some(start) = last.map(|back| bytes.len() - 1 - back)
        && matches!(sequence(&bytes[start..]), Sequence::Begun)
    {
        return bytes.len() - start;
    }
    if bytes.last() == Some(&b'\r') {
        return 1;
    }
    // A character has at most four bytes, so its first is among the last three when it is cut.
    for length in 1..=bytes.len().min(3) {
        let end = &bytes[bytes.len() - length..];
        let first = end[0];
        if first & 0b1100_0000 == 0b1000_0000 {
            continue;
        }
        let needed = match first {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            _ => 1,
        };
        return if needed > length { length } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_give_the_same_text_wherever_they_are_cut() {
        let bytes = "plain äöü €\u{1F600}\r\nover\rwrite \u{1b}[2;31mred\u{1b}[0m \u{1b}]0;t\u{1b}[é end\u{1b}".as_bytes();
        let whole = "plain äöü €\u{1F600}\nover\\rwrite red \\u{1b}]0;t\\u{1b}[é end\\u{1b}\n";

        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut escaper = Escaper::default();
                let mut text = escaper.feed(&bytes[..first]);
                text.push_str(&escaper.feed(&bytes[first..second]));
                text.push_str(&escaper.feed(&bytes[second..]));
                text.push_str(&escaper.finish_line());

                assert_eq!(text, whole, "{first} {second}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_hold_nothing_back() {
        let mut escaper = Escaper::default();

        assert_eq!(escaper.feed(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        assert_eq!(escaper.feed(b"\xe2\x82"), "");
        assert_eq!(escaper.feed(b"c\n"), "\u{fffd}c\n");
        assert_eq!(escaper.finish_line(), "");
    }

    #[test]
    fn an_unfinished_line_is_ended_once() {
        let mut escaper = Escaper::default();
        escaper.feed(b"no end");

        assert_eq!(escaper.finish_line(), "\n");
        assert_eq!(escaper.finish_line(), "");
    }
}
