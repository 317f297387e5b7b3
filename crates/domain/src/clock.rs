//! Instants and the seam through which time enters.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// Tells the time. The orchestrator owns the real one; tests fix theirs.
pub trait Clock {
    /// The current wall-clock time.
    fn now(&self) -> Timestamp;
}

impl Timestamp {
    /// Milliseconds from `earlier` to `self`; 0 when the clock went backwards.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// This instant moved by `millis` (saturating).
    pub fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)))
    }
}
