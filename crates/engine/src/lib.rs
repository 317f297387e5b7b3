//! Drives sessions. A session is what one phase of a step (or, with the next issue, one agent) runs as:
//! children under a small host process that outlives whoever asked for it.
//!
//! The *driver* calls [`start`] or [`find`], then [`Attached::wait`]. The *host* is the same binary in
//! another role, [`run_host`]. They share nothing but the session's folder, its lock and a socket.

pub mod host;

pub use host::{
    Attached, Found, HostError, Progress, SessionSpec, Stream, Waited, dismiss_hosts, fence, find, last_sign_of_life, run_host, start,
};
