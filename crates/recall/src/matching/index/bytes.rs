//! The form of an index: a head, and sections that are read where they lie.

use super::{Fingerprint, Place};
use crate::Polarity;

/// Changes with the form, and with whatever changes the keys of terms.
const FORM: u64 = 3;
const MAGIC: u64 = u64::from_le_bytes(*b"proctrec");
/// Magic, form, checksum, fingerprint (four), records, terms, three average lengths, seven ends of sections.
const HEAD: usize = 8 * 19;
/// Source, length, offset, project, polarity, three lengths of fields, line, id, text.
pub(super) const RECORD: usize = 54;
/// How long an id is without its prefix.
pub(super) const ID: usize = 10;
/// A record that belongs to no project.
pub(super) const NO_PROJECT: u32 = u32::MAX;

/// Why bytes are no index. The remedy is always to make it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damaged {
    /// It is not an index, or one of another form.
    #[error("read an index: it has another form")]
    Form,
    /// It was cut short or changed.
    #[error("read an index: its checksum is another")]
    Checksum,
}

/// Where each section begins and ends, and the figures of the head.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sections {
    pub(super) fingerprint: Fingerprint,
    pub(super) records: usize,
    pub(super) terms: usize,
    /// Average numbers of terms in route, trap and observation.
    pub(super) averages: [f32; 3],
    ends: [usize; 7],
}

/// The sections, in their order.
#[derive(Debug, Clone, Copy)]
pub(super) enum Section {
    /// Ends of terms in the section of words, four bytes each.
    WordEnds,
    Words,
    /// Ends of postings, four bytes each.
    PostingEnds,
    Postings,
    /// Ends of the lists of terms by record, four bytes each.
    ForwardEnds,
    Forward,
    Records,
}

/// What is put into an index.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) fingerprint: Fingerprint,
    pub(super) records: usize,
    pub(super) terms: usize,
    pub(super) averages: [f32; 3],
    pub(super) sections: [Vec<u8>; 7],
}

impl Parts {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.sections.iter().map(Vec::len).sum::<usize>());
        let mut put = |number: u64| bytes.extend_from_slice(&number.to_le_bytes());
        put(MAGIC);
        put(FORM);
        put(0);
        for part in self.fingerprint.0.chunks_exact(8) {
            put(word(part, 0));
        }
        put(self.records as u64);
        put(self.terms as u64);
        for average in self.averages {
            put(u64::from(average.to_bits()));
        }
        let mut end = HEAD;
        for section in &self.sections {
            end += section.len();
            put(end as u64);
        }
        for section in &self.sections {
            bytes.extend_from_slice(section);
        }
        let sum = checksum(&bytes);
        bytes[16..24].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

impl Sections {
    /// Reads the head, and looks at every byte once.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, Damaged> {
        if bytes.len() < HEAD || word(bytes, 0) != MAGIC || word(bytes, 1) != FORM {
            return Err(Damaged::Form);
        }
        let sections = Self::head(bytes);
        let is_whole = sections.ends[6] == bytes.len() && sections.ends.is_sorted() && sections.ends[0] >= HEAD;
        if !is_whole || word(bytes, 2) != checksum(bytes) {
            return Err(Damaged::Checksum);
        }
        Ok(sections)
    }

    /// Reads the head alone, of bytes that were just made.
    pub(super) fn head(bytes: &[u8]) -> Self {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(&bytes[24..56]);
        let size = |index: usize| usize::try_from(word(bytes, index)).unwrap_or(usize::MAX);
        let average = |index: usize| f32::from_bits(u32::try_from(word(bytes, index)).unwrap_or_default());
        Self {
            fingerprint: Fingerprint(fingerprint),
            records: size(7),
            terms: size(8),
            averages: [average(9), average(10), average(11)],
            ends: std::array::from_fn(|index| size(12 + index)),
        }
    }

    pub(super) fn bytes<'a>(&self, bytes: &'a [u8], section: Section) -> &'a [u8] {
        let index = section as usize;
        let start = if index == 0 { HEAD } else { self.ends[index - 1] };
        bytes.get(start..self.ends[index]).unwrap_or_default()
    }

    /// The entry of this number in a section, by the section of its ends.
    fn entry<'a>(&self, bytes: &'a [u8], ends: Section, entries: Section, number: usize) -> &'a [u8] {
        let ends = self.bytes(bytes, ends);
        let start = if number == 0 { 0 } else { short(ends, number - 1) };
        self.bytes(bytes, entries).get(start as usize..short(ends, number) as usize).unwrap_or_default()
    }

    pub(super) fn term<'a>(&self, bytes: &'a [u8], number: usize) -> &'a str {
        std::str::from_utf8(self.entry(bytes, Section::WordEnds, Section::Words, number)).unwrap_or_default()
    }

    pub(super) fn postings<'a>(&self, bytes: &'a [u8], term: usize) -> Packed<'a> {
        Packed::of(self.entry(bytes, Section::PostingEnds, Section::Postings, term))
    }

    pub(super) fn forward<'a>(&self, bytes: &'a [u8], record: usize) -> Packed<'a> {
        Packed::of(self.entry(bytes, Section::ForwardEnds, Section::Forward, record))
    }

    pub(super) fn record(&self, bytes: &[u8], number: usize) -> Entry {
        let row = self.bytes(bytes, Section::Records).get(number * RECORD..).unwrap_or_default();
        let place = Place { source: short(row, 0), line: short(row, 6), length: short(row, 1), offset: word(row, 1) };
        let last = row.get(20..24).unwrap_or(&[0; 4]);
        let polarity = if last[0] == 0 { Polarity::Works } else { Polarity::Fails };
        let id = row.get(28..38).and_then(|id| id.try_into().ok()).unwrap_or_default();
        let text = row.get(38..RECORD).and_then(|text| text.try_into().ok()).unwrap_or_default();
        Entry { place, project: short(row, 4), polarity, lengths: [last[1], last[2], last[3]], id, text }
    }
}

/// What stands in the section of records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) project: u32,
    pub(super) polarity: Polarity,
    pub(super) lengths: [u8; 3],
    /// The id without its prefix; zeros for what has none.
    pub(super) id: [u8; ID],
    /// Names the text that its vector is of.
    pub(super) text: [u8; 16],
}

impl Entry {
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.place.source.to_le_bytes());
        bytes.extend_from_slice(&self.place.length.to_le_bytes());
        bytes.extend_from_slice(&self.place.offset.to_le_bytes());
        bytes.extend_from_slice(&self.project.to_le_bytes());
        bytes.push(match self.polarity {
            Polarity::Works => 0,
            Polarity::Fails => 1,
        });
        bytes.extend_from_slice(&self.lengths);
        bytes.extend_from_slice(&self.place.line.to_le_bytes());
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.text);
    }
}

/// Numbers that rise, each with a mask of fields.
#[derive(Debug, Clone)]
pub(super) struct Packed<'a> {
    /// How many there are.
    pub(super) count: usize,
    rest: &'a [u8],
    last: u32,
}

impl<'a> Packed<'a> {
    fn of(mut rest: &'a [u8]) -> Self {
        let count = take(&mut rest).unwrap_or_default();
        Self { count: usize::try_from(count).unwrap_or_default(), rest, last: 0 }
    }

    /// Writes numbers that rise.
    pub(super) fn put(entries: &[(u32, u8)], bytes: &mut Vec<u8>) {
        give(entries.len() as u64, bytes);
        let mut last = 0;
        for (number, mask) in entries {
            give(u64::from(number - last) << 4 | u64::from(*mask), bytes);
            last = *number;
        }
    }
}

impl Iterator for Packed<'_> {
    type Item = (u32, u8);

    fn next(&mut self) -> Option<(u32, u8)> {
        let packed = take(&mut self.rest)?;
        self.last = self.last.wrapping_add(u32::try_from(packed >> 4).ok()?);
        Some((self.last, (packed & 15) as u8))
    }
}

/// Writes a number in groups of seven bits, the low ones first.
fn give(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 128 {
        bytes.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (first, others) = rest.split_first()?;
        *rest = others;
        number |= u64::from(first & 127) << shift;
        if first & 128 == 0 {
            return Some(number);
        }
    }
    None
}

fn word(bytes: &[u8], index: usize) -> u64 {
    bytes.get(index * 8..index * 8 + 8).and_then(|part| part.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn short(bytes: &[u8], index: usize) -> u32 {
    bytes.get(index * 4..index * 4 + 4).and_then(|part| part.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// A sum over everything but itself. It tells accidents, not intent: who may write here may write the records as well.
fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1_u64, 2, 3, 4];
    let tail = &bytes[24..];
    let chunks = tail.chunks_exact(32);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (index, lane) in lanes.iter_mut().enumerate() {
            *lane = (*lane ^ word(chunk, index)).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    let mut sum = lanes.iter().fold(bytes.len() as u64, |sum, lane| (sum ^ lane).wrapping_mul(PRIME).rotate_left(31));
    for byte in rest {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(PRIME).rotate_left(31);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_come_out_as_they_went_in() {
        let entries = [(0, 1), (1, 15), (300, 2), (70_000, 8), (u32::MAX, 4)];
        let mut bytes = Vec::new();

        Packed::put(&entries, &mut bytes);

        assert_eq!(Packed::of(&bytes).count, 5);
        assert_eq!(Packed::of(&bytes).collect::<Vec<_>>(), entries);
        // Cut short, it ends; it does not go on with something else.
        assert_eq!(Packed::of(&bytes[..bytes.len() - 1]).collect::<Vec<_>>(), entries[..4]);
    }
}
