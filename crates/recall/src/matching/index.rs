//! An inverted index of records: which of many are worth comparing with an approach.
//!
//! It is one row of bytes that is used as it lies, in memory and in a file. An index is a cache: it says of which sources it
//! was made, and one that is damaged or of another form is thrown away.

mod build;
mod bytes;
mod search;

use std::collections::BTreeSet;

use super::Findable;
use super::text::{Kind, Terms};
use crate::Polarity;
use crate::naming::Naming;

pub use bytes::Damaged;
use bytes::Sections;

/// What an index was made of: equal if and only if the sources are. The caller decides what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fingerprint(pub [u8; 32]);

/// Where a record stands in the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Place {
    /// Which source, by the caller's counting.
    pub source: u32,
    /// Its line there, for people.
    pub line: u32,
    /// Where in it, in bytes or in whatever the caller counts.
    pub offset: u64,
    /// How long it is there.
    pub length: u32,
}

/// What a model makes of the meaning. It is asked for records that words brought up, and brings up its own.
pub struct Meaning<'a> {
    /// Records that a model finds near, by their place in the order of building.
    pub near: &'a [u32],
    /// How alike the approach and a record are; `None` for a record without a vector.
    pub cosine: &'a dyn Fn(u32) -> Option<f32>,
}

/// A record that is worth showing.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its place in the order of building.
    pub number: u32,
    /// Where it stands.
    pub place: Place,
    /// Works or fails.
    pub polarity: Polarity,
    /// It comes from another project than the approach.
    pub is_elsewhere: bool,
    /// How well it fits, for putting hits in order.
    pub score: f32,
    /// Why it is worth showing.
    pub decision: super::Decision,
}

/// An index of records.
#[derive(Debug, Clone)]
pub struct Index {
    bytes: Vec<u8>,
    sections: Sections,
}

/// A field of a record. The numbers are bits of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Route = 1,
    Trap = 2,
    Observation = 4,
    Files = 8,
}

impl Field {
    const ALL: [Self; 4] = [Self::Route, Self::Trap, Self::Observation, Self::Files];

    fn is_in(self, mask: u8) -> bool {
        mask & self as u8 != 0
    }

    /// How much a word in this field counts for bringing a record up.
    fn boost(self) -> f32 {
        match self {
            Self::Route => 2.0,
            Self::Trap | Self::Observation => 1.0,
            Self::Files => 1.5,
        }
    }
}

/// The terms of a record, by field.
fn fields_of(record: &Findable<'_>) -> [(Field, BTreeSet<String>); 4] {
    let keys = |terms: Terms| terms.0.into_keys().collect();
    let mut files = Terms::default();
    for file in record.files {
        files.read_path(file);
        if let Some(naming) = Naming::of(file, None) {
            files.add(Kind::Named, naming.as_str(), file);
        }
    }
    for name in record.dependencies {
        files.add(Kind::Package, &super::text::fold(name), name);
    }
    [
        (Field::Route, keys(Terms::of(record.route))),
        (Field::Trap, keys(Terms::of(record.trap))),
        (Field::Observation, keys(Terms::of(record.observation))),
        (Field::Files, keys(files)),
    ]
}
