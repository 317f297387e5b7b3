//! What is wrong in a folder of memory, line by line.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use proctor_domain::{RecordId, Timestamp};
use proctor_process::durable;

use super::document::{Document, Entry, FileKind};
use super::error::StoreError;
use super::folder::{Folder, read_file};
use super::replacements::Replacements;
use crate::cap::CAP;
use crate::hygiene::{Mask, is_hidden};
use crate::line::Remark;
use crate::line::body;
use crate::record::Approval;

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A file is not used at all.
    Damage,
    /// A record does not count, or not as it was meant.
    Wrong,
    /// Worth knowing, and nothing is lost by it.
    Note,
}

/// Something that a person should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How much it matters.
    pub weight: Weight,
    /// The file.
    pub path: PathBuf,
    /// The line.
    pub line: Option<usize>,
    /// The record.
    pub id: Option<RecordId>,
    /// What it is, as a sentence without a full stop.
    pub sentence: String,
    /// What helps.
    pub remedy: Option<String>,
}

pub(super) fn diagnose(folder: &Folder, now: Timestamp) -> Result<Vec<Problem>, StoreError> {
    let mut problems = leftovers(folder)?;
    let mut documents = Vec::new();
    for kind in FileKind::ALL {
        match read_document(folder, kind) {
            Ok(Some(document)) => documents.push(document),
            Ok(None) => {}
            Err(StoreError::Damaged { path, damage }) => problems.push(Problem {
                weight: Weight::Damage,
                path,
                line: None,
                id: None,
                sentence: damage.to_string(),
                remedy: Some(damage.remedy().to_owned()),
            }),
            Err(error) => return Err(error),
        }
    }
    for document in &documents {
        if document.is_newer {
            let sentence = "a newer version of Proctor wrote it; it is read, and can't be changed".to_owned();
            problems.push(Problem {
                weight: Weight::Wrong,
                path: folder.file(document.kind),
                line: None,
                id: None,
                sentence,
                remedy: None,
            });
        }
    }
    problems.extend(documents.iter().flat_map(|document| nested(folder, document)));
    // What counts has the older right to an id, so it is the other that is named.
    documents.sort_by_key(|document| document.kind == FileKind::Pending);
    let entries: Vec<&Entry> = documents.iter().flat_map(Document::entries).collect();
    let replacements = Replacements::among(entries.iter().copied());
    let ids: HashSet<&RecordId> = entries.iter().map(|entry| &entry.record.id).collect();
    let mask = Mask::default();
    let mut seen: HashMap<&RecordId, &Entry> = HashMap::new();
    for entry in &entries {
        let twin = entry.written_id.as_ref().and_then(|id| seen.insert(id, entry));
        problems.extend(of_entry(entry, twin, now, &mask).into_iter().map(|(weight, sentence)| problem(folder, entry, weight, sentence)));
        problems.extend(twin.filter(|twin| is_rejection_of(entry, twin)).map(|twin| rejected_twin(folder, entry, twin)));
        problems.extend(replacements.in_a_loop(&entry.record.id).map(|old| {
            let sentence = format!("it replaces itself, by way of {old}; in a loop nothing is replaced");
            problem(folder, entry, Weight::Wrong, sentence)
        }));
        let unknown = entry.record.supersedes.as_ref().filter(|id| !ids.contains(id));
        problems.extend(unknown.map(|id| problem(folder, entry, Weight::Note, format!("it replaces {id}, which is not there"))));
    }
    problems.sort_by_key(|problem| problem.weight);
    Ok(problems)
}

/// Bullets below bullets: somebody may have meant a record, or only have said more of one.
fn nested(folder: &Folder, document: &Document) -> Vec<Problem> {
    let problem = |(line, text): &(usize, String)| {
        let weight = if text.to_lowercase().contains("route:") { Weight::Wrong } else { Weight::Note };
        let sentence = "it is a bullet below another one: no record, and no part of one; it stays as it is".to_owned();
        let remedy = Some("begin it at the start of the line, or join it to the line above".to_owned());
        Problem { weight, path: folder.file(document.kind), line: Some(*line), id: None, sentence, remedy }
    };
    document.nested.iter().map(problem).collect()
}

fn read_document(folder: &Folder, kind: FileKind) -> Result<Option<Document>, StoreError> {
    let path = folder.file(kind);
    let Some(bytes) = read_file(&path)? else { return Ok(None) };
    Document::read(kind, &bytes).map(Some).map_err(|damage| StoreError::Damaged { path, damage })
}

fn problem(folder: &Folder, entry: &Entry, weight: Weight, sentence: String) -> Problem {
    Problem { weight, path: folder.file(entry.file), line: Some(entry.line), id: Some(entry.record.id.clone()), sentence, remedy: None }
}

/// Whether a rejection stands beside the same record where it counts.
fn is_rejection_of(entry: &Entry, twin: &Entry) -> bool {
    let is_here = |entry: &Entry| entry.file == FileKind::Pending;
    entry.record.approval == Approval::Rejected && is_here(entry) && !is_here(twin) && entry.body == twin.body
}

fn rejected_twin(folder: &Folder, entry: &Entry, twin: &Entry) -> Problem {
    let place = format!("{}:{}", twin.file.name(), twin.line);
    let sentence = format!("it is rejected here and counts in {place}; it counts, and the next change takes this line out");
    let remedy = format!("if it is not to count, `proctor memory reject {}`", twin.record.id);
    Problem { remedy: Some(remedy), ..problem(folder, entry, Weight::Wrong, sentence) }
}

fn of_entry(entry: &Entry, twin: Option<&Entry>, now: Timestamp, mask: &Mask) -> Vec<(Weight, String)> {
    let record = &entry.record;
    let mut found: Vec<(Weight, String)> = Vec::new();
    if let Err(missing) = record.check() {
        found.push((Weight::Wrong, format!("it is no record: {missing}")));
    }
    found.extend(entry.remarks.iter().map(|remark| (weight_of(remark), remark.to_string())));
    if let Some(twin) = twin.filter(|twin| !is_rejection_of(entry, twin)) {
        let other = format!("{}:{}", twin.file.name(), twin.line);
        let is_on_its_way = entry.file == FileKind::Pending && twin.file != FileKind::Pending;
        found.push(match (twin.body == entry.body, is_on_its_way) {
            (true, true) => (Weight::Note, format!("a change was cut short: the same record is in {other}; the next change ends it")),
            (true, false) | (false, _) => (Weight::Wrong, format!("its id is that of {other} too; the next change gives it its own")),
        });
    } else if !entry.has_id() && twin.is_none() {
        found.push(match record.other.iter().any(|(key, _)| key == "id-was") {
            true => (Weight::Note, "its id is none; the next change gives it one".to_owned()),
            false => (Weight::Note, "it was written by hand; the next change gives it an id".to_owned()),
        });
    }
    if record.created.is_some_and(|created| created > now) {
        found.push((Weight::Note, "it is from the future: a clock was wrong, here or where it was written".to_owned()));
    }
    if body::write(record).len() > CAP {
        found.push((Weight::Note, format!("it is longer than {CAP} bytes: what is shown of it is cut, and says so")));
    }
    found.extend(in_the_text(entry, mask));
    found
}

/// What a line that somebody wrote by hand may have, and one of ours never has.
fn in_the_text(entry: &Entry, mask: &Mask) -> Vec<(Weight, String)> {
    let mut found = Vec::new();
    if entry.body.chars().any(|letter| is_hidden(letter) || letter.is_control() && letter != '\t') {
        found.push((Weight::Wrong, "it has characters that can't be seen".to_owned()));
    }
    let (_, secrets) = mask.text(&entry.body);
    if secrets > 0 {
        found.push((Weight::Wrong, "it has what looks like a secret; change that secret, and edit the line".to_owned()));
    }
    found
}

fn weight_of(remark: &Remark) -> Weight {
    match remark {
        Remark::UnknownValue { .. } | Remark::UnknownKey { .. } | Remark::NoKey { .. } => Weight::Wrong,
        Remark::Twice { .. } | Remark::Metadata { .. } => Weight::Note,
    }
}

/// Files that a process was writing when it was killed.
fn leftovers(folder: &Folder) -> Result<Vec<Problem>, StoreError> {
    let unreadable = |source| StoreError::Unreadable { path: folder.path().to_owned(), source };
    let entries = match fs::read_dir(folder.path()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(unreadable(source)),
    };
    let mut problems = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        if durable::is_half_written(&path) {
            let sentence = "a process was killed while it wrote this; nothing was lost".to_owned();
            problems.push(Problem { weight: Weight::Note, path, line: None, id: None, sentence, remedy: Some("remove it".to_owned()) });
        }
    }
    problems.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(problems)
}
