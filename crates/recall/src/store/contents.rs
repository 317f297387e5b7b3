//! All records of one folder, and what can be done to them.

use std::collections::HashSet;

use proctor_domain::RecordId;

use super::document::{Document, Entry, FileKind, derived_id};
use super::error::StoreError;
use super::replacements::Replacements;
use crate::corroboration::spoken_for;
use crate::line::{Line, body, trailer};
use crate::record::{Approval, Record};

/// What became of a record that was to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It is new.
    New(RecordId),
    /// The same is there already, in this state.
    Known(RecordId, Approval),
}

impl Added {
    /// The id, new or known.
    pub fn id(&self) -> &RecordId {
        match self {
            Self::New(id) | Self::Known(id, _) => id,
        }
    }
}

/// The records of a folder.
#[derive(Debug, Clone)]
pub struct Contents {
    documents: Vec<Document>,
    /// The repository that records without one come from.
    project: Option<String>,
}

impl Contents {
    pub(super) fn new(mut documents: Vec<Document>, project: Option<String>) -> Self {
        settle_twins(&mut documents);
        for entry in documents.iter_mut().flat_map(Document::entries_mut).filter(|entry| entry.record.project.is_none()) {
            entry.record.project.clone_from(&project);
        }
        Self { documents, project }
    }

    /// Every line that is a record or tries to be one.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.documents.iter().flat_map(Document::entries)
    }

    /// Records that may be shown to who tries something: complete, active, and not replaced by an active one.
    pub fn active(&self) -> impl Iterator<Item = &Entry> {
        let replaced = self.replaced();
        let shown = |entry: &&Entry| entry.record.approval == Approval::Active && entry.is_complete();
        self.entries().filter(shown).filter(move |entry| !replaced.contains(&entry.record.id))
    }

    /// The ids of records that an active one replaces.
    pub fn replaced(&self) -> HashSet<RecordId> {
        let replacements = Replacements::among(self.entries());
        replacements.replaced().cloned().collect()
    }

    /// The record with this id, or with the only id that begins so; the prefix may be left out.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn find(&self, text: &str) -> Result<&Entry, StoreError> {
        let wanted = text.strip_prefix(RecordId::PREFIX).unwrap_or(text);
        let begins = |entry: &&Entry| entry.record.id.as_str()[RecordId::PREFIX.len()..].starts_with(wanted);
        let found: Vec<&Entry> = self.entries().filter(begins).collect();
        match found.as_slice() {
            [entry] if !wanted.is_empty() => Ok(entry),
            [] | [_] => Err(StoreError::NoRecord { text: text.to_owned() }),
            several => {
                let ids = several.iter().take(8).map(|entry| entry.record.id.to_string()).collect();
                Err(StoreError::Ambiguous { text: text.to_owned(), ids })
            }
        }
    }

    /// A record that says the same of the same repository.
    ///
    /// Neither another polarity nor another repository is the same: each would make the new record invisible where it counts.
    fn same(&self, record: &Record) -> Option<&Entry> {
        let body = body::write(record);
        let is_near = |entry: &&Entry| {
            let other = &entry.record;
            (other.polarity, self.project_of(other), &other.route) == (record.polarity, self.project_of(record), &record.route)
        };
        self.entries().filter(is_near).find(|entry| body::write(&entry.record) == body)
    }

    /// The repository that a record belongs to, named or not.
    fn project_of<'record>(&'record self, record: &'record Record) -> Option<&'record str> {
        record.project.as_deref().or(self.project.as_deref())
    }

    /// Adds a record to the file that its approval and polarity say. It gets an id here, unless it has one that is free.
    ///
    /// # Errors
    /// It does not say what a record has to say.
    pub fn add(&mut self, line: Line) -> Result<Added, StoreError> {
        let Line { record, body, .. } = line;
        record.check()?;
        if let Some(same) = self.same(&record) {
            return Ok(Added::Known(same.record.id.clone(), same.record.approval));
        }
        let is_taken = |id: &RecordId| self.entries().any(|entry| entry.record.id == *id);
        let has_id = record.has_id() && !is_taken(&record.id);
        let id = if has_id { record.id.clone() } else { derived_id(record.polarity, &seed(&record, &body), is_taken) };
        self.append(Record { id: id.clone(), ..record }, body);
        Ok(Added::New(id))
    }

    /// Lets a record count, or not.
    ///
    /// # Errors
    /// There is no such record, or it is to count and does not say what a record has to say.
    pub fn set_approval(&mut self, id: &RecordId, approval: Approval) -> Result<(), StoreError> {
        let entry = self.entry(id)?;
        let record = spoken_for(Record { approval, ..entry.record.clone() });
        if approval == Approval::Active {
            record.check()?;
        }
        let (from, to, body) = (entry.file, FileKind::of(&record), entry.body.clone());
        if from == to {
            let record = unplaced(record, self.project.as_deref());
            self.document(from).rewrite(&record, &body);
        } else {
            self.remove(id);
            self.append(record, body);
        }
        Ok(())
    }

    /// Puts a line in the place of the one whose record has the same id.
    ///
    /// # Errors
    /// There is no such record, or the new one does not say what a record has to say.
    pub fn replace(&mut self, line: Line) -> Result<(), StoreError> {
        line.record.check()?;
        let file = self.entry(&line.record.id)?.file;
        let record = unplaced(line.record, self.project.as_deref());
        self.document(file).rewrite(&record, &line.body);
        Ok(())
    }

    /// Forgets a record.
    pub fn remove(&mut self, id: &RecordId) -> Option<Entry> {
        self.documents.iter_mut().find_map(|document| document.remove(id))
    }

    /// Writes the ids of lines that somebody wrote by hand. A file that we may not write is left as it is.
    pub(super) fn adopt(&mut self) {
        let project = self.project.as_deref();
        for document in self.documents.iter_mut().filter(|document| !document.is_newer) {
            document.adopt(|record| unplaced(record.clone(), project));
        }
    }

    pub(super) fn documents(&self) -> &[Document] {
        &self.documents
    }

    fn entry(&self, id: &RecordId) -> Result<&Entry, StoreError> {
        self.entries().find(|entry| entry.record.id == *id).ok_or_else(|| StoreError::NoRecord { text: id.to_string() })
    }

    fn append(&mut self, record: Record, body: String) {
        let file = FileKind::of(&record);
        let record = unplaced(record, self.project.as_deref());
        self.document(file).append(record, body);
    }

    fn document(&mut self, kind: FileKind) -> &mut Document {
        let position = self.documents.iter().position(|document| document.kind == kind).unwrap_or_else(|| {
            self.documents.push(Document::new(kind));
            self.documents.len() - 1
        });
        &mut self.documents[position]
    }
}

/// The record as it is written: in a repository's own folder its name says nothing, and may change.
fn unplaced(record: Record, here: Option<&str>) -> Record {
    let project = record.project.filter(|project| Some(project.as_str()) != here);
    Record { project, ..record }
}

/// What the id of a new record is made of.
fn seed(record: &Record, body: &str) -> String {
    let created = record.created.map(trailer::date).unwrap_or_default();
    format!("{body}\n{created}\n{}", record.project.as_deref().unwrap_or_default())
}

/// Sees to it that no id is there twice.
///
/// Whoever was killed while a record went from one file to another left it in both. What counts wins, also over its own
/// rejection: any line can be copied into the file of proposals, so a line there takes nothing away from another file. Any
/// other twin gets an id of its own, and again what counts keeps the one that it has.
fn settle_twins(documents: &mut [Document]) {
    let is_pending = |document: &Document| document.kind == FileKind::Pending;
    let counting: HashSet<(RecordId, String)> = documents
        .iter()
        .filter(|document| !is_pending(document))
        .flat_map(Document::entries)
        .map(|entry| (entry.record.id.clone(), entry.body.clone()))
        .collect();
    for document in documents.iter_mut().filter(|document| is_pending(document)) {
        document.remove_where(|entry| counting.contains(&(entry.record.id.clone(), entry.body.clone())));
    }
    let (pending, counting): (Vec<&mut Document>, Vec<&mut Document>) = documents.iter_mut().partition(|document| is_pending(document));
    let mut taken = HashSet::new();
    for entry in counting.into_iter().chain(pending).flat_map(Document::entries_mut) {
        if taken.contains(&entry.record.id) {
            entry.record.id = derived_id(entry.record.polarity, &entry.body, |id| taken.contains(id));
        }
        taken.insert(entry.record.id.clone());
    }
}
