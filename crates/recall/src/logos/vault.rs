//! Finding what is to be imported.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::PROCEDURES;
use super::read::{Import, checkpoint, procedures, read_list};
use crate::line::{Line, bullet};
use crate::record::Polarity;
use crate::store::{Entry, FileKind, MARK, StoreError, is_header, read_ordinary, read_own_file, read_own_folder};

/// Why nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It can't be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// What can't be read.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A folder with nothing that we know.
    #[error("{} is neither a vault of Logos (with `memories` or `sessions`) nor a folder of memory (with `works.md` or `fails.md`)", path.display())]
    Unknown {
        /// The folder.
        path: PathBuf,
    },
    /// A file is damaged, no ordinary file, or can't be read.
    #[error(transparent)]
    File(#[from] StoreError),
}

/// Reads a vault, a folder of memory, or a list. `polarity` is that of a list's lines.
///
/// # Errors
/// Something can't be read, or is nothing that we know.
pub fn import(path: &Path, polarity: Option<Polarity>) -> Result<Import, ImportError> {
    if !path.is_dir() {
        return file(path, polarity);
    }
    if path.join("memories").is_dir() || path.join("sessions").is_dir() {
        return vault(path);
    }
    if FileKind::ALL.iter().all(|kind| path.join(kind.name()).symlink_metadata().is_err()) {
        return Err(ImportError::Unknown { path: path.to_owned() });
    }
    Ok(own(path, read_own_folder(path)?))
}

fn file(path: &Path, polarity: Option<Polarity>) -> Result<Import, ImportError> {
    let bytes = read_ordinary(path)?;
    let text = text(&bytes);
    if is_own(path, &text) {
        return Ok(own(path, read_own_file(path, &bytes)?));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(read_list(&name, &text, polarity.or_else(|| by_name(&name))))
}

/// Whether it is a file of a folder of memory, or a copy of one. What somebody wrote by hand has no header.
fn is_own(path: &Path, text: &str) -> bool {
    let is_named = FileKind::ALL.iter().any(|kind| path.ends_with(Path::new("proctor/memory").join(kind.name())));
    is_named || text.lines().any(is_header)
}

fn own(path: &Path, entries: Vec<Entry>) -> Import {
    let mut import = Import::default();
    for Entry { record, remarks, file, line, body, .. } in entries {
        let file = if path.is_dir() { path.join(file.name()) } else { path.to_owned() };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        import.take(format!("{name}:{line}"), Line { record, body, remarks });
    }
    import
}

fn by_name(name: &str) -> Option<Polarity> {
    match name {
        "works.md" => Some(Polarity::Works),
        "fails.md" => Some(Polarity::Fails),
        _ => None,
    }
}

fn vault(path: &Path) -> Result<Import, ImportError> {
    let mut import = Import::default();
    let file = path.join(PROCEDURES);
    if file.is_file() {
        procedures(&text_of(&file)?, &mut import);
    }
    for other in files_in(&path.join("memories"))?.iter().filter(|other| **other != file) {
        // Its log repeats what is in the others.
        if other.file_name().is_some_and(|name| name != "log.md") {
            import.foreign += text_of(other)?.lines().filter(|line| bullet(line).is_some()).count();
        }
    }
    let mut checkpoints = Vec::new();
    collect(&path.join("sessions"), 0, &mut checkpoints)?;
    for file in checkpoints {
        let relative = file.strip_prefix(path).unwrap_or(&file).to_string_lossy().into_owned();
        checkpoint(&relative, &text_of(&file)?, &mut import);
    }
    Ok(import)
}

/// Checkpoints of projects and of their worktrees: names that begin with a day.
fn collect(folder: &Path, depth: usize, into: &mut Vec<PathBuf>) -> Result<(), ImportError> {
    for path in files_in(folder)? {
        if path.is_dir() && depth < 2 {
            collect(&path, depth + 1, into)?;
        } else if is_checkpoint(&path) {
            into.push(path);
        }
    }
    Ok(())
}

fn is_checkpoint(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (day, rest) = name.split_at(name.floor_char_boundary(8));
    day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-') && rest.ends_with(".md") && path.is_file()
}

/// What is in a folder, in order; nothing if it is not there.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let unreadable = |source| ImportError::Unreadable { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(unreadable(source)),
    };
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

fn text_of(path: &Path) -> Result<String, ImportError> {
    Ok(text(&read_ordinary(path)?).into_owned())
}

/// Bytes that are no text are shown as such, so that one of them does not hide all the others.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(MARK.as_bytes()).unwrap_or(bytes))
}
