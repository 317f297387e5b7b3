//! The sockets between drivers and a host: one JSON object per line, each with its version.
//!
//! A host has a *leash*, a pair of sockets, to the driver that started it. There it gets the sessions it is to run, one
//! after the other, and there it says that one is over; when the driver lets go of the leash, the host finishes what it
//! is at and exits. Other drivers reach it by a socket in the folder of the session that it runs. It is the same socket
//! in every folder, so they say which session they mean, and are sent away when that is over.
//!
//! A driver asks for an interrupt, or to be told of new output. Everything of weight goes through files, so a lost
//! message loses nothing. A person's word to the agent is answered, so that whoever says it knows what became of it.
//! Nobody of the session itself is heard, and no word of anybody who is of another.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_process::descriptors;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::files::{CONTROL_SOCKET, SessionFolder};
use super::line::{Line, WORD_LINE_LIMIT};
use super::peer::Peer;
use super::word::Said;

/// Connections beyond these are refused: each costs a host a buffer, and nobody needs more.
const CONNECTIONS: usize = 16;
/// How often followers are told of new output at most.
const NOTICE_PAUSE: Duration = Duration::from_millis(50);
#[derive(Debug)]
struct Connection {
    line: Line,
    /// Who is there; `None` for the driver at the leash, who needs no proof.
    peer: Option<Peer>,
    follows: bool,
    /// What it says to the session's agent, and was not answered.
    words: Vec<String>,
}

impl Connection {
    fn new(line: Line, peer: Option<Peer>) -> Self {
        Self { line, peer, follows: false, words: Vec::new() }
    }
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
        let leash = Some(Connection::new(leash, None));
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

    /// What belongs to the session is not heard: an agent could break itself off, or speak as a person.
    fn accept(&mut self) {
        while let Some(Ok((stream, _))) = self.socket.as_ref().map(|socket| socket.listener.accept()) {
            if self.strangers.len() < CONNECTIONS
                && let Some(peer) = Peer::of(&stream).filter(|peer| !peer.is_of(&self.session))
                && let Ok(line) = Line::with_limit(stream, WORD_LINE_LIMIT)
            {
                self.strangers.push(Connection::new(line, Some(peer)));
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
            let asked = connection.line.asked(session);
            *interrupted |= asked.interrupt;
            follower_came |= asked.follow;
            connection.follows |= asked.follow;
            connection.words.extend(asked.words);
            !asked.closed
        };
        if self.leash.as_mut().is_some_and(|leash| !is_open(leash)) {
            self.leash = None;
        }
        self.strangers.retain_mut(is_open);
        // Who comes later learns of what is there already.
        self.grown |= follower_came;
    }

    /// Answers what is said to the session's agent; whether anything was.
    pub(super) fn answer_words(&mut self, answer: &mut dyn FnMut(&str) -> Said) -> bool {
        let mut any = false;
        for connection in self.leash.iter_mut().chain(&mut self.strangers) {
            for word in connection.words.drain(..) {
                any = true;
                let is_heard = connection.peer.as_ref().is_none_or(Peer::is_a_person);
                connection.line.tell_said(if is_heard { answer(&word) } else { Said::NoPerson });
            }
        }
        any
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
            connection.line.tell_grown();
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
    use std::os::unix::net::UnixStream;

    use proctor_domain::SessionId;

    use super::super::assignment::{Assignment, StoredSpec};
    use super::super::line::{Next, Request};
    use super::super::{SessionSpec, SessionWork};
    use super::*;

    #[test]
    fn what_comes_with_an_assignment_is_for_its_session() {
        let (host, driver) = UnixStream::pair().unwrap();
        let mut host = Line::new(host).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let spec = SessionSpec {
            session: SessionId::from_bits(1),
            folder: folder.path().to_owned(),
            work: SessionWork::Shells(Vec::new()),
            directory: "/".into(),
            environment: Vec::new(),
            secrets: Vec::new(),
            wall_limit: Duration::ZERO,
            linger: Vec::new(),
            lock: "/".into(),
        };
        let driver = Line::new(driver).unwrap();
        driver.ask(Request::Interrupt);
        driver.assign(Assignment::new(&spec, StoredSpec::of(&spec, None), &[], None)).unwrap();
        driver.ask(Request::Follow);

        let next = host.take_assignment();
        let mut control = Control::open(&SessionFolder::new(folder.path()), host, None);

        assert!(matches!(next, Next::Session(_)));
        assert!(!control.is_interrupted());
        assert_eq!(control.tell_followers(Instant::now()), None);
        let mut driver = driver;
        assert!(driver.hear().grown);
    }
}
