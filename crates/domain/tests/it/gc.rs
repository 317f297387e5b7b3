//! Which runs `gc` removes.

use proctor_domain::procedure::Outcome;
use proctor_domain::retention::{Expires, KeepReason, MOST_RUNS_PER_PROCEDURE, RemoveReason, RunFacts, plan_gc};
use proctor_domain::{RunId, Timestamp};

const DAY: i64 = 86_400_000;

fn run(number: u64, ended_day: i64, outcome: Outcome, expires: Expires) -> RunFacts {
    RunFacts {
        run: RunId::from_bits(number),
        procedure: "p".into(),
        started_at: Timestamp(ended_day * DAY),
        ended_at: Some(Timestamp(ended_day * DAY)),
        outcome: Some(outcome),
        live: false,
        expires,
    }
}

/// What is decided about `facts` when a newer run of the same procedure exists.
fn decision(facts: RunFacts, now_day: i64) -> Result<KeepReason, RemoveReason> {
    let newest = run(99, 100_000, Outcome::Completed, Expires::Never);
    let plan = plan_gc(&[facts.clone(), newest], Timestamp(now_day * DAY));
    match plan.remove.iter().find(|(run, _)| *run == facts.run) {
        Some((_, reason)) => Err(*reason),
        None => Ok(plan.keep.iter().find(|(run, _)| *run == facts.run).unwrap().1),
    }
}

#[test]
fn completed_runs_go_after_30_days_and_others_after_90() {
    for (outcome, days) in [(Outcome::Completed, 30), (Outcome::Skipped, 30), (Outcome::Failed, 90), (Outcome::Inconclusive, 90)] {
        let facts = run(1, 0, outcome, Expires::Unset);

        assert_eq!(decision(facts.clone(), days - 1), Ok(KeepReason::NotYet), "{outcome:?}");
        assert_eq!(decision(facts, days), Err(RemoveReason::Expired), "{outcome:?}");
    }
}

#[test]
fn a_run_that_never_ended_counts_from_its_start() {
    let mut facts = run(1, 0, Outcome::Failed, Expires::Unset);
    facts.ended_at = None;
    facts.outcome = None;

    assert_eq!(decision(facts.clone(), 89), Ok(KeepReason::NotYet));
    assert_eq!(decision(facts, 90), Err(RemoveReason::Expired));
}

#[test]
fn what_the_record_says_wins_over_the_defaults() {
    let at = |day: i64| run(1, 0, Outcome::Completed, Expires::At(Timestamp(day * DAY)));

    assert_eq!(decision(at(500), 400), Ok(KeepReason::NotYet));
    assert_eq!(decision(at(2), 3), Err(RemoveReason::Expired));
    assert_eq!(decision(run(1, 0, Outcome::Completed, Expires::Never), 9_999), Ok(KeepReason::Never));
    assert_eq!(decision(run(1, 0, Outcome::Completed, Expires::Unreadable("soon".into())), 9_999), Ok(KeepReason::Unreadable));
}

#[test]
fn the_newest_and_the_living_are_kept() {
    let mut living = run(1, 0, Outcome::Failed, Expires::At(Timestamp(0)));
    living.live = true;

    assert_eq!(decision(living, 9_999), Ok(KeepReason::Running));
    let alone = run(1, 0, Outcome::Completed, Expires::At(Timestamp(0)));
    assert_eq!(plan_gc(std::slice::from_ref(&alone), Timestamp(9_999 * DAY)).keep, [(alone.run, KeepReason::Newest)]);
}

#[test]
fn a_procedure_keeps_no_more_than_its_share() {
    let many: Vec<RunFacts> =
        (0..150).map(|number| run(number, i64::try_from(number).unwrap(), Outcome::Completed, Expires::At(Timestamp(i64::MAX)))).collect();

    let plan = plan_gc(&many, Timestamp(200 * DAY));

    assert_eq!(plan.keep.len(), MOST_RUNS_PER_PROCEDURE);
    assert!(plan.remove.iter().all(|(run, reason)| *reason == RemoveReason::TooMany && *run < RunId::from_bits(50)));
}
