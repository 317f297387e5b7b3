//! Finding what is to be imported.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::PROCEDURES;
use super::read::{Import, checkpoint, procedures, read_list};
use crate::line::bullet;
use crate::record::Polarity;
use crate::store::FileKind;

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
}

/// Reads a vault, a folder of memory, or a list. `polarity` is that of a list's lines.
///
/// # Errors
/// Something can't be read, or is nothing that we know.
pub fn import(path: &Path, polarity: Option<Polarity>) -> Result<Import, ImportError> {
    if !path.is_dir() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Ok(read_list(&name, &text_of(path)?, polarity.or_else(|| by_name(&name))));
    }
    if path.join("memories").is_dir() || path.join("sessions").is_dir() {
        return vault(path);
    }
    let ours: Vec<PathBuf> =
        [FileKind::Works, FileKind::Fails].iter().map(|kind| path.join(kind.name())).filter(|file| file.is_file()).collect();
    if ours.is_empty() {
        return Err(ImportError::Unknown { path: path.to_owned() });
    }
    let mut import = Import::default();
    for file in ours {
        let more = self::import(&file, None)?;
        import.found.extend(more.found);
        import.skipped.extend(more.skipped);
        import.placeholders += more.placeholders;
    }
    Ok(import)
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

/// The text of a file; bytes that are no text are shown as such, so that one of them does not hide all the others.
fn text_of(path: &Path) -> Result<String, ImportError> {
    let bytes = fs::read(path).map_err(|source| ImportError::Unreadable { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
