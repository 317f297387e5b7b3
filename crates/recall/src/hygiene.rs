//! What makes a record harmless: to show, and to keep.
//!
//! A record is text from outside. [`inline`] makes one line of it that can neither begin a line of ours nor end a frame,
//! [`block`] does the same for text that keeps its lines, [`Mask`] takes secrets out before anything is written.
//! Text that persuades stays text that persuades: whoever shows records says that they are evidence and no orders.

mod block;
mod hidden;
mod inline;
mod mask;
mod random;

pub use block::block;
pub use hidden::{is_hidden, seen};
pub use inline::inline;
pub use mask::{Mask, Masked};
