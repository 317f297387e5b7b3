//! A crash can fall between any two appends.

use std::collections::BTreeSet;

use proctor_domain::RunId;
use proctor_domain::procedure::{Outcome, Position, Records, Run};
use proctor_journal::{Journal, JournalStore, MemoryJournal, RunFilter, RunRow, SkippedRuns, Standing};
use proptest::prelude::*;

use crate::simulator::{Stream, stream};

fn everything() -> RunFilter {
    RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() }
}

fn standing_of(run: &Run) -> Standing {
    match (&run.halt, &run.position) {
        (Some(reason), _) => Standing::Halted(Box::new(reason.clone())),
        (None, Position::Ended(outcome)) => Standing::Ended {
            outcome: *outcome,
            at: run.ended_at.unwrap(),
            with_warnings: run.has_warnings() && *outcome == Outcome::Completed,
        },
        (None, Position::Between | Position::InStep(_, _) | Position::Closing { .. }) => Standing::Open,
    }
}

/// The list must tell the same story as the fold.
fn assert_row_agrees(row: &RunRow, run: &Run) {
    assert_eq!(row.standing, standing_of(run));
    assert_eq!(row.steps, run.steps.len());
    assert_eq!(row.started_at, run.started_at);
    assert_eq!(row.outcome() == Some(Outcome::Skipped), run.position == Position::Ended(Outcome::Skipped));
}

#[test]
fn every_prefix_of_a_recorded_journal_reopens_and_reaches_the_same_end() {
    let run = RunId::from_bits(1);
    for (choices, records) in [(&[7, 9, 4, 8, 6, 3, 2][..], Records::Git), (&[5, 0, 2, 9, 1, 3][..], Records::State)] {
        let events = stream(choices, records);
        let end = Run::replay(events.clone()).unwrap().unwrap();
        for cut in 0..=events.len() {
            let state = tempfile::tempdir().unwrap();
            let (before, after) = events.split_at(cut);
            let mut journal = Journal::open(state.path()).unwrap();
            let version = journal.append(&run, 0, before).unwrap();
            drop(journal);

            let mut reopened = Journal::open(state.path()).unwrap();

            let found = reopened.read(&run).unwrap();
            assert_eq!(found, before);
            let folded = Run::replay(found).unwrap();
            if let Some(folded) = &folded {
                assert_row_agrees(&reopened.runs(&everything()).unwrap()[0], folded);
            }
            reopened.append(&run, version, after).unwrap();
            assert_eq!(Run::replay(reopened.read(&run).unwrap()).unwrap().unwrap(), end);
            assert!(reopened.check().is_sound(), "{:?}", reopened.check());
        }
    }
}

fn append_one_by_one(journal: &mut dyn JournalStore, run: &RunId, events: &Stream) {
    let mut folded: Option<Run> = None;
    for (index, (at, event)) in events.iter().enumerate() {
        journal.append(run, u64::try_from(index).unwrap(), &[(*at, event.clone())]).unwrap();
        match &mut folded {
            None => folded = Run::replay([(*at, event.clone())]).unwrap(),
            Some(folded) => folded.apply(*at, event.clone()).unwrap(),
        }
        assert_row_agrees(&journal.runs(&everything()).unwrap()[0], folded.as_ref().unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_run_reads_back_as_it_happened_and_its_row_agrees_at_every_event(
        choices in proptest::collection::vec(any::<u8>(), 1..40),
        in_git in any::<bool>(),
    ) {
        let events = stream(&choices, if in_git { Records::Git } else { Records::State });
        let run = RunId::from_bits(1);
        let mut memory = MemoryJournal::new();
        append_one_by_one(&mut memory, &run, &events);
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        journal.append(&run, 0, &events).unwrap();

        let mut rebuilt = Journal::open(state.path()).unwrap();
        rebuilt.rebuild_rows().unwrap();

        prop_assert_eq!(journal.read(&run).unwrap(), events);
        prop_assert_eq!(journal.runs(&everything()).unwrap(), memory.runs(&everything()).unwrap());
        prop_assert_eq!(rebuilt.runs(&everything()).unwrap(), memory.runs(&everything()).unwrap());
    }
}

#[test]
fn the_runs_of_these_tests_go_through_every_kind_of_event_but_a_new_definition() {
    let mut kinds = BTreeSet::new();
    for seed in 0..400_u32 {
        let choices: Vec<u8> = (1..32).map(|index| u8::try_from((seed * 7 + index * index * (seed + 3)) % 251).unwrap()).collect();
        for (_, event) in stream(&choices, Records::Git) {
            kinds.insert(format!("{event:?}").split([' ', '(', '{']).next().unwrap().to_owned());
        }
    }

    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();

    let all = "Answered Collected CommitPlanned CommitRefused Committed Confined Ended Halted LeftInTree Merged Proposed RejudgeAsked \
               RestorePlanned Restored Resumed Retained RetryBegan RetryPlanned SessionEnded SessionLost SessionOpened Started StepBegan \
               StepRejected StepSkipped Surveyed WorktreeMade";
    assert_eq!(kinds.join(" "), all);
}
