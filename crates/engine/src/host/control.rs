//! The sockets between drivers and a host: one JSON object per line, each with its version.
//!
//! A host has a *leash*, a pair of sockets, to the driver that started it. There it gets the sessions it is to run, one
//! after the other, and there it says that one is over; when the driver lets go of the leash, the host finishes what it
//! is at and exits. Other drivers reach it by a socket in the folder of the session that it runs. It is the same socket
//! in every folder, so they say which session they mean, and are sent away when that is over.
//!
//! A driver asks for an interrupt, or to be told of new output. Everything of weight goes through files, so a lost
//! message loses nothing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_process::descriptors;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::assignment::Assignment;
use super::files::{CONTROL_SOCKET, SessionFolder};

const VERSION: u64 = 1;
/// A longer line on a session's own socket is no message.
const LINE_LIMIT: usize = 4096;
/// A longer line on a leash is no message: four times what the system takes as environment and arguments of a program.
const LEASH_LIMIT: usize = 8 * 1024 * 1024;
/// Connections beyond these are refused: each costs a host a buffer, and nobody needs more.
const CONNECTIONS: usize = 16;
/// How often followers are told of new output at most.
const NOTICE_PAUSE: Duration = Duration::from_millis(50);
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
}

trait Message: Serialize + DeserializeOwned {
    fn version(&self) -> u64;
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

/// What a driver hears from a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) grown: bool,
    pub(super) done: bool,
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
struct Received<M> {
    messages: Vec<M>,
    closed: bool,
}

impl Line {
    /// A connection that carries requests and notices.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, session: None, pending: Vec::new(), searched: 0, limit: LINE_LIMIT })
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
        line.say(line.message());
        Ok(line)
    }

    fn message(&self) -> DriverMessage {
        DriverMessage { version: VERSION, session: self.session.clone(), ..DriverMessage::default() }
    }

    fn say(&self, message: DriverMessage) {
        let _ = (&self.stream).write_all(&encode(&message));
    }

    /// Sends a request. A host that is gone can't be asked, which is no error: its end shows elsewhere.
    pub(super) fn ask(&self, request: Request) {
        self.say(match request {
            Request::Interrupt => DriverMessage { interrupt: true, ..self.message() },
            Request::Follow => DriverMessage { follow: true, ..self.message() },
        });
    }

    /// Sends a session to the host at the other end of this leash.
    pub(super) fn assign(&self, assignment: Assignment) -> io::Result<()> {
        let line = encode(&DriverMessage { assignment: Some(assignment), ..self.message() });
        // It may be larger than what the socket holds, so this may wait for the host; but not for one that hangs.
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(SEND_LIMIT))?;
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
                return Next::Session(Box::new(assignment));
            }
        }
        if closed { Next::End } else { Next::Nothing }
    }

    /// For a host: says that the session is over.
    pub(super) fn tell_done(&self) {
        self.tell(HostMessage { version: VERSION, done: true, ..HostMessage::default() });
    }

    fn tell(&self, message: HostMessage) {
        // One that does not read has enough notices waiting; one that is gone is noticed at the next look.
        let _ = (&self.stream).write(&encode(&message));
    }

    /// For a driver: what the host has said since the last call.
    pub(super) fn hear(&mut self) -> Heard {
        let received = self.receive::<HostMessage>();
        let any = |said: fn(&HostMessage) -> bool| received.messages.iter().any(said);
        Heard { grown: any(|message| message.grown), done: any(|message| message.done), closed: received.closed }
    }

    fn receive<M: Message>(&mut self) -> Received<M> {
        let closed = self.fill();
        Received { messages: std::iter::from_fn(|| self.pop()).collect(), closed }
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
            // What a newer side says in a newer version is not guessed at; it knows to speak ours.
            let message = serde_json::from_slice::<M>(&line).ok().filter(|message| message.version() == VERSION);
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

#[derive(Debug)]
struct Connection {
    line: Line,
    follows: bool,
}

/// A host's connections while it runs a session.
#[derive(Debug)]
pub(super) struct Control {
    /// The leash, while its driver holds the other end.
    leash: Option<Connection>,
    /// `None` where no socket could be made: the session can be run without.
    socket: Option<Socket>,
    /// The session's id.
    session: String,
    strangers: Vec<Connection>,
    /// Whether somebody asked for the end of the session.
    interrupted: bool,
    grown: bool,
    told: Option<Instant>,
}

impl Control {
    /// Opens the session's socket beside the leash. `socket` is that of the session before, where there was one.
    pub(super) fn open(folder: &SessionFolder, leash: Line, socket: Option<Socket>) -> Self {
        let leash = Some(Connection { line: leash, follows: false });
        let socket = socket.and_then(|socket| socket.enter(folder).ok()).or_else(|| Socket::bind(folder).ok());
        let session = folder.session();
        let mut control = Self { leash, socket, session, strangers: Vec::new(), interrupted: false, grown: false, told: None };
        // What came together with the assignment was read with it, and nobody would be woken for it.
        control.take_requests();
        control
    }

    /// Sends the strangers away, and gives back the leash, if somebody still holds it, and the socket.
    pub(super) fn close(mut self) -> (Option<Line>, Option<Socket>) {
        // Those as well who have just come.
        self.accept();
        (self.leash.map(|leash| leash.line), self.socket)
    }

    fn accept(&mut self) {
        while let Some(Ok((stream, _))) = self.socket.as_ref().map(|socket| socket.listener.accept()) {
            if self.strangers.len() < CONNECTIONS
                && let Ok(line) = Line::new(stream)
            {
                self.strangers.push(Connection { line, follows: false });
            }
        }
    }

    fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.leash.iter().chain(&self.strangers)
    }

    /// What to wait on.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.socket.iter().map(|socket| socket.listener.as_fd()).chain(self.connections().map(|connection| connection.line.as_fd()))
    }

    /// Takes what has come in.
    pub(super) fn take_requests(&mut self) {
        self.accept();
        let session = &self.session;
        let interrupted = &mut self.interrupted;
        let mut follower_came = false;
        let mut is_open = |connection: &mut Connection| {
            let received = connection.line.receive::<DriverMessage>();
            for message in received.messages {
                if message.session.as_ref().is_some_and(|meant| meant != session) {
                    return false;
                }
                *interrupted |= message.interrupt;
                follower_came |= message.follow;
                connection.follows |= message.follow;
            }
            !received.closed
        };
        if self.leash.as_mut().is_some_and(|leash| !is_open(leash)) {
            self.leash = None;
        }
        self.strangers.retain_mut(is_open);
        // Who comes later learns of what is there already.
        self.grown |= follower_came;
    }

    /// Whether somebody asked for the end of the session.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Notes that there is new output.
    pub(super) fn note_growth(&mut self) {
        self.grown = true;
    }

    /// Tells the followers of new output, unless that was just done; returns when to call again.
    pub(super) fn tell_followers(&mut self, now: Instant) -> Option<Instant> {
        if !self.grown || !self.connections().any(|connection| connection.follows) {
            return None;
        }
        if let Some(next) = self.told.map(|told| told + NOTICE_PAUSE).filter(|next| *next > now) {
            return Some(next);
        }
        for connection in self.connections().filter(|connection| connection.follows) {
            connection.line.tell(HostMessage { version: VERSION, grown: true, ..HostMessage::default() });
        }
        self.grown = false;
        self.told = Some(now);
        None
    }
}

/// The socket by which drivers find a host that they hold no leash to.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    /// The socket's file, to be linked into the folders of further sessions: that costs a tenth of another socket.
    file: OwnedFd,
}

impl Socket {
    /// The path of a socket holds 108 bytes, and the folder may lie deeper than that, so it is named by its descriptor.
    fn bind(folder: &SessionFolder) -> io::Result<Self> {
        let open = File::open(folder.path())?;
        let path = descriptors::short_path(open.as_fd(), Path::new(CONTROL_SOCKET));
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let file = rustix::fs::open(&path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { listener, file })
    }

    /// Makes it the socket of this session too. Fails when its file was removed, or lies on another file system.
    fn enter(self, folder: &SessionFolder) -> io::Result<Self> {
        let by_descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, by_descriptor, CWD, folder.path().join(CONTROL_SOCKET), AtFlags::SYMLINK_FOLLOW)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use proctor_domain::SessionId;

    use super::super::SessionSpec;
    use super::super::assignment::StoredSpec;
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

        let received = host.receive::<DriverMessage>();

        assert!(received.messages[0].follow && received.messages[1].interrupt && received.closed);
    }

    #[test]
    fn what_comes_with_an_assignment_is_for_its_session() {
        let (mut host, driver) = pair();
        let folder = tempfile::tempdir().unwrap();
        let spec = StoredSpec::of(
            &SessionSpec {
                session: SessionId::from_bits(1),
                folder: folder.path().to_owned(),
                shells: Vec::new(),
                directory: "/".into(),
                environment: Vec::new(),
                wall_limit: Duration::ZERO,
                linger: Vec::new(),
                lock: "/".into(),
            },
            None,
        );
        let driver = Line::new(driver).unwrap();
        driver.ask(Request::Interrupt);
        driver.assign(Assignment::new(folder.path(), spec, &[], None)).unwrap();
        driver.ask(Request::Follow);

        let next = host.take_assignment();
        let mut control = Control::open(&SessionFolder::new(folder.path()), host, None);

        assert!(matches!(next, Next::Session(_)));
        assert!(!control.is_interrupted());
        assert_eq!(control.tell_followers(Instant::now()), None);
        let mut driver = driver;
        assert!(driver.hear().grown);
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
