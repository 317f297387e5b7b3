//! Several processes, and processes that die.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use proctor_domain::procedure::{Records, RunEvent};
use proctor_domain::{RunId, Timestamp};
use proctor_journal::{AppendError, Journal, JournalStore};

use crate::simulator::{plain_stream, retained, started};

const STATE: &str = "PROCTOR_JOURNAL_TEST_STATE";
const TASK: &str = "PROCTOR_JOURNAL_TEST_TASK";

const APPENDS: u64 = 150;

/// Starts this test binary again as a child that does `task` on the journal in `state`.
#[expect(clippy::disallowed_methods, reason = "the journal may not depend on the crate that starts processes")]
fn child(task: &str, state: &Path) -> Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child_does_its_task", "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .env(STATE, state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The children's entry; nothing for the test run itself.
#[test]
fn child_does_its_task() {
    let (Ok(task), Ok(state)) = (std::env::var(TASK), std::env::var(STATE)) else { return };
    if task == "salvage" {
        println!("begin");
        Journal::salvage(Path::new(&state)).unwrap();
        return;
    }
    let mut journal = Journal::open(Path::new(&state)).unwrap();
    match task.as_str() {
        "endless" => append_without_end(&mut journal),
        marker => append_in_competition(&mut journal, marker.parse().unwrap()),
    }
}

/// Says each version after it was made durable.
fn append_without_end(journal: &mut Journal) {
    let run = RunId::from_bits(1);
    let mut version = u64::try_from(journal.read(&run).unwrap().len()).unwrap();
    loop {
        let event = if version == 0 { started("plain", Records::State) } else { retained(version) };
        version = journal.append(&run, version, &[(Timestamp(1_000), event)]).unwrap();
        println!("version {version}");
    }
}

/// Appends its marked events, each at whatever version the others have left.
fn append_in_competition(journal: &mut Journal, marker: u64) {
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let run = RunId::from_bits(1);
    for number in 0..APPENDS {
        let event = [(Timestamp(i64::try_from(marker).unwrap()), retained(number))];
        let mut expected = 1;
        while let Err(error) = journal.append(&run, expected, &event) {
            let AppendError::Conflict { found, .. } = error else { panic!("{error}") };
            assert!(found > expected, "a conflict must name a version to go on from");
            expected = found;
        }
    }
}

#[test]
fn a_writer_killed_at_any_moment_leaves_whole_appends_without_a_gap() {
    let state = tempfile::tempdir().unwrap();
    let run = RunId::from_bits(1);
    let mut acknowledged = 0;
    for round in 1..=12 {
        let mut writer = child("endless", state.path());
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
        let versions = lines.filter_map(|line| line.strip_prefix("version ")?.parse::<u64>().ok());
        for version in versions.take(round * 3) {
            acknowledged = version;
        }
        writer.kill().unwrap();
        writer.wait().unwrap();

        let journal = Journal::open(state.path()).unwrap();

        let events = journal.read(&run).unwrap();
        let found = u64::try_from(events.len()).unwrap();
        assert!(found >= acknowledged, "{found} events, but {acknowledged} were acknowledged");
        assert_eq!(events, plain_stream(found));
        assert!(journal.check().is_sound(), "{:?}", journal.check());
    }
}

#[test]
fn a_salvage_killed_at_any_moment_leaves_the_old_journal_or_the_new_one() {
    for round in 0..10 {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        for bits in 0..20 {
            journal.append(&RunId::from_bits(bits), 0, &plain_stream(50)).unwrap();
        }
        drop(journal);
        let mut salvager = child("salvage", state.path());
        let mut lines = BufReader::new(salvager.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("begin")));
        // Half of the rounds wait for the moment when the old file was kept and the new one is about to replace it.
        let kept = state.path().join("journal.db.damaged-1");
        while round % 2 == 1 && !kept.exists() && salvager.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }

        salvager.kill().unwrap();
        salvager.wait().unwrap();

        let journal = Journal::open(state.path()).unwrap();
        assert!(journal.check().is_sound(), "{:?}", journal.check());
        for bits in 0..20 {
            assert_eq!(journal.read(&RunId::from_bits(bits)).unwrap(), plain_stream(50));
        }
        drop(journal);
        assert_eq!(Journal::salvage(state.path()).unwrap().runs.len(), 20);
    }
}

#[test]
fn two_processes_that_race_lose_nothing_and_double_nothing() {
    let state = tempfile::tempdir().unwrap();
    let run = RunId::from_bits(1);
    Journal::open(state.path()).unwrap().append(&run, 0, &plain_stream(1)).unwrap();
    let mut writers: Vec<Child> = [1, 2].map(|marker: u64| child(&marker.to_string(), state.path())).into();
    for writer in &mut writers {
        let mut lines = BufReader::new(writer.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("ready")));
    }

    for writer in &mut writers {
        writer.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }

    let events = Journal::open(state.path()).unwrap().read(&run).unwrap();
    for marker in [1, 2] {
        let of_one: Vec<RunEvent> = events[1..].iter().filter(|(at, _)| *at == Timestamp(marker)).map(|(_, event)| event.clone()).collect();
        assert_eq!(of_one, (0..APPENDS).map(retained).collect::<Vec<_>>());
    }
    assert_eq!(u64::try_from(events.len()).unwrap(), 1 + 2 * APPENDS);
}

#[test]
fn many_first_openers_make_one_journal() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("deep/state");

    let threads: Vec<_> = (0..8_u64)
        .map(|bits| {
            let folder = folder.clone();
            std::thread::spawn(move || Journal::open(&folder).unwrap().append(&RunId::from_bits(bits), 0, &plain_stream(2)).unwrap())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 2);
    }

    let journal = Journal::open(&folder).unwrap();
    for bits in 0..8 {
        assert_eq!(journal.read(&RunId::from_bits(bits)).unwrap(), plain_stream(2));
    }
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name.to_string_lossy().starts_with("journal.db")), "{names:?}");
}

#[test]
fn a_reader_sees_a_whole_journal_while_another_writes() {
    let state = tempfile::tempdir().unwrap();
    let run = RunId::from_bits(1);
    let mut writer = Journal::open(state.path()).unwrap();
    writer.append(&run, 0, &plain_stream(5)).unwrap();

    let reader = Journal::open_read_only(state.path()).unwrap();
    writer.append(&run, 5, &[(Timestamp(1_000), retained(5))]).unwrap();

    assert_eq!(reader.warning(), None);
    assert_eq!(reader.read(&run).unwrap(), plain_stream(6));
}
