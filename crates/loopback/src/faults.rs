//! Whether a scripted fault strikes this time. The only state of the server that answers depend on.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::answer::Place;
use crate::closing::locked;
use crate::format::{Limit, Refused};
use crate::script::{Count, Fault, FaultKind, Refusal, Reset, Told, UsageLimit};

/// Who asks, and where in the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    pub(crate) session: String,
    pub(crate) messages: usize,
}

/// What has struck so far.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    struck: Mutex<HashMap<(Place, Option<Asker>), u32>>,
    /// When the usage limit of a turn ends; set by the request that first met it.
    resets: Mutex<HashMap<Place, u64>>,
}

/// A fault that strikes now.
#[derive(Debug)]
pub(crate) enum Struck<'script> {
    Refuse { refused: Refused<'script>, told: Told },
    Cut { after_events: usize },
    Hang { after_events: usize },
}

impl Faults {
    /// Whether `fault` strikes; if so, it is counted.
    pub(crate) fn strike<'script>(&self, fault: &'script Fault, place: Place, asker: Asker) -> Option<Struck<'script>> {
        let limit = match &fault.kind {
            FaultKind::Refuse(Refusal { usage_limit: Some(limit), .. }) => Some(self.still_holds(limit, place)?),
            FaultKind::Refuse(_) | FaultKind::Cut { .. } | FaultKind::Hang { .. } => None,
        };
        if !self.count(fault, place, asker) {
            return None;
        }
        Some(match &fault.kind {
            FaultKind::Refuse(refusal) => Struck::Refuse { refused: refused(refusal, limit), told: refusal.told },
            FaultKind::Cut { after_events } => Struck::Cut { after_events: *after_events },
            FaultKind::Hang { after_events } => Struck::Hang { after_events: *after_events },
        })
    }

    fn count(&self, fault: &Fault, place: Place, asker: Asker) -> bool {
        let Some(times) = fault.times else { return true };
        let key = match fault.count {
            Count::Session => (place, Some(asker)),
            Count::Server => (place, None),
        };
        let mut struck = locked(&self.struck);
        let so_far = struck.entry(key).or_default();
        let strikes = *so_far < times;
        *so_far = so_far.saturating_add(1);
        strikes
    }

    /// `None` when the limit was reset.
    fn still_holds(&self, limit: &UsageLimit, place: Place) -> Option<Limit> {
        let now = now();
        let reset = match limit.reset {
            Reset::At(second) => second,
            Reset::After(seconds) => *locked(&self.resets).entry(place).or_insert(now.saturating_add(seconds)),
        };
        (now < reset).then(|| Limit { window: limit.window, reset, seconds: reset - now })
    }
}

/// `retry-after` as the script says it, or until the reset.
fn refused(refusal: &Refusal, limit: Option<Limit>) -> Refused<'_> {
    Refused {
        status: refusal.status,
        kind: refusal.kind.as_deref(),
        message: &refusal.message,
        retry_after: refusal.retry_after.or(limit.map(|limit| limit.seconds)),
        limit,
    }
}

#[allow(clippy::disallowed_methods, reason = "a limit's reset is sent as the time of day, which the client compares with its own clock")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
