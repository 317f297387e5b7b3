//! The line format: one bullet a record.
//!
//! ```text
//! - route: … | trap: … | layer: design <!-- proctor id=mem_… created=… project=… -->
//! ```
//!
//! `body` reads and writes what people read, `trailer` the comment behind it, in which metadata is.

pub(crate) mod body;
pub(crate) mod trailer;

pub use body::{KEYS, Remark};

use proctor_domain::RecordId;

use crate::escape::protect;
use crate::hygiene::{Mask, Masked};
use crate::record::{Polarity, Record};

/// What introduces a record. The first is written.
const BULLETS: [&str; 3] = ["- ", "* ", "+ "];

/// A record with its line, as it is, was, or is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The record.
    pub record: Record,
    /// What stands between bullet and metadata. It may say more than the record: parts that nobody understands stay in it.
    pub body: String,
    /// What its reader should be told.
    pub remarks: Vec<Remark>,
}

impl Line {
    /// The line of a record.
    pub fn of(record: Record) -> Self {
        Self { body: body::write(&record), record, remarks: Vec::new() }
    }

    /// What a body says. The record has no id yet, and no metadata.
    pub fn read(polarity: Polarity, body: &str) -> Self {
        let body = body.trim().to_owned();
        let (record, remarks) = body::read(RecordId::from_bits(0), polarity, &body);
        Self { record, body, remarks }
    }

    /// What a text says that knows nothing of our references for characters.
    pub fn foreign(polarity: Polarity, text: &str) -> Self {
        Self::read(polarity, &protect(text.trim()))
    }

    /// Takes secrets out of the record and of its line.
    pub fn mask(&mut self, mask: &Mask) -> Masked {
        let mut masked = mask.record(&mut self.record);
        if masked.fields.iter().any(|field| KEYS.contains(field)) {
            self.body = body::write(&self.record);
            return masked;
        }
        let (body, count) = mask.text(&self.body);
        if count > 0 {
            self.body = body;
            masked.count += count;
            masked.fields.push("line");
        }
        masked
    }

    /// The line, without a line break.
    pub fn text(&self) -> String {
        join(&self.body, &self.record)
    }
}

/// What is behind the bullet of a line.
pub(crate) fn bullet(line: &str) -> Option<&str> {
    BULLETS.iter().find_map(|bullet| line.strip_prefix(bullet))
}

/// A line with this body, as it is, and the metadata of the record.
pub(crate) fn join(body: &str, record: &Record) -> String {
    format!("- {body} {}", trailer::write(record))
}
