//! The gates of the style guide that no compiler lint covers.
//!
//! Each rule is a function from a file, or from all of them, to findings. Rules look at the text and not at a
//! syntax tree: they are simple, quick, and need nothing that the build does not need.

mod all;
mod arrows;
mod documents;
mod finding;
mod layout;
mod length;
mod mask;
mod names;
mod phrases;
mod source;

pub(crate) use all::findings;
pub(crate) use finding::{Finding, Weight};
