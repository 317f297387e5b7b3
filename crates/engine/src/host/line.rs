//! One end of a connection between a driver and a host: JSON objects, one per line, each with its version.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use proctor_process::descriptors;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::assignment::Assignment;
use super::files::{CONTROL_SOCKET, SessionFolder};
use super::word::{LONGEST_WORD, Said};

const VERSION: u64 = 1;
/// A longer line to a driver is no message.
const LINE_LIMIT: usize = 4096;
/// A longer line on a session's own socket is no message: a word, each byte of which JSON may write as six.
pub(super) const WORD_LINE_LIMIT: usize = 6 * LONGEST_WORD + LINE_LIMIT;
/// A longer line on a leash is no message: four times what the system takes as environment and arguments of a program.
const LEASH_LIMIT: usize = 8 * 1024 * 1024;
/// How long a host may take to read an assignment that is larger than the socket's buffer.
const SEND_LIMIT: Duration = Duration::from_secs(10);

/// What a driver says.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct DriverMessage {
    version: u64,
    /// The session that is meant; on a leash it is the one that was handed over last.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupt: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    follow: bool,
    /// What a person says to the session's agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    say: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assignment: Option<Assignment>,
}

/// What a host says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct HostMessage {
    version: u64,
    /// There is more output than before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    grown: bool,
    /// The session is over, and its report is written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    done: bool,
    /// What became of what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<Said>,
}

/// One line.
pub(super) trait Message: Serialize + DeserializeOwned {
    fn version(&self) -> u64;

    /// Whether it is to be heard. What a newer side says in a newer version is not guessed at; it knows to speak ours.
    fn is_heard(&self) -> bool {
        self.version() == VERSION
    }
}

impl Message for DriverMessage {
    fn version(&self) -> u64 {
        self.version
    }
}

impl Message for HostMessage {
    fn version(&self) -> u64 {
        self.version
    }
}

/// What a driver asks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Interrupt,
    Follow,
}

/// What a host hears from a driver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) interrupt: bool,
    pub(super) follow: bool,
    pub(super) words: Vec<String>,
    pub(super) closed: bool,
}

/// What a driver hears from a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) grown: bool,
    pub(super) done: bool,
    pub(super) said: Option<Said>,
    pub(super) closed: bool,
}

/// One connection, read line by line without waiting.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    /// The session that is meant, where the other end must be told.
    session: Option<String>,
    pending: Vec<u8>,
    /// How much of `pending` is known to hold no end of a line.
    searched: usize,
    limit: usize,
}

/// Messages, and whether the other side has closed the connection.
pub(super) struct Received<M> {
    pub(super) messages: Vec<M>,
    pub(super) closed: bool,
}

impl Line {
    /// A connection that carries requests and notices.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, session: None, pending: Vec::new(), searched: 0, limit: LINE_LIMIT })
    }

    /// A connection whose lines may have so many bytes.
    pub(super) fn with_limit(stream: UnixStream, limit: usize) -> io::Result<Self> {
        Ok(Self { limit, ..Self::new(stream)? })
    }

    /// Either end of a leash.
    pub(super) fn leash(end: OwnedFd) -> io::Result<Self> {
        let stream = UnixStream::from(end);
        // Fails when it is no socket at all.
        stream.peer_addr()?;
        Ok(Self { limit: LEASH_LIMIT, ..Self::new(stream)? })
    }

    /// Connects to the host of this session.
    pub(super) fn connect(folder: &SessionFolder) -> io::Result<Self> {
        let open = File::open(folder.path())?;
        let stream = UnixStream::connect(descriptors::short_path(open.as_fd(), Path::new(CONTROL_SOCKET)))?;
        let line = Self { session: Some(folder.session()), ..Self::new(stream)? };
        line.write(line.message());
        Ok(line)
    }

    fn message(&self) -> DriverMessage {
        DriverMessage { version: VERSION, session: self.session.clone(), ..DriverMessage::default() }
    }

    fn write(&self, message: DriverMessage) {
        let _ = (&self.stream).write_all(&encode(&message));
    }

    /// Sends a request. A host that is gone can't be asked, which is no error: its end shows elsewhere.
    pub(super) fn ask(&self, request: Request) {
        self.write(match request {
            Request::Interrupt => DriverMessage { interrupt: true, ..self.message() },
            Request::Follow => DriverMessage { follow: true, ..self.message() },
        });
    }

    /// Says something to the session's agent; the host answers.
    pub(super) fn say(&self, text: &str, patience: Duration) -> io::Result<()> {
        self.write_whole(&DriverMessage { say: Some(text.to_owned()), ..self.message() }, patience)
    }

    /// Sends a session to the host at the other end of this leash.
    pub(super) fn assign(&self, assignment: Assignment) -> io::Result<()> {
        self.write_whole(&DriverMessage { assignment: Some(assignment), ..self.message() }, SEND_LIMIT)
    }

    fn write_whole(&self, message: &DriverMessage, patience: Duration) -> io::Result<()> {
        let line = encode(message);
        // It may be larger than what the socket holds, so this may wait for the host; but not for one that hangs.
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(patience))?;
        let sent = (&self.stream).write_all(&line);
        self.stream.set_nonblocking(true)?;
        sent
    }

    /// For an idle host: the next session, if one has come. What came before it, such as an interrupt that met the end
    /// of the session that it was for, is passed over; what comes after it is for the session.
    pub(super) fn take_assignment(&mut self) -> Next {
        let closed = self.fill();
        while let Some(message) = self.pop::<DriverMessage>() {
            if let Some(assignment) = message.assignment {
                // An environment can have megabytes, and a host is to stay small.
                self.pending.shrink_to_fit();
                return Next::Session(Box::new(assignment));
            }
        }
        if closed { Next::End } else { Next::Nothing }
    }

    /// For a host that runs `session`: what the driver at the other end asks of it. One that means another session is
    /// sent away.
    pub(super) fn asked(&mut self, session: &str) -> Asked {
        let received = self.receive::<DriverMessage>();
        let means_another = received.messages.iter().any(|message| message.session.as_ref().is_some_and(|meant| meant != session));
        let any = |asked: fn(&DriverMessage) -> bool| !means_another && received.messages.iter().any(asked);
        let (interrupt, follow) = (any(|message| message.interrupt), any(|message| message.follow));
        let said = received.messages.into_iter().filter_map(|message| message.say);
        let words = if means_another { Vec::new() } else { said.collect() };
        Asked { interrupt, follow, words, closed: received.closed || means_another }
    }

    /// For a host: says that there is more output than before.
    pub(super) fn tell_grown(&self) {
        self.tell(HostMessage { version: VERSION, grown: true, ..HostMessage::default() });
    }

    /// For a host: says that the session is over.
    pub(super) fn tell_done(&self) {
        self.tell(HostMessage { version: VERSION, done: true, ..HostMessage::default() });
    }

    /// For a host: says what became of what was said.
    pub(super) fn tell_said(&self, said: Said) {
        self.tell(HostMessage { version: VERSION, said: Some(said), ..HostMessage::default() });
    }

    fn tell(&self, message: HostMessage) {
        // One that does not read has enough notices waiting; one that is gone is noticed at the next look.
        let _ = (&self.stream).write(&encode(&message));
    }

    /// For a driver: what the host has said since the last call.
    pub(super) fn hear(&mut self) -> Heard {
        let received = self.receive::<HostMessage>();
        let any = |said: fn(&HostMessage) -> bool| received.messages.iter().any(said);
        let said = received.messages.iter().rev().find_map(|message| message.said);
        Heard { grown: any(|message| message.grown), done: any(|message| message.done), said, closed: received.closed }
    }

    /// What has come since the last call.
    pub(super) fn receive<M: Message>(&mut self) -> Received<M> {
        let closed = self.fill();
        Received { messages: std::iter::from_fn(|| self.pop()).collect(), closed }
    }

    /// Sends the whole of a message at once; false where the other side is gone, or does not read.
    pub(super) fn send(&self, message: &impl Message) -> bool {
        let line = encode(message);
        (&self.stream).write(&line).is_ok_and(|written| written == line.len())
    }

    /// Reads all that is there; true when no more will come.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match (&self.stream).read(&mut buffer) {
                Ok(0) => return true,
                Ok(read) => self.pending.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // A host that died before it took the connection resets it.
                Err(_) => return true,
            }
            if self.pending.len() > self.limit {
                return true;
            }
        }
    }

    /// The next message of those that were read.
    fn pop<M: Message>(&mut self) -> Option<M> {
        while let Some(found) = self.pending[self.searched..].iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=self.searched + found).collect();
            self.searched = 0;
            let message = serde_json::from_slice::<M>(&line).ok().filter(Message::is_heard);
            if message.is_some() {
                return message;
            }
        }
        self.searched = self.pending.len();
        None
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn encode(message: &impl Message) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// What an idle host is to do next.
#[derive(Debug)]
pub(super) enum Next {
    Session(Box<Assignment>),
    Nothing,
    /// The driver has let go of the leash.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Line, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Line::new(ours).unwrap(), theirs)
    }

    #[test]
    fn garbage_and_newer_messages_are_passed_over() {
        let (mut line, mut other) = pair();
        other.write_all(b"garbage\n{\"version\":2,\"done\":true}\n{\"version\":1,\"do").unwrap();
        assert_eq!(line.hear(), Heard::default());

        other.write_all(b"ne\":true,\"later\":1}\n").unwrap();

        assert_eq!(line.hear(), Heard { done: true, ..Heard::default() });
    }

    #[test]
    fn an_endless_line_ends_the_connection() {
        let (mut line, mut other) = pair();
        other.write_all(&[b'x'; 3 * LINE_LIMIT]).unwrap();

        assert!(line.hear().closed);
    }

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let (mut host, driver) = pair();
        let driver = Line::new(driver).unwrap();
        driver.ask(Request::Follow);
        driver.ask(Request::Interrupt);
        drop(driver);

        assert_eq!(host.asked("ses_a"), Asked { interrupt: true, follow: true, closed: true, ..Asked::default() });
    }

    #[test]
    fn the_longest_word_arrives_whole_and_its_answer_comes_back() {
        let (host, driver) = UnixStream::pair().unwrap();
        let mut host = Line::with_limit(host, WORD_LINE_LIMIT).unwrap();
        let word = "\u{1}".repeat(LONGEST_WORD);
        let mut words = Vec::new();

        let driver = std::thread::scope(|scope| {
            let says = scope.spawn(|| {
                let driver = Line::new(driver).unwrap();
                driver.say(&word, SEND_LIMIT).unwrap();
                driver
            });
            while words.is_empty() {
                words = host.asked("ses_a").words;
                std::thread::yield_now();
            }
            says.join().unwrap()
        });
        host.tell_said(Said::Passed);

        assert!(words == [word]);
        let mut driver = driver;
        assert_eq!(driver.hear().said, Some(Said::Passed));
    }

    #[test]
    fn who_means_another_session_is_sent_away_unheard() {
        let (mut host, driver) = pair();
        let driver = Line { session: Some("ses_a".to_owned()), ..Line::new(driver).unwrap() };
        driver.ask(Request::Interrupt);
        assert_eq!(host.asked("ses_a"), Asked { interrupt: true, ..Asked::default() });

        driver.ask(Request::Interrupt);

        assert_eq!(host.asked("ses_b"), Asked { closed: true, ..Asked::default() });
    }

    #[test]
    fn an_idle_host_passes_over_requests_that_came_too_late() {
        let (mut host, driver) = pair();
        let driver = Line::new(driver).unwrap();
        driver.ask(Request::Interrupt);
        assert!(matches!(host.take_assignment(), Next::Nothing));

        drop(driver);

        assert!(matches!(host.take_assignment(), Next::End));
    }
}
