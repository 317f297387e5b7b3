//! Which record replaces which.

use std::collections::{HashMap, HashSet};

use proctor_domain::RecordId;

use super::document::Entry;
use crate::record::Approval;

/// What active records replace.
///
/// Where records replace each other in a loop, none of them is the newest, and all would be hidden: in a loop nothing is replaced.
pub(super) struct Replacements<'entries> {
    old_by_new: HashMap<&'entries RecordId, &'entries RecordId>,
    looped: HashSet<&'entries RecordId>,
}

impl<'entries> Replacements<'entries> {
    pub(super) fn among(entries: impl Iterator<Item = &'entries Entry>) -> Self {
        let active = entries.filter(|entry| entry.record.approval == Approval::Active && entry.is_complete());
        let old_by_new = active.filter_map(|entry| Some((&entry.record.id, entry.record.supersedes.as_ref()?))).collect();
        Self { looped: looped(&old_by_new), old_by_new }
    }

    /// Those that a record replaces.
    pub(super) fn replaced(&self) -> impl Iterator<Item = &'entries RecordId> {
        self.old_by_new.iter().filter(|(new, _)| !self.looped.contains(*new)).map(|(_, old)| *old)
    }

    /// What the record would replace, if it is in a loop.
    pub(super) fn in_a_loop(&self, id: &RecordId) -> Option<&'entries RecordId> {
        self.old_by_new.get(id).filter(|_| self.looped.contains(id)).copied()
    }
}

/// Each record replaces one at most, so a walk that comes back to itself has found its loop.
fn looped<'entries>(old_by_new: &HashMap<&'entries RecordId, &'entries RecordId>) -> HashSet<&'entries RecordId> {
    let mut seen = HashSet::new();
    let mut looped = HashSet::new();
    for start in old_by_new.keys() {
        let mut path = Vec::new();
        let mut next = Some(*start);
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            path.push(id);
            next = old_by_new.get(id).copied();
        }
        if let Some(first) = path.iter().position(|id| Some(*id) == next) {
            looped.extend(path.drain(first..));
        }
    }
    looped
}
