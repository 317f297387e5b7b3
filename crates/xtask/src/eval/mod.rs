//! Evaluations: how well something does what it is for, on rows that were labelled by hand.

mod baseline;
mod figures;
mod meanings;
mod memory;
mod rows;

pub(crate) use memory::{Form, report};
