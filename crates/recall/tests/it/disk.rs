//! A disk that is full.

use std::fs;
use std::path::Path;

use proctor_domain::Timestamp;
use proctor_process::Program;
use proctor_process::durable::DurableError;
use proctor_recall::matching::Approach;
use proctor_recall::{Approval, Effect, FileKind, Folder, Library, Line, Most, Record, Shelf, StoreError};
use tempfile::TempDir;

use crate::{fails, works};

/// A small file system of its own, where this user may mount one.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    #[allow(clippy::print_stderr, reason = "whoever reads the test's output has to know what it did not show")]
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let is_mounted = program("mount", &["-t", "tmpfs", "-o", "size=256k", "none", &folder.path().display().to_string()]);
        if !is_mounted {
            eprintln!("not shown here: this user may not mount a small disk");
        }
        is_mounted.then_some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves no room for another block.
    fn fill(&self) {
        let file = self.path().join("ballast");
        let mut size = 256 << 10;
        while size > 0 {
            let before = fs::read(&file).unwrap_or_default();
            if fs::write(&file, [before.clone(), vec![0; size]].concat()).is_err() {
                fs::write(&file, before).unwrap();
                size /= 2;
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        program("umount", &["-l", &self.path().display().to_string()]);
    }
}

fn program(name: &str, arguments: &[&str]) -> bool {
    Program::new(name).args(arguments).run(None).is_ok_and(|finished| finished.status.is_success())
}

fn add(folder: &Folder, record: Record) -> Result<proctor_domain::RecordId, StoreError> {
    let line = Line::of(record);
    folder.change(Effect::Write, |contents| contents.add(line.clone())).map(|added| added.id().clone())
}

#[test]
fn a_full_disk_loses_no_record_leaves_no_half_written_file_and_is_named() {
    let Some(disk) = SmallDisk::mount() else { return };
    let folder = Folder::of_user(disk.path());
    let proposed = add(&folder, Record { approval: Approval::Proposed, ..works("migrate before the seed") }).unwrap();
    add(&folder, fails("cache the image by tag")).unwrap();
    let state = || {
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.into_iter().map(|path| (fs::read_to_string(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = state();
    disk.fill();

    let added = add(&folder, fails(&"one more ".repeat(600)));
    let approved = folder.change(Effect::Write, |contents| contents.set_approval(&proposed, Approval::Active));

    for error in [added.unwrap_err(), approved.unwrap_err()] {
        assert!(matches!(error, StoreError::Write(DurableError::NoSpace { .. })), "{error}");
    }
    assert_eq!(state(), before);
    assert_eq!(folder.diagnose(Timestamp(4_000_000_000_000)).unwrap(), []);
    fs::remove_file(disk.path().join("ballast")).unwrap();
    folder.change(Effect::Write, |contents| contents.set_approval(&proposed, Approval::Active)).unwrap();
    assert!(fs::read_to_string(folder.file(FileKind::Works)).unwrap().contains(proposed.as_str()));
}

#[test]
fn an_index_for_which_there_is_no_room_is_done_without() {
    let Some(disk) = SmallDisk::mount() else { return };
    let data = tempfile::tempdir().unwrap();
    let folder = Folder::of_user(data.path());
    add(&folder, fails("cache the image by tag")).unwrap();
    let cache = disk.path().join("cache");
    let library = Library::new(vec![Shelf { name: "user", folder }], None, None).with_cache(cache.clone());
    let ask = || library.try_approach(&Approach { text: "cache the image by tag", ..Approach::default() }, Most::default(), Timestamp(0));
    assert_eq!(ask().unwrap().len(), 1);
    fs::remove_dir_all(&cache).unwrap();
    fs::create_dir(&cache).unwrap();
    disk.fill();

    let found = ask().unwrap();

    assert_eq!(found.len(), 1);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
}
