//! Everything that Proctor asks of the operating system beyond plain files: starting, watching and
//! ending processes, kernel locks, atomic files, signals, and the fault injection of the crash tests.
//!
//! * [`Program`] is the only way to start a child; [`Child`] is one that runs.
//! * [`ProcessIdentity`] names a process so that its pid can't be mistaken for a later one's.
//! * [`family`] finds and ends the descendants of a process and those that carry a marker.
//! * [`confine`] makes boxes: what a program and all that it starts may write.
//! * [`lock`] and [`durable`] are what other crates build crash safety on.
//!
//! This is the only crate with `unsafe` code, and the only one that a port to another system would
//! have to change. It knows nothing of runs, sessions or git, and it never signals by pid alone.

mod child;
pub mod confine;
pub mod descriptors;
pub mod durable;
pub mod family;
pub mod identity;
pub mod killpoint;
pub mod lock;
mod proc_files;
pub mod program;
pub mod signals;
mod spawn;

pub use child::{Child, ExitState, Finished, Watch};
pub use identity::{IdentityError, ProcessIdentity, SignalEnd};
pub use program::{Program, ProgramError, Sink, Stdin, find_program};
pub use signals::{Signal, Signals, SignalsError};
