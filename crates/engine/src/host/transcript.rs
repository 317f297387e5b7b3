//! What an agent prints, read line by line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use proctor_domain::MicroDollars;
use proctor_domain::session::{AgentReport, EngineName, SessionEnd, Usage};

use super::files::SessionFolder;
use super::streams::tails_of;
use crate::agent::{Account, AgentEvent, EngineKind, Opening, Reader, engine, read_said};

/// A longer line's memory is given back: a host is to stay small.
const KEPT: usize = 64 * 1024;

/// The lines of one session, and what they add up to.
pub(super) struct Transcript {
    reader: Box<dyn Reader>,
    account: Account,
    events: Vec<AgentEvent>,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    has_begun: bool,
    turns: u32,
    progressed: bool,
    /// The provider asked to wait, and nothing came after that.
    is_asked_to_wait: bool,
}

impl Transcript {
    pub(super) fn of(name: EngineName, kind: EngineKind, opening: &Opening) -> Self {
        let reader = engine(kind).reader(opening);
        Self {
            reader,
            account: Account::new(name),
            events: Vec::new(),
            line: Vec::new(),
            has_begun: false,
            turns: 0,
            progressed: false,
            is_asked_to_wait: false,
        }
    }

    /// Takes in what was printed next, of which no line is longer than what is kept of one.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.line.is_empty() {
                self.read(line);
            } else {
                self.line.extend_from_slice(line);
                self.read_pending();
            }
            rest = after;
        }
        self.line.extend_from_slice(rest);
    }

    fn read_pending(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        self.read(&line);
        if line.capacity() <= KEPT {
            line.clear();
            self.line = line;
        }
    }

    fn read(&mut self, line: &[u8]) {
        match read_said(line) {
            Some(text) => self.events.push(AgentEvent::Said(text)),
            None => self.reader.read(line, &mut self.events),
        }
        self.has_begun = true;
        self.add_events();
    }

    /// Whether its engine has printed anything.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn add_events(&mut self) {
        for event in self.events.drain(..) {
            self.turns = self.turns.saturating_add(u32::from(event == AgentEvent::Turn));
            let asks_to_wait = matches!(event, AgentEvent::Retrying { status: Some(429 | 503 | 529), .. });
            let has_progressed = self.account.add(event);
            self.is_asked_to_wait = asks_to_wait || (self.is_asked_to_wait && !has_progressed);
            self.progressed |= has_progressed;
        }
    }

    /// Takes it that the program has ended. A line that was begun is read as it is.
    pub(super) fn end_program(&mut self, exit_code: Option<i32>) {
        if !self.line.is_empty() {
            self.read_pending();
        }
        self.reader.close(exit_code, &mut self.events);
        self.add_events();
    }

    /// What is to be written to the program next.
    pub(super) fn take_words(&mut self) -> Vec<u8> {
        self.reader.take_words()
    }

    /// Asks the program to break off what it does; false where only a signal can do that.
    pub(super) fn interrupt(&mut self) -> bool {
        self.reader.interrupt()
    }

    /// How lines begin that are not to be kept.
    pub(super) fn passing(&self) -> &'static [u8] {
        self.reader.passing()
    }

    /// Gives the agent a further word; false where nobody can while it runs.
    pub(super) fn say(&mut self, text: &str) -> bool {
        let is_said = self.reader.say(text);
        if is_said {
            self.account.reopen();
        }
        is_said
    }

    /// Reads what another program says, in which the conversation goes on.
    pub(super) fn go_on(&mut self, reader: Box<dyn Reader>) {
        self.reader = reader;
        self.account.carry_over();
    }

    pub(super) fn conversation(&self) -> Option<&str> {
        self.account.conversation()
    }

    /// Whether the provider asked to wait, and nothing came after that.
    pub(super) fn is_asked_to_wait(&self) -> bool {
        self.is_asked_to_wait
    }

    /// What is known to be used so far.
    pub(super) fn used(&self) -> Usage {
        self.account.used()
    }

    /// The answer, once the engine has said that it is done.
    pub(super) fn answer(&self) -> Option<&str> {
        self.account.answer()
    }

    pub(super) fn settle_result(&mut self, result: Option<String>) {
        self.account.settle_result(result);
    }

    /// What is known to be spent so far.
    pub(super) fn cost(&self) -> Option<MicroDollars> {
        self.account.cost()
    }

    /// Whether there was a sign of progress since the last call.
    pub(super) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progressed)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.account.is_finished()
    }

    /// How often the model has answered.
    pub(super) fn turns(&self) -> u32 {
        self.turns
    }

    /// The end by what the engine said, and the report.
    pub(super) fn close(self, exit_code: Option<i32>, owes_result: bool) -> (SessionEnd, AgentReport) {
        self.account.close(exit_code, owes_result)
    }
}

/// What the transcript says of an agent's session whose host died before it could report: the conversation, what was spent.
/// `None` when there is no transcript.
pub fn replay_transcript(folder: &Path, name: EngineName, engine: EngineKind) -> Option<AgentReport> {
    let path = SessionFolder::new(folder).transcript();
    let mut transcript = Transcript::of(name, engine, &Opening::default());
    replay(&path, &mut transcript)?;
    // The end of a long one, which its host would have appended.
    let mut tails: Vec<PathBuf> = tails_of(&path).into();
    tails.sort_by_key(|tail| tail.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH));
    for tail in tails {
        // There is none but for a long transcript.
        let _ = replay(&tail, &mut transcript);
    }
    transcript.end_program(None);
    Some(transcript.close(None, false).1)
}

/// Reads a file of any size. What can't be read is passed over: the rest is still worth having.
fn replay(path: &Path, transcript: &mut Transcript) -> Option<()> {
    let mut file = File::open(path).ok()?;
    let mut buffer = vec![0; KEPT];
    while let Ok(read @ 1..) = file.read(&mut buffer) {
        transcript.push(&buffer[..read]);
    }
    Some(())
}
