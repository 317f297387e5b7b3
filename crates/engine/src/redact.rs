//! Takes secrets out of what a session prints, before anything of it is written.
//!
//! Two things count as secrets: the values of variables that the settings name, in the forms in which they turn up
//! (`forms`), and what has the shape of a well-known token (`shapes`). Each is replaced by `[redacted]`, which has no
//! character that means something in JSON, so a line of JSON stays one.
//!
//! The result does not depend on where the stream was cut into chunks, and only a tail that may be the beginning of a
//! secret is held back.

mod forms;
mod shapes;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, StartKind};

use shapes::{Fit, SHAPES, Shape, Swallow};

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// Shorter values are ordinary words and numbers (`true`, `8080`, a user's name). Taking them out would make output
/// unreadable, and each gap would tell the value to who knows the text around it.
const SHORTEST: usize = 8;

/// Bytes of all that is searched for, up to which a table of every step is made: many times as fast, and at most 16 MiB.
const MOST_FOR_TABLE: usize = 16 * 1024;

/// What is to be taken out. Cheap to clone.
#[derive(Clone)]
pub struct Secrets(Arc<Needles>);

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Default for Secrets {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Secrets {
    /// The values of the variables that were named, beside which the shapes of tokens always count. White space
    /// around a value is not part of it, and values shorter than 8 bytes are ignored: they are
    /// ordinary words, whose gaps would make output unreadable and give them away.
    pub fn new(values: &[Vec<u8>]) -> Self {
        let values = values.iter().map(|value| value.trim_ascii()).filter(|value| counts(value));
        let forms: BTreeSet<Vec<u8>> = values.flat_map(forms::of).collect();
        Self(Arc::new(Needles::new(forms.into_iter().filter(|form| counts(form)).collect())))
    }
}

fn counts(value: &[u8]) -> bool {
    // What is part of the replacement itself could never be taken out.
    value.len() >= SHORTEST && !REDACTED.as_bytes().windows(value.len()).any(|part| part == value)
}

/// Everything that may begin a secret.
struct Needles {
    /// Values in all their forms, sorted.
    values: Vec<Vec<u8>>,
    /// Values, and the beginnings of shapes; `None` only if they were too many to search for, when every position is
    /// looked at.
    automaton: Option<AhoCorasick>,
    /// Values and beginnings of shapes, sorted.
    all: Vec<Vec<u8>>,
    longest: usize,
    begins: [bool; 256],
}

impl Needles {
    fn new(values: Vec<Vec<u8>>) -> Self {
        let beginnings = SHAPES.iter().map(|shape| shape.begins.as_bytes().to_vec());
        let all: Vec<Vec<u8>> = values.iter().cloned().chain(beginnings).collect::<BTreeSet<_>>().into_iter().collect();
        let mut begins = [false; 256];
        for first in all.iter().filter_map(|needle| needle.first()) {
            begins[usize::from(*first)] = true;
        }
        let kind = (all.iter().map(Vec::len).sum::<usize>() <= MOST_FOR_TABLE).then_some(AhoCorasickKind::DFA);
        let automaton =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).start_kind(StartKind::Unanchored).kind(kind).build(&all).ok();
        let longest = all.iter().map(Vec::len).max().unwrap_or(0);
        Self { values, automaton, all, longest, begins }
    }

    /// The first place at or after `from` where a needle is.
    fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        match &self.automaton {
            Some(automaton) => automaton.find(&text[from..]).map(|found| from + found.start()),
            None => (from..text.len()).find(|start| self.all.iter().any(|needle| text[*start..].starts_with(needle))),
        }
    }

    /// The first place at or after `from` from which the rest of the text is the beginning of a needle.
    fn beginning(&self, text: &[u8], from: usize) -> usize {
        let first = from.max((text.len() + 1).saturating_sub(self.longest));
        (first..text.len())
            .find(|start| self.begins[usize::from(text[*start])] && begins_one(&self.all, &text[*start..]))
            .unwrap_or(text.len())
    }

    /// The length of the longest value at the start of the text.
    fn value_at(&self, text: &[u8]) -> Option<usize> {
        // Those that the text begins with are sorted among those before it, but not all in a row.
        let after = self.values.partition_point(|value| value.as_slice() <= text);
        let candidates = self.values[..after].iter().rev().take_while(|value| value.first() == text.first());
        candidates.filter(|value| text.starts_with(value)).map(Vec::len).max()
    }

    /// What is at a place where a needle begins.
    fn look(&self, text: &[u8], start: usize, before: Before, rest: Rest) -> Found {
        let here = &text[start..];
        if let Some(length) = self.value_at(here) {
            return Found::Value(length);
        }
        for shape in SHAPES.iter().filter(|shape| here.starts_with(shape.begins.as_bytes())) {
            if shape.needs_boundary && !before.is_boundary() {
                continue;
            }
            match shape.fit(here) {
                Fit::Token => return Found::Token(shape),
                Fit::Open if rest == Rest::Follows => return Found::Undecided,
                Fit::Open | Fit::Nothing => {}
            }
        }
        Found::Nothing
    }
}

/// Whether `text` is the beginning of one of the sorted needles, and not all of it.
fn begins_one(sorted: &[Vec<u8>], text: &[u8]) -> bool {
    let after = sorted.partition_point(|needle| needle.as_slice() <= text);
    sorted.get(after).is_some_and(|needle| needle.starts_with(text))
}

/// Takes the secrets out of one stream.
pub struct Redactor {
    secrets: Secrets,
    /// What may be the beginning of a secret; never long.
    held: Vec<u8>,
    /// What of the stream is taken out without a further look: the rest of a token.
    swallow: Option<Swallow>,
    before: Before,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redactor").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

/// What the stream had before the text at hand.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    last_two: [u8; 2],
    /// Whether it ends with an odd number of backslashes, the last of which escapes what follows.
    escapes: bool,
}

impl Before {
    /// What is before `text[position..]`.
    fn at(self, text: &[u8], position: usize) -> Self {
        let byte = |back: usize| match position.checked_sub(back) {
            Some(index) => text[index],
            None => self.last_two[self.last_two.len() + position - back],
        };
        let backslashes = text[..position].iter().rev().take_while(|byte| **byte == b'\\').count();
        let odd = backslashes % 2 == 1;
        Self { last_two: [byte(2), byte(1)], escapes: if backslashes == position { odd ^ self.escapes } else { odd } }
    }

    /// Whether a word can begin here. The `n` of an escaped line break belongs to no word.
    fn is_boundary(self) -> bool {
        let [second, last] = self.last_two;
        !(last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-')) || (second == b'\\' && matches!(last, b'n' | b'r' | b't'))
    }
}

/// What is at the place of a needle.
enum Found {
    Value(usize),
    Token(&'static Shape),
    Nothing,
    /// More of the stream decides.
    Undecided,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Follows,
    IsOver,
}

impl Redactor {
    /// A redactor at the beginning of a stream.
    pub fn new(secrets: &Secrets) -> Self {
        Self { secrets: secrets.clone(), held: Vec::new(), swallow: None, before: Before::default() }
    }

    /// Takes a chunk of the stream, and gives `sink` what is ready to be written, in one or more parts.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(&[u8])) {
        if self.held.is_empty() {
            let used = self.advance(chunk, Rest::Follows, sink);
            self.held.extend_from_slice(&chunk[used..]);
        } else {
            let mut text = std::mem::take(&mut self.held);
            text.extend_from_slice(chunk);
            let used = self.advance(&text, Rest::Follows, sink);
            text.drain(..used);
            self.held = text;
        }
    }

    /// The stream is over: gives what was held back. The beginning of a value that was cut off is taken out too.
    pub fn finish(mut self, sink: &mut dyn FnMut(&[u8])) {
        let text = std::mem::take(&mut self.held);
        let _ = self.advance(&text, Rest::IsOver, sink);
    }

    /// Works on `text`, and returns how much of it is done with.
    fn advance(&mut self, text: &[u8], rest: Rest, sink: &mut dyn FnMut(&[u8])) -> usize {
        let needles = Arc::clone(&self.secrets.0);
        let mut position = self.swallow_from(text, 0, rest, sink);
        let mut from = position;
        let mut tail = needles.beginning(text, position);
        while let Some(start) = needles.find(text, from).filter(|start| rest == Rest::IsOver || *start < tail) {
            let before = self.before.at(text, start);
            let end = match needles.look(text, start, before, rest) {
                Found::Nothing => {
                    from = start + 1;
                    continue;
                }
                Found::Undecided => {
                    tail = start;
                    break;
                }
                Found::Value(length) => {
                    self.replace(text, position, start, sink);
                    start + length
                }
                Found::Token(shape) => {
                    self.replace(text, position, start + shape.kept, sink);
                    self.swallow = Some(shape.swallow);
                    start + shape.begins.len()
                }
            };
            position = self.swallow_from(text, end, rest, sink);
            from = position;
            tail = if tail < position { needles.beginning(text, position) } else { tail };
        }
        self.leave(text, position.max(tail), position, rest, sink)
    }

    /// Writes what is before a secret, and the replacement. A backslash that escaped the secret's first character would
    /// escape the bracket, which JSON does not allow; a second one makes it an ordinary backslash.
    fn replace(&self, text: &[u8], position: usize, secret: usize, sink: &mut dyn FnMut(&[u8])) {
        give(&text[position..secret], sink);
        if self.before.at(text, secret).escapes {
            sink(b"\\");
        }
        sink(REDACTED.as_bytes());
    }

    /// Writes what is before the tail, and the tail itself when nothing follows.
    fn leave(&mut self, text: &[u8], tail: usize, position: usize, rest: Rest, sink: &mut dyn FnMut(&[u8])) -> usize {
        give(&text[position..tail], sink);
        let done = match rest {
            Rest::Follows => tail,
            Rest::IsOver => {
                let cut_off = &text[tail..];
                if cut_off.len() >= SHORTEST && begins_one(&self.secrets.0.values, cut_off) {
                    sink(REDACTED.as_bytes());
                } else {
                    give(cut_off, sink);
                }
                text.len()
            }
        };
        self.before = self.before.at(text, done);
        done
    }

    /// Passes over what belongs to a token that was taken out; returns where it ends.
    fn swallow_from(&mut self, text: &[u8], position: usize, rest: Rest, sink: &mut dyn FnMut(&[u8])) -> usize {
        let Some(swallow) = &mut self.swallow else { return position };
        let swallowed = swallow.pass(&text[position..]);
        if swallowed.is_over || rest == Rest::IsOver {
            // Backslashes that turned out to escape something else.
            give(&vec![b'\\'; swallowed.backslashes], sink);
            self.swallow = None;
        }
        position + swallowed.length
    }
}

/// There is often nothing between two secrets, and nobody wants to be called for that.
fn give(part: &[u8], sink: &mut dyn FnMut(&[u8])) {
    if !part.is_empty() {
        sink(part);
    }
}

/// A whole text (a prompt, an output, a report) without its secrets.
pub fn redact_text(secrets: &Secrets, text: &str) -> String {
    let mut redactor = Redactor::new(secrets);
    let mut out = Vec::with_capacity(text.len());
    redactor.push(text.as_bytes(), &mut |part| out.extend_from_slice(part));
    redactor.finish(&mut |part| out.extend_from_slice(part));
    // A value that is not UTF-8 may have cut a character in two.
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
