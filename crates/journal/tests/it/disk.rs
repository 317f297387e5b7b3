//! Disks that are full, read-only, or taken away.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proctor_domain::procedure::RunEvent;
use proctor_domain::{RunId, Timestamp};
use proctor_journal::{AppendError, FILE_NAME, Journal, JournalError, JournalStore, RunFilter};
use tempfile::TempDir;

use crate::simulator::{plain_stream, retained, step_id};

fn run() -> RunId {
    RunId::from_bits(1)
}

/// A small file system of its own, where this user may mount one.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    fn mount(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = program("mount", &["-t", "tmpfs", "-o", options, "none", &folder.path().display().to_string()]);
        if !mounted {
            eprintln!("not shown here: this user may not mount a small disk");
        }
        mounted.then_some(Self { folder })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn make_read_only(&self) {
        assert!(program("mount", &["-o", "remount,ro", &self.folder.path().display().to_string()]));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        program("umount", &["-l", &self.folder.path().display().to_string()]);
    }
}

#[expect(clippy::disallowed_methods, reason = "the journal may not depend on the crate that starts processes")]
fn program(name: &str, arguments: &[&str]) -> bool {
    std::process::Command::new(name).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_journal_and_its_folder_are_private() {
    let outer = tempfile::tempdir().unwrap();
    let state = outer.path().join("state");

    let mut journal = Journal::open(&state).unwrap();
    journal.append(&run(), 0, &plain_stream(1)).unwrap();

    assert_eq!(mode(&state), 0o700);
    for name in [FILE_NAME, "journal.db-wal", "journal.db-shm"] {
        assert_eq!(mode(&state.join(name)), 0o600, "{name}");
    }
}

#[test]
fn a_journal_that_does_not_exist_is_not_made_by_a_reader() {
    let state = tempfile::tempdir().unwrap();

    assert!(matches!(Journal::open_read_only(state.path()), Err(JournalError::Missing { .. })));
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
}

#[test]
fn a_reader_may_not_write() {
    let state = tempfile::tempdir().unwrap();
    drop(Journal::open(state.path()).unwrap());
    let mut journal = Journal::open_read_only(state.path()).unwrap();

    let appended = journal.append(&run(), 0, &plain_stream(1));

    assert!(matches!(appended, Err(AppendError::Journal(JournalError::ReadOnly { .. }))), "{appended:?}");
}

#[test]
fn an_append_to_a_full_disk_says_so_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount("size=600k") else { return };
    let mut journal = Journal::open(&disk.path()).unwrap();
    let padding = disk.path().join("padding");
    File::create(&padding).unwrap().write_all(&vec![0; 200 * 1024]).unwrap();
    let large = RunEvent::LeftInTree {
        paths: (0..20).map(|number| proctor_domain::RepoPath::new(format!("{}{number}", "long".repeat(20)))).collect(),
        snapshot: proctor_domain::Oid("0".repeat(40)),
    };

    let mut version = journal.append(&run(), 0, &plain_stream(1)).unwrap();
    let error = loop {
        match journal.append(&run(), version, &[(Timestamp(1), large.clone())]) {
            Ok(next) => version = next,
            Err(error) => break error,
        }
    };

    assert!(matches!(error, AppendError::Journal(JournalError::Full { .. })), "{error:?}");
    assert_eq!(u64::try_from(journal.read(&run()).unwrap().len()).unwrap(), version);
    let again = journal.append(&run(), version, &[(Timestamp(1), large.clone())]);
    assert!(matches!(again, Err(AppendError::Journal(JournalError::Full { .. }))), "{again:?}");
    drop(journal);
    let reopened = Journal::open_read_only(&disk.path()).unwrap();
    assert_eq!(u64::try_from(reopened.read(&run()).unwrap().len()).unwrap(), version);
    drop(reopened);
    fs::remove_file(&padding).unwrap();
    let mut with_room = Journal::open(&disk.path()).unwrap();
    assert_eq!(with_room.append(&run(), version, &[(Timestamp(1), large)]).unwrap(), version + 1);
    assert!(with_room.check().is_sound(), "{:?}", with_room.check());
}

#[test]
fn a_disk_that_is_full_before_the_first_run_says_so_and_a_later_open_works() {
    let Some(disk) = SmallDisk::mount("size=200k") else { return };
    fs::create_dir(disk.path()).unwrap();
    let padding = disk.path().join("padding");
    let mut file = File::create(&padding).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);

    let opened = Journal::open(&disk.path());

    assert!(matches!(opened, Err(JournalError::Full { .. } | JournalError::Io { .. })), "{opened:?}");
    fs::remove_file(&padding).unwrap();
    Journal::open(&disk.path()).unwrap().append(&run(), 0, &plain_stream(1)).unwrap();
}

#[test]
fn a_read_only_disk_is_read_with_a_warning_and_refuses_appends() {
    let Some(disk) = SmallDisk::mount("size=2m") else { return };
    let mut journal = Journal::open(&disk.path()).unwrap();
    journal.append(&run(), 0, &plain_stream(5)).unwrap();
    drop(journal);
    disk.make_read_only();

    let reader = Journal::open_read_only(&disk.path()).unwrap();

    assert!(reader.warning().is_some_and(|warning| warning.contains("can't be written")), "{:?}", reader.warning());
    assert_eq!(reader.read(&run()).unwrap(), plain_stream(5));
    assert_eq!(reader.runs(&RunFilter::default()).unwrap().len(), 1);
    let written =
        Journal::open(&disk.path()).map_err(AppendError::from).and_then(|mut journal| journal.append(&run(), 5, &plain_stream(0)));
    assert!(matches!(written, Err(AppendError::Journal(JournalError::ReadOnly { .. }))), "{written:?}");
}

#[test]
fn a_folder_without_write_permission_is_read_too() {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    journal.append(&run(), 0, &plain_stream(5)).unwrap();
    drop(journal);
    fs::set_permissions(state.path(), Permissions::from_mode(0o500)).unwrap();

    let reader = Journal::open_read_only(state.path()).unwrap();

    // The superuser needs no permission, and then there is nothing to warn of.
    assert_eq!(reader.read(&run()).unwrap(), plain_stream(5));
    fs::set_permissions(state.path(), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_state_folder_removed_under_a_run_is_noticed_at_the_next_append() {
    let outer = tempfile::tempdir().unwrap();
    let state = outer.path().join("state");
    let mut journal = Journal::open(&state).unwrap();
    journal.append(&run(), 0, &plain_stream(1)).unwrap();

    fs::remove_dir_all(&state).unwrap();
    let removed = journal.append(&run(), 1, &[(Timestamp(1), retained(1))]);
    Journal::open(&state).unwrap();
    let replaced = journal.append(&run(), 1, &[(Timestamp(1), retained(1))]);

    assert!(matches!(removed, Err(AppendError::Journal(JournalError::Moved { .. }))), "{removed:?}");
    assert!(matches!(replaced, Err(AppendError::Journal(JournalError::Moved { .. }))), "{replaced:?}");
}

#[test]
fn paths_with_any_bytes_work() {
    let outer = tempfile::tempdir().unwrap();
    for name in ["with space", "per%cent?mode=memory#x", "file:odd", "ünïcode", &"long".repeat(50)] {
        let state = outer.path().join(name);

        let mut journal = Journal::open(&state).unwrap();
        journal
            .append(
                &run(),
                0,
                &[plain_stream(1), vec![(Timestamp(2), RunEvent::StepBegan { step: step_id("a"), baseline: None })]].concat(),
            )
            .unwrap();
        drop(journal);

        assert_eq!(Journal::open_read_only(&state).unwrap().read(&run()).unwrap().len(), 2);
    }
}
