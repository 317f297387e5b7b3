//! Whether the processes of a session do anything, although nothing is heard of them.

use std::time::Instant;

use proctor_process::family;

/// The processor time that the descendants of this process use.
#[derive(Debug)]
pub(super) struct Activity {
    used: u64,
    looked: Instant,
}

impl Activity {
    /// What comes from now on counts.
    pub(super) fn begin() -> Self {
        Self { used: ticks_used(), looked: Instant::now() }
    }

    /// Whether the descendants used a tenth of a processor or more since the last look: a runtime that only waits wakes up
    /// now and then, and that is no life.
    pub(super) fn is_busy(&mut self) -> bool {
        let before = std::mem::replace(self, Self::begin());
        let passed = u64::try_from((self.looked - before.looked).as_millis()).unwrap_or(u64::MAX);
        // It can be less than before: what ended and was not waited for by its parent takes its time with it.
        self.used.saturating_sub(before.used) * MILLIS_PER_TICK * 10 >= passed.max(1)
    }
}

/// The kernel shows times to programs in hundredths of a second, whatever it counts in itself.
const MILLIS_PER_TICK: u64 = 10;

/// The time of all living descendants and of those that ended and were waited for.
fn ticks_used() -> u64 {
    let own = std::process::id();
    let reaped = Times::of(own).map_or(0, |times| times.reaped);
    let living = family::descendants(own).into_iter().filter_map(|process| Times::of(process.pid));
    living.fold(reaped, |sum, times| sum.saturating_add(times.own).saturating_add(times.reaped))
}

/// What a process has used itself, and what its children had that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    own: u64,
    reaped: u64,
}

impl Times {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name stands in parentheses and may hold some itself, so the last one counts.
    fn parse(line: &[u8]) -> Option<Self> {
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
        let mut sum = || Some(fields.next()??.saturating_add(fields.next()??));
        Some(Self { own: sum()?, reaped: sum()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added_up_whatever_the_name() {
        let line = b"42 (a) S) R 7 8 9 0 -1 4194560 1 0 0 0 11 22 33 44 20 0 3 0 98765 1 2";

        assert_eq!(Times::parse(line), Some(Times { own: 33, reaped: 77 }));
        assert_eq!(Times::parse(b"42 (a) R 7"), None);
    }
}
