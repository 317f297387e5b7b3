//! The crate as its callers see it.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a fixture that can't be made is a failed test")]

mod changes;
mod corroboration;
mod damage;
mod diagnosis;
mod disk;
mod hostile;
mod library;
mod lines;
mod secrets;
mod vaults;

use std::fs;
use std::path::Path;

use proctor_domain::{RecordId, Timestamp};
use proctor_recall::{Effect, FileKind, Folder, Line, Polarity, Record};

/// A repository that needs no git, and its folder of memory.
struct Scene {
    root: tempfile::TempDir,
    folder: Folder,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::of_project(root.path(), "acorn");
        Self { root, folder }
    }

    /// The same with a file in the folder of memory.
    fn with(self, kind: FileKind, text: impl AsRef<[u8]>) -> Self {
        self.write(kind, text);
        self
    }

    fn root(&self) -> &Path {
        self.root.path()
    }

    fn write(&self, kind: FileKind, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.folder.path()).unwrap();
        fs::write(self.folder.file(kind), text).unwrap();
    }

    fn text(&self, kind: FileKind) -> String {
        fs::read_to_string(self.folder.file(kind)).unwrap()
    }

    fn add(&self, record: Record) -> RecordId {
        let line = Line::of(record);
        self.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap().id().clone()
    }

    /// Routes with ids, in the order of the files.
    fn routes(&self) -> Vec<String> {
        self.folder.read().unwrap().entries().map(|entry| entry.record.route.clone()).collect()
    }
}

fn works(route: &str) -> Record {
    Record { trap: Some("it breaks".to_owned()), created: Some(Timestamp(1_764_000_000_000)), ..draft(Polarity::Works, route) }
}

fn fails(route: &str) -> Record {
    Record { observation: Some("it broke".to_owned()), created: Some(Timestamp(1_764_000_000_000)), ..draft(Polarity::Fails, route) }
}

fn draft(polarity: Polarity, route: &str) -> Record {
    Record { project: Some("acorn".to_owned()), ..Record::new(RecordId::from_bits(0), polarity, route) }
}
