//! Finding by meaning: a model, the vectors that it made, and the bars that belong to it.

use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::shelved::Shelved;
use crate::embedding::{Embedder, Meant, TextId, Vector, Vectors, cosine};
use crate::matching::{Approach, Bars, Hit, Index, Meaning};
use crate::store::StoreError;

/// How many records a model brings up beside those that words bring up.
const NEAR: usize = 64;
/// How many records are given vectors before they are kept.
const BATCH: usize = 16;

/// A model with the vectors that it made.
pub struct Sense {
    embedder: Box<dyn Embedder>,
    bars: Bars,
    /// Where vectors are kept; without it they are held in memory alone.
    folder: Option<PathBuf>,
    vectors: Mutex<Option<Vectors>>,
}

/// How many records can be found by their meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vectored {
    /// Records that may be shown.
    pub records: usize,
    /// Those of them that are found by their words alone, because they have no vector yet.
    pub lexical_only: usize,
    /// Why no vector could be made.
    pub problem: Option<String>,
}

/// An approach that was given its vector.
pub(super) struct Asked<'sense> {
    sense: &'sense Sense,
    vector: Vector,
}

impl fmt::Debug for Sense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Sense({})", self.embedder.id())
    }
}

impl Sense {
    /// A model with the bars that belong to it, and the folder that keeps its vectors.
    pub fn new(embedder: Box<dyn Embedder>, bars: Bars, folder: Option<PathBuf>) -> Self {
        Self { embedder, bars, folder, vectors: Mutex::new(None) }
    }

    fn vectors(&self) -> MutexGuard<'_, Option<Vectors>> {
        let mut held = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_with(|| Vectors::open(self.folder.as_deref(), self.embedder.id()));
        held
    }

    fn has(&self, text: TextId) -> bool {
        self.vectors().as_ref().is_some_and(|vectors| vectors.get(text).is_some())
    }

    /// Gives an approach its vector; `None` if there is nothing to compare it with, or the model can't be asked.
    pub(super) fn ask(&self, text: &str) -> Option<Asked<'_>> {
        if self.vectors().as_ref().is_none_or(Vectors::is_empty) {
            return None;
        }
        let vector = self.embedder.embed(&[text]).ok()?.pop()?;
        Some(Asked { sense: self, vector })
    }

    /// Makes vectors of what has none, in batches, until there is nothing left or the time is over.
    pub(super) fn make(&self, shelved: &Shelved<'_>, limit: Duration) -> Result<Vectored, StoreError> {
        let begin = Instant::now();
        loop {
            let (records, lexical_only) = (Cell::new(0), Cell::new(0));
            let wanting = shelved.look_up(|index| {
                let wanting: Vec<(u32, ())> =
                    numbers(index).filter(|number| !self.has(index.text(*number))).map(|number| (number, ())).collect();
                records.set(index.len());
                lexical_only.set(wanting.len());
                wanting.into_iter().take(BATCH).collect()
            })?;
            let standing = |problem| Vectored { records: records.get(), lexical_only: lexical_only.get(), problem };
            if wanting.is_empty() || begin.elapsed() >= limit {
                return Ok(standing(None));
            }
            let mut made = Vec::new();
            for (_, _, entry) in wanting {
                let of = |field: &Option<String>| field.clone().unwrap_or_default();
                let meant = Meant::of(&entry.record.route, &of(&entry.record.trap), &of(&entry.record.observation));
                match meant.vector(self.embedder.as_ref()) {
                    Ok(vector) => made.push((meant.id(), vector)),
                    Err(error) => return Ok(standing(Some(error.to_string()))),
                }
                if begin.elapsed() >= limit {
                    break;
                }
            }
            if let Some(vectors) = self.vectors().as_mut() {
                // What can't be kept is made again the next time, and used until then.
                let _ = vectors.add(made);
            }
        }
    }
}

impl Asked<'_> {
    /// Searches an index by words and by meaning.
    pub(super) fn search(&self, index: &Index, approach: &Approach<'_>, most: usize) -> Vec<Hit> {
        let cosines = self.cosines(index);
        let cosine = |number: u32| cosines.get(usize::try_from(number).ok()?).copied().flatten();
        let of = |number: &u32| cosine(*number).unwrap_or(-1.0);
        let mut near: Vec<u32> = numbers(index).filter(|number| of(number) >= self.sense.bars.least_meaning()).collect();
        near.sort_by(|one, other| of(other).total_cmp(&of(one)));
        near.truncate(NEAR);
        index.search(approach, &self.sense.bars, Some(&Meaning { near: &near, cosine: &cosine }), most)
    }

    fn cosines(&self, index: &Index) -> Vec<Option<f32>> {
        let held = self.sense.vectors();
        let of = |number| held.as_ref()?.get(index.text(number)).map(|vector| cosine(vector, &self.vector));
        numbers(index).map(of).collect()
    }
}

fn numbers(index: &Index) -> std::ops::Range<u32> {
    0..u32::try_from(index.len()).unwrap_or(u32::MAX)
}
