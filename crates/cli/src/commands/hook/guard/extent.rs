//! How much of a file a read gives.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// What is looked at of a file's beginning or end. A part that is longer than this is over every budget of bytes.
const WINDOW: u64 = 16 << 20;
/// Where a zero byte tells that a file is no text.
const SAMPLE: usize = 8192;
/// Files that tools show in a form of their own.
const SHOWN_OTHERWISE: [&str; 2] = ["ipynb", "pdf"];

/// Which lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// The first.
    Head(u64),
    /// All but the last.
    HeadBut(u64),
    /// The last.
    Tail(u64),
    /// From this one on, counted from 1.
    From(u64),
}

/// Lines and bytes. A line counts where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Extent {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl Extent {
    pub(super) fn and(self, other: Self) -> Self {
        Self { lines: self.lines.saturating_add(other.lines), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if self.lines == 1 { "line" } else { "lines" };
        write!(formatter, "{} {lines} ({} KiB)", self.lines, self.bytes.div_ceil(1024))
    }
}

/// What a part of a file comes to; `None` where it is no text, is not there, or can't be told.
pub(super) fn of(path: &Path, part: Part) -> Option<Extent> {
    if path.extension().is_some_and(|extension| SHOWN_OTHERWISE.iter().any(|other| extension.eq_ignore_ascii_case(other))) {
        return None;
    }
    // Opening a pipe would wait for its other end.
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    let mut file = File::open(path).ok()?;
    let first = read(&mut file, 0..size.min(WINDOW))?;
    if first[..first.len().min(SAMPLE)].contains(&0) {
        return None;
    }
    let is_whole = size <= WINDOW;
    let range = match part {
        Part::All => 0..size,
        Part::Head(number) => 0..start_of(&first, number).unwrap_or(size),
        Part::From(number) => start_of(&first, number.saturating_sub(1)).or_else(|| is_whole.then_some(size))?..size,
        Part::Tail(_) | Part::HeadBut(_) => {
            let last = if is_whole { first.clone() } else { read(&mut file, size - WINDOW..size)? };
            match (part, start_from_end(&last, part)) {
                (Part::Tail(_), Some(start)) => size - (last.len() as u64 - start)..size,
                (Part::Tail(_), None) => 0..size,
                (_, Some(start)) => 0..size - (last.len() as u64 - start),
                // Fewer lines than are left off.
                (_, None) if is_whole => 0..0,
                (_, None) => return None,
            }
        }
    };
    let bytes = range.end - range.start;
    let counted = if is_whole { first.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)? } else { &first[..] };
    Some(Extent { lines: newlines(counted), bytes })
}

fn read(file: &mut File, range: Range<u64>) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(range.start)).ok()?;
    let mut bytes = Vec::new();
    file.take(range.end - range.start).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Where the line after so many begins.
fn start_of(bytes: &[u8], number: u64) -> Option<u64> {
    if number == 0 {
        return Some(0);
    }
    let nth = usize::try_from(number - 1).ok()?;
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(position, _)| position as u64 + 1).nth(nth)
}

/// Where the last lines begin. What follows the last line's end is a line too.
fn start_from_end(bytes: &[u8], part: Part) -> Option<u64> {
    let (Part::Tail(number) | Part::HeadBut(number)) = part else { return None };
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if number == 0 {
        return Some(bytes.len() as u64);
    }
    let nth = usize::try_from(number - 1).ok()?;
    let ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(position, _)| position as u64 + 1).nth(nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(text: &[u8], part: Part) -> Option<(u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.txt");
        File::create(&path).and_then(|mut file| std::io::Write::write_all(&mut file, text)).unwrap();
        of(&path, part).map(|extent| (extent.lines, extent.bytes))
    }

    #[test]
    fn each_part_gives_its_lines_and_bytes() {
        let text = b"1\n22\n333\n4444\n";
        for (part, expected) in [
            (Part::All, (4, 14)),
            (Part::Head(0), (0, 0)),
            (Part::Head(2), (2, 5)),
            (Part::Head(9), (4, 14)),
            (Part::HeadBut(1), (3, 9)),
            (Part::HeadBut(0), (4, 14)),
            (Part::HeadBut(9), (0, 0)),
            (Part::Tail(1), (1, 5)),
            (Part::Tail(9), (4, 14)),
            (Part::Tail(0), (0, 0)),
            (Part::From(0), (4, 14)),
            (Part::From(1), (4, 14)),
            (Part::From(3), (2, 9)),
            (Part::From(9), (0, 0)),
        ] {
            assert_eq!(extent(text, part), Some(expected), "{part:?}");
        }
        assert_eq!(extent(b"1\n22", Part::Tail(1)), Some((0, 2)));
        assert_eq!(extent(b"", Part::All), Some((0, 0)));
    }

    #[test]
    fn what_is_no_text_or_no_file_passes() {
        assert_eq!(extent(b"a\0b\n", Part::All), None);
        assert_eq!(of(Path::new("/no/such/file"), Part::All), None);
        assert_eq!(of(Path::new("/"), Part::All), None);
        assert_eq!(of(Path::new("/dev/zero"), Part::All), None);
    }
}
