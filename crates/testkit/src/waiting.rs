//! Waiting without guessing how long.

use std::thread;
use std::time::{Duration, Instant};

/// Returns once `condition` holds; panics when it does not within `limit`.
pub fn wait_for(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < limit, "waited {} s in vain: {what}", limit.as_secs());
        thread::sleep(Duration::from_millis(2));
    }
}
