//! The state folder, its file system, and the journal in it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proctor_journal::{Journal, JournalError, JournalHealth};
use proctor_orchestrator::StateFolder;
use proctor_process::lock;

use super::{Check, listed, quoted};
use crate::environment;
use crate::run_text::counted;

/// Less room than this is worth a word.
const LEAST_SPACE: u64 = 100 * 1024 * 1024;

/// File systems on which locks or SQLite's shared memory are known to fail in some set-ups, by their magic numbers.
const SHARED_FILE_SYSTEMS: [(u32, &str); 10] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
];

/// A repository that has no state yet: whether it could have.
pub(super) fn of_new_repository(home: &Path) -> Vec<Check> {
    let existing = home.ancestors().find(|folder| folder.exists()).unwrap_or(home);
    let mut checks = vec![match works(existing) {
        Ok(()) => Check::ok("state", format!("none yet; the first run makes it in {}", home.display())),
        Err((detail, remedy)) => Check::failure("state", detail, remedy),
    }];
    checks.extend(file_system(existing));
    checks.push(space(existing));
    checks
}

pub(super) fn check(folder: &StateFolder) -> Vec<Check> {
    let root = folder.root();
    let mut checks = vec![folder_itself(root)];
    checks.extend(file_system(root));
    checks.push(space(root));
    checks.push(journal(root));
    checks
}

fn folder_itself(root: &Path) -> Check {
    const NAME: &str = "state";
    if let Err((detail, remedy)) = works(root) {
        return Check::failure(NAME, detail, remedy);
    }
    match std::fs::metadata(root) {
        Err(error) => Check::failure(NAME, format!("{} can't be read: {error}", root.display()), "check its folder's permissions"),
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            let mode = metadata.permissions().mode() & 0o777;
            let detail = format!("{} is open to others (mode {mode:04o}): it holds what sessions printed", root.display());
            Check::warning(NAME, detail, format!("chmod 700 {}", quoted(root)))
        }
        Ok(_) => Check::ok(NAME, format!("{}, private, locks work", root.display())),
    }
}

/// Whether files can be made in a folder and locks keep others out; else what is wrong and what to do.
fn works(folder: &Path) -> Result<(), (String, String)> {
    let elsewhere = format!("set {} to a folder on a local disk that you can write", environment::STATE_DIR.name);
    match lock::locks_work(folder) {
        Ok(true) => Ok(()),
        Ok(false) => Err((format!("file locks don't work in {}, so two runs could not be kept apart", folder.display()), elsewhere)),
        Err(error) => {
            let because = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            Err((format!("{} can't be written{because}", folder.display()), elsewhere))
        }
    }
}

/// Says so where the state lies on a file system that others share.
fn file_system(folder: &Path) -> Option<Check> {
    let found = rustix::fs::statfs(folder).ok()?;
    // The kernel's type is signed on some machines; the numbers are 32 bits wide.
    let magic = u32::try_from(i128::from(found.f_type) & 0xFFFF_FFFF).ok()?;
    let (_, name) = SHARED_FILE_SYSTEMS.iter().find(|(known, _)| *known == magic)?;
    let detail = format!("state lies on {name}; its locks work now, but a lost connection can break a run");
    Some(Check::warning("file system", detail, format!("set {} to a folder on a local disk", environment::STATE_DIR.name)))
}

fn space(folder: &Path) -> Check {
    match rustix::fs::statvfs(folder) {
        Err(error) => {
            Check::warning("space", format!("the room on the disk of {} is not known: {error}", folder.display()), "check that disk")
        }
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let shown = free / (1024 * 1024);
            if free < LEAST_SPACE {
                Check::warning(
                    "space",
                    format!("{shown} MiB are free for state; a run that finds none stops"),
                    "make room, or `proctor procedure gc`",
                )
            } else {
                Check::ok("space", format!("{shown} MiB are free for state"))
            }
        }
    }
}

fn journal(root: &Path) -> Check {
    const NAME: &str = "journal";
    let journal = match Journal::open_read_only(root) {
        Ok(journal) => journal,
        Err(JournalError::Missing { .. }) => return Check::ok(NAME, "none yet; the first run makes it"),
        Err(error @ (JournalError::Corrupt { .. } | JournalError::Truncated { .. })) => {
            return Check::failure(NAME, format!("failed to {error}"), REPAIR);
        }
        Err(error) => return Check::from_report(NAME, &error.into()),
    };
    if let Some(warning) = journal.warning().filter(|_| journal.newer_format().is_none()) {
        return Check::warning(NAME, warning, format!("make {} writable", quoted(root)));
    }
    judge(&journal.check())
}

/// The remedy for everything that can be mended without a person's decision.
const REPAIR: &str = "proctor doctor --repair";

fn judge(health: &JournalHealth) -> Check {
    const NAME: &str = "journal";
    let size = format!("{}, {}", counted(health.runs, "run"), counted(usize::try_from(health.events).unwrap_or(usize::MAX), "event"));
    if !health.pages.is_empty() {
        let detail = format!("{} is damaged: {}", health.path.display(), listed(&health.pages, 3));
        return Check::failure(NAME, detail, REPAIR);
    }
    if !health.damaged.is_empty() {
        let records: Vec<String> =
            health.damaged.iter().map(|record| format!("{} from event {} on ({})", record.run, record.version, record.reason)).collect();
        let detail = format!("{size}; can't be read: {}. Other runs are not affected", listed(&records, 3));
        return Check::failure(NAME, detail, REPAIR);
    }
    if let Some(format) = health.newer_format {
        return Check::warning(
            NAME,
            format!("{size}; a newer proctor made it (format {format}), so it is only read"),
            "use the newer proctor",
        );
    }
    if !health.newer.is_empty() {
        let detail = format!("{size}; a newer proctor wrote records of {}", listed(&health.newer, 3));
        return Check::warning(NAME, detail, "use the newer proctor for them");
    }
    if !health.stale.is_empty() {
        let detail = format!("{size}; the list of runs does not say what happened in {}", listed(&health.stale, 3));
        return Check::warning(NAME, detail, REPAIR);
    }
    Check::ok(NAME, size)
}
