//! The folder of the files: read as one, changed as one.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use proctor_domain::RecordId;
use proctor_process::durable::{self, Durability, Replaced};
use proctor_process::killpoint;
use proctor_process::lock::{self, Attempt, HeldLock};

use super::contents::Contents;
use super::document::{Document, FileKind};
use super::error::StoreError;
use super::{Damage, Problem, diagnosis};

/// The lock is held while three files are read and written.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a change begins anew because somebody wrote meanwhile.
const ATTEMPTS: usize = 20;
/// The most that is read of a file; a hundred thousand records are shorter.
const LONGEST: u64 = 256 << 20;
/// How long a file that a process was writing must have been left alone before it counts as left behind.
const LEFT_FOR: Duration = Duration::from_secs(3600);

/// A folder of memory; it need not be there.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    /// The repository that it belongs to, and the top of what it may not lead out of.
    home: Option<(String, PathBuf)>,
}

/// Whether a change is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The files are written.
    Write,
    /// Nothing is written; the answer is what it would be.
    OnlySay,
}

/// The files of a folder as they were read.
struct Reading {
    bytes: Vec<(FileKind, Option<Vec<u8>>)>,
    contents: Contents,
}

impl Reading {
    fn known(&self, kind: FileKind) -> Option<&[u8]> {
        self.bytes.iter().find(|(other, _)| *other == kind).and_then(|(_, bytes)| bytes.as_deref())
    }
}

impl Folder {
    /// The folder of a repository, tracked with it. `name` is the repository's, `root` the folder in which it must lie.
    pub fn of_project(root: &Path, name: &str) -> Self {
        Self { path: root.join("proctor").join("memory"), home: Some((name.to_owned(), root.to_owned())) }
    }

    /// The folder of a user, for all repositories. `data` is where programs keep a user's data.
    pub fn of_user(data: &Path) -> Self {
        Self { path: data.join("proctor").join("memory"), home: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One of its files.
    pub fn file(&self, kind: FileKind) -> PathBuf {
        self.path.join(kind.name())
    }

    /// The repository that it belongs to.
    pub fn project(&self) -> Option<&str> {
        self.home.as_ref().map(|(name, _)| name.as_str())
    }

    /// Reads everything. Makes nothing.
    ///
    /// # Errors
    /// A file is damaged or can't be read.
    pub fn read(&self) -> Result<Contents, StoreError> {
        self.check_place()?;
        // A record on its way from one file to another must not be seen in neither.
        let mut before = self.marks();
        for _ in 0..ATTEMPTS {
            let reading = self.read_files()?;
            let after = self.marks();
            if before == after {
                return Ok(reading.contents);
            }
            before = after;
        }
        Err(StoreError::Restless { path: self.path.clone() })
    }

    /// Changes what is in the folder, and says what `change` says. Where somebody wrote meanwhile, `change` is asked again
    /// with what is there now.
    ///
    /// # Errors
    /// `change` refuses, a file is damaged, or it can't be written. Nothing is lost then.
    pub fn change<T>(&self, effect: Effect, change: impl Fn(&mut Contents) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.check_place()?;
        let _lock = match effect {
            Effect::Write => {
                self.make()?;
                let lock = self.hold()?;
                self.clear();
                Some(lock)
            }
            Effect::OnlySay => None,
        };
        for _ in 0..ATTEMPTS {
            let mut reading = self.read_files()?;
            reading.contents.adopt();
            let before = places(&reading.contents);
            let answer = change(&mut reading.contents)?;
            if effect == Effect::OnlySay || self.write_files(&reading, &before)? == Replaced::Done {
                return Ok(answer);
            }
        }
        Err(StoreError::Restless { path: self.path.clone() })
    }

    /// Everything that is wrong in the folder, or worth a look.
    ///
    /// # Errors
    /// The folder can't be read.
    pub fn diagnose(&self, now: proctor_domain::Timestamp) -> Result<Vec<Problem>, StoreError> {
        self.check_place()?;
        diagnosis::diagnose(self, now)
    }

    fn make(&self) -> Result<(), StoreError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        if self.home.is_none() {
            builder.mode(0o700);
        }
        builder.create(&self.path).map_err(|source| StoreError::Folder { path: self.path.clone(), source })
    }

    /// Removes what killed processes left. It does no harm, so it is no reason to refuse a change.
    fn clear(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_old_leftover(path)) {
            let _ = fs::remove_file(path);
        }
    }

    /// A repository from somebody else may have a link where the folder should be.
    pub(crate) fn check_place(&self) -> Result<(), StoreError> {
        let Some((_, root)) = &self.home else { return Ok(()) };
        let target = match self.path.canonicalize() {
            Ok(target) => target,
            Err(error) if error.kind() == ErrorKind::NotFound => return self.check_no_dangling_link(),
            Err(source) => return Err(StoreError::Unreadable { path: self.path.clone(), source }),
        };
        let root = root.canonicalize().map_err(|source| StoreError::Unreadable { path: root.clone(), source })?;
        if target == root.join("proctor").join("memory") { Ok(()) } else { Err(StoreError::Elsewhere { path: self.path.clone(), target }) }
    }

    fn check_no_dangling_link(&self) -> Result<(), StoreError> {
        let above = self.path.parent().unwrap_or(&self.path);
        let link = [self.path.as_path(), above].into_iter().find_map(|path| fs::read_link(path).ok());
        link.map_or(Ok(()), |target| Err(StoreError::Elsewhere { path: self.path.clone(), target }))
    }

    fn hold(&self) -> Result<HeldLock, StoreError> {
        let begun = Instant::now();
        loop {
            match lock::try_acquire_folder(&self.path)? {
                Attempt::Acquired(lock) => return Ok(lock),
                Attempt::Held { .. } if begun.elapsed() > PATIENCE => return Err(StoreError::Busy { path: self.path.clone() }),
                Attempt::Held { .. } => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// What tells one state of the files from another.
    fn marks(&self) -> Vec<Option<(u64, u64, i64, i64)>> {
        let mark = |metadata: fs::Metadata| (metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec());
        FileKind::ALL.iter().map(|kind| fs::symlink_metadata(self.file(*kind)).ok().map(mark)).collect()
    }

    fn read_files(&self) -> Result<Reading, StoreError> {
        let mut bytes = Vec::new();
        let mut documents = Vec::new();
        for kind in FileKind::ALL {
            let path = self.file(kind);
            let found = read_file(&path)?;
            if let Some(found) = &found {
                documents.push(Document::read(kind, found).map_err(|damage| StoreError::Damaged { path, damage })?);
            }
            bytes.push((kind, found));
        }
        Ok(Reading { bytes, contents: Contents::new(documents, self.project().map(str::to_owned)) })
    }

    fn write_files(&self, reading: &Reading, before: &Places) -> Result<Replaced, StoreError> {
        for document in in_writing_order(reading, before) {
            let path = self.file(document.kind);
            let known = reading.known(document.kind);
            let text = document.write();
            if known == Some(text.as_bytes()) {
                continue;
            }
            if document.is_newer {
                return Err(StoreError::Newer { path });
            }
            killpoint::reach("memory: before a file is written");
            let mode = if self.home.is_some() { 0o666 } else { 0o600 };
            if durable::replace(&path, known, text.as_bytes(), Durability::Synced, mode)? == Replaced::Changed {
                return Ok(Replaced::Changed);
            }
            killpoint::reach("memory: after a file was written");
        }
        Ok(Replaced::Done)
    }
}

/// Which record is in which file.
type Places = HashSet<(FileKind, RecordId)>;

fn places(contents: &Contents) -> Places {
    contents.entries().map(|entry| (entry.file, entry.record.id.clone())).collect()
}

/// A record must be in the file that it goes to before it leaves the other: a file that loses one is written last.
fn in_writing_order<'reading>(reading: &'reading Reading, before: &Places) -> Vec<&'reading Document> {
    let after = places(&reading.contents);
    let loses = |kind: FileKind| before.iter().any(|place| place.0 == kind && !after.contains(place));
    let mut documents: Vec<&Document> = reading.contents.documents().iter().collect();
    documents.sort_by_cached_key(|document| loses(document.kind));
    documents
}

/// The bytes of an ordinary file; `None` where there is none.
pub(super) fn read_file(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let unreadable = |source: io::Error| StoreError::Unreadable { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(unreadable(source)),
        Ok(metadata) if !metadata.is_file() => {
            return Err(StoreError::Damaged { path: path.to_owned(), damage: Damage::NotAFile });
        }
        Ok(_) => {}
    }
    match read_ordinary(path) {
        Err(StoreError::Unreadable { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// The bytes of an ordinary file, which a link may lead to.
pub(crate) fn read_ordinary(path: &Path) -> Result<Vec<u8>, StoreError> {
    let unreadable = |source: io::Error| StoreError::Unreadable { path: path.to_owned(), source };
    let damaged = |damage| StoreError::Damaged { path: path.to_owned(), damage };
    // Opening a pipe would wait for its other end, and opening a device may do anything.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(damaged(Damage::NotAFile));
    }
    if metadata.len() > LONGEST {
        return Err(damaged(Damage::TooLong));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes)).map_err(unreadable)?;
    Ok(bytes)
}

/// Whether a process that was killed left this a while ago. The lock is ours, but a rename may be on its way from elsewhere.
fn is_old_leftover(path: &Path) -> bool {
    let is_old = |metadata: fs::Metadata| {
        let age = metadata.modified().ok().and_then(|written| written.elapsed().ok());
        metadata.is_file() && age.is_some_and(|age| age > LEFT_FOR)
    };
    durable::is_half_written(path) && fs::symlink_metadata(path).is_ok_and(is_old)
}
