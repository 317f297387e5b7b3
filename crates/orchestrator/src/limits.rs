//! Limits of accounts, which every session of an account has to heed.
//!
//! An engine of the settings stands for one account. When its provider says until when it wants to be left alone, that is
//! kept beside the state of all repositories, and no run of this user asks it before then: each session would only
//! learn the same, and some providers answer such questions with a longer wait.

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

/// Where the limits of this user's accounts are kept.
#[derive(Debug, Clone)]
pub(crate) struct AccountLimits {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u64,
    until: Timestamp,
}

const VERSION: u64 = 1;

impl AccountLimits {
    /// Those of the user whose state of this repository lies there.
    pub(crate) fn beside(state: &StateFolder) -> Self {
        let all = state.root().ancestors().nth(2).unwrap_or_else(|| state.root());
        Self { folder: all.join("limits") }
    }

    /// Takes in how a session of this account ended. An end without a known moment holds nobody back.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn learn(&self, engine: &EngineName, end: &SessionEnd) -> Result<(), DurableError> {
        let (SessionEnd::RateLimited { until: Some(until) } | SessionEnd::UsageLimit { until: Some(until) }) = end else { return Ok(()) };
        if self.stored(engine).is_some_and(|stored| stored >= *until) {
            return Ok(());
        }
        // What can't be made is found out when the file is written.
        let _ = std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder);
        let text = serde_json::to_vec(&Stored { version: VERSION, until: *until }).unwrap_or_default();
        durable::write(&self.path(engine), &text, Durability::Renamed)
    }

    /// Until when this run has to leave the account alone, if it has to.
    pub(crate) fn held_until(&self, engine: &EngineName, run: &RunId, now: Timestamp) -> Option<Timestamp> {
        let until = self.stored(engine).filter(|until| until.0 > now.0 && until.0 - now.0 <= LONGEST_MS)?;
        Some(Timestamp(until.0.saturating_add(spread(run))))
    }

    /// A file that can't be read holds nobody back: the provider will say it again.
    fn stored(&self, engine: &EngineName) -> Option<Timestamp> {
        let stored: Stored = serde_json::from_slice(&std::fs::read(self.path(engine)).ok()?).ok()?;
        (stored.version == VERSION).then_some(stored.until)
    }

    fn path(&self, engine: &EngineName) -> PathBuf {
        self.folder.join(Path::new(engine.as_str())).with_extension("json")
    }
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

        limits(folder.path()).learn(&engine("work"), &SessionEnd::UsageLimit { until: Some(until) }).expect("written");

        let held = |name: &str, number, now| limits(folder.path()).held_until(&engine(name), &run(number), now);
        let moments: Vec<_> = (0..50).map(|number| held("work", number, NOW).expect("held").0 - until.0).collect();
        assert!(
            moments.iter().all(|later| (0..SPREAD_MS).contains(later)) && moments.iter().any(|later| *later != moments[0]),
            "{moments:?}"
        );
        assert_eq!((held("home", 1, NOW), held("work", 1, until)), (None, None));
    }

    #[test]
    fn a_later_reset_counts_and_an_earlier_one_or_none_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let learn = |until: Option<i64>| {
            let end = SessionEnd::RateLimited { until: until.map(|later| Timestamp(NOW.0 + later)) };
            limits(folder.path()).learn(&engine("work"), &end).expect("written");
            limits(folder.path()).stored(&engine("work")).map(|until| until.0 - NOW.0)
        };

        assert_eq!(
            [learn(None), learn(Some(9_000)), learn(Some(5_000)), learn(Some(20_000))],
            [None, Some(9_000), Some(9_000), Some(20_000)]
        );
    }

    #[test]
    fn what_can_not_be_meant_holds_nobody_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let limits = limits(folder.path());
        let far = SessionEnd::UsageLimit { until: Some(Timestamp(NOW.0 + LONGEST_MS + 1)) };

        limits.learn(&engine("work"), &far).expect("written");
        assert_eq!(limits.held_until(&engine("work"), &run(1), NOW), None);
        durable::write(&limits.path(&engine("work")), b"{\"version\":2,\"until\":", Durability::Renamed).expect("written");
        assert_eq!(limits.held_until(&engine("work"), &run(1), NOW), None);
    }
}
