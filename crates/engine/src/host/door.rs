//! The socket by which an agent calls the tools of its session.
//!
//! Whoever connects is let in if the kernel says that it descends from the session's child, and by nothing else: no word is
//! asked, so none can be passed on. It is bound before the child is started, in a folder that can be seen in the child's box,
//! and separate from the socket of drivers, which do what an agent must not.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use proctor_process::{descriptors, family};
use rustix::net::sockopt::socket_peercred;

use super::files::SessionFolder;
use super::line::{Line, Message};
use super::streams::Hidden;
use crate::tools::{OfferedTool, Reply, Request, ToolAnswer, VERSION};

/// Connections beyond these are refused: each costs a host a buffer, and an agent's client needs one.
const CONNECTIONS: usize = 8;
/// A longer line is no call.
const LINE_LIMIT: usize = 1024 * 1024;
/// A longer offer might not fit into a socket that nobody reads from meanwhile.
const OFFER_LIMIT: usize = 64 * 1024;

impl Message for Request {
    fn version(&self) -> u64 {
        self.version
    }

    /// A bridge waits for its answer, so a version that is not known is answered too.
    fn is_heard(&self) -> bool {
        true
    }
}

impl Message for Reply {
    fn version(&self) -> u64 {
        self.version
    }
}

/// Who answers calls.
pub(super) trait Called {
    /// What this session's agent may call.
    fn offer(&self) -> Vec<OfferedTool>;
    /// Does what a tool is for. Nothing secret is in `input` any more.
    fn call(&mut self, tool: &str, input: &serde_json::Value) -> ToolAnswer;
}

/// The socket, and who is connected.
pub(super) struct Door {
    listener: UnixListener,
    /// The session's child, while it runs.
    child: Option<u32>,
    callers: Vec<Line>,
    hidden: Hidden,
}

impl Door {
    /// Binds the session's socket. `hidden` is taken out of what is said here.
    pub(super) fn open(folder: &SessionFolder, hidden: &Hidden) -> io::Result<Self> {
        let socket = folder.tools();
        folder.make_room_for(socket.clone()).map_err(io::Error::other)?;
        let (place, name) = (socket.parent().unwrap_or(Path::new("/")), socket.file_name().unwrap_or_default());
        let open = File::open(place)?;
        let listener = UnixListener::bind(descriptors::short_path(open.as_fd(), Path::new(name)))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, child: None, callers: Vec::new(), hidden: hidden.clone() })
    }

    /// Lets in this child and its descendants from now on, and nobody who is connected by now.
    pub(super) fn let_in(&mut self, child: Option<u32>) {
        self.child = child;
        self.callers.clear();
    }

    /// What to wait on.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.listener.as_fd()).chain(self.callers.iter().map(Line::as_fd))
    }

    /// Takes in what has come, and answers it; whether there was something.
    pub(super) fn answer(&mut self, called: &mut dyn Called) -> bool {
        self.accept();
        let hidden = &self.hidden;
        let mut was_asked = false;
        self.callers.retain_mut(|caller| {
            let received = caller.receive::<Request>();
            was_asked |= !received.messages.is_empty();
            let is_answered = received.messages.into_iter().all(|request| caller.send(&reply(request, hidden, called)));
            is_answered && !received.closed
        });
        was_asked
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.callers.len() < CONNECTIONS
                && self.belongs(&stream)
                && let Ok(caller) = Line::with_limit(stream, LINE_LIMIT)
            {
                self.callers.push(caller);
            }
        }
    }

    /// Whether the process that connected is of this session. The kernel tells its pid as it is here, whatever it is called
    /// in a box.
    fn belongs(&self, stream: &UnixStream) -> bool {
        let (Some(child), Ok(peer)) = (self.child, socket_peercred(stream)) else { return false };
        let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
        peer.uid == rustix::process::geteuid() && (pid == child || family::descends_from(pid, child))
    }
}

fn reply(request: Request, hidden: &Hidden, called: &mut dyn Called) -> Reply {
    let reply = Reply { version: VERSION, id: request.id, ..Reply::default() };
    if request.version != VERSION {
        let text = format!("this host speaks version {VERSION}, and not {}", request.version);
        return Reply { text: Some(text), failed: true, ..reply };
    }
    if request.offer {
        return Reply { offer: Some(offer(called)), ..reply };
    }
    let Some(tool) = request.call else {
        return Reply { text: Some("neither an offer nor a tool was asked for".to_owned()), failed: true, ..reply };
    };
    let answer = match serde_json::from_str(&hidden.clean(&request.input.to_string())) {
        Ok(input) => called.call(&tool, &input),
        Err(_) => ToolAnswer::failed("what was given holds a secret, and is of no use without it".to_owned()),
    };
    Reply { text: Some(answer.text), failed: answer.failed, ..reply }
}

/// What is offered, without descriptions of input that are too long.
fn offer(called: &dyn Called) -> Vec<OfferedTool> {
    let mut offer = called.offer();
    for tool in &mut offer {
        if tool.input.to_string().len() > OFFER_LIMIT {
            tool.input = serde_json::json!({ "type": "object" });
        }
    }
    offer
}
