//! Limits of accounts, which every session of an account has to heed.
//!
//! An engine of the settings stands for one account. When its provider says until when it wants to be left alone, that is
//! kept beside the state of all repositories, and no run of this user asks it before then: each session would only
//! learn the same, and some providers answer such questions with a longer wait. Of a limit that comes without a moment nobody
//! knows when it is over: then the account is left alone for a time of ours, which doubles whenever it did not suffice.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use proctor_domain::session::{EngineName, SessionEnd};
use proctor_domain::{RunId, Timestamp};
use proctor_process::durable::{self, Durability, DurableError};
use serde::{Deserialize, Serialize};

use crate::StateFolder;

/// Runs that wait for the same moment go on spread over this time, so that they don't meet the limit again together.
const SPREAD_MS: i64 = 30_000;
/// No limit is believed for longer than this: a wrong year in an answer must not shut an account out for good.
const LONGEST_MS: i64 = 8 * 24 * 60 * 60 * 1_000;
/// How long an account is left alone after a limit without a moment, the first time and at most.
const FIRST_PAUSE_MS: i64 = 60_000;
const LONGEST_PAUSE_MS: i64 = 30 * 60_000;

/// Where the limits of this user's accounts are kept.
#[derive(Debug, Clone)]
pub(crate) struct AccountLimits {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u64,
    until: Timestamp,
    /// How long the pause of ours is that ends then; 0 where the provider named the moment.
    #[serde(default)]
    pause_ms: i64,
}

const VERSION: u64 = 1;

impl AccountLimits {
    /// Those of the user whose state of this repository lies there.
    pub(crate) fn beside(state: &StateFolder) -> Self {
        let all = state.root().ancestors().nth(2).unwrap_or_else(|| state.root());
        Self { folder: all.join("limits") }
    }

    /// Takes in how a session of this account ended.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn learn(&self, engine: &EngineName, end: &SessionEnd, now: Timestamp) -> Result<(), DurableError> {
        let known = self.stored(engine);
        let stored = match end {
            SessionEnd::RateLimited { until: Some(until) } | SessionEnd::UsageLimit { until: Some(until) } => {
                Stored { version: VERSION, until: *until, pause_ms: 0 }
            }
            SessionEnd::RateLimited { until: None } | SessionEnd::UsageLimit { until: None } => pause(known.as_ref(), now),
            SessionEnd::Completed => {
                self.forget_pause(engine, known.as_ref(), now);
                return Ok(());
            }
            SessionEnd::TurnLimit
            | SessionEnd::Budget
            | SessionEnd::Timeout
            | SessionEnd::Silent
            | SessionEnd::Refused
            | SessionEnd::Crashed { .. }
            | SessionEnd::Interrupted
            | SessionEnd::NoResult => return Ok(()),
        };
        if known.is_some_and(|known| known.until >= stored.until) {
            return Ok(());
        }
        // What can't be made is found out when the file is written.
        let _ = std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder);
        let text = serde_json::to_vec(&stored).unwrap_or_default();
        durable::write(&self.path(engine), &text, Durability::Renamed)
    }

    /// The account answers again: the next pause is a short one. A session that began before the limit says nothing about it.
    fn forget_pause(&self, engine: &EngineName, known: Option<&Stored>, now: Timestamp) {
        if known.is_some_and(|known| known.pause_ms > 0 && known.until.0 <= now.0) {
            // What can't be removed makes the next pause a longer one, and no more.
            let _ = std::fs::remove_file(self.path(engine));
        }
    }

    /// Until when this run has to leave the account alone, if it has to.
    pub(crate) fn held_until(&self, engine: &EngineName, run: &RunId, now: Timestamp) -> Option<Timestamp> {
        let until = self.stored(engine)?.until;
        let is_meant = until.0 > now.0 && until.0 - now.0 <= LONGEST_MS;
        is_meant.then(|| Timestamp(until.0.saturating_add(spread(run))))
    }

    /// A file that can't be read holds nobody back: the provider will say it again.
    fn stored(&self, engine: &EngineName) -> Option<Stored> {
        let stored: Stored = serde_json::from_slice(&std::fs::read(self.path(engine)).ok()?).ok()?;
        (stored.version == VERSION).then_some(stored)
    }

    fn path(&self, engine: &EngineName) -> PathBuf {
        self.folder.join(Path::new(engine.as_str())).with_extension("json")
    }
}

/// The pause after a limit without a moment. While one lasts, further sessions that were at work only say the same; one that
/// follows a pause before it was forgotten is twice as long.
fn pause(known: Option<&Stored>, now: Timestamp) -> Stored {
    let before = known.filter(|known| now.0 - known.until.0 <= LONGEST_PAUSE_MS).map_or(0, |known| known.pause_ms);
    let lasts = known.is_some_and(|known| known.until.0 > now.0);
    let pause_ms = if lasts { before } else { (before * 2).clamp(FIRST_PAUSE_MS, LONGEST_PAUSE_MS) };
    Stored { version: VERSION, until: Timestamp(now.0.saturating_add(pause_ms)), pause_ms }
}

/// A part of [`SPREAD_MS`] that is always the same for a run and differs from run to run.
fn spread(run: &RunId) -> i64 {
    let sum = run.as_str().bytes().fold(0_i64, |sum, byte| (sum * 31 + i64::from(byte)) % SPREAD_MS);
    sum.max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(folder: &Path) -> AccountLimits {
        AccountLimits::beside(&StateFolder::new(folder.join("repos").join("a-00000001")))
    }

    fn engine(name: &str) -> EngineName {
        name.parse().expect("a name")
    }

    fn run(number: u64) -> RunId {
        RunId::from_bits(number)
    }

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn a_limit_of_one_session_holds_every_run_of_that_account_back_until_its_reset() {
        let folder = tempfile::tempdir().expect("a folder");
        let until = Timestamp(NOW.0 + 60_000);

        limits(folder.path()).learn(&engine("work"), &SessionEnd::UsageLimit { until: Some(until) }, NOW).expect("written");

        let held = |name: &str, number, now| limits(folder.path()).held_until(&engine(name), &run(number), now);
        let moments: Vec<_> = (0..50).map(|number| held("work", number, NOW).expect("held").0 - until.0).collect();
        assert!(
            moments.iter().all(|later| (0..SPREAD_MS).contains(later)) && moments.iter().any(|later| *later != moments[0]),
            "{moments:?}"
        );
        assert_eq!((held("home", 1, NOW), held("work", 1, until)), (None, None));
    }

    #[test]
    fn a_later_reset_counts_and_an_earlier_one_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let learn = |later: i64| {
            let end = SessionEnd::RateLimited { until: Some(Timestamp(NOW.0 + later)) };
            limits(folder.path()).learn(&engine("work"), &end, NOW).expect("written");
            limits(folder.path()).stored(&engine("work")).map(|stored| stored.until.0 - NOW.0)
        };

        assert_eq!([learn(9_000), learn(5_000), learn(20_000)], [Some(9_000), Some(9_000), Some(20_000)]);
    }

    /// Takes in an end at a moment, and says how long the account is left alone from then on.
    fn left_alone(folder: &Path, end: &SessionEnd, now: i64) -> i64 {
        limits(folder).learn(&engine("work"), end, Timestamp(now)).expect("written");
        limits(folder).stored(&engine("work")).map_or(0, |stored| stored.until.0 - now)
    }

    #[test]
    fn a_limit_without_a_moment_holds_every_run_back_for_a_time_that_doubles_up_to_half_an_hour() {
        let folder = tempfile::tempdir().expect("a folder");
        let limit = SessionEnd::RateLimited { until: None };
        let mut now = NOW.0;
        let mut pauses = Vec::new();

        for _ in 0..7 {
            pauses.push(left_alone(folder.path(), &limit, now) / 60_000);
            let held = |number| limits(folder.path()).held_until(&engine("work"), &run(number), Timestamp(now)).expect("held").0;
            assert!((1..50).any(|number| held(number) != held(0)), "they go on spread");
            // A further session that was at work learns the same in the middle of it.
            let middle = now + FIRST_PAUSE_MS / 2;
            let left = left_alone(folder.path(), &limit, middle);
            now = middle + left;
        }

        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn a_pause_that_sufficed_is_forgotten_and_one_that_lasts_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let limit = SessionEnd::UsageLimit { until: None };
        left_alone(folder.path(), &limit, NOW.0);
        let second = NOW.0 + FIRST_PAUSE_MS;
        assert_eq!(left_alone(folder.path(), &limit, second), 2 * FIRST_PAUSE_MS);

        assert_eq!(left_alone(folder.path(), &SessionEnd::Completed, second + 1), 2 * FIRST_PAUSE_MS - 1);
        let over = second + 2 * FIRST_PAUSE_MS;
        assert_eq!(left_alone(folder.path(), &SessionEnd::Completed, over), 0);
        assert_eq!(left_alone(folder.path(), &limit, over), FIRST_PAUSE_MS);
    }

    #[test]
    fn what_can_not_be_meant_holds_nobody_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let limits = limits(folder.path());
        let far = SessionEnd::UsageLimit { until: Some(Timestamp(NOW.0 + LONGEST_MS + 1)) };

        limits.learn(&engine("work"), &far, NOW).expect("written");
        assert_eq!(limits.held_until(&engine("work"), &run(1), NOW), None);
        durable::write(&limits.path(&engine("work")), b"{\"version\":2,\"until\":", Durability::Renamed).expect("written");
        assert_eq!(limits.held_until(&engine("work"), &run(1), NOW), None);
    }
}
