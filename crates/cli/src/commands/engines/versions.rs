//! What programs said of their versions, kept by path, size and time: to ask one takes up to a second.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proctor_process::durable::{self, Durability};
use serde::{Deserialize, Serialize};

use crate::Invocation;
use crate::state::StateHome;

/// Programs that are remembered.
const MOST: usize = 64;
const VERSION: u32 = 1;

/// What is remembered here.
pub(super) struct Versions {
    /// `None` where state has no place.
    file: Option<PathBuf>,
    known: Stored,
}

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    programs: BTreeMap<String, Answer>,
}

/// What a program said when it was this file.
#[derive(Serialize, Deserialize)]
struct Answer {
    size: u64,
    /// When it was changed, in nanoseconds.
    changed: i128,
    said: String,
}

impl Versions {
    /// Those of this user. A file that can't be read is begun anew.
    pub(super) fn read(invocation: &Invocation) -> Self {
        let home = StateHome::of(None, &invocation.environment).ok();
        let file = home.filter(|home| home.path().is_dir()).map(|home| home.path().join("versions.json"));
        let read = file.as_ref().and_then(|file| serde_json::from_slice::<Stored>(&std::fs::read(file).ok()?).ok());
        Self { known: read.filter(|stored| stored.version == VERSION).unwrap_or_default(), file }
    }

    /// What this program said, if it is still the same file.
    pub(super) fn of(&self, program: &Path) -> Option<&str> {
        let answer = self.known.programs.get(program.to_str()?)?;
        (stamp(program)? == (answer.size, answer.changed)).then_some(answer.said.as_str())
    }

    /// Keeps what it said. Where it can't be kept the program is asked again.
    pub(super) fn keep(mut self, program: &Path, said: &str) {
        let (Some(file), Some(name), Some((size, changed))) = (&self.file, program.to_str(), stamp(program)) else { return };
        if self.known.programs.len() >= MOST {
            self.known.programs.clear();
        }
        self.known.version = VERSION;
        self.known.programs.insert(name.to_owned(), Answer { size, changed, said: said.to_owned() });
        if let Ok(text) = serde_json::to_vec(&self.known) {
            let _ = durable::write(file, &text, Durability::Renamed);
        }
    }
}

fn stamp(program: &Path) -> Option<(u64, i128)> {
    let metadata = std::fs::metadata(program).ok()?;
    Some((metadata.size(), i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())))
}
