//! One file, piece by piece. What is not changed is written back byte for byte.

use std::collections::HashSet;

use proctor_domain::RecordId;
use sha2::{Digest, Sha256};

use super::Damage;
use crate::line::body::{self, Remark};
use crate::line::trailer::{self, Split};
use crate::line::{bullet, join};
use crate::matching::Place;
use crate::record::{Approval, Polarity, Record};

/// Which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// What works.
    Works,
    /// What fails.
    Fails,
    /// What nobody approved, of both.
    Pending,
}

impl FileKind {
    /// Every file. Where a record goes from one to another it is written to the new one first, so who reads in this order
    /// never misses it.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Works, Self::Fails];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Works => "works.md",
            Self::Fails => "fails.md",
            Self::Pending => "pending.md",
        }
    }

    /// Where a record belongs.
    pub fn of(record: &Record) -> Self {
        match (record.approval, record.polarity) {
            (Approval::Active, Polarity::Works) => Self::Works,
            (Approval::Active, Polarity::Fails) => Self::Fails,
            (Approval::Proposed | Approval::Rejected, _) => Self::Pending,
        }
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Works => "# What works, and its trap",
            Self::Fails => "# What fails",
            Self::Pending => "# Proposed and rejected records",
        }
    }

    fn explanation(self) -> &'static str {
        match self {
            Self::Works => "A line is a record: `- route: … | trap: …`. Edit, add and remove lines as you like.",
            Self::Fails => "A line is a record: `- route: … | observation: …`. Edit, add and remove lines as you like.",
            Self::Pending => "Nothing here is shown to agents. `proctor memory approve ID` makes it count.",
        }
    }
}

/// The version of the files' form.
const VERSION: u32 = 1;
const HEADER: &str = "<!-- proctor memory ";
const END: &str = "<!-- end of memory -->";
/// What some editors put in front of UTF-8.
pub(crate) const MARK: &str = "\u{feff}";

/// Whether this is the line by which our files are known.
pub(crate) fn is_header(line: &str) -> bool {
    line.starts_with(HEADER)
}

/// A record with the line that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// What its reader should be told.
    pub remarks: Vec<Remark>,
    /// The file.
    pub file: FileKind,
    /// The line, from 1; 0 for one that was not written yet.
    pub line: usize,
    /// What stands on the line between bullet and metadata, as it is written.
    pub body: String,
    /// The id that stands there. Where it is another line's too, it does not count.
    pub(super) written_id: Option<RecordId>,
    /// Where its line begins in the file, in bytes, as it was read.
    offset: u64,
    raw: String,
}

impl Entry {
    /// Whether it says what a record has to say. What does not is kept, and never shown to who tries something.
    pub fn is_complete(&self) -> bool {
        self.record.check().is_ok()
    }

    /// Whether the line has an id of its own.
    pub fn has_id(&self) -> bool {
        self.written_id.as_ref() == Some(&self.record.id)
    }

    /// Where it stands, as it was read.
    pub(crate) fn place(&self, source: u32) -> Place {
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Place { source, line: short(self.line), offset: self.offset, length: short(self.raw.len()) }
    }

    /// The entry whose line stands at this place, under the id and in the project that it has among all of its folder.
    pub(crate) fn at(place: Place, raw: &[u8], kind: FileKind, id: Option<&RecordId>, project: Option<&str>) -> Option<Self> {
        let raw = text(raw).ok()?;
        let mut reader = Reader::new(kind, raw);
        reader.offset = place.offset;
        for (index, line) in raw.split_inclusive('\n').enumerate() {
            reader.take(usize::try_from(place.line).ok()? + index, line).ok()?;
        }
        let [Piece::Entry(entry)] = reader.document.pieces.as_slice() else { return None };
        let mut entry = entry.as_ref().clone();
        entry.record.id = id.unwrap_or(&entry.record.id).clone();
        entry.record.project = entry.record.project.or_else(|| project.map(str::to_owned));
        Some(entry)
    }

    /// Makes the line anew, with the metadata of `record`.
    fn write(&mut self, record: &Record, line_break: &str) {
        let ends = if self.raw.ends_with('\n') { line_break } else { "" };
        self.raw = format!("{}{ends}", join(&self.body, record));
        self.written_id = Some(record.id.clone());
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Entry(Box<Entry>),
}

/// A file, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) kind: FileKind,
    /// Whether a newer version wrote it.
    pub(super) is_newer: bool,
    /// Whether it begins with the mark that some editors put in front of UTF-8.
    has_mark: bool,
    /// Lines of bullets below bullets. They are no records, and stay as they are.
    pub(super) nested: Vec<(usize, String)>,
    pieces: Vec<Piece>,
    line_break: &'static str,
}

impl Document {
    /// The file that is not there yet.
    pub(super) fn new(kind: FileKind) -> Self {
        Self { kind, is_newer: false, has_mark: false, nested: Vec::new(), pieces: Vec::new(), line_break: "\n" }
    }

    /// Reads a file.
    pub(super) fn read(kind: FileKind, bytes: &[u8]) -> Result<Self, Damage> {
        let text = text(bytes)?;
        let unmarked = text.strip_prefix(MARK);
        let has_mark = unmarked.is_some();
        let text = unmarked.unwrap_or(text);
        if text.is_empty() {
            return Err(Damage::Empty);
        }
        let mut reader = Reader::new(kind, text);
        reader.document.has_mark = has_mark;
        reader.offset = if has_mark { MARK.len() as u64 } else { 0 };
        for (index, line) in text.split_inclusive('\n').enumerate() {
            reader.take(index + 1, line)?;
        }
        reader.finish()
    }

    /// Everything that is a record or tries to be one.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Entry(entry) => Some(entry.as_ref()),
            Piece::Text(_) => None,
        })
    }

    /// The same, to be changed.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Entry(entry) => Some(entry.as_mut()),
            Piece::Text(_) => None,
        })
    }

    /// Appends a line with this body.
    pub(super) fn append(&mut self, record: Record, body: String) {
        self.complete();
        let last = self.pieces.iter().rposition(|piece| matches!(piece, Piece::Entry(_)));
        let is = |piece: &Piece, line: &str| matches!(piece, Piece::Text(text) if text.trim() == line);
        let end = self.pieces.iter().rposition(|piece| is(piece, END));
        // The blank line before the end stays there.
        let end = end.map(|end| if end > 0 && is(&self.pieces[end - 1], "") { end - 1 } else { end });
        // Lines below the last record stay below it.
        let is_below = |piece: &&Piece| matches!(piece, Piece::Text(text) if text.starts_with([' ', '\t']) && !text.trim().is_empty());
        let after = |last: usize| last + 1 + self.pieces[last + 1..].iter().take_while(is_below).count();
        let at = last.map(after).or(end).unwrap_or(self.pieces.len());
        if let Some(before) = at.checked_sub(1).and_then(|index| self.pieces.get_mut(index)) {
            end_line(before, self.line_break);
        }
        let mut entry = Entry {
            remarks: Vec::new(),
            file: self.kind,
            line: 0,
            body,
            written_id: Some(record.id.clone()),
            offset: 0,
            raw: String::new(),
            record,
        };
        entry.raw = format!("{}{}", join(&entry.body, &entry.record), self.line_break);
        self.pieces.insert(at, Piece::Entry(Box::new(entry)));
    }

    /// Takes a line out.
    pub(super) fn remove(&mut self, id: &RecordId) -> Option<Entry> {
        let position = self.pieces.iter().position(|piece| matches!(piece, Piece::Entry(entry) if entry.record.id == *id))?;
        let removed = self.pieces.remove(position);
        self.complete();
        match removed {
            Piece::Entry(entry) => Some(*entry),
            Piece::Text(_) => None,
        }
    }

    /// Takes lines out.
    pub(super) fn remove_where(&mut self, is_meant: impl Fn(&Entry) -> bool) {
        let before = self.pieces.len();
        self.pieces.retain(|piece| !matches!(piece, Piece::Entry(entry) if is_meant(entry)));
        if self.pieces.len() < before {
            self.complete();
        }
    }

    /// Puts another body, or other metadata, in the place of a record's line.
    pub(super) fn rewrite(&mut self, record: &Record, body: &str) {
        let line_break = self.line_break;
        if let Some(entry) = self.entries_mut().find(|entry| entry.record.id == record.id) {
            body.clone_into(&mut entry.body);
            entry.record = record.clone();
            entry.write(record, line_break);
        }
        self.complete();
    }

    /// Gives the lines without an id of their own the one that they were read with. `as_written` is a record as it is written.
    pub(super) fn adopt(&mut self, as_written: impl Fn(&Record) -> Record) {
        let line_break = self.line_break;
        let mut is_changed = false;
        for entry in self.entries_mut().filter(|entry| !entry.has_id()) {
            let record = as_written(&entry.record);
            entry.write(&record, line_break);
            is_changed = true;
        }
        if is_changed {
            self.complete();
        }
    }

    /// The text of the file.
    pub(super) fn write(&self) -> String {
        let mark = if self.has_mark { MARK } else { "" };
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Entry(entry) => entry.raw.as_str(),
        });
        std::iter::once(mark).chain(pieces).collect()
    }

    /// Puts heading and end in place where they are not.
    fn complete(&mut self) {
        let has = |start: &str| self.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if text.starts_with(start)));
        let (has_header, has_end) = (has(HEADER), has(END));
        let line = |text: &str| Piece::Text(format!("{text}{}", self.line_break));
        if !has_header {
            let mut head = vec![line(&format!("{HEADER}{VERSION} -->"))];
            if self.pieces.is_empty() {
                head = vec![line(self.kind.heading()), line(""), head.remove(0), line(self.kind.explanation()), line("")];
            }
            self.pieces.splice(0..0, head);
        }
        if !has_end {
            if let Some(last) = self.pieces.last_mut() {
                end_line(last, self.line_break);
            }
            self.pieces.extend([Piece::Text(self.line_break.to_owned()), Piece::Text(format!("{END}{}", self.line_break))]);
        }
    }
}

fn end_line(piece: &mut Piece, line_break: &str) {
    let text = match piece {
        Piece::Text(text) => text,
        Piece::Entry(entry) => &mut entry.raw,
    };
    if !text.ends_with('\n') {
        text.push_str(line_break);
    }
}

fn text(bytes: &[u8]) -> Result<&str, Damage> {
    let line_at = |position: usize| bytes[..position].iter().filter(|byte| **byte == b'\n').count() + 1;
    if bytes.is_empty() {
        return Err(Damage::Empty);
    }
    // A power cut may leave a file of the right length that is all zeros.
    if let Some(position) = bytes.iter().position(|byte| *byte == 0) {
        return Err(Damage::NotText { line: line_at(position) });
    }
    std::str::from_utf8(bytes).map_err(|error| Damage::NotText { line: line_at(error.valid_up_to()) })
}

/// Reads a file line by line.
struct Reader {
    document: Document,
    /// Where the line that is read begins, in bytes.
    offset: u64,
    /// The ids so far.
    taken: HashSet<RecordId>,
    /// The first line of a comment that is open.
    comment: Option<usize>,
    /// Whether the last piece is a record whose line may go on.
    is_open: bool,
    has_header: bool,
    has_end: bool,
}

impl Reader {
    fn new(kind: FileKind, text: &str) -> Self {
        let first = text.split_inclusive('\n').next().unwrap_or_default();
        let document = Document { line_break: if first.ends_with("\r\n") { "\r\n" } else { "\n" }, ..Document::new(kind) };
        Self { document, offset: 0, taken: HashSet::new(), comment: None, is_open: false, has_header: false, has_end: false }
    }

    fn take(&mut self, number: usize, raw: &str) -> Result<(), Damage> {
        let begins = self.offset;
        self.offset += raw.len() as u64;
        let line = raw.trim_end_matches(['\n', '\r']);
        if is_conflict(line) {
            return Err(Damage::Conflict { line: number });
        }
        if let Some(begun) = self.comment {
            self.comment = if line.contains("-->") { None } else { Some(begun) };
            self.text(raw);
            return Ok(());
        }
        if let Some(body) = bullet(line) {
            return self.record((number, begins), raw, body);
        }
        if line.starts_with([' ', '\t']) && bullet(line.trim_start()).is_some() {
            self.document.nested.push((number, line.trim().to_owned()));
            self.text(raw);
            return Ok(());
        }
        if self.is_open && line.starts_with([' ', '\t']) && !line.trim().is_empty() {
            return self.go_on(raw, line);
        }
        self.notice(line);
        if opens_comment(line) {
            self.comment = Some(number);
        }
        self.text(raw);
        Ok(())
    }

    fn text(&mut self, raw: &str) {
        self.is_open = false;
        self.document.pieces.push(Piece::Text(raw.to_owned()));
    }

    /// Header and end.
    fn notice(&mut self, line: &str) {
        if let Some(version) = line.strip_prefix(HEADER) {
            self.has_header = true;
            let version = version.split_whitespace().next().and_then(|text| text.parse::<u32>().ok());
            self.document.is_newer = version.is_none_or(|version| version > VERSION);
        }
        self.has_end |= line.trim_end() == END;
    }

    fn record(&mut self, begins: (usize, u64), raw: &str, text: &str) -> Result<(), Damage> {
        let entry = self.entry(begins, raw, text)?;
        self.is_open = entry.written_id.is_none() && !entry.raw.trim_end().ends_with("-->");
        self.document.pieces.push(Piece::Entry(Box::new(entry)));
        Ok(())
    }

    /// A line that belongs to the record before it.
    fn go_on(&mut self, raw: &str, line: &str) -> Result<(), Damage> {
        let Some(Piece::Entry(before)) = self.document.pieces.pop() else { return Ok(()) };
        self.taken.remove(&before.record.id);
        let text = format!("{} {}", before.body, line.trim());
        self.record((before.line, before.offset), &format!("{}{raw}", before.raw), &text)
    }

    fn entry(&mut self, (number, offset): (usize, u64), raw: &str, text: &str) -> Result<Entry, Damage> {
        let (body, inside) = match trailer::split(text, "proctor") {
            Split::Whole(body, inside) => (body, Some(inside)),
            Split::Bare if opens_comment(text) => return Err(Damage::OpenComment { line: number }),
            Split::Bare => (text.trim(), None),
            Split::CutOff => return Err(Damage::OpenComment { line: number }),
        };
        let polarity = match self.document.kind {
            FileKind::Works => Polarity::Works,
            FileKind::Fails | FileKind::Pending => Polarity::Fails,
        };
        let (mut record, mut remarks) = body::read(RecordId::from_bits(0), polarity, body);
        let told = inside.map(|inside| trailer::read(inside, &mut record, &mut remarks)).unwrap_or_default();
        match self.document.kind {
            // The file decides: whoever moves a line here by hand approves it, and its comment still has the old word.
            FileKind::Works | FileKind::Fails => record.approval = Approval::Active,
            FileKind::Pending => {
                let by_fields = if record.trap.is_some() { Polarity::Works } else { Polarity::Fails };
                record.polarity = told.polarity.unwrap_or(by_fields);
                // Only the files of what is active make a record active.
                record.approval = told.approval.filter(|approval| *approval == Approval::Rejected).unwrap_or(Approval::Proposed);
            }
        }
        let written_id = told.id;
        let free = written_id.clone().filter(|id| !self.taken.contains(id));
        record.id = free.unwrap_or_else(|| derived_id(record.polarity, body, |id| self.taken.contains(id)));
        self.taken.insert(record.id.clone());
        Ok(Entry {
            record,
            remarks,
            file: self.document.kind,
            line: number,
            body: body.to_owned(),
            written_id,
            offset,
            raw: raw.to_owned(),
        })
    }

    fn finish(self) -> Result<Document, Damage> {
        match self.comment {
            Some(line) => Err(Damage::OpenComment { line }),
            None if self.has_header && !self.has_end => Err(Damage::CutOff),
            None => Ok(self.document),
        }
    }
}

/// The id of a line that has none: the same each time that it is read, until it is written down.
pub(super) fn derived_id(polarity: Polarity, body: &str, is_taken: impl Fn(&RecordId) -> bool) -> RecordId {
    let mut number: u64 = 0;
    loop {
        let digest = Sha256::new().chain_update(number.to_le_bytes()).chain_update(polarity.word()).chain_update(body).finalize();
        let bits = digest.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let id = RecordId::from_bits(bits);
        if !is_taken(&id) {
            return id;
        }
        number += 1;
    }
}

fn is_conflict(line: &str) -> bool {
    ["<<<<<<<", ">>>>>>>", "|||||||"]
        .iter()
        .any(|mark| line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

fn opens_comment(line: &str) -> bool {
    line.rfind("<!--").is_some_and(|position| !line[position..].contains("-->"))
}
