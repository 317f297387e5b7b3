//! Our files, read where they are no folder of this place.

use std::path::Path;

use super::StoreError;
use super::contents::Contents;
use super::document::{Document, Entry, FileKind};
use super::folder::read_file;

/// The records of a folder of memory, wherever it is.
pub(crate) fn read_own_folder(folder: &Path) -> Result<Vec<Entry>, StoreError> {
    let mut documents = Vec::new();
    for kind in FileKind::ALL {
        let path = folder.join(kind.name());
        if let Some(bytes) = read_file(&path)? {
            documents.push(read(kind, &path, &bytes)?);
        }
    }
    Ok(Contents::new(documents, None).entries().cloned().collect())
}

/// The records of one of our files. A copy may have another name, and is known by its heading.
pub(crate) fn read_own_file(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, StoreError> {
    let by_name = |kind: &&FileKind| path.file_name().is_some_and(|name| name == kind.name());
    let has_heading = |kind: &FileKind| String::from_utf8_lossy(bytes).lines().any(|line| line.trim_end().ends_with(kind.heading()));
    let by_heading = || FileKind::ALL.into_iter().find(has_heading);
    let kind = FileKind::ALL.iter().find(by_name).copied().or_else(by_heading).unwrap_or(FileKind::Fails);
    let document = read(kind, path, bytes)?;
    Ok(Contents::new(vec![document], None).entries().cloned().collect())
}

fn read(kind: FileKind, path: &Path, bytes: &[u8]) -> Result<Document, StoreError> {
    Document::read(kind, bytes).map_err(|damage| StoreError::Damaged { path: path.to_owned(), damage })
}
