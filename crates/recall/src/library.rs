//! The folders of memory as one, and the search through them.
//!
//! What may be shown is decided folder by folder, when the index is made: a record counts, or is replaced, by what stands beside
//! it. A search reads the index and the lines of what it found, never all records.
//!
//! INVARIANT: what is answered was in the files at one moment. The index says of which state of the files it was made, and an answer
//! is given only if they are in that state after its lines were read.

mod sense;
mod shelved;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_domain::Timestamp;

use crate::advice::Advice;
use crate::matching::{Approach, Bars, Hit, Index};
use crate::naming::{Naming, named_by};
use crate::record::Polarity;
use crate::stale::{Stale, Versions, stale};
use crate::store::{Entry, Folder, StoreError};

use sense::Asked;
pub use sense::{Sense, Vectored};
use shelved::{Held, Shelved};

/// A folder of memory, under the name that people know it by.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// `project` or `user`.
    pub name: &'static str,
    /// The folder.
    pub folder: Folder,
}

/// All the memory that can be seen from a place.
#[derive(Debug, Clone)]
pub struct Library {
    shelves: Vec<Shelf>,
    /// The repository that whoever asks works in.
    project: Option<String>,
    /// Where its lock files are looked for.
    root: Option<PathBuf>,
    /// What paths of files begin at.
    top: Option<PathBuf>,
    /// Where indexes are kept.
    cache: Option<PathBuf>,
    held: Held,
    sense: Option<Arc<Sense>>,
}

/// How many records are worth somebody's while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Dead ends.
    pub fails: usize,
    /// Procedures.
    pub works: usize,
}

impl Default for Most {
    fn default() -> Self {
        Self { fails: 6, works: 4 }
    }
}

impl Most {
    /// As many of each.
    pub fn of_each(number: usize) -> Self {
        Self { fails: number, works: number }
    }

    fn of(self, polarity: Polarity) -> usize {
        match polarity {
            Polarity::Fails => self.fails,
            Polarity::Works => self.works,
        }
    }
}

/// A record that speaks about what somebody does, with what they should know beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The record and its line.
    pub entry: Entry,
    /// The name of its shelf.
    pub shelf: &'static str,
    /// It comes from another repository.
    pub is_elsewhere: bool,
    /// It may be out of date.
    pub stale: Option<Stale>,
    /// What it was found by.
    pub why: String,
}

impl Found {
    /// What is said of it.
    pub fn advice(&self) -> Advice<'_> {
        Advice { record: &self.entry.record, is_elsewhere: self.is_elsewhere, stale: self.stale.clone(), why: self.why.clone() }
    }
}

impl Library {
    /// The library of these shelves. `project` is the repository that whoever asks works in, `root` where its lock files are.
    pub fn new(shelves: Vec<Shelf>, project: Option<String>, root: Option<PathBuf>) -> Self {
        Self { shelves, project, top: root.clone(), root, cache: None, held: Held::default(), sense: None }
    }

    /// The same, with the top of the working tree where that is not where lock files are: records name files from there.
    #[must_use]
    pub fn with_top(self, top: PathBuf) -> Self {
        Self { top: Some(top), ..self }
    }

    /// The same, with a folder in which its index is kept. Without one the index is made for each question.
    #[must_use]
    pub fn with_cache(self, folder: PathBuf) -> Self {
        Self { cache: Some(folder), ..self }
    }

    /// The same, that finds by meaning as well.
    #[must_use]
    pub fn with_sense(self, sense: Arc<Sense>) -> Self {
        Self { sense: Some(sense), ..self }
    }

    /// Makes vectors of the records that have none, for about so long, and says how it stands; `None` if it finds by words alone.
    ///
    /// # Errors
    /// A folder can't be read, or one of its files is damaged.
    pub fn make_vectors(&self, limit: Duration) -> Result<Option<Vectored>, StoreError> {
        self.sense.as_ref().map(|sense| sense.make(&self.shelved(), limit)).transpose()
    }

    /// Its folders, the repository's first.
    pub fn shelves(&self) -> &[Shelf] {
        &self.shelves
    }

    /// What memory has to say about an approach: dead ends, the best first, and then procedures. An approach that names no
    /// project is of the library's.
    ///
    /// # Errors
    /// A folder can't be read, or one of its files is damaged.
    pub fn try_approach(&self, approach: &Approach<'_>, most: Most, now: Timestamp) -> Result<Vec<Found>, StoreError> {
        let approach = Approach { project: approach.project.or(self.project.as_deref()), ..*approach };
        let asked = self.sense.as_ref().and_then(|sense| sense.ask(approach.text));
        let ask = |index: &Index| search(index, &approach, asked.as_ref(), most).into_iter().map(|hit| (hit.number, hit)).collect();
        let shelved = self.shelved().look_up(ask)?;
        let found = shelved.into_iter().map(|(hit, shelf, entry)| {
            let why = hit.decision.to_string();
            Found { entry, shelf, is_elsewhere: hit.is_elsewhere, stale: None, why }
        });
        Ok(self.doubted(found.collect(), |_| now))
    }

    /// The records that name a file, or a folder that it is in: those of the first shelf before others, and the newest first.
    /// Another repository's file of the same name is another file. A path may be absolute, if it is below the top of the repository.
    ///
    /// Whether a record is old is for who knows the time; [`Found::stale`] says here only that versions differ.
    ///
    /// # Errors
    /// A folder can't be read, or one of its files is damaged.
    pub fn about_file(&self, path: &str) -> Result<Vec<Found>, StoreError> {
        let Some(wanted) = Naming::of(path, self.top.as_deref()) else { return Ok(Vec::new()) };
        let ask = |index: &Index| index.naming(wanted.with_folders()).into_iter().map(|number| (number, ())).collect();
        let shelved = self.shelved().look_up(ask)?;
        let from_here = shelved.into_iter().filter(|(_, _, entry)| self.is_from_here(entry));
        let found = from_here.filter_map(|((), shelf, entry)| {
            let why = named_by(&wanted, &entry.record.files)?;
            Some(Found { entry, shelf, is_elsewhere: false, stale: None, why })
        });
        let mut found: Vec<Found> = found.collect();
        let shelf_of = |found: &Found| self.shelves.iter().position(|shelf| shelf.name == found.shelf);
        found.sort_by(|one, other| {
            shelf_of(one).cmp(&shelf_of(other)).then_with(|| other.entry.record.created.cmp(&one.entry.record.created))
        });
        // Its own time makes nothing old.
        Ok(self.doubted(found, |found| found.entry.record.created.unwrap_or(Timestamp(0))))
    }

    /// The same, with what may be out of date said. `now` is the time by which the age of each counts.
    fn doubted(&self, mut found: Vec<Found>, now: impl Fn(&Found) -> Timestamp) -> Vec<Found> {
        // Lock files may be long, and most records name no version.
        let names_version = |found: &Found| found.entry.record.dependencies.iter().any(|dependency| dependency.version.is_some());
        let root = self.root.as_deref().filter(|_| found.iter().any(names_version));
        let versions = root.map(Versions::read).unwrap_or_default();
        for found in &mut found {
            found.stale = stale(&found.entry.record, &versions, now(found));
        }
        found
    }

    fn is_from_here(&self, entry: &Entry) -> bool {
        entry.record.project.is_none() || entry.record.project == self.project
    }

    fn shelved(&self) -> Shelved<'_> {
        Shelved::new(&self.shelves, self.cache.as_deref(), &self.held)
    }
}

/// The best of each polarity, dead ends first.
fn search(index: &Index, approach: &Approach<'_>, asked: Option<&Asked<'_>>, most: Most) -> Vec<Hit> {
    let shown = most.fails.max(most.works);
    let hits = match asked {
        Some(asked) => asked.search(index, approach, shown),
        None => index.search(approach, &Bars::default(), None, shown),
    };
    let of = |polarity: Polarity| hits.iter().filter(move |hit| hit.polarity == polarity).take(most.of(polarity));
    of(Polarity::Fails).chain(of(Polarity::Works)).cloned().collect()
}
