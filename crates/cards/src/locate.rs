//! Finding cards on the disk.

use std::path::{Path, PathBuf};

use crate::{Card, Finding, Layout, Source};

/// A procedure that can't be opened by the name or path that was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is no such card.
    #[error("find the procedure `{name}`: there is no {}", path.display())]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it would be.
        path: PathBuf,
        /// The existing name that is most like it.
        nearest: Option<String>,
    },
    /// The card is there and its text can't be had.
    #[error(transparent)]
    Unreadable(#[from] Finding),
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

/// Opens the card that `name_or_path` means: a path where it ends in `.procedure.card` or holds a `/`
/// (relative to `root` unless absolute), else the name of a card in the layout's folder.
pub fn find_procedure(_root: &Path, _layout: Layout, _name_or_path: &str) -> Result<Source, FindError> {
    todo!()
}

/// Every procedure card of the layout's folder, by name. A card with errors never hides another.
pub fn list_procedures(_root: &Path, _layout: Layout) -> Vec<ListedCard> {
    todo!()
}
