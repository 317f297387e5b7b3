//! Where cards and run records live in a repository.

use std::path::Path;

use proctor_domain::procedure::Records;

/// Where cards and run records live in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `proctor/procedures`, `proctor/runs`.
    Proctor,
    /// `_config/procedures`, `_bookkeeping/procedure/runs`.
    BeeBox,
}

impl Layout {
    /// The layout of the folder `root`: that of a box when it holds a box's marker or settings.
    pub fn find(root: &Path) -> Self {
        let is_box = [".beebox/box.json", "_config/box.json"].iter().any(|marker| root.join(marker).is_file());
        if is_box { Self::BeeBox } else { Self::Proctor }
    }

    /// The name that settings and text use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proctor => "proctor",
            Self::BeeBox => "beebox",
        }
    }

    /// Where procedure cards are, relative to the root.
    pub fn procedures_dir(self) -> &'static str {
        match self {
            Self::Proctor => "proctor/procedures",
            Self::BeeBox => "_config/procedures",
        }
    }

    /// Where run folders are, relative to the root.
    pub fn runs_dir(self) -> &'static str {
        match self {
            Self::Proctor => "proctor/runs",
            Self::BeeBox => "_bookkeeping/procedure/runs",
        }
    }

    /// Where runs are recorded when a card does not say.
    pub fn default_records(self) -> Records {
        match self {
            Self::Proctor => Records::State,
            Self::BeeBox => Records::Git,
        }
    }
}
