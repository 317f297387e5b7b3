//! Files that are not what we left.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use proctor_domain::procedure::{Records, RunEvent};
use proctor_domain::{RunId, Timestamp};
use proctor_journal::{AppendError, DamagedRecord, FILE_NAME, Journal, JournalError, JournalStore, ReadError, RunFilter, SkippedRuns};
use tempfile::TempDir;

use crate::simulator::{Stream, plain_stream, retained, stream};

const PAGE: usize = 4096;

fn run(bits: u64) -> RunId {
    RunId::from_bits(bits)
}

fn everything() -> RunFilter {
    RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() }
}

/// A closed journal with some runs of some length, and their streams.
fn recorded() -> (TempDir, Vec<(RunId, Stream)>) {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    let runs: Vec<(RunId, Stream)> =
        (1..=6_u8).map(|number| (run(u64::from(number) << 44), stream(&[number, 9, 8, 7, number * 3, 6, 1, 4], Records::Git))).collect();
    for (run, events) in &runs {
        journal.append(run, 0, events).unwrap();
    }
    journal.put_snapshot("a card").unwrap();
    (state, runs)
}

fn file(state: &TempDir) -> std::path::PathBuf {
    state.path().join(FILE_NAME)
}

fn execute(state: &TempDir, sql: &str) {
    rusqlite::Connection::open(file(state)).unwrap().execute_batch(sql).unwrap();
}

/// What is read may be missing, but never wrong; returns how many runs are whole.
fn assert_truthful(state: &Path, runs: &[(RunId, Stream)]) -> usize {
    let Ok(journal) = Journal::open(state) else { return 0 };
    runs.iter().filter(|(run, events)| journal.read(run).inspect(|found| assert_eq!(found, events)).is_ok()).count()
}

/// A salvage after any damage leaves a sound journal that holds a beginning of every run it lists.
fn assert_salvageable(state: &Path, runs: &[(RunId, Stream)]) -> usize {
    let report = Journal::salvage(state).unwrap();
    assert!(report.set_aside.exists());
    let mut journal = Journal::open(state).unwrap();
    assert!(journal.check().is_sound(), "{:?}", journal.check());
    let mut whole = 0;
    for (run, events) in runs {
        let found = journal.read(run).unwrap();
        assert_eq!(found, events[..found.len()]);
        assert_eq!(report.runs.iter().any(|salvaged| salvaged.run == *run && salvaged.kept > 0), !found.is_empty());
        whole += usize::from(found.len() == events.len());
    }
    journal.append(&self::run(99), 0, &plain_stream(2)).unwrap();
    whole
}

#[test]
fn an_empty_file_is_named_as_cut_off_and_not_taken_for_a_new_journal() {
    let (state, runs) = recorded();
    fs::File::create(file(&state)).unwrap();

    let opened = Journal::open(state.path());

    assert!(matches!(opened, Err(JournalError::Truncated { .. })), "{opened:?}");
    assert_eq!(assert_salvageable(state.path(), &runs), 0);
}

#[test]
fn a_file_of_garbage_is_named_as_damaged() {
    let (state, runs) = recorded();
    fs::File::create(file(&state)).unwrap().write_all(&b"garbage! ".repeat(1_000)).unwrap();

    let opened = Journal::open(state.path());

    assert!(matches!(opened, Err(JournalError::Corrupt { .. })), "{opened:?}");
    assert_eq!(assert_salvageable(state.path(), &runs), 0);
    let names: Vec<String> = fs::read_dir(state.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.contains(&"journal.db.damaged-1".to_owned()), "{names:?}");
}

#[test]
fn a_file_cut_off_anywhere_never_tells_a_wrong_story_and_can_be_salvaged() {
    let (state, runs) = recorded();
    let whole = fs::read(file(&state)).unwrap();
    for length in [1, 100, PAGE - 1, PAGE, 2 * PAGE, whole.len() / 3, whole.len() / 2, whole.len() - PAGE, whole.len() - 1] {
        let cut = tempfile::tempdir().unwrap();
        fs::File::create(cut.path().join(FILE_NAME)).unwrap().write_all(&whole[..length]).unwrap();

        assert_truthful(cut.path(), &runs);
        assert_salvageable(cut.path(), &runs);
    }
}

#[test]
fn a_garbage_page_anywhere_never_tells_a_wrong_story_and_can_be_salvaged() {
    let (state, runs) = recorded();
    let whole = fs::read(file(&state)).unwrap();
    let pages = whole.len() / PAGE;
    let mut unharmed = 0;
    for page in 0..pages {
        let damaged = tempfile::tempdir().unwrap();
        fs::copy(file(&state), damaged.path().join(FILE_NAME)).unwrap();
        let mut target = OpenOptions::new().write(true).open(damaged.path().join(FILE_NAME)).unwrap();
        target.seek(SeekFrom::Start(u64::try_from(page * PAGE).unwrap())).unwrap();
        target.write_all(&[0xA5; PAGE]).unwrap();
        drop(target);

        assert_truthful(damaged.path(), &runs);
        if let Ok(journal) = Journal::open(damaged.path()) {
            assert!(!journal.check().is_sound(), "page {page}");
        }
        unharmed += assert_salvageable(damaged.path(), &runs);
    }
    // Most pages hold a part of one or two runs, so most runs come through most damages.
    assert!(unharmed * 10 >= pages * runs.len() * 6, "{unharmed} of {}", pages * runs.len());
}

#[test]
fn a_damaged_record_stops_its_own_run_only() {
    let (state, runs) = recorded();
    let (victim, events) = &runs[2];
    execute(&state, &format!("UPDATE events SET body = '{{\"v\":1,\"event\":\"sta' WHERE run = '{victim}' AND version = 4"));

    let mut journal = Journal::open(state.path()).unwrap();

    let read = journal.read(victim);
    assert!(matches!(&read, Err(ReadError::Damaged { version: 4, .. })), "{read:?}");
    assert_eq!(assert_truthful(state.path(), &runs), runs.len() - 1);
    assert_eq!(journal.runs(&everything()).unwrap().len(), runs.len());
    let health = journal.check();
    assert_eq!(health.damaged.iter().map(|record| (record.run.as_str(), record.version)).collect::<Vec<_>>(), [(victim.as_str(), 4)]);
    assert_eq!(health.pages, [] as [String; 0]);
    journal.append(&runs[0].0, u64::try_from(runs[0].1.len()).unwrap(), &[(Timestamp(1), retained(1))]).unwrap();
    drop(journal);

    let report = Journal::salvage(state.path()).unwrap();

    let salvaged = report.runs.iter().find(|salvaged| salvaged.run == *victim).unwrap();
    assert_eq!((salvaged.kept, salvaged.left_behind), (3, u64::try_from(events.len()).unwrap() - 3));
    assert_eq!(Journal::open(state.path()).unwrap().read(victim).unwrap(), events[..3]);
}

#[test]
fn a_missing_record_is_damage_and_not_the_end() {
    let (state, runs) = recorded();
    let victim = &runs[0].0;
    execute(&state, &format!("DELETE FROM events WHERE run = '{victim}' AND version = 2"));

    let journal = Journal::open(state.path()).unwrap();

    assert!(matches!(journal.read(victim), Err(ReadError::Damaged { version: 2, .. })));
    let missing = DamagedRecord { run: victim.to_string(), version: 2, reason: "it is missing".to_owned() };
    assert_eq!(journal.check().damaged, [missing]);
}

#[test]
fn a_record_that_cannot_follow_is_named() {
    let (state, _) = recorded();
    let stray = format!(r#"{{"v":1,"event":{}}}"#, serde_json::to_string(&RunEvent::RetryBegan).unwrap());
    execute(&state, &format!("INSERT INTO events (run, version, at, body) VALUES ('{}', 1, 0, '{stray}')", run(7)));

    let health = Journal::open(state.path()).unwrap().check();

    assert_eq!(health.damaged.len(), 1, "{health:?}");
    assert_eq!(health.damaged[0].version, 1);
}

#[test]
fn a_record_of_a_later_form_is_refused_for_its_run_and_kept_by_a_salvage() {
    let (state, runs) = recorded();
    let victim = &runs[1].0;
    let body = r#"{"v":2,"event":"teleported"}"#;
    execute(&state, &format!("UPDATE events SET body = '{body}' WHERE run = '{victim}' AND version = 3"));

    let journal = Journal::open(state.path()).unwrap();

    assert!(matches!(journal.read(victim), Err(ReadError::Newer { version: 3, found: 2, known: 1, .. })));
    assert_eq!(assert_truthful(state.path(), &runs), runs.len() - 1);
    let health = journal.check();
    assert!(health.is_sound(), "{health:?}");
    assert_eq!(health.newer, std::slice::from_ref(victim));
    drop(journal);
    Journal::salvage(state.path()).unwrap();
    assert!(matches!(Journal::open(state.path()).unwrap().read(victim), Err(ReadError::Newer { version: 3, .. })));
}

#[test]
fn a_list_entry_that_is_wrong_is_named_and_made_anew() {
    let (state, runs) = recorded();
    let before = Journal::open(state.path()).unwrap().runs(&everything()).unwrap();
    execute(&state, &format!("UPDATE runs SET procedure = 'other' WHERE run = '{}'", runs[0].0));
    execute(&state, &format!("UPDATE runs SET records = 'nowhere' WHERE run = '{}'", runs[1].0));
    execute(&state, &format!("DELETE FROM runs WHERE run = '{}'", runs[2].0));
    execute(&state, "DELETE FROM sessions");
    let mut journal = Journal::open(state.path()).unwrap();

    assert_eq!(journal.check().stale, [&runs[0].0, &runs[1].0, &runs[2].0].map(ToString::to_string));
    assert_eq!(journal.runs(&everything()).unwrap().len(), runs.len() - 2);
    assert_eq!(journal.rebuild_rows().unwrap(), runs.len());

    assert!(journal.check().is_sound());
    assert_eq!(journal.runs(&everything()).unwrap(), before);
}

#[test]
fn a_journal_of_a_later_format_is_read_and_never_written() {
    let (state, runs) = recorded();
    execute(&state, "ALTER TABLE runs ADD COLUMN mood TEXT; PRAGMA user_version = 2");
    let bytes = fs::read(file(&state)).unwrap();

    let mut journal = Journal::open(state.path()).unwrap();

    assert_eq!(journal.newer_format(), Some(2));
    assert!(journal.warning().is_some());
    assert_eq!(assert_truthful(state.path(), &runs), runs.len());
    assert_eq!(journal.runs(&everything()).unwrap().len(), runs.len());
    let appended = journal.append(&run(1), 0, &plain_stream(1));
    assert!(matches!(appended, Err(AppendError::Journal(JournalError::Newer { found: 2, known: 1, .. }))), "{appended:?}");
    assert!(matches!(journal.put_snapshot("new"), Err(JournalError::Newer { .. })));
    assert!(matches!(journal.remove(&runs[0].0), Err(JournalError::Newer { .. })));
    assert!(matches!(journal.rebuild_rows(), Err(JournalError::Newer { .. })));
    drop(journal);
    assert!(matches!(Journal::salvage(state.path()), Err(JournalError::Newer { .. })));
    assert_eq!(fs::read(file(&state)).unwrap(), bytes);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    for version in [-1, 0, 1, 2] {
        let state = tempfile::tempdir().unwrap();
        execute(&state, &format!("CREATE TABLE recipes (name TEXT); PRAGMA user_version = {version}"));
        let bytes = fs::read(file(&state)).unwrap();

        assert!(matches!(Journal::open(state.path()), Err(JournalError::Foreign { .. })));
        assert!(matches!(Journal::salvage(state.path()), Err(JournalError::Foreign { .. })));
        assert_eq!(fs::read(file(&state)).unwrap(), bytes);
    }
}

#[test]
fn a_snapshot_whose_text_changed_is_damaged_and_can_be_put_again() {
    let (state, _) = recorded();
    execute(&state, "UPDATE snapshots SET text = 'another card'");
    let mut journal = Journal::open(state.path()).unwrap();
    let hash = proctor_journal::snapshot_hash("a card");

    assert!(matches!(journal.snapshot(&hash), Err(proctor_journal::SnapshotError::Damaged { .. })));
    journal.put_snapshot("a card").unwrap();
    assert_eq!(journal.snapshot(&hash).unwrap(), "a card");
}

#[test]
fn what_is_only_in_the_write_ahead_log_is_salvaged_too() {
    let (state, runs) = recorded();
    let copy = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    journal.append(&run(1), 0, &plain_stream(3)).unwrap();
    // As after a power cut: the log was never merged.
    for name in [FILE_NAME, "journal.db-wal"] {
        fs::copy(state.path().join(name), copy.path().join(name)).unwrap();
    }

    assert_eq!(assert_salvageable(copy.path(), &runs), runs.len());

    assert_eq!(Journal::open(copy.path()).unwrap().read(&run(1)).unwrap(), plain_stream(3));
}

#[test]
fn a_journal_in_use_is_not_salvaged() {
    let (state, _) = recorded();
    let user = Journal::open(state.path()).unwrap();
    user.runs(&everything()).unwrap();

    let salvaged = Journal::salvage(state.path());

    assert!(matches!(salvaged, Err(JournalError::Busy { .. })), "{salvaged:?}");
}
