//! What a session prints, kept on disk within limits.
//!
//! Whatever happens to the disk, the pipes are emptied: a full disk must not block a child or end it by a
//! broken pipe. What could not be kept is counted and said.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use proctor_domain::session::Excerpt;

use super::excerpt::Excerpter;
use crate::redact::{Redactor, Secrets, redact_text};

/// How much of a stream is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes kept from the start.
    pub(super) head: u64,
    /// Between one and two times as many bytes are kept from the end.
    pub(super) segment: u64,
    /// Bytes kept of one line.
    pub(super) line: u64,
}

const MIB: u64 = 1024 * 1024;
pub(super) const LIMITS: Limits = Limits { head: 32 * MIB, segment: 16 * MIB, line: 8 * MIB };

/// One output stream of a session, all shells together.
///
/// Secrets go first, because a cut could leave half of one.
pub(super) struct StreamLog {
    secrets: Hidden,
    /// Made when something comes: most phases print nothing on one of their streams.
    redactor: Option<Redactor>,
    text: Text,
}

/// What is to be taken out. It is made ready at its first use, so that a phase that prints nothing does not pay for it. It
/// can't be printed, not even by mistake.
#[derive(Clone)]
pub(super) struct Hidden {
    values: Rc<[Vec<u8>]>,
    ready: Rc<OnceCell<Secrets>>,
}

impl Hidden {
    pub(super) fn new(values: Vec<Vec<u8>>) -> Self {
        Self { values: values.into(), ready: Rc::default() }
    }

    pub(super) fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets())
    }

    /// A text without what is to be hidden.
    pub(super) fn clean(&self, text: &str) -> String {
        redact_text(self.secrets(), text)
    }

    fn secrets(&self) -> &Secrets {
        self.ready.get_or_init(|| Secrets::new(&self.values))
    }
}

/// What may be seen of a stream.
#[derive(Debug)]
struct Text {
    name: String,
    excerpter: Excerpter,
    line: LineLimit,
    kept: CappedFile,
}

/// Who is told of a stream's text, without secrets and with long lines cut.
pub(super) type Listener<'a> = &'a mut dyn FnMut(&[u8]);

/// What is left of a stream when the session is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) excerpt: Excerpt,
    /// A sentence when the file does not hold the whole stream.
    note: Option<String>,
}

impl Finished {
    pub(super) fn note(&self) -> Option<String> {
        self.note.clone()
    }
}

impl StreamLog {
    /// A log whose file is made when there is something to write: most phases print nothing on one of their streams, and
    /// making a file is dear. When it can't be made, the stream is still read and excerpted.
    pub(super) fn new(path: PathBuf, limits: Limits, secrets: &Hidden) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let line = LineLimit::new(limits.line);
        let text = Text { name, excerpter: Excerpter::default(), line, kept: CappedFile::new(path, limits) };
        Self { secrets: secrets.clone(), redactor: None, text }
    }

    /// What is taken out of it.
    pub(super) fn hidden(&self) -> &Hidden {
        &self.secrets
    }

    pub(super) fn push(&mut self, bytes: &[u8], listener: Listener<'_>) {
        let text = &mut self.text;
        let redactor = self.redactor.get_or_insert_with(|| self.secrets.redactor());
        redactor.push(bytes, &mut |clean| text.push(clean, listener));
    }

    /// Passes on what was held back because it might be the beginning of a secret: nothing follows it.
    pub(super) fn flush(&mut self, listener: Listener<'_>) {
        let text = &mut self.text;
        if let Some(redactor) = self.redactor.take() {
            redactor.finish(&mut |clean| text.push(clean, listener));
        }
    }

    pub(super) fn finish(self, listener: Listener<'_>) -> Finished {
        let Self { redactor, mut text, .. } = self;
        if let Some(redactor) = redactor {
            redactor.finish(&mut |clean| text.push(clean, listener));
        }
        text.finish(listener)
    }
}

impl Text {
    fn push(&mut self, bytes: &[u8], listener: Listener<'_>) {
        self.excerpter.push(bytes);
        let kept = &mut self.kept;
        self.line.push(bytes, &mut |part| {
            kept.write(part);
            listener(part);
        });
    }

    fn finish(self, listener: Listener<'_>) -> Finished {
        let Self { name, excerpter, mut line, mut kept } = self;
        line.finish(&mut |part| {
            kept.write(part);
            listener(part);
        });
        kept.finish();
        let mut notes = Vec::new();
        if line.lines_cut > 0 {
            notes.push(format!("{} over {} bytes cut", counted(line.lines_cut, "line"), line.limit));
        }
        if kept.tail.dropped > 0 {
            notes.push(format!("{} bytes cut from the middle", kept.tail.dropped));
        }
        if let Some(failure) = &kept.failure {
            notes.push(format!("{} bytes not kept ({})", failure.lost, failure.source));
        }
        let note = (!notes.is_empty()).then(|| format!("{name}: {}", notes.join(", ")));
        Finished { excerpt: excerpter.finish(), note }
    }
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Cuts lines that no reader could take in.
#[derive(Debug)]
struct LineLimit {
    limit: u64,
    /// Bytes of the present line that were passed on.
    length: u64,
    /// Bytes of the present line that were cut.
    cut: u64,
    lines_cut: u64,
}

impl LineLimit {
    fn new(limit: u64) -> Self {
        Self { limit, length: 0, cut: 0, lines_cut: 0 }
    }

    fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.length >= self.limit {
                let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                    self.cut += rest.len() as u64;
                    return;
                };
                self.cut += end as u64;
                rest = &rest[end..];
                self.mark(sink);
                self.length = 0;
            }
            let room = usize::try_from(self.limit - self.length).unwrap_or(usize::MAX);
            let (part, after) = rest.split_at(rest.len().min(room));
            self.length = match part.iter().rposition(|&byte| byte == b'\n') {
                Some(end) => (part.len() - end - 1) as u64,
                None => self.length + part.len() as u64,
            };
            sink(part);
            rest = after;
        }
    }

    fn finish(&mut self, sink: &mut dyn FnMut(&[u8])) {
        self.mark(sink);
    }

    fn mark(&mut self, sink: &mut dyn FnMut(&[u8])) {
        if self.cut > 0 {
            sink(format!("[… {} bytes of this line cut …]", self.cut).as_bytes());
            self.cut = 0;
            self.lines_cut += 1;
        }
    }
}

/// A file that keeps the start of what is written to it and, once that is long, the end.
#[derive(Debug)]
struct CappedFile {
    path: PathBuf,
    limits: Limits,
    file: Option<File>,
    length: u64,
    tail: Tail,
    failure: Option<Failure>,
}

/// The last bytes, in two files that take turns: when one is full, the other, older one is emptied.
/// One file with a moving start would need its contents moved, and memory is not an option for a host that
/// is one of many.
#[derive(Debug, Default)]
struct Tail {
    segments: [Option<Segment>; 2],
    newest: usize,
    dropped: u64,
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    length: u64,
}

#[derive(Debug)]
struct Failure {
    source: io::Error,
    lost: u64,
}

/// The two files that hold the end of a long stream while its session goes on.
pub(super) fn tails_of(path: &Path) -> [PathBuf; 2] {
    [1, 2].map(|number| {
        let mut tail = path.to_owned().into_os_string();
        tail.push(format!(".tail-{number}"));
        tail.into()
    })
}

fn create(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

impl CappedFile {
    fn new(path: PathBuf, limits: Limits) -> Self {
        Self { path, limits, file: None, length: 0, tail: Tail::default(), failure: None }
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(failure) = &mut self.failure {
            // Not tried again when there may be space: what follows would stand next to what it did not follow.
            failure.lost += bytes.len() as u64;
            return;
        }
        let room = usize::try_from(self.limits.head - self.length).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        if let Err(source) = self.write_head(head).and_then(|()| self.write_tail(rest)) {
            self.failure = Some(Failure { source, lost: bytes.len() as u64 });
        }
    }

    fn write_head(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(create(&self.path)?),
            };
            file.write_all(bytes)?;
            self.length += bytes.len() as u64;
        }
        Ok(())
    }

    fn write_tail(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let tail = &mut self.tail;
        let is_full = |segment: &Option<Segment>| segment.as_ref().is_some_and(|segment| segment.length >= self.limits.segment);
        if is_full(&tail.segments[tail.newest]) {
            tail.newest = 1 - tail.newest;
            if let Some(oldest) = &mut tail.segments[tail.newest] {
                tail.dropped += oldest.length;
                oldest.length = 0;
                oldest.file.set_len(0)?;
                oldest.file.rewind()?;
            }
        }
        let slot = &mut tail.segments[tail.newest];
        let segment = match slot {
            Some(segment) => segment,
            None => {
                let [first, second] = tails_of(&self.path);
                let path = if tail.newest == 0 { first } else { second };
                let file = create(&path)?;
                slot.insert(Segment { path, file, length: 0 })
            }
        };
        segment.file.write_all(bytes)?;
        segment.length += bytes.len() as u64;
        Ok(())
    }

    /// Appends the end to the start, so that there is one file, in order.
    fn finish(&mut self) {
        let newest = self.tail.newest;
        let [first, second] = std::mem::take(&mut self.tail.segments);
        let in_order = if newest == 0 { [second, first] } else { [first, second] };
        if self.tail.dropped > 0 && self.failure.is_none() {
            let mark = format!("\n[… {} bytes cut …]\n", self.tail.dropped);
            self.append(|file| file.write_all(mark.as_bytes()), mark.len() as u64);
        }
        for mut segment in in_order.into_iter().flatten() {
            let length = segment.length;
            self.append(|file| segment.file.rewind().and_then(|()| io::copy(&mut segment.file, file)).map(drop), length);
            // A leftover would only take up space; when it can't be removed, gc removes the whole folder.
            let _ = std::fs::remove_file(&segment.path);
        }
    }

    fn append(&mut self, write: impl FnOnce(&mut File) -> io::Result<()>, length: u64) {
        let Some(file) = &mut self.file else { return };
        match (write(file), &mut self.failure) {
            (Ok(()), _) => {}
            (Err(_), Some(failure)) => failure.lost += length,
            (Err(source), None) => self.failure = Some(Failure { source, lost: length }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SMALL: Limits = Limits { head: 100, segment: 50, line: 40 };

    /// What the file holds after `chunks` were printed, and the note.
    fn kept(chunks: &[&str]) -> (String, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut log = StreamLog::new(path.clone(), SMALL, &Hidden::new(Vec::new()));
        let mut heard = Vec::new();
        chunks.iter().for_each(|chunk| log.push(chunk.as_bytes(), &mut |text| heard.extend_from_slice(text)));

        let note = log.finish(&mut |text| heard.extend_from_slice(text)).note;

        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), usize::from(path.exists()));
        let text = fs::read_to_string(path).unwrap_or_default();
        assert!(text.as_bytes() == heard || text.contains("bytes cut …]"), "who listens hears what is kept");
        (text, note)
    }

    #[test]
    fn a_short_stream_is_kept_as_it_is() {
        assert_eq!(kept(&["a\n", "b", "\r\nc"]), ("a\nb\r\nc".to_owned(), None));
        assert_eq!(kept(&[]), (String::new(), None));
    }

    #[test]
    fn what_still_fits_into_head_and_tail_has_no_gap() {
        let lines: Vec<String> = (10..60).map(|number| format!("{number}\n")).collect();
        let chunks: Vec<&str> = lines.iter().map(String::as_str).collect();

        assert_eq!(kept(&chunks), (lines.concat(), None));
    }

    #[test]
    fn a_flood_keeps_its_start_and_its_end_and_says_what_is_missing() {
        let lines: Vec<String> = (1000..2000).map(|number| format!("{number}\n")).collect();
        let chunks: Vec<&str> = lines.iter().map(String::as_str).collect();

        let (text, note) = kept(&chunks);

        let whole = lines.concat();
        let (head, rest) = text.split_once("\n[… ").unwrap();
        let (dropped, tail) = rest.split_once(" bytes cut …]\n").unwrap();
        assert!(whole.starts_with(head) && head.len() == 100, "{head}");
        assert!(whole.ends_with(tail) && (50..=100).contains(&tail.len()), "{}", tail.len());
        assert_eq!(head.len() + tail.len() + dropped.parse::<usize>().unwrap(), whole.len());
        assert_eq!(note, Some(format!("stdout.log: {dropped} bytes cut from the middle")));
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_ones_are_not() {
        let long = "y".repeat(55);
        for chunk in [1, 7, 1000] {
            let whole = format!("a\n{long}\nb\n");
            let bytes: Vec<&str> = whole.as_bytes().chunks(chunk).map(|part| std::str::from_utf8(part).unwrap()).collect();

            let (text, note) = kept(&bytes);

            assert_eq!(text, format!("a\n{}[… 15 bytes of this line cut …]\nb\n", "y".repeat(40)));
            assert_eq!(note.as_deref(), Some("stdout.log: 1 line over 40 bytes cut"));
        }
    }

    #[test]
    fn a_line_of_just_the_limit_is_not_cut_and_one_without_an_end_is() {
        let exact = format!("{}\n", "y".repeat(40));
        assert_eq!(kept(&[&exact, &exact]), (exact.repeat(2), None));

        let (text, _) = kept(&[&"y".repeat(41)]);
        assert_eq!(text, format!("{}[… 1 bytes of this line cut …]", "y".repeat(40)));
    }

    #[test]
    fn a_log_that_can_not_be_made_is_said_and_the_excerpt_stays() {
        let mut log = StreamLog::new(PathBuf::from("/nonexistent/stdout.log"), SMALL, &Hidden::new(Vec::new()));
        log.push(b"hello\n", &mut |_| {});

        let finished = log.finish(&mut |_| {});

        assert_eq!(finished.excerpt.head, "hello\n");
        assert_eq!(finished.note.as_deref(), Some("stdout.log: 6 bytes not kept (No such file or directory (os error 2))"));
    }
}
