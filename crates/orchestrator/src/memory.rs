//! Memory as runs use it: what is known before an agent starts, and where what it taught goes.

use std::collections::HashSet;
use std::fmt;

use proctor_domain::{RecordId, Timestamp};
use proctor_recall::hygiene::Mask;
use proctor_recall::matching::Approach;
use proctor_recall::{Folder, Found, Library, Most, Polarity, StoreError};

/// Memory as runs use it.
pub struct Memory {
    /// What is asked.
    pub library: Library,
    /// The user's folder, which proposals go to: no working tree changes by them. `None` where there is no place for it.
    pub proposals: Option<Folder>,
    /// What the repository is called.
    pub project: Option<String>,
    /// What must not be written.
    pub mask: Mask,
}

impl fmt::Debug for Memory {
    /// Not what is masked.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Memory").field("proposals", &self.proposals).field("project", &self.project).finish_non_exhaustive()
    }
}

impl Memory {
    /// What memory holds about any of these questions, the best first: dead ends, then what works. A long task is asked about whole
    /// and in its parts, since a record speaks of one thing.
    pub(crate) fn known(&self, questions: &[String], files: &[String], now: Timestamp) -> Result<Vec<Found>, StoreError> {
        let most = Most::default();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let mut seen: HashSet<RecordId> = HashSet::new();
        let (mut fails, mut works) = (Vec::new(), Vec::new());
        for text in questions {
            let approach = Approach { text, files: &files, dependencies: &[], project: self.project.as_deref() };
            for found in self.library.try_approach(&approach, most, now)? {
                if seen.insert(found.entry.record.id.clone()) {
                    match found.entry.record.polarity {
                        Polarity::Fails => fails.push(found),
                        Polarity::Works => works.push(found),
                    }
                }
            }
        }
        fails.truncate(most.fails);
        works.truncate(most.works);
        fails.append(&mut works);
        Ok(fails)
    }
}
