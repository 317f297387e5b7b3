//! All printing. stdout carries data, stderr carries talk.
//!
//! A reader that goes away (`proctor runs | head`) is no failure: the printer falls silent. Any other failure to
//! write data is kept and reported by [`Printer::finish`], because data that did not arrive must not look like
//! success.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::rc::Rc;

use serde::Serialize;

use crate::args::ColorChoice;
use crate::environment::{self, Environment};

/// How much talk there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    /// Errors only.
    Quiet,
    /// Everything.
    Normal,
}

/// Whether a stream gets ANSI colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Text as it is.
    Plain,
    /// With escape sequences.
    Ansi,
}

/// What a piece of text is, for its colour. Text has to be readable without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// Needs a look.
    Doubtful,
    /// Less important.
    Dim,
    /// More important.
    Strong,
}

impl Style {
    fn sequence(self) -> &'static str {
        match self {
            Self::Good => "\u{1b}[32m",
            Self::Bad => "\u{1b}[1;31m",
            Self::Doubtful => "\u{1b}[33m",
            Self::Dim => "\u{1b}[2m",
            Self::Strong => "\u{1b}[1m",
        }
    }
}

/// Where text can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Data.
    Out,
    /// Talk.
    Err,
}

/// Decides about colour: the flag first, then `NO_COLOR` and `TERM`, then whether the stream is a terminal.
pub fn decide_colour(choice: ColorChoice, environment: &Environment, terminal: bool) -> Colour {
    let dumb = environment.get(&environment::TERM).is_some_and(|term| term == "dumb");
    let wanted = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !dumb && environment.get(&environment::NO_COLOR).is_none(),
    };
    if wanted { Colour::Ansi } else { Colour::Plain }
}

/// The only thing that writes to stdout and stderr.
pub struct Printer {
    talk: Talk,
    out: RefCell<Sink>,
    err: RefCell<Sink>,
}

struct Sink {
    writer: Box<dyn Write>,
    colour: Colour,
    terminal: bool,
    end: SinkEnd,
}

enum SinkEnd {
    Open,
    /// The reader went away.
    Closed,
    Failed(io::Error),
}

impl Sink {
    fn write(&mut self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        if !matches!(self.end, SinkEnd::Open) {
            return;
        }
        let written = self.writer.write_all(bytes);
        self.note(written);
    }

    fn flush(&mut self) {
        if matches!(self.end, SinkEnd::Open) {
            let flushed = self.writer.flush();
            self.note(flushed);
        }
    }

    fn note(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.end = SinkEnd::Closed,
            Err(error) => self.end = SinkEnd::Failed(error),
        }
    }
}

/// What was printed into memory.
#[derive(Debug, Clone)]
pub struct Printed(Rc<RefCell<Tail>>);

#[derive(Debug)]
struct Tail {
    bytes: Vec<u8>,
    most: usize,
    left_off: usize,
}

impl Printed {
    /// The end of it, from the beginning of a line on where something is left off, and how many bytes that is.
    pub fn text(&self) -> (String, usize) {
        let tail = self.0.borrow();
        let too_many = tail.bytes.len().saturating_sub(tail.most);
        let whole_line = |from: usize| tail.bytes[from..].iter().position(|byte| *byte == b'\n').map_or(from, |end| from + end + 1);
        let from = if tail.left_off + too_many == 0 { 0 } else { whole_line(too_many) };
        (String::from_utf8_lossy(&tail.bytes[from..]).into_owned(), tail.left_off + from)
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut tail = self.0.borrow_mut();
        tail.bytes.extend_from_slice(bytes);
        // Not at every write: what is left off is moved over.
        if tail.bytes.len() > 2 * tail.most {
            let more = tail.bytes.len() - tail.most;
            tail.bytes.drain(..more);
            tail.left_off += more;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Large enough that listing ten thousand runs takes few system calls.
const BUFFER: usize = 64 * 1024;

impl Printer {
    /// A printer on the process's own streams.
    pub fn on_process(talk: Talk, choice: ColorChoice, environment: &Environment) -> Self {
        let (out_terminal, err_terminal) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let sink = |writer: Box<dyn Write>, terminal| {
            RefCell::new(Sink { writer, colour: decide_colour(choice, environment, terminal), terminal, end: SinkEnd::Open })
        };
        Self {
            talk,
            out: sink(Box::new(io::BufWriter::with_capacity(BUFFER, io::stdout())), out_terminal),
            err: sink(Box::new(io::stderr()), err_terminal),
        }
    }

    /// A printer into memory, with data and talk in the order in which they come and without colour. Of what is more than `most`
    /// bytes, the end is kept.
    pub fn into_memory(most: usize) -> (Self, Printed) {
        let printed = Printed(Rc::new(RefCell::new(Tail { bytes: Vec::new(), most, left_off: 0 })));
        let sink = || {
            let writer = Box::new(printed.clone());
            RefCell::new(Sink { writer, colour: Colour::Plain, terminal: false, end: SinkEnd::Open })
        };
        (Self { talk: Talk::Normal, out: sink(), err: sink() }, printed)
    }

    /// Writes a line of data to stdout.
    pub fn line(&self, line: &str) {
        let mut out = self.out.borrow_mut();
        out.write(line);
        out.write("\n");
    }

    /// Writes text to stdout as it is.
    pub fn text(&self, text: &str) {
        self.out.borrow_mut().write(text);
    }

    /// Writes bytes to stdout as they are.
    pub fn bytes(&self, bytes: &[u8]) {
        self.out.borrow_mut().write_bytes(bytes);
    }

    /// Writes one JSON object to stdout. A command with `--json` calls this once.
    pub fn json(&self, object: &impl Serialize) {
        let mut out = self.out.borrow_mut();
        match serde_json::to_string(object) {
            Ok(text) => {
                out.write(&text);
                out.write("\n");
            }
            Err(error) => out.note(Err(io::Error::other(error))),
        }
    }

    /// Says a line on stderr, unless quiet.
    pub fn say(&self, line: &str) {
        if self.talk == Talk::Normal {
            self.insist(line);
        }
    }

    /// Warns on stderr, unless quiet.
    pub fn warn(&self, sentence: &str) {
        let word = self.paint(Stream::Err, Style::Doubtful, "warning:");
        self.say(&format!("{word} {sentence}"));
    }

    /// Says a line on stderr even when quiet.
    pub fn insist(&self, line: &str) {
        // What was printed before comes before, also where both streams go to one terminal.
        self.out.borrow_mut().flush();
        let mut err = self.err.borrow_mut();
        err.write(&format!("{line}\n"));
        err.flush();
    }

    /// Asks on stderr and leaves the cursor behind the question.
    pub fn ask(&self, question: &str) {
        self.out.borrow_mut().flush();
        let mut err = self.err.borrow_mut();
        err.write(question);
        err.flush();
    }

    /// `text` in the colour of `style` if the stream has colours.
    pub fn paint<'text>(&self, stream: Stream, style: Style, text: &'text str) -> Cow<'text, str> {
        let colour = match stream {
            Stream::Out => self.out.borrow().colour,
            Stream::Err => self.err.borrow().colour,
        };
        match colour {
            Colour::Plain => Cow::Borrowed(text),
            Colour::Ansi => Cow::Owned(format!("{}{text}\u{1b}[0m", style.sequence())),
        }
    }

    /// Whether a stream gets colours.
    pub fn colour(&self, stream: Stream) -> Colour {
        match stream {
            Stream::Out => self.out.borrow().colour,
            Stream::Err => self.err.borrow().colour,
        }
    }

    /// How much talk there is.
    pub fn talk(&self) -> Talk {
        self.talk
    }

    /// Whether a person sees this stream as it is written.
    pub fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => self.out.borrow().terminal,
            Stream::Err => self.err.borrow().terminal,
        }
    }

    /// Writes out what was printed so far, for commands that go on.
    pub fn flush(&self) {
        self.out.borrow_mut().flush();
    }

    /// Whether the reader of stdout went away, so that a command which only prints may stop.
    pub fn reader_left(&self) -> bool {
        matches!(self.out.borrow().end, SinkEnd::Closed)
    }

    /// Writes out the rest. The error is the first one that kept data from arriving, except a reader that went
    /// away.
    ///
    /// # Errors
    /// Data could not be written to stdout.
    pub fn finish(&self) -> Result<(), io::Error> {
        let mut out = self.out.borrow_mut();
        out.flush();
        match std::mem::replace(&mut out.end, SinkEnd::Closed) {
            SinkEnd::Open | SinkEnd::Closed => Ok(()),
            SinkEnd::Failed(error) => Err(error),
        }
    }
}

/// Foreign text with its control characters made visible, so that it can neither move the cursor nor pretend to
/// be ours. Line breaks and tabs stay; a line break's carriage return goes.
pub fn visible(text: &str) -> Cow<'_, str> {
    let harmless = |letter: char| letter == '\n' || letter == '\t' || !is_dangerous(letter);
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\r' && letters.peek() == Some(&'\n') {
            continue;
        }
        if harmless(letter) { shown.push(letter) } else { escape(letter, &mut shown) }
    }
    Cow::Owned(shown)
}

/// Like [`visible`], for text that has to stay on one line: line breaks and tabs are escaped too.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_dangerous(letter) { escape(letter, &mut shown) } else { shown.push(letter) }
    }
    Cow::Owned(shown)
}

/// Control characters, and the marks that reorder text on the screen.
fn is_dangerous(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(letter: char, shown: &mut String) {
    match letter {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        other => shown.push_str(&format!("\\u{{{:x}}}", u32::from(other))),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::rc::Rc;

    use super::*;

    /// A stream whose every write ends the same way.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printer(talk: Talk, out: impl Write + 'static, err: impl Write + 'static) -> Printer {
        let sink = |writer: Box<dyn Write>| RefCell::new(Sink { writer, colour: Colour::Plain, terminal: false, end: SinkEnd::Open });
        Printer { talk, out: sink(Box::new(out)), err: sink(Box::new(err)) }
    }

    fn variables(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        let printer = printer(Talk::Normal, Failing(io::ErrorKind::BrokenPipe), Shared::default());

        printer.line("one");
        printer.line("two");

        assert!(printer.reader_left());
        assert!(printer.finish().is_ok());
    }

    #[test]
    fn data_that_did_not_arrive_is_reported() {
        let printer = printer(Talk::Normal, Failing(io::ErrorKind::StorageFull), Shared::default());

        printer.line("one");

        assert_eq!(printer.finish().map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    }

    #[test]
    fn of_what_is_printed_into_memory_the_end_is_kept_and_the_rest_counted() {
        let (printer, printed) = Printer::into_memory(20);
        printer.line("one");
        printer.say("two");
        assert_eq!(printed.text(), ("one\ntwo\n".to_owned(), 0));

        for number in 0..100 {
            printer.line(&format!("line {number}"));
        }

        assert_eq!(printed.text(), ("line 98\nline 99\n".to_owned(), 8 + 10 * 7 + 88 * 8));
    }

    #[test]
    fn quiet_keeps_data_and_what_is_insisted_on() {
        let (out, err) = (Shared::default(), Shared::default());
        let printer = printer(Talk::Quiet, out.clone(), err.clone());

        printer.line("data");
        printer.say("talk");
        printer.warn("careful");
        printer.insist("error");

        assert_eq!(out.0.borrow().as_slice(), b"data\n");
        assert_eq!(err.0.borrow().as_slice(), b"error\n");
    }

    #[test]
    fn colour_follows_flag_then_environment_then_terminal() {
        for (choice, environment, terminal, expected) in [
            (ColorChoice::Auto, variables(&[]), true, Colour::Ansi),
            (ColorChoice::Auto, variables(&[]), false, Colour::Plain),
            (ColorChoice::Auto, variables(&[("NO_COLOR", "1")]), true, Colour::Plain),
            (ColorChoice::Auto, variables(&[("NO_COLOR", "")]), true, Colour::Ansi),
            (ColorChoice::Auto, variables(&[("TERM", "dumb")]), true, Colour::Plain),
            (ColorChoice::Always, variables(&[("NO_COLOR", "1")]), false, Colour::Ansi),
            (ColorChoice::Never, variables(&[]), true, Colour::Plain),
        ] {
            assert_eq!(decide_colour(choice, &environment, terminal), expected, "{choice:?} {environment:?} {terminal}");
        }
    }

    #[test]
    fn control_characters_in_foreign_text_become_visible() {
        for (text, shown, line) in [
            ("plain äöü", "plain äöü", "plain äöü"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\r\nb\tc\n", "a\nb\tc\n", "a\\r\\nb\\tc\\n"),
            ("over\rwrite", "over\\rwrite", "over\\rwrite"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("\u{202e}drow", "\\u{202e}drow", "\\u{202e}drow"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(visible_line(text), line);
        }
    }
}
