//! Finding the records that speak about what somebody is about to try.
//!
//! No clock, and but for one place no files. A text is compared by its terms, [`Likeness`] is how much of two sides goes together,
//! [`decide`] says whether that is enough and why, and [`Index`] finds among many records those worth comparing. [`open`]
//! alone touches files: it keeps an index in one.

mod cache;
mod decision;
mod index;
mod likeness;
mod text;
mod words;

pub use cache::{Origin, fingerprint, open};
pub use decision::{Bar, Bars, Decision, Overlap, Reason, decide};
pub use index::{Damaged, Fingerprint, Hit, Index, Meaning, Place};
pub use likeness::Likeness;

use crate::Polarity;

/// What somebody is about to try.
#[derive(Debug, Clone, Copy, Default)]
pub struct Approach<'a> {
    /// What they say about it.
    pub text: &'a str,
    /// The files that they are about to change, relative to the top of their repository.
    pub files: &'a [&'a str],
    /// The packages that they are about to use or change, by name.
    pub dependencies: &'a [&'a str],
    /// Their project, if it is known.
    pub project: Option<&'a str>,
}

/// The parts of a record that it is found by.
#[derive(Debug, Clone, Copy)]
pub struct Findable<'a> {
    /// Works or fails.
    pub polarity: Polarity,
    /// What was, or is to be, done.
    pub route: &'a str,
    /// What goes wrong for who does it otherwise.
    pub trap: &'a str,
    /// What was seen when it failed.
    pub observation: &'a str,
    /// The files that it is about.
    pub files: &'a [&'a str],
    /// The packages that it was seen with, by name.
    pub dependencies: &'a [&'a str],
    /// Where it comes from.
    pub project: Option<&'a str>,
}
