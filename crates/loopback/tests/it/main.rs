//! The scripted model over plain sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy's exemption covers only the test functions themselves")]

mod answers;
mod chat;
mod client;
mod faults;
mod garbage;
mod gemini;
mod lifetime;
mod responses;
mod scripts;
mod transport;
