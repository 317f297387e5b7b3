//! The end of the server, as something that a delay can be woken by.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whether the server is being stopped.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    closed: Mutex<bool>,
    changed: Condvar,
}

impl Closing {
    pub(crate) fn close(&self) {
        *locked(&self.closed) = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        *locked(&self.closed)
    }

    /// Waits for `delay`, or until the server is stopped.
    pub(crate) fn wait(&self, delay: Duration) {
        if delay.is_zero() {
            return;
        }
        let closed = locked(&self.closed);
        drop(self.changed.wait_timeout_while(closed, delay, |closed| !*closed).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Locks. Everything here is whole between two statements, so a thread that panicked has spoilt nothing.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
