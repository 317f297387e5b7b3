//! Every key of a procedure card, as the readers use it and as the card reference prints it.

/// One key of a procedure card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDoc {
    /// Where it stands: `steps[].run.shells`.
    pub path: &'static str,
    /// What its value is, for people.
    pub kind: &'static str,
    /// What holds without it; empty when nothing does or it is required.
    pub default: &'static str,
    /// What it does: one or more sentences.
    pub description: &'static str,
}

/// Every key of a procedure card, in the order of the reference.
pub fn key_reference() -> Vec<KeyDoc> {
    todo!()
}
