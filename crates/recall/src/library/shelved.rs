//! The records of several folders by way of one index, which is held in memory and kept in a file.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_process::durable;
use sha2::{Digest, Sha256};

use super::Shelf;
use crate::matching::{Fingerprint, Index, Origin, Place, fingerprint, open};
use crate::store::{Contents, Entry, FileKind, StoreError};

/// How often a question is asked anew because somebody wrote meanwhile.
const ATTEMPTS: usize = 5;
/// How long an index is left in its folder after it was made. One that is still wanted is made again.
const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 60 * 60);
const ENDING: &str = "index";

/// The index that a process holds between two questions.
pub(super) type Held = Arc<Mutex<Option<Arc<Index>>>>;

/// The records of some shelves.
pub(super) struct Shelved<'library> {
    shelves: &'library [Shelf],
    /// Every file, in the order by which places count them.
    sources: Vec<PathBuf>,
    /// The file of the index, if it may be kept.
    file: Option<PathBuf>,
    held: &'library Held,
}

impl<'library> Shelved<'library> {
    pub(super) fn new(shelves: &'library [Shelf], cache: Option<&Path>, held: &'library Held) -> Self {
        let sources = shelves.iter().flat_map(|shelf| FileKind::ALL.map(|kind| shelf.folder.file(kind))).collect();
        Self { shelves, sources, file: cache.map(|folder| folder.join(name_of(shelves))), held }
    }

    /// The entries that `ask` finds in the index, by their numbers, each with the name of its shelf and with what `ask` says of it.
    pub(super) fn look_up<T>(&self, ask: impl Fn(&Index) -> Vec<(u32, T)>) -> Result<Vec<(T, &'static str, Entry)>, StoreError> {
        for _ in 0..ATTEMPTS {
            let index = self.index()?;
            let found = self.load(&index, ask(&index));
            match found {
                Some(found) if fingerprint(&self.paths()) == index.fingerprint() => return Ok(found),
                Some(_) | None => self.forget(),
            }
        }
        let path = self.shelves.first().map(|shelf| shelf.folder.path().to_owned()).unwrap_or_default();
        Err(StoreError::Restless { path })
    }

    fn paths(&self) -> Vec<&Path> {
        self.sources.iter().map(PathBuf::as_path).collect()
    }

    /// The index of the files as they are.
    fn index(&self) -> Result<Arc<Index>, StoreError> {
        for shelf in self.shelves {
            shelf.folder.check_place()?;
        }
        let paths = self.paths();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = held.as_ref().filter(|index| index.fingerprint() == fingerprint(&paths)) {
            return Ok(index.clone());
        }
        *held = None;
        let make = |fingerprint| self.make(fingerprint);
        let Some(file) = self.file.as_deref().filter(|file| prepare(file)) else { return Ok(Arc::new(make(fingerprint(&paths))?)) };
        let (index, origin) = open(file, &paths, make)?;
        let index = Arc::new(index);
        match origin {
            // Only the age of its file shows that nothing was written in the same tick of the clock.
            Origin::Kept => *held = Some(index.clone()),
            Origin::Made => clear(file),
            Origin::MadeInVain(_) => {}
        }
        Ok(index)
    }

    /// Reads everything, and indexes what may be shown.
    fn make(&self, fingerprint: Fingerprint) -> Result<Index, StoreError> {
        let contents = self.shelves.iter().map(|shelf| shelf.folder.read()).collect::<Result<Vec<Contents>, _>>()?;
        let entries = contents.iter().enumerate().flat_map(|(shelf, contents)| contents.active().map(move |entry| (shelf, entry)));
        Ok(Index::of_records(fingerprint, entries.map(|(shelf, entry)| (entry.place(source_of(shelf, entry.file)), &entry.record))))
    }

    /// Reads the lines of records. `None` if one of them is not where the index says.
    fn load<T>(&self, index: &Index, found: Vec<(u32, T)>) -> Option<Vec<(T, &'static str, Entry)>> {
        let mut files: Vec<Option<File>> = self.sources.iter().map(|_| None).collect();
        let mut loaded = Vec::with_capacity(found.len());
        for (number, said) in found {
            let (place, id) = index.record(number)?;
            let source = usize::try_from(place.source).ok()?;
            let (shelf, kind) = (self.shelves.get(source / FileKind::ALL.len())?, FileKind::ALL[source % FileKind::ALL.len()]);
            let file = match files.get_mut(source)? {
                Some(file) => file,
                empty @ None => empty.insert(open_ordinary(&self.sources[source])?),
            };
            let raw = read_at(file, place)?;
            loaded.push((said, shelf.name, Entry::at(place, &raw, kind, id.as_ref(), shelf.folder.project())?));
        }
        Some(loaded)
    }

    /// Takes away an index that does not go with the files.
    fn forget(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(file) = &self.file {
            // Another process may have been quicker, or will make the same again: both do no harm.
            let _ = fs::remove_file(file);
        }
    }
}

fn source_of(shelf: usize, file: FileKind) -> u32 {
    let kind = FileKind::ALL.iter().position(|kind| *kind == file).unwrap_or_default();
    u32::try_from(shelf * FileKind::ALL.len() + kind).unwrap_or(u32::MAX)
}

/// The name of the index of these shelves. Another version of Proctor may read the same files in another way.
fn name_of(shelves: &[Shelf]) -> String {
    let mut sum = Sha256::new_with_prefix(env!("CARGO_PKG_VERSION"));
    for shelf in shelves {
        let project = shelf.folder.project().unwrap_or_default();
        sum.update(format!("\0{}\0{}\0{project}\0", shelf.name, shelf.folder.path().display()));
    }
    let name: String = sum.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{name}.{ENDING}")
}

/// Makes the folder of the file. Where it can't be made, or others may write to it, nothing is kept.
fn prepare(file: &Path) -> bool {
    file.parent().is_some_and(|folder| durable::private_folder(folder).is_ok())
}

/// Removes indexes of folders that nobody asked about for long, and what killed processes left.
fn clear(kept: &Path) {
    let Some(entries) = kept.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    let is_ours = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING) || durable::is_half_written(path);
    let is_old = |path: &PathBuf| {
        let written = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok();
        written.and_then(|written| written.elapsed().ok()).is_some_and(|age| age > KEPT_FOR)
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_ours).filter(is_old) {
        // Whoever reads it goes on reading; whoever wants it next makes it.
        let _ = fs::remove_file(path);
    }
}

/// Opening anything but an ordinary file may wait for its other end.
fn open_ordinary(path: &Path) -> Option<File> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    File::open(path).ok()
}

fn read_at(file: &File, place: Place) -> Option<Vec<u8>> {
    let mut raw = vec![0; usize::try_from(place.length).ok()?];
    file.read_exact_at(&mut raw, place.offset).ok()?;
    Some(raw)
}
