//! Making an index.

use std::collections::HashMap;

use proctor_domain::RecordId;

use super::bytes::{Entry, ID, NO_PROJECT, Packed, Parts, Sections};
use super::{Damaged, Field, Findable, Fingerprint, Index, Kind, Place, fields_of};
use crate::Record;
use crate::embedding::{Meant, TextId};

impl Index {
    /// Makes an index of records. Their order is kept: where two fit equally well, the earlier one is shown first.
    pub fn build<'a>(fingerprint: Fingerprint, records: impl IntoIterator<Item = (Place, Findable<'a>)>) -> Self {
        let mut builder = Builder::default();
        for (place, record) in records {
            builder.add(place, [0; ID], &record);
        }
        builder.into_index(fingerprint)
    }

    /// Makes an index of records as they are kept.
    pub fn of_records<'a>(fingerprint: Fingerprint, records: impl IntoIterator<Item = (Place, &'a Record)>) -> Self {
        let mut builder = Builder::default();
        for (place, record) in records {
            let files: Vec<&str> = record.files.iter().map(String::as_str).collect();
            let dependencies: Vec<&str> = record.dependencies.iter().map(|dependency| dependency.name.as_str()).collect();
            builder.add(
                place,
                id_of(record),
                &Findable {
                    polarity: record.polarity,
                    route: &record.route,
                    trap: record.trap.as_deref().unwrap_or_default(),
                    observation: record.observation.as_deref().unwrap_or_default(),
                    files: &files,
                    dependencies: &dependencies,
                    project: record.project.as_deref(),
                },
            );
        }
        builder.into_index(fingerprint)
    }

    /// Takes an index from what [`Index::as_bytes`] gave.
    ///
    /// # Errors
    /// If it has another form, or was cut short or changed.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Damaged> {
        let sections = Sections::of(&bytes)?;
        Ok(Self { bytes, sections })
    }

    /// The index as it can be kept.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it was made of.
    pub fn fingerprint(&self) -> Fingerprint {
        self.sections.fingerprint
    }

    /// Where a record of this number stands, and its id, if it was made with one.
    pub fn record(&self, number: u32) -> Option<(Place, Option<RecordId>)> {
        let number = usize::try_from(number).ok().filter(|number| *number < self.len())?;
        let Entry { place, id, .. } = self.sections.record(&self.bytes, number);
        let id = std::str::from_utf8(&id).ok().and_then(|id| format!("{}{id}", RecordId::PREFIX).parse().ok());
        Some((place, id))
    }

    /// Names the text that stands for the meaning of a record.
    pub fn text(&self, number: u32) -> TextId {
        TextId(self.sections.record(&self.bytes, number as usize).text)
    }

    /// How many records are in it.
    pub fn len(&self) -> usize {
        self.sections.records
    }

    /// Whether no record is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Default)]
struct Builder {
    /// Numbers of terms in the order in which they came up.
    numbers: HashMap<String, u32>,
    /// By such a number, the records with their masks.
    postings: Vec<Vec<(u32, u8)>>,
    /// By record, its terms with their masks.
    forward: Vec<Vec<(u32, u8)>>,
    entries: Vec<Entry>,
    totals: [usize; 3],
}

impl Builder {
    fn add(&mut self, place: Place, id: [u8; ID], record: &Findable<'_>) {
        let Ok(number) = u32::try_from(self.entries.len()) else { return };
        let mut masks: HashMap<u32, u8> = HashMap::new();
        let mut lengths = [0; 3];
        for (index, (field, keys)) in fields_of(record).into_iter().enumerate() {
            if field != Field::Files {
                lengths[index] = u8::try_from(keys.len()).unwrap_or(u8::MAX);
                self.totals[index] += keys.len();
            }
            for key in keys {
                *masks.entry(self.term(key)).or_default() |= field as u8;
            }
        }
        let project = record.project.map(|project| self.term(format!("{}{project}", Kind::Project.mark())));
        let mut terms: Vec<(u32, u8)> = masks.into_iter().collect();
        terms.sort_unstable();
        for (term, mask) in &terms {
            self.postings[*term as usize].push((number, *mask));
        }
        self.forward.push(terms);
        let text = Meant::of(record.route, record.trap, record.observation).id().0;
        self.entries.push(Entry { place, project: project.unwrap_or(NO_PROJECT), polarity: record.polarity, lengths, id, text });
    }

    fn term(&mut self, key: String) -> u32 {
        let next = self.postings.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.postings.push(Vec::new());
        }
        number
    }

    fn into_index(self, fingerprint: Fingerprint) -> Index {
        let bytes = self.finish(fingerprint);
        let sections = Sections::head(&bytes);
        Index { bytes, sections }
    }

    /// Puts terms in the order of their keys, and everything in its section.
    fn finish(self, fingerprint: Fingerprint) -> Vec<u8> {
        let mut keys: Vec<(String, u32)> = self.numbers.into_iter().collect();
        keys.sort_unstable();
        let mut renumbered = vec![0_u32; keys.len()];
        let mut parts = Parts { fingerprint, records: self.entries.len(), terms: keys.len(), ..Parts::default() };
        parts.averages = self.totals.map(|total| total as f32 / self.entries.len().max(1) as f32);
        let [word_ends, words, posting_ends, postings, forward_ends, forward, records] = &mut parts.sections;
        for (position, (key, number)) in keys.iter().enumerate() {
            renumbered[*number as usize] = position as u32;
            words.extend_from_slice(key.as_bytes());
            put_end(words, word_ends);
            Packed::put(&self.postings[*number as usize], postings);
            put_end(postings, posting_ends);
        }
        for (mut terms, mut entry) in self.forward.into_iter().zip(self.entries) {
            for (term, _) in &mut terms {
                *term = renumbered[*term as usize];
            }
            terms.sort_unstable();
            Packed::put(&terms, forward);
            put_end(forward, forward_ends);
            if entry.project != NO_PROJECT {
                entry.project = renumbered[entry.project as usize];
            }
            entry.put(records);
        }
        parts.into_bytes()
    }
}

fn id_of(record: &Record) -> [u8; ID] {
    record.id.as_str().as_bytes().last_chunk().copied().unwrap_or_default()
}

fn put_end(section: &[u8], ends: &mut Vec<u8>) {
    ends.extend_from_slice(&(section.len() as u32).to_le_bytes());
}
