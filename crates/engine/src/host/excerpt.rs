//! The first and the last bytes of a stream, for the report.

use proctor_domain::session::Excerpt;

/// Collects an [`Excerpt`] of a stream of any length in a fixed amount of memory.
#[derive(Debug, Default)]
pub(super) struct Excerpter {
    head: Vec<u8>,
    /// At least the last [`KEPT`] bytes of what followed the head, where there were that many.
    tail: Vec<u8>,
    total: u64,
}

/// A character has at most four bytes, so three more than the tail's length let the head give up the
/// beginning of one that it can't hold whole.
const KEPT: usize = Excerpt::TAIL + 3;

impl Excerpter {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(Excerpt::HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        if rest.len() >= KEPT {
            self.tail.clear();
        } else if self.tail.len() + rest.len() > 4 * KEPT {
            // Not at every push: many short lines would be moved about many times.
            self.tail.drain(..self.tail.len() - KEPT);
        }
        self.tail.extend_from_slice(&rest[rest.len().saturating_sub(KEPT)..]);
    }

    pub(super) fn finish(self) -> Excerpt {
        let Self { mut head, mut tail, total } = self;
        if total <= head.len() as u64 {
            return Excerpt { head: text(&head), tail: String::new(), omitted: 0 };
        }
        let cut = head.split_off(head.len() - unfinished(&head));
        if tail.len() as u64 + (head.len() + cut.len()) as u64 == total {
            tail.splice(0..0, cut);
        }
        let mut start = tail.len().saturating_sub(Excerpt::TAIL);
        if (tail.len() - start + head.len()) as u64 != total {
            start += continued(&tail[start..]);
        }
        let tail = &tail[start..];
        Excerpt { head: text(&head), tail: text(tail), omitted: total - (head.len() + tail.len()) as u64 }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How many bytes at the end begin a character that goes on after them.
fn unfinished(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    for (back, chunk) in bytes[start..].iter().rev().zip(1..) {
        let length = match back {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if length > chunk { chunk } else { 0 };
    }
    0
}

/// How many bytes at the start are the end of a character that began before them.
fn continued(bytes: &[u8]) -> usize {
    let count = bytes.iter().take(4).take_while(|byte| matches!(byte, 0x80..=0xBF)).count();
    // Four in a row are no character's; they are garbage, and shown as such.
    if count > 3 { 0 } else { count }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(bytes: &[u8], chunk: usize) -> Excerpt {
        let mut excerpter = Excerpter::default();
        bytes.chunks(chunk).for_each(|chunk| excerpter.push(chunk));
        excerpter.finish()
    }

    #[test]
    fn a_short_stream_is_in_the_head_alone() {
        for length in [0, 1, Excerpt::HEAD] {
            let bytes = vec![b'x'; length];

            let expected = Excerpt { head: "x".repeat(length), tail: String::new(), omitted: 0 };
            assert_eq!(excerpt(&bytes, 7), expected);
        }
    }

    #[test]
    fn a_middling_stream_is_whole_whatever_its_characters_and_chunks() {
        let long = "aß€𝄞".repeat((Excerpt::HEAD + Excerpt::TAIL) / 10);
        for shift in 0..4 {
            for chunk in [1, 3, 4096, 1_000_000] {
                let text = &long[shift.min(1)..];
                let whole = format!("{}{text}", "x".repeat(shift));

                let excerpt = excerpt(whole.as_bytes(), chunk);

                assert_eq!((excerpt.omitted, format!("{}{}", excerpt.head, excerpt.tail)), (0, whole), "{shift} {chunk}");
            }
        }
    }

    #[test]
    fn a_long_stream_loses_its_middle_between_characters() {
        for shift in 0..4 {
            for chunk in [1, 1000, 65536] {
                let whole = format!("{}{}", "x".repeat(shift), "𝄞€".repeat(20_000));

                let excerpt = excerpt(whole.as_bytes(), chunk);

                assert!(whole.starts_with(&excerpt.head) && whole.ends_with(&excerpt.tail), "{shift} {chunk}");
                assert!(excerpt.head.len() <= Excerpt::HEAD && excerpt.head.len() > Excerpt::HEAD - 4);
                assert!(excerpt.tail.len() <= Excerpt::TAIL && excerpt.tail.len() > Excerpt::TAIL - 4);
                assert_eq!(excerpt.head.len() + excerpt.tail.len() + usize::try_from(excerpt.omitted).unwrap(), whole.len());
            }
        }
    }

    #[test]
    fn one_byte_over_what_is_kept_is_counted() {
        let bytes = vec![b'x'; Excerpt::HEAD + Excerpt::TAIL + 1];

        let excerpt = excerpt(&bytes, 5000);

        assert_eq!((excerpt.head.len(), excerpt.tail.len(), excerpt.omitted), (Excerpt::HEAD, Excerpt::TAIL, 1));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let excerpt = excerpt(b"a\xff\xfeb\xe2\x82", 2);

        assert_eq!(excerpt.head, "a\u{fffd}\u{fffd}b\u{fffd}");
        let garbage = vec![0x80; 100_000];
        let excerpt = super::tests::excerpt(&garbage, 4096);
        assert_eq!(excerpt.omitted, (100_000 - Excerpt::HEAD - Excerpt::TAIL) as u64);
    }
}
