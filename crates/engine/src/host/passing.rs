//! Lines of an agent that only show that it is alive, taken out before anything is kept: the pieces of a long answer are
//! several times as long as the answer, which comes whole after them.

use std::borrow::Cow;

/// Takes out the lines that begin in one way.
#[derive(Debug)]
pub(super) struct Passing {
    beginning: &'static [u8],
    line: Line,
}

/// The line that was begun.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// So much of it is as the beginning is; it is held back.
    MayPass(usize),
    Kept,
    Passed,
}

impl Passing {
    /// With nothing for a beginning, all lines are kept.
    pub(super) fn new(beginning: &'static [u8]) -> Self {
        Self { beginning, line: Line::MayPass(0) }
    }

    /// What is to be kept of these bytes, and whether anything is not.
    pub(super) fn strip<'a>(&mut self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, bool) {
        if self.beginning.is_empty() {
            return (Cow::Borrowed(bytes), false);
        }
        let mut kept = Vec::with_capacity(bytes.len());
        let mut has_passed = false;
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let rest = self.decide(part, &mut kept);
            match self.line {
                Line::Kept => kept.extend_from_slice(rest),
                Line::Passed => has_passed = true,
                Line::MayPass(_) => {}
            }
            if part.ends_with(b"\n") {
                self.line = Line::MayPass(0);
            }
        }
        (Cow::Owned(kept), has_passed)
    }

    /// Looks how the line begins, as far as that is not known; the part of it that was not looked at.
    fn decide<'a>(&mut self, part: &'a [u8], kept: &mut Vec<u8>) -> &'a [u8] {
        let Line::MayPass(known) = self.line else { return part };
        let awaited = &self.beginning[known..];
        let same = awaited.iter().zip(part).take_while(|(awaited, byte)| awaited == byte).count();
        if same == awaited.len() {
            self.line = Line::Passed;
        } else if same == part.len() {
            self.line = Line::MayPass(known + same);
        } else {
            self.line = Line::Kept;
            kept.extend_from_slice(&self.beginning[..known]);
            return part;
        }
        &part[same..]
    }

    /// What was held back of a line that has no end.
    pub(super) fn finish(&mut self) -> &'static [u8] {
        match std::mem::replace(&mut self.line, Line::MayPass(0)) {
            Line::MayPass(known) => &self.beginning[..known],
            Line::Kept | Line::Passed => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &[u8] = b"{\"a\"}\nP:gone\nPa\n\nP:\nP\nP:also\nlast P:\nP";

    #[test]
    fn lines_that_begin_so_are_gone_wherever_the_bytes_are_cut() {
        for size in 1..=PRINTED.len() {
            let mut passing = Passing::new(b"P:");
            let mut kept = Vec::new();
            let mut has_passed = false;
            for piece in PRINTED.chunks(size) {
                let (part, passed) = passing.strip(piece);
                kept.extend_from_slice(&part);
                has_passed |= passed;
            }
            kept.extend_from_slice(passing.finish());

            assert_eq!(String::from_utf8_lossy(&kept), "{\"a\"}\nPa\n\nP\nlast P:\nP", "{size}");
            assert!(has_passed);
        }
    }

    #[test]
    fn without_a_beginning_everything_is_kept() {
        let mut passing = Passing::new(b"");

        assert_eq!(passing.strip(PRINTED), (Cow::Borrowed(PRINTED), false));
        assert_eq!(passing.finish(), b"");
    }
}
