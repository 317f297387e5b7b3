//! `proctor mcp`: memory and runs as tools, by the Model Context Protocol.
//!
//! `server` speaks the protocol and knows no tool; `tool` is what a tool is, and the list of all; one file for each kind of
//! thing that they do. Nothing is held between calls, so files may change as they like meanwhile: each call looks around anew.
//!
//! No tool approves anything: that is for people.

mod answer;
mod caller;
mod field;
mod finding;
mod http;
mod listing;
mod recording;
mod runs;
mod server;
mod shown;
mod stdio;
mod taking_back;
mod token;
mod tool;

use proctor_domain::ExitCode;

use crate::Invocation;
use crate::args::mcp::McpArgs;
use crate::report::Report;
use caller::Seat;

pub use tool::reference;

/// Serves until the client goes.
pub fn run(invocation: &Invocation, args: &McpArgs) -> Result<ExitCode, Report> {
    let seat = Seat::new(invocation);
    if args.http { http::serve(invocation, seat, args) } else { stdio::serve(seat) }
}
