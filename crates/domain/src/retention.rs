//! Which finished runs `gc` removes.

use std::collections::BTreeMap;

use crate::procedure::Outcome;
use crate::{CardDuration, Expiry, RunId, Timestamp};

/// No procedure keeps more finished runs than this, whatever their expiry says.
pub const MOST_RUNS_PER_PROCEDURE: usize = 100;
/// How long a completed run is kept when nothing else is said.
pub const COMPLETED: Expiry = Expiry::After(CardDuration::days(30));
/// How long a failed or inconclusive run is kept when nothing else is said.
pub const FAILED: Expiry = Expiry::After(CardDuration::days(90));

/// What is known about one run when `gc` looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// The run.
    pub run: RunId,
    /// Its procedure's name.
    pub procedure: String,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended, if it did.
    pub ended_at: Option<Timestamp>,
    /// How it ended; `None` while it is unfinished.
    pub outcome: Option<Outcome>,
    /// Whether its driver or a host is alive.
    pub live: bool,
    /// What its record says about its removal.
    pub expires: Expires,
}

/// What a run's record says about its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expires {
    /// Never.
    Never,
    /// At this time.
    At(Timestamp),
    /// Nothing is said: the defaults apply, from its end or its start.
    Unset,
    /// Somebody wrote this, which is no time.
    Unreadable(String),
}

/// Why a run stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepReason {
    /// Its driver or a host is alive.
    Running,
    /// It is the newest of its procedure.
    Newest,
    /// Its record says never.
    Never,
    /// Its record can't be read, so a person has to look.
    Unreadable,
    /// Its time has not come.
    NotYet,
}

/// Why a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveReason {
    /// Its time has come.
    Expired,
    /// Its procedure already keeps [`MOST_RUNS_PER_PROCEDURE`] newer ones.
    TooMany,
}

/// What `gc` will do, newest run first within each procedure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcPlan {
    /// Runs to remove.
    pub remove: Vec<(RunId, RemoveReason)>,
    /// Runs to keep.
    pub keep: Vec<(RunId, KeepReason)>,
}

/// Decides about every run. Pure: prints as the `--dry-run` and leaves the executor no choice.
pub fn plan_gc(runs: &[RunFacts], now: Timestamp) -> GcPlan {
    let mut by_procedure: BTreeMap<&str, Vec<&RunFacts>> = BTreeMap::new();
    for facts in runs {
        by_procedure.entry(&facts.procedure).or_default().push(facts);
    }
    let mut plan = GcPlan::default();
    for mut group in by_procedure.into_values() {
        group.sort_by(|left, right| right.started_at.cmp(&left.started_at).then_with(|| right.run.cmp(&left.run)));
        let mut kept = 0;
        for (position, facts) in group.into_iter().enumerate() {
            let protected = protection(facts, position == 0);
            let removal = removal(facts, now, kept);
            match (protected, removal) {
                (Some(reason), _) => plan.keep.push((facts.run.clone(), reason)),
                (None, Some(reason)) => {
                    plan.remove.push((facts.run.clone(), reason));
                    continue;
                }
                (None, None) => plan.keep.push((facts.run.clone(), KeepReason::NotYet)),
            }
            kept += 1;
        }
    }
    plan
}

fn protection(facts: &RunFacts, newest: bool) -> Option<KeepReason> {
    match facts.expires {
        _ if facts.live => Some(KeepReason::Running),
        _ if newest => Some(KeepReason::Newest),
        Expires::Never => Some(KeepReason::Never),
        Expires::Unreadable(_) => Some(KeepReason::Unreadable),
        Expires::At(_) | Expires::Unset => None,
    }
}

fn removal(facts: &RunFacts, now: Timestamp, kept: usize) -> Option<RemoveReason> {
    let due = match facts.expires {
        Expires::At(at) => at <= now,
        Expires::Unset => {
            let keep = if matches!(facts.outcome, Some(Outcome::Completed | Outcome::Skipped)) { COMPLETED } else { FAILED };
            expiry_time(facts.ended_at.unwrap_or(facts.started_at), keep).is_some_and(|at| at <= now)
        }
        Expires::Never | Expires::Unreadable(_) => false,
    };
    if due { Some(RemoveReason::Expired) } else { (kept >= MOST_RUNS_PER_PROCEDURE).then_some(RemoveReason::TooMany) }
}

/// When a run that ended at `ended` may be removed; `None` for never.
pub fn expiry_time(ended: Timestamp, expiry: Expiry) -> Option<Timestamp> {
    match expiry {
        Expiry::After(duration) => Some(ended.plus_millis(duration.millis())),
        Expiry::Never => None,
    }
}
