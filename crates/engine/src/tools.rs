//! The tools of a session: what its agent can call to be heard by the host that runs it.
//!
//! The agent's client starts `proctor tools SOCKET` as a server of the Model Context Protocol ([`ToolServer`]). That is a
//! bridge and knows nothing of its own: it connects to the socket that the host keeps for the session, asks what is offered
//! there, and passes calls on ([`Bridge`]). So a bridge and a host of different versions get along, and whatever is decided is
//! decided in the host.

mod bridge;
mod message;
mod server;
mod serving;

pub use bridge::{Bridge, BridgeError};
pub use message::{OfferedTool, ToolAnswer};
pub(crate) use message::{Reply, Request, VERSION};
pub use server::ToolServer;
pub use serving::run_session_tools;
