//! What every [`JournalStore`] does.

use proctor_domain::procedure::{Answer, HaltReason, Outcome, Records, RunEvent};
use proctor_domain::retention::Expires;
use proctor_domain::session::{Phase, Work};
use proctor_domain::{Oid, RepoPath, RunId, SessionId, Timestamp};
use proctor_journal::{
    AppendError, Journal, JournalStore, MemoryJournal, ResolveError, RunFilter, RunsWanted, SessionsWanted, SkippedRuns, SnapshotError,
    Standing,
};

use crate::simulator::{Stream, plain_stream, retained, started, step_id, stream};

macro_rules! for_each_store {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() {
                let state = tempfile::tempdir().unwrap();
                super::$name(&mut super::Journal::open(state.path()).unwrap());
            })*
        }
        mod memory {
            $(#[test] fn $name() { super::$name(&mut super::MemoryJournal::new()); })*
        }
    };
}

for_each_store!(
    an_append_to_another_version_is_refused_and_keeps_nothing,
    a_run_can_be_started_only_once_and_only_first,
    an_unknown_run_has_no_events,
    what_was_appended_is_read_back_in_order,
    reading_can_go_on_where_it_stopped,
    two_runs_do_not_mix,
    runs_are_listed_newest_first_whatever_their_times_say,
    the_list_says_what_the_events_say,
    a_run_that_is_judged_again_is_open_until_it_ends_anew,
    answers_merges_and_what_agents_left_change_no_row,
    runs_with_nothing_to_do_are_listed_on_request_only,
    the_list_can_be_narrowed,
    runs_that_had_agents_are_found,
    a_prefix_that_fits_several_runs_names_them,
    a_unique_prefix_finds_its_run,
    a_session_is_found_with_its_run,
    a_missing_snapshot_is_an_error,
    a_snapshot_is_given_back_as_it_was,
    a_removed_run_leaves_nothing_but_its_snapshot,
);

fn run(bits: u64) -> RunId {
    RunId::from_bits(bits)
}

fn at(millis: i64) -> Timestamp {
    Timestamp(millis)
}

fn only(event: RunEvent) -> Stream {
    vec![(at(5), event)]
}

fn everything() -> RunFilter {
    RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() }
}

fn an_append_to_another_version_is_refused_and_keeps_nothing(journal: &mut dyn JournalStore) {
    journal.append(&run(1), 0, &plain_stream(3)).unwrap();

    let stale = journal.append(&run(1), 2, &only(retained(9)));
    let early = journal.append(&run(1), 4, &only(retained(9)));
    let again = journal.append(&run(1), 0, &plain_stream(3));

    assert!(matches!(stale, Err(AppendError::Conflict { expected: 2, found: 3, .. })), "{stale:?}");
    assert!(matches!(early, Err(AppendError::Conflict { expected: 4, found: 3, .. })), "{early:?}");
    assert!(matches!(again, Err(AppendError::Conflict { expected: 0, found: 3, .. })), "{again:?}");
    assert_eq!(journal.read(&run(1)).unwrap(), plain_stream(3));
}

fn a_run_can_be_started_only_once_and_only_first(journal: &mut dyn JournalStore) {
    let without_start = journal.append(&run(1), 0, &only(retained(1)));
    journal.append(&run(2), 0, &plain_stream(1)).unwrap();
    let twice = journal.append(&run(2), 1, &only(started("check", Records::State)));

    assert!(matches!(without_start, Err(AppendError::OutOfPlace { .. })), "{without_start:?}");
    assert!(matches!(twice, Err(AppendError::OutOfPlace { .. })), "{twice:?}");
    assert_eq!(journal.read(&run(1)).unwrap(), []);
    assert_eq!(journal.read(&run(2)).unwrap(), plain_stream(1));
}

fn an_unknown_run_has_no_events(journal: &mut dyn JournalStore) {
    assert_eq!(journal.read(&run(1)).unwrap(), []);
    assert_eq!(journal.runs(&everything()).unwrap(), []);
}

fn what_was_appended_is_read_back_in_order(journal: &mut dyn JournalStore) {
    for (bits, records) in [(1, Records::State), (2, Records::Git)] {
        let events = stream(&[5, 3, 9, 8, 7, 1, 4, 6, 2, 11], records);
        let mut version = 0;
        for batch in events.chunks(4) {
            version = journal.append(&run(bits), version, batch).unwrap();
        }

        assert_eq!(version, u64::try_from(events.len()).unwrap());
        assert_eq!(journal.read(&run(bits)).unwrap(), events);
    }
}

fn reading_can_go_on_where_it_stopped(journal: &mut dyn JournalStore) {
    let events = plain_stream(10);
    journal.append(&run(1), 0, &events).unwrap();

    assert_eq!(journal.read_after(&run(1), 7).unwrap(), events[7..]);
    assert_eq!(journal.read_after(&run(1), 10).unwrap(), []);
    assert_eq!(journal.read_after(&run(1), 99).unwrap(), []);
}

fn two_runs_do_not_mix(journal: &mut dyn JournalStore) {
    journal.append(&run(1), 0, &plain_stream(2)).unwrap();
    journal.append(&run(2), 0, &plain_stream(1)).unwrap();
    journal.append(&run(1), 2, &only(retained(7))).unwrap();

    assert_eq!(journal.read(&run(1)).unwrap().len(), 3);
    assert_eq!(journal.read(&run(2)).unwrap(), plain_stream(1));
}

fn runs_are_listed_newest_first_whatever_their_times_say(journal: &mut dyn JournalStore) {
    for (bits, start) in [(5, 300), (1, 100), (9, 200)] {
        journal.append(&run(bits), 0, &[(at(start), started("check", Records::State))]).unwrap();
    }
    journal.append(&run(5), 1, &only(retained(1))).unwrap();

    let listed: Vec<RunId> = journal.runs(&RunFilter::default()).unwrap().into_iter().map(|row| row.run).collect();

    assert_eq!(listed, [run(9), run(1), run(5)]);
}

fn the_list_says_what_the_events_say(journal: &mut dyn JournalStore) {
    let row_after = |journal: &mut dyn JournalStore, events: Stream| {
        let version = u64::try_from(journal.read(&run(1)).unwrap().len()).unwrap();
        journal.append(&run(1), version, &events).unwrap();
        journal.runs(&everything()).unwrap().remove(0)
    };

    let first = row_after(journal, vec![(at(100), started("check", Records::Git))]);
    assert_eq!((first.run, first.procedure.as_str(), first.started_at, first.steps), (run(1), "check", at(100), 3));
    assert_eq!(first.worktree, RepoPath::new(&b"/repository/\xff of mine"[..]));
    assert_eq!((first.records, first.folder), (Records::Git, Some(RepoPath::new("proctor/runs/check_2026-01-01T0000"))));
    assert_eq!((first.standing, first.expires, first.latest_step), (Standing::Open, Expires::Unset, None));

    let begun = row_after(journal, only(RunEvent::StepBegan { step: step_id("look"), baseline: None }));
    assert_eq!((begun.standing, begun.latest_step), (Standing::Open, Some(step_id("look"))));

    let reason = HaltReason::ForeignChanges(vec![RepoPath::new(&b"\xff\n"[..])]);
    let halted = row_after(journal, only(RunEvent::Halted { reason: reason.clone() }));
    assert_eq!(halted.halted(), Some(&reason));

    let resumed = RunEvent::Resumed { head: None, accepted: Vec::new(), snapshot: None, directive: None, last_sign: None };
    assert_eq!(row_after(journal, only(resumed.clone())).standing, Standing::Open);

    let failed =
        row_after(journal, vec![(at(900), RunEvent::Ended { outcome: Outcome::Failed, expires: Some(at(1_000)), with_warnings: false })]);
    assert_eq!((failed.outcome(), failed.ended_at(), failed.expires), (Some(Outcome::Failed), Some(at(900)), Expires::At(at(1_000))));

    let again = row_after(journal, only(resumed));
    assert_eq!((again.standing, again.expires), (Standing::Open, Expires::Unset));

    let done = row_after(journal, vec![(at(950), RunEvent::Ended { outcome: Outcome::Completed, expires: None, with_warnings: false })]);
    assert_eq!(
        (done.standing, done.expires),
        (Standing::Ended { outcome: Outcome::Completed, at: at(950), with_warnings: false }, Expires::Never)
    );

    let kept = row_after(journal, only(RunEvent::Retained { expires: Some(at(7)) }));
    assert_eq!(kept.expires, Expires::At(at(7)));
}

fn a_run_that_is_judged_again_is_open_until_it_ends_anew(journal: &mut dyn JournalStore) {
    end_with(journal, 1, "check", Outcome::Inconclusive);
    journal.append(&run(1), 2, &only(RunEvent::RejudgeAsked)).unwrap();

    let again = journal.runs(&everything()).unwrap().remove(0);
    assert_eq!((again.standing, again.expires), (Standing::Open, Expires::Unset));

    journal
        .append(&run(1), 3, &[(at(9), RunEvent::Ended { outcome: Outcome::Completed, expires: Some(at(70)), with_warnings: false })])
        .unwrap();
    let ended = journal.runs(&everything()).unwrap().remove(0);
    assert_eq!(
        (ended.standing, ended.expires),
        (Standing::Ended { outcome: Outcome::Completed, at: at(9), with_warnings: false }, Expires::At(at(70)))
    );
}

fn answers_merges_and_what_agents_left_change_no_row(journal: &mut dyn JournalStore) {
    let question = HaltReason::Approval { step: step_id("check.all"), question: "ship it?".to_owned() };
    journal.append(&run(1), 0, &only(started("check", Records::State))).unwrap();
    journal.append(&run(1), 1, &only(RunEvent::Halted { reason: question.clone() })).unwrap();
    let before = journal.runs(&everything()).unwrap();
    assert_eq!(before[0].halted(), Some(&question));

    let quiet = [
        RunEvent::Answered { step: step_id("check.all"), answer: Answer::Approve, message: Some("go".to_owned()) },
        RunEvent::Collected { changed: vec![RepoPath::new("f")], commits: Vec::new(), failure: None },
        RunEvent::Confined { kind: "bwrap".to_owned(), net: None, open: Vec::new() },
        RunEvent::WorktreeMade,
        RunEvent::Merged { commit: Oid("9".repeat(40)) },
    ];
    for (version, event) in (2..).zip(quiet) {
        journal.append(&run(1), version, &only(event)).unwrap();

        assert_eq!(journal.runs(&everything()).unwrap(), before);
    }
}

fn end_with(journal: &mut dyn JournalStore, bits: u64, procedure: &str, outcome: Outcome) {
    let ended = RunEvent::Ended { outcome, expires: None, with_warnings: false };
    journal.append(&run(bits), 0, &[(at(1), started(procedure, Records::State)), (at(2), ended)]).unwrap();
}

fn listed(journal: &dyn JournalStore, filter: &RunFilter) -> Vec<RunId> {
    journal.runs(filter).unwrap().into_iter().map(|row| row.run).collect()
}

fn runs_with_nothing_to_do_are_listed_on_request_only(journal: &mut dyn JournalStore) {
    end_with(journal, 1, "check", Outcome::Skipped);
    end_with(journal, 2, "check", Outcome::Completed);

    assert_eq!(listed(journal, &RunFilter::default()), [run(2)]);
    assert_eq!(listed(journal, &everything()), [run(2), run(1)]);
}

fn the_list_can_be_narrowed(journal: &mut dyn JournalStore) {
    end_with(journal, 1, "check", Outcome::Completed);
    end_with(journal, 2, "release", Outcome::Failed);
    journal.append(&run(3), 0, &only(started("check", Records::State))).unwrap();
    let with = |wanted| RunFilter { wanted, ..RunFilter::default() };
    let of = |procedure: &str| RunFilter { procedure: Some(procedure.to_owned()), ..RunFilter::default() };
    let within = |worktree: &[u8]| RunFilter { worktree: Some(RepoPath::new(worktree)), ..RunFilter::default() };

    assert_eq!(listed(journal, &with(RunsWanted::Unended)), [run(3)]);
    assert_eq!(listed(journal, &with(RunsWanted::Resumable)), [run(3), run(2)]);
    assert_eq!(listed(journal, &with(RunsWanted::Ended)), [run(2), run(1)]);
    assert_eq!(listed(journal, &of("check")), [run(3), run(1)]);
    assert_eq!(listed(journal, &of("x' OR 1 --")), []);
    assert_eq!(listed(journal, &within(b"/repository/\xff of mine")), [run(3), run(2), run(1)]);
    assert_eq!(listed(journal, &within(b"/elsewhere")), []);
    assert_eq!(listed(journal, &RunFilter { limit: Some(2), ..everything() }), [run(3), run(2)]);
}

fn runs_that_had_agents_are_found(journal: &mut dyn JournalStore) {
    for (bits, work) in (1..).zip([Work::Shells, Work::Agent(2), Work::Judge(1), Work::Repair]) {
        let opened =
            RunEvent::SessionOpened { session: SessionId::from_bits(bits), phase: Phase::Run, work, evidence: None, known: Vec::new() };
        journal.append(&run(bits), 0, &[(at(1), started("check", Records::State)), (at(2), opened)]).unwrap();
    }
    let told = RunEvent::CommitRefused {
        purpose: proctor_domain::procedure::CommitPurpose::End,
        failure: proctor_domain::procedure::Failure::Git { output: r#"{"work":{"agent":1}}"#.to_owned() },
    };
    journal.append(&run(5), 0, &[(at(1), started("check", Records::State)), (at(2), told)]).unwrap();

    assert_eq!(listed(journal, &RunFilter { sessions: SessionsWanted::OfAgents, ..everything() }), [run(4), run(3), run(2)]);
}

fn a_prefix_that_fits_several_runs_names_them(journal: &mut dyn JournalStore) {
    for bits in 0..12 {
        journal.append(&run(bits), 0, &plain_stream(1)).unwrap();
    }

    let end = journal.resolve("run_000000000");

    let Err(ResolveError::Ambiguous { candidates, .. }) = end else { panic!("{end:?}") };
    assert_eq!(candidates.len(), 10);
    assert_eq!(candidates.first().map(String::as_str), Some("run_0000000000"));
}

fn a_unique_prefix_finds_its_run(journal: &mut dyn JournalStore) {
    let (low, high) = (run(1 << 45), run(2 << 45));
    journal.append(&low, 0, &plain_stream(1)).unwrap();
    journal.append(&high, 0, &plain_stream(1)).unwrap();

    for prefix in ["run_2", "RUN_20", high.as_str()] {
        assert_eq!(journal.resolve(prefix).unwrap(), high, "{prefix}");
    }
    for prefix in ["", "run_", "run_3", "z", "%", "2", "ses_2", "2'"] {
        assert!(matches!(journal.resolve(prefix), Err(ResolveError::NotFound { .. })), "{prefix}");
    }
}

fn a_session_is_found_with_its_run(journal: &mut dyn JournalStore) {
    let (first, second) = (SessionId::from_bits(1), SessionId::from_bits(1 << 49));
    journal.append(&run(1), 0, &plain_stream(1)).unwrap();
    journal.append(&run(2), 0, &plain_stream(1)).unwrap();
    let opened = |session: &SessionId, work| RunEvent::SessionOpened {
        session: session.clone(),
        phase: Phase::Run,
        work,
        evidence: None,
        known: Vec::new(),
    };
    journal.append(&run(2), 1, &only(opened(&first, Work::Shells))).unwrap();
    journal.append(&run(2), 2, &only(opened(&second, Work::Agent(1)))).unwrap();

    assert_eq!(journal.resolve_session("ses_0").unwrap(), (run(2), first.clone()));
    assert_eq!(journal.resolve_session("ses_g").unwrap(), (run(2), second));
    assert!(matches!(journal.resolve_session("run_0"), Err(ResolveError::NotFound { .. })));
    journal.remove(&run(2)).unwrap();
    assert!(matches!(journal.resolve_session(first.as_str()), Err(ResolveError::NotFound { .. })));
}

fn a_missing_snapshot_is_an_error(journal: &mut dyn JournalStore) {
    assert!(matches!(journal.snapshot(&"0".repeat(64)), Err(SnapshotError::Missing { .. })));
}

fn a_snapshot_is_given_back_as_it_was(journal: &mut dyn JournalStore) {
    let text = "---\r\nname: é\0\n".repeat(1_000);

    let hash = journal.put_snapshot(&text).unwrap();
    let again = journal.put_snapshot(&text).unwrap();

    assert_eq!(hash, again);
    assert_eq!(journal.snapshot(&hash).unwrap(), text);
}

fn a_removed_run_leaves_nothing_but_its_snapshot(journal: &mut dyn JournalStore) {
    let hash = journal.put_snapshot("card").unwrap();
    journal.append(&run(1), 0, &plain_stream(3)).unwrap();
    journal.append(&run(2), 0, &plain_stream(2)).unwrap();

    journal.remove(&run(1)).unwrap();
    journal.remove(&run(3)).unwrap();

    assert_eq!(journal.read(&run(1)).unwrap(), []);
    assert_eq!(listed(journal, &everything()), [run(2)]);
    assert!(journal.resolve(run(1).as_str()).is_err());
    assert_eq!(journal.snapshot(&hash).unwrap(), "card");
    assert_eq!(journal.read(&run(2)).unwrap(), plain_stream(2));
}
