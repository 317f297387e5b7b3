//! Finding cards on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::nearest::nearest;
use crate::{BoxDefaults, Card, Finding, Layout, Source, load_box_defaults, read_procedure};

/// A procedure that can't be opened by the name or path that was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is no such card.
    #[error("find the procedure `{name}`: there is no {}{}", path.display(), suggestion(nearest.as_deref()))]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it would be, as shown to people.
        path: PathBuf,
        /// The existing name that is most like it.
        nearest: Option<String>,
    },
    /// The card is there and its text can't be had.
    #[error(transparent)]
    Unreadable(#[from] Finding),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}

/// One file of the procedures folder.
#[derive(Debug)]
pub struct ListedCard {
    /// The file's stem: the name under which it is run.
    pub name: String,
    /// As shown to people: relative to the root.
    pub path: PathBuf,
    /// What it holds, or what is wrong with it.
    pub result: Result<Card, Vec<Finding>>,
}

const SUFFIX: &str = ".procedure.card";

/// Opens the card that `name_or_path` means: a path where it ends in `.procedure.card` or holds a `/`
/// (relative to `root` unless absolute), else the name of a card in the layout's folder.
///
/// # Errors
/// There is no such card, or its text can't be had.
pub fn find_procedure(root: &Path, layout: Layout, name_or_path: &str) -> Result<Source, FindError> {
    let is_path = name_or_path.ends_with(SUFFIX) || name_or_path.contains('/');
    let shown =
        if is_path { PathBuf::from(name_or_path) } else { Path::new(layout.procedures_dir()).join(format!("{name_or_path}{SUFFIX}")) };
    let path = root.join(&shown);
    // A path with a NUL exists nowhere; asking for it is an error of its own kind to the system.
    if name_or_path.is_empty() || name_or_path.contains('\0') || !path.exists() {
        let wanted = name_or_path.rsplit('/').next().unwrap_or(name_or_path);
        let stems: Vec<String> = cards(&root.join(layout.procedures_dir())).unwrap_or_default().into_iter().map(|(stem, _)| stem).collect();
        let nearest = nearest(wanted.strip_suffix(SUFFIX).unwrap_or(wanted), stems.iter().map(String::as_str)).map(str::to_owned);
        return Err(FindError::NotFound { name: name_or_path.to_owned(), path: shown, nearest });
    }
    Ok(Source::load(&path, &shown)?)
}

/// Every procedure card of the layout's folder, by name. A card with errors never hides another.
pub fn list_procedures(root: &Path, layout: Layout) -> Vec<ListedCard> {
    let folder = Path::new(layout.procedures_dir());
    // Broken settings of a box are reported by whoever runs something in it; here they would hide its cards.
    let defaults = load_box_defaults(root).unwrap_or_default();
    match cards(&root.join(folder)) {
        Ok(found) => found.into_iter().map(|(name, file)| list_one(root, layout, &defaults, name, folder.join(file))).collect(),
        Err(error) => {
            let finding = Finding::of_file(folder, format!("can't be read: {error}"));
            vec![ListedCard { name: folder.display().to_string(), path: folder.to_path_buf(), result: Err(vec![finding]) }]
        }
    }
}

fn list_one(root: &Path, layout: Layout, defaults: &BoxDefaults, name: String, path: PathBuf) -> ListedCard {
    let result = Source::load(&root.join(&path), &path)
        .map_err(|finding| vec![finding])
        .and_then(|source| read_procedure(&source, layout, defaults));
    ListedCard { name, path, result }
}

/// Stem and file name of every card in a folder, sorted. A folder that is not there has none.
fn cards(folder: &Path) -> Result<Vec<(String, PathBuf)>, std::io::Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let file = PathBuf::from(entry?.file_name());
        let name = file.to_string_lossy();
        if let Some(stem) = name.strip_suffix(SUFFIX).filter(|stem| !stem.is_empty()) {
            found.push((stem.to_owned(), file.clone()));
        }
    }
    found.sort();
    Ok(found)
}
