//! The name of a run's folder in the repository.

use proctor_domain::{RepoPath, Timestamp};

use super::paths;
use crate::Site;

/// A folder that does not exist yet: `<name>_<YYYY-MM-DDTHHMM>`, then with `-2`, `-3`, …
///
/// The caller holds the lock of the working tree, so nobody takes the name in between.
pub(super) fn free(site: &Site, procedure: &str, at: Timestamp) -> RepoPath {
    let stem = format!("{}_{}", file_name(procedure), minute(at));
    let runs = site.card_root.join(site.layout.runs_dir());
    let mut number = 1_u32;
    loop {
        let name = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
        let path = runs.join(name);
        if path.symlink_metadata().is_err() {
            return paths::stored(path.strip_prefix(&site.repository.work_tree).unwrap_or(&path));
        }
        number += 1;
    }
}

/// A procedure's name as part of a file name: it may hold anything, and must not lead elsewhere.
fn file_name(procedure: &str) -> String {
    let safe = |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let name: String = procedure.chars().map(safe).take(80).collect();
    name.trim_start_matches('.').to_owned()
}

/// `YYYY-MM-DDTHHMM`, UTC.
fn minute(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH).strftime("%Y-%m-%dT%H%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_folder_carries_the_minute_in_utc() {
        assert_eq!(minute(Timestamp(1_772_431_450_000)), "2026-03-02T0604");
    }

    #[test]
    fn a_name_that_is_no_file_name_leads_nowhere_else() {
        assert_eq!(file_name("../../etc/x y"), "-..-etc-x-y");
    }
}
