//! `proctor log`: what sessions wrote, as it was written or as it is being written.

mod document;
mod escape;
mod transcript;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::procedure::{RunEngine, StepId};
use proctor_domain::session::{Excerpt, SessionRecord};
use proctor_domain::{ExitCode, SessionId};
use proctor_engine::TRANSCRIPT;
use proctor_orchestrator::procedure::Standing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Invocation;
use crate::archive::{Archive, Change, Seen, Target, nothing_like};
use crate::args::runs::{LogArgs, StreamChoice};
use crate::printer::{Printer, Stream, Style};
use crate::report::{Kind, Report};
use crate::run_text::work_name;
use escape::Escaper;
use transcript::{Transcript, Writer};

/// The shortest and the longest pause between two looks at what a living session wrote. A pause doubles as long as
/// nothing new is found.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// How much of a file is read at once.
const CHUNK: usize = 64 * 1024;

/// How bytes are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With control characters escaped.
    Visible,
    /// As they are.
    Raw,
}

/// Prints what a session, or every session of a run, wrote.
pub fn run(invocation: &Invocation, args: &LogArgs) -> Result<ExitCode, Report> {
    let archive = Archive::open(invocation)?.ok_or_else(|| nothing_like(&args.id))?;
    let (run, only) = match archive.target(&args.id)? {
        Target::Run(run) => (run, None),
        Target::Session(run, session) => (run, Some(session)),
    };
    let mut seen = archive.look(&run)?;
    if args.json {
        invocation.printer.json(&document::of(&archive, &seen, only.as_ref())?);
        return Ok(ExitCode::Done);
    }
    let mut log = Log {
        archive: &archive,
        printer: &invocation.printer,
        only,
        streams: match args.stream {
            None => vec![StreamChoice::Stdout, StreamChoice::Stderr],
            Some(stream) => vec![stream],
        },
        form: if args.raw { Form::Raw } else { Form::Visible },
        files: Vec::new(),
        heading: None,
    };
    log.print(&seen)?;
    let mut pause = PAUSES.0;
    while args.follow && log.goes_on(&seen) && !invocation.printer.reader_left() {
        invocation.printer.flush();
        if wait(pause) == Reader::Gone {
            return Ok(ExitCode::Done);
        }
        // In this order: what was written before the session was seen to be over is printed.
        let change = archive.look_again(&mut seen)?;
        let news = log.print(&seen)?;
        pause = if news == News::None && change == Change::Nothing { (pause * 2).min(PAUSES.1) } else { PAUSES.0 };
    }
    log.close();
    if log.files.is_empty() {
        invocation.printer.say(&format!("{run} has not started a session yet"));
    }
    Ok(ExitCode::Done)
}

/// Whether anybody reads what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Present,
    Gone,
}

/// Waits, but no longer than somebody reads what is printed: a closed pipe shows at once, not at the next line, which
/// may never come.
fn wait(pause: Duration) -> Reader {
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
    let stdout = std::io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    // A signal that cuts the wait short costs one look in vain.
    match poll(&mut watched, Some(&limit)) {
        Ok(0) | Err(_) => Reader::Present,
        // Nothing was asked for, so only an error, a hang-up or a closed descriptor is told.
        Ok(_) => Reader::Gone,
    }
}

/// Whether anything was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    Some,
}

/// One stream of one session, read so far.
struct StreamFile {
    session: SessionId,
    stream: StreamChoice,
    path: PathBuf,
    file: Option<File>,
    body: Body,
    /// Whether it is known to be complete and was read to its end.
    done: bool,
}

/// What a stream holds.
enum Body {
    /// Text of shells, or an agent's standard error.
    Text(Escaper),
    /// The lines of an agent's engine.
    Transcript(Box<Transcript>),
}

struct Log<'a> {
    archive: &'a Archive,
    printer: &'a Printer,
    only: Option<SessionId>,
    streams: Vec<StreamChoice>,
    form: Form,
    files: Vec<StreamFile>,
    /// The session and stream that was printed last.
    heading: Option<(SessionId, StreamChoice)>,
}

impl Log<'_> {
    /// Whether there may be more to come.
    fn goes_on(&self, seen: &Seen) -> bool {
        let open = seen.loaded.run.open_session();
        seen.standing == Standing::Running && self.only.as_ref().is_none_or(|only| open == Some(only))
    }

    /// Prints everything that was written since the last call.
    fn print(&mut self, seen: &Seen) -> Result<News, Report> {
        let open = if seen.standing == Standing::Running { seen.loaded.run.open_session() } else { None };
        let engine = seen.loaded.run.started.engine.as_ref();
        let mut news = News::None;
        if let Some(only) = self.only.clone().filter(|only| !is_listed(seen, only)) {
            // A new definition dropped its step; its files are still there.
            news = self.print_session(&Labelled { session: &only, place: None, record: None, engine, live: false })?;
        }
        for step in &seen.loaded.run.steps {
            for record in &step.sessions {
                if self.only.as_ref().is_none_or(|only| *only == record.id) && news_may_be(&self.files, &record.id) {
                    let place = Some((&step.plan.id, record.attempt));
                    let live = open == Some(&record.id);
                    let labelled = Labelled { session: &record.id, place, record: Some(record), engine, live };
                    if self.print_session(&labelled)? == News::Some {
                        news = News::Some;
                    }
                }
                if self.printer.reader_left() {
                    return Ok(news);
                }
            }
        }
        Ok(news)
    }

    fn print_session(&mut self, labelled: &Labelled<'_>) -> Result<News, Report> {
        let mut news = News::None;
        for stream in self.streams.clone() {
            let position = self.position(labelled, stream);
            if self.drain(position, labelled)? == News::Some {
                news = News::Some;
            }
        }
        Ok(news)
    }

    fn position(&mut self, labelled: &Labelled<'_>, stream: StreamChoice) -> usize {
        let session = labelled.session;
        let known = self.files.iter().position(|file| file.session == *session && file.stream == stream);
        known.unwrap_or_else(|| {
            let folder = self.archive.site.state.session(session);
            let (path, body) = match stream {
                StreamChoice::Stdout if is_of_an_agent(&folder, labelled.record) => {
                    (folder.join(TRANSCRIPT), Body::Transcript(Box::new(Transcript::of(labelled.record, labelled.engine))))
                }
                StreamChoice::Stdout | StreamChoice::Stderr => {
                    (folder.join(format!("{}.log", name(stream))), Body::Text(Escaper::default()))
                }
            };
            self.files.push(StreamFile { session: session.clone(), stream, path, file: None, body, done: false });
            self.files.len() - 1
        })
    }

    /// Prints one stream from where it was left to its present end.
    fn drain(&mut self, position: usize, labelled: &Labelled<'_>) -> Result<News, Report> {
        if self.files[position].file.is_none() {
            match File::open(&self.files[position].path) {
                Ok(file) => self.files[position].file = Some(file),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self.without_file(position, labelled)),
                Err(error) => return Err(unreadable(&self.files[position].path, &error)),
            }
        }
        if self.files[position].done {
            return Ok(News::None);
        }
        let mut news = News::None;
        let mut buffer = vec![0; CHUNK];
        loop {
            let StreamFile { file: Some(file), path, .. } = &mut self.files[position] else { return Ok(news) };
            let length = file.read(&mut buffer).map_err(|error| unreadable(path, &error))?;
            if length == 0 || self.printer.reader_left() {
                break;
            }
            news = News::Some;
            self.announce(position, labelled);
            self.print_bytes(position, labelled, &buffer[..length]);
        }
        if !labelled.live && !self.printer.reader_left() {
            self.end(position, labelled);
        }
        Ok(news)
    }

    /// Prints what a stream that is complete still owes.
    fn end(&mut self, position: usize, labelled: &Labelled<'_>) {
        self.files[position].done = true;
        if self.form == Form::Raw {
            return;
        }
        let Body::Transcript(transcript) = &mut self.files[position].body else { return };
        let events = transcript.finish();
        self.announce(position, labelled);
        let writer = labelled.writer(self.printer);
        events.iter().filter_map(|event| writer.text(event)).for_each(|text| self.printer.line(&text));
        if let Some(record) = labelled.record {
            self.printer.line(&writer.closing(record));
        }
    }

    /// The files of a session that is not alive are gone: what its record keeps of them is better than nothing.
    fn without_file(&mut self, position: usize, labelled: &Labelled<'_>) -> News {
        if labelled.live {
            return News::None;
        }
        self.files[position].done = true;
        let Some(report) = labelled.record.and_then(|record| record.report.as_ref()) else { return News::None };
        let excerpt: &Excerpt = match self.files[position].stream {
            StreamChoice::Stdout => &report.stdout,
            StreamChoice::Stderr => &report.stderr,
        };
        if excerpt.is_empty() {
            return News::None;
        }
        self.announce(position, labelled);
        self.printer.warn(&format!("{} is gone; this is what the record keeps of it", self.files[position].path.display()));
        self.print_bytes(position, labelled, excerpt.text().as_bytes());
        self.end(position, labelled);
        News::Some
    }

    fn print_bytes(&mut self, position: usize, labelled: &Labelled<'_>, bytes: &[u8]) {
        match (self.form, &mut self.files[position].body) {
            (Form::Raw, _) => self.printer.bytes(bytes),
            (Form::Visible, Body::Text(escaper)) => self.printer.text(&escaper.feed(bytes)),
            (Form::Visible, Body::Transcript(transcript)) => {
                let writer = labelled.writer(self.printer);
                for event in transcript.feed(bytes) {
                    if let Some(text) = writer.text(&event) {
                        self.printer.line(&text);
                    }
                }
            }
        }
    }

    /// Says on stderr whose text follows, when it is another's than before.
    fn announce(&mut self, position: usize, labelled: &Labelled<'_>) {
        let next = (self.files[position].session.clone(), self.files[position].stream);
        if self.heading.as_ref() == Some(&next) {
            return;
        }
        self.finish_line();
        let work = labelled.record.map(|record| format!(" {},", work_name(record.phase, record.work))).unwrap_or_default();
        let place = labelled.place.map(|(step, attempt)| format!(" {step},{work} attempt {attempt}")).unwrap_or_default();
        let what = match &self.files[position].body {
            Body::Text(_) => name(next.1),
            Body::Transcript(_) => "transcript",
        };
        let heading = format!("{}{place}: {what}", next.0);
        self.printer.say(&self.printer.paint(Stream::Err, Style::Strong, &format!("== {heading}")));
        self.heading = Some(next);
    }

    /// Ends the line that was printed last, so that what follows begins on one of its own. Raw bytes get nothing added.
    fn finish_line(&mut self) {
        let Some((session, stream)) = &self.heading else { return };
        let last = self.files.iter_mut().find(|file| file.session == *session && file.stream == *stream);
        if let Some(StreamFile { body: Body::Text(escaper), .. }) = last.filter(|_| self.form == Form::Visible) {
            self.printer.text(&escaper.finish_line());
        }
    }

    /// Prints what was held back.
    fn close(&mut self) {
        self.finish_line();
    }
}

/// A session and what its heading says.
struct Labelled<'a> {
    session: &'a SessionId,
    place: Option<(&'a StepId, u32)>,
    record: Option<&'a SessionRecord>,
    /// What its run was started with.
    engine: Option<&'a RunEngine>,
    live: bool,
}

impl Labelled<'_> {
    fn writer<'p>(&self, printer: &'p Printer) -> Writer<'p> {
        Writer { printer, speaker: self.record.map_or("agent", |record| record.work.name()) }
    }
}

/// Whether a session is an engine's. Of one that its run has forgotten, its files tell.
fn is_of_an_agent(folder: &Path, record: Option<&SessionRecord>) -> bool {
    record.map_or_else(|| folder.join(TRANSCRIPT).exists(), |record| record.work.needs_engine())
}

fn is_listed(seen: &Seen, session: &SessionId) -> bool {
    seen.loaded.run.steps.iter().flat_map(|step| &step.sessions).any(|record| record.id == *session)
}

/// Whether a session was not yet read to its end: a long run must not be read again at every look.
fn news_may_be(files: &[StreamFile], session: &SessionId) -> bool {
    let mut known = files.iter().filter(|file| file.session == *session).peekable();
    known.peek().is_none() || known.any(|file| !file.done)
}

fn name(stream: StreamChoice) -> &'static str {
    match stream {
        StreamChoice::Stdout => "stdout",
        StreamChoice::Stderr => "stderr",
    }
}

fn unreadable(path: &std::path::Path, error: &std::io::Error) -> Report {
    Report::new(Kind::Environment, format!("failed to read {}", path.display())).because(error)
}
