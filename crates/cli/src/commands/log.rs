//! `proctor log`: what sessions wrote, as it was written or as it is being written.

mod escape;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use proctor_domain::procedure::StepId;
use proctor_domain::session::{Excerpt, Phase, SessionRecord};
use proctor_domain::{ExitCode, SessionId};
use proctor_orchestrator::procedure::Standing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Invocation;
use crate::archive::{Archive, Change, Seen, Target, nothing_like};
use crate::args::runs::{LogArgs, StreamChoice};
use crate::printer::{Printer, Stream, Style};
use crate::report::{Kind, Report};
use escape::Escaper;

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
    escaper: Escaper,
    /// Whether it is known to be complete and was read to its end.
    done: bool,
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
        let mut news = News::None;
        if let Some(only) = self.only.clone().filter(|only| !is_listed(seen, only)) {
            // A new definition dropped its step; its files are still there.
            news = self.print_session(&Labelled { session: &only, place: None, record: None, live: false })?;
        }
        for step in &seen.loaded.run.steps {
            for record in &step.sessions {
                if self.only.as_ref().is_none_or(|only| *only == record.id) && news_may_be(&self.files, &record.id) {
                    let place = Some((&step.plan.id, record.phase, record.attempt));
                    let labelled = Labelled { session: &record.id, place, record: Some(record), live: open == Some(&record.id) };
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
            let position = self.position(labelled.session, stream);
            if self.drain(position, labelled)? == News::Some {
                news = News::Some;
            }
        }
        Ok(news)
    }

    fn position(&mut self, session: &SessionId, stream: StreamChoice) -> usize {
        let known = self.files.iter().position(|file| file.session == *session && file.stream == stream);
        known.unwrap_or_else(|| {
            let path = self.archive.site.state.session(session).join(format!("{}.log", name(stream)));
            let escaper = Escaper::default();
            self.files.push(StreamFile { session: session.clone(), stream, path, file: None, escaper, done: false });
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
            self.print_bytes(position, &buffer[..length]);
        }
        self.files[position].done = !labelled.live;
        Ok(news)
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
        self.print_bytes(position, excerpt.text().as_bytes());
        News::Some
    }

    fn print_bytes(&mut self, position: usize, bytes: &[u8]) {
        match self.form {
            Form::Raw => self.printer.bytes(bytes),
            Form::Visible => {
                let text = self.files[position].escaper.feed(bytes);
                self.printer.text(&text);
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
        let place =
            labelled.place.map(|(step, phase, attempt)| format!(" {step}, {}, attempt {attempt}", phase.name())).unwrap_or_default();
        let heading = format!("{}{place}: {}", next.0, name(next.1));
        self.printer.say(&self.printer.paint(Stream::Err, Style::Strong, &format!("== {heading}")));
        self.heading = Some(next);
    }

    /// Ends the line that was printed last, so that what follows begins on one of its own. Raw bytes get nothing added.
    fn finish_line(&mut self) {
        let Some((session, stream)) = &self.heading else { return };
        let last = self.files.iter_mut().find(|file| file.session == *session && file.stream == *stream);
        if let Some(last) = last.filter(|_| self.form == Form::Visible) {
            self.printer.text(&last.escaper.finish_line());
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
    place: Option<(&'a StepId, Phase, u32)>,
    record: Option<&'a SessionRecord>,
    live: bool,
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
