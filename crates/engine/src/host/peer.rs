//! Who is at the other end of a session's socket, as the kernel tells it: nothing that is said there counts for that.

use std::os::unix::net::UnixStream;

use proctor_process::{ProcessIdentity, family};
use rustix::net::sockopt::socket_peercred;

use super::orphans::{HOST_MARKER, MARKER, names};

/// A process that connected, and that lives.
#[derive(Debug)]
pub(super) struct Peer(ProcessIdentity);

impl Peer {
    /// `None` when it has ended since: nobody can tell any more whose it was.
    pub(super) fn of(stream: &UnixStream) -> Option<Self> {
        let pid = socket_peercred(stream).ok()?.pid.as_raw_nonzero().get().unsigned_abs();
        ProcessIdentity::of(pid).map(Self)
    }

    /// Whether this host, which runs the session, has started it in some way, or its environment names the session.
    ///
    /// A host is a subreaper, so that nothing that it started gets away from below it.
    pub(super) fn is_of(&self, session: &str) -> bool {
        let is_marked = family::variable_of(&self.0, MARKER).is_some_and(|value| names(&value, session));
        is_marked || family::descends_from(self.0.pid, std::process::id()) || !self.0.is_alive()
    }

    /// Whether it is of no session at all, which is what tells a person. A host is found by its own environment, which those that
    /// it started can't change.
    pub(super) fn is_a_person(&self) -> bool {
        let is_marked = family::variable_of(&self.0, MARKER).is_some_and(|value| !value.is_empty());
        let is_below = |host: &ProcessIdentity| family::descends_from(self.0.pid, host.pid);
        !is_marked && !family::marked(HOST_MARKER, |_| true).iter().any(is_below) && self.0.is_alive()
    }
}
