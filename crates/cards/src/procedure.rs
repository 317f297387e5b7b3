//! Reads procedure cards.

use proctor_domain::procedure::Definition;

use crate::{BoxDefaults, Finding, Layout, Source};

/// A procedure card that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// What it declares.
    pub definition: Definition,
    /// What its author probably did not mean.
    pub warnings: Vec<Finding>,
}

/// Reads a procedure card; on failure every finding, errors and warnings, in the order of the text.
pub fn read_procedure(_source: &Source, _layout: Layout, _box_defaults: &BoxDefaults) -> Result<Card, Vec<Finding>> {
    todo!()
}
