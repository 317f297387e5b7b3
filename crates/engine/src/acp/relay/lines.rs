//! Where the lines of a stream end.

/// A longer line is passed on and not looked into: no request is that long.
const LONGEST: usize = 64 * 1024 * 1024;
/// A longer line's memory is given back.
const KEPT: usize = 64 * 1024;

/// The line that is being read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    /// Takes in what comes next; `take` gets each line that is whole with it.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.begun.is_empty() && !self.is_too_long {
                take(line);
            } else {
                self.begin(line);
                self.end(take);
            }
            rest = after;
        }
        self.begin(rest);
    }

    fn begin(&mut self, part: &[u8]) {
        self.is_too_long |= self.begun.len() + part.len() > LONGEST;
        if self.is_too_long {
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(part);
        }
    }

    fn end(&mut self, take: &mut dyn FnMut(&[u8])) {
        if !self.is_too_long {
            take(&self.begun);
        }
        self.is_too_long = false;
        if self.begun.capacity() > KEPT {
            self.begun = Vec::new();
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_wherever_the_stream_is_cut() {
        let text = b"one\n\ntwo words\nand an end";
        for cut in 0..=text.len() {
            let (mut lines, mut taken) = (Lines::default(), Vec::new());
            for part in [&text[..cut], &text[cut..]] {
                lines.push(part, &mut |line| taken.push(String::from_utf8(line.to_vec()).unwrap()));
            }

            assert_eq!(taken, ["one", "", "two words"], "at {cut}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_not() {
        let (mut lines, mut taken) = (Lines::default(), Vec::new());
        let part = vec![b'x'; LONGEST / 4];
        for _ in 0..5 {
            lines.push(&part, &mut |line| taken.push(line.to_vec()));
        }
        lines.push(b"x\nnext\n", &mut |line| taken.push(line.to_vec()));

        assert_eq!(taken, [b"next".to_vec()]);
    }
}
