//! The socket between drivers and a host: one JSON object per line, each with its version.
//!
//! A driver says `{"version":1,"interrupt":true}` or `{"version":1,"follow":true}`; a host says
//! `{"version":1,"grown":true}` to those who follow, when it has written more output. Everything of weight
//! goes through files, so a lost message loses nothing, and the end of the connection says that the host is
//! through.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

const VERSION: u64 = 1;
/// A line longer than this is no message.
const LINE_LIMIT: usize = 4096;
/// Connections beyond these are refused: each costs a host a buffer, and nobody needs more.
const CONNECTIONS: usize = 16;
/// How often followers are told of new output at most.
const NOTICE_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Message {
    version: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupt: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    follow: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    grown: bool,
}

/// What a driver asks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Interrupt,
    Follow,
}

/// Sends a request. A host that is gone can't be asked, which is no error: its end shows elsewhere.
pub(super) fn send_request(mut stream: &UnixStream, request: Request) {
    let message = match request {
        Request::Interrupt => Message { version: VERSION, interrupt: true, ..Message::default() },
        Request::Follow => Message { version: VERSION, follow: true, ..Message::default() },
    };
    let _ = stream.write_all(&encode(message));
}

fn encode(message: Message) -> Vec<u8> {
    let mut line = serde_json::to_vec(&message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// One connection, read line by line without waiting.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    pending: Vec<u8>,
}

/// What a look at a connection gave.
#[derive(Debug, Default)]
struct Received {
    messages: Vec<Message>,
    closed: bool,
}

impl Line {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, pending: Vec::new() })
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    fn receive(&mut self) -> Received {
        let mut received = Received::default();
        let mut buffer = [0; 1024];
        loop {
            match (&self.stream).read(&mut buffer) {
                Ok(0) => received.closed = true,
                Ok(read) => {
                    self.pending.extend_from_slice(&buffer[..read]);
                    self.split(&mut received);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return received,
                // A host that died before it took the connection resets it.
                Err(_) => received.closed = true,
            }
            if received.closed || self.pending.len() > LINE_LIMIT {
                received.closed = true;
                return received;
            }
        }
    }

    fn split(&mut self, received: &mut Received) {
        while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            // What a newer side says in a newer version is not guessed at; it knows to speak ours.
            if let Ok(message) = serde_json::from_slice::<Message>(&line)
                && message.version == VERSION
            {
                received.messages.push(message);
            }
        }
    }

    /// For a driver: true when the host has closed the connection, which it does last of all.
    pub(super) fn is_closed_by_host(&mut self, on_grown: &mut dyn FnMut()) -> bool {
        let received = self.receive();
        if received.messages.iter().any(|message| message.grown) {
            on_grown();
        }
        received.closed
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[derive(Debug)]
struct Connection {
    line: Line,
    follows: bool,
}

/// The host's end: a listening socket and the drivers that are attached.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    connections: Vec<Connection>,
    grown: bool,
    told: Option<Instant>,
}

impl Control {
    pub(super) fn new(listener: OwnedFd) -> io::Result<Self> {
        let listener = UnixListener::from(listener);
        // Fails when it is no socket at all.
        listener.local_addr()?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: Vec::new(), grown: false, told: None })
    }

    /// What to wait on.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.listener.as_fd()).chain(self.connections.iter().map(|connection| connection.line.as_fd()))
    }

    /// Takes what has come in; true when somebody asked for the end of the session.
    pub(super) fn take_requests(&mut self) -> bool {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.connections.len() < CONNECTIONS
                && let Ok(line) = Line::new(stream)
            {
                self.connections.push(Connection { line, follows: false });
            }
        }
        let mut interrupted = false;
        let mut follower_came = false;
        self.connections.retain_mut(|connection| {
            let received = connection.line.receive();
            for message in received.messages {
                interrupted |= message.interrupt;
                follower_came |= message.follow;
                connection.follows |= message.follow;
            }
            !received.closed
        });
        // Who comes later learns of what is there already.
        self.grown |= follower_came;
        interrupted
    }

    /// Notes that there is new output.
    pub(super) fn note_growth(&mut self) {
        self.grown = true;
    }

    /// Tells the followers of new output, unless that was just done; returns when to call again.
    pub(super) fn tell_followers(&mut self, now: Instant) -> Option<Instant> {
        if !self.grown || !self.connections.iter().any(|connection| connection.follows) {
            return None;
        }
        if let Some(next) = self.told.map(|told| told + NOTICE_PAUSE).filter(|next| *next > now) {
            return Some(next);
        }
        let line = encode(Message { version: VERSION, grown: true, ..Message::default() });
        for connection in self.connections.iter().filter(|connection| connection.follows) {
            // A follower that does not read has enough notices waiting; one that is gone is noticed at the next look.
            let _ = connection.line.stream().write(&line);
        }
        self.grown = false;
        self.told = Some(now);
        None
    }
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
        other.write_all(b"garbage\n{\"version\":2,\"interrupt\":true}\n{\"version\":1,\"inter").unwrap();
        assert_eq!(line.receive().messages, []);

        other.write_all(b"rupt\":true,\"later\":1}\n").unwrap();

        let received = line.receive();
        assert_eq!(received.messages, [Message { version: 1, interrupt: true, ..Message::default() }]);
        assert!(!received.closed);
    }

    #[test]
    fn an_endless_line_ends_the_connection() {
        let (mut line, mut other) = pair();
        other.write_all(&[b'x'; 2 * LINE_LIMIT]).unwrap();

        assert!(line.receive().closed);
    }

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let (mut line, other) = pair();
        send_request(&other, Request::Follow);
        send_request(&other, Request::Interrupt);
        drop(other);

        let received = line.receive();

        assert!(received.messages[0].follow && received.messages[1].interrupt && received.closed);
    }
}
