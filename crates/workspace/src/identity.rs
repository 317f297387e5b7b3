//! Who commits, and whose state this repository's is.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use proctor_process::durable::{self, Durability};

use crate::repository::{file_error, is_false};
use crate::{Repository, WorkspaceError};

impl Repository {
    /// Whether git knows who commits, so that a run is refused before its first step rather than at its first commit.
    pub fn identity_works(&self) -> Result<(), WorkspaceError> {
        self.quiet("var")?.arg("GIT_COMMITTER_IDENT").run()?;
        // The two differ only where the environment says so.
        let said = |role: &str| ["NAME", "EMAIL"].iter().all(|part| self.environment.get(&format!("GIT_{role}_{part}")).is_some());
        if said("COMMITTER") && !said("AUTHOR") {
            self.quiet("var")?.arg("GIT_AUTHOR_IDENT").run()?;
        }
        Ok(())
    }

    /// Who commits, as the variables by which git is told so: for a place where the user's own settings are not seen.
    pub fn identity_variables(&self) -> Result<Vec<(&'static str, String)>, WorkspaceError> {
        let mut variables = Vec::new();
        for (role, name, email) in [
            ("GIT_AUTHOR_IDENT", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"),
            ("GIT_COMMITTER_IDENT", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
        ] {
            let told = self.quiet("var")?.arg(role).run()?.line("var")?;
            // `Name <email> seconds zone`
            if let Some((who, rest)) = told.split_once(" <")
                && let Some((address, _)) = rest.split_once('>')
            {
                variables.extend([(name, who.to_owned()), (email, address.to_owned())]);
            }
        }
        Ok(variables)
    }

    /// Whether commits that the settings want signed can be: tried once, before a run's first step. The
    /// commit that it makes belongs to no branch, and git removes it some day.
    pub fn probe_signing(&self) -> Result<(), WorkspaceError> {
        let wanted = self.setting("commit.gpgsign")?.is_some_and(|value| !is_false(&value));
        if !wanted {
            return Ok(());
        }
        let tree = self.quiet("mktree")?.input(Vec::new()).run()?.line("mktree")?;
        // As the commits themselves will be made: with the program that the settings name.
        let git = self.git("commit-tree").args(["-S", "-m", "Proctor tries whether commits can be signed", &tree]);
        match git.run() {
            Err(WorkspaceError::Git { output, .. }) => Err(WorkspaceError::Signing { output }),
            other => other.map(drop),
        }
    }

    fn proctor_id_file(&self) -> PathBuf {
        self.common_dir.join("proctor-id")
    }

    /// The text in `<common dir>/proctor-id`, which says which state is this repository's; `None` where there is none yet.
    pub fn proctor_id(&self) -> Result<Option<String>, WorkspaceError> {
        let path = self.proctor_id_file();
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|id| !id.is_empty())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(&path, "read")(error)),
        }
    }

    /// Writes `candidate` as the id unless there is one already; the id that holds now.
    ///
    /// Two processes may come at once: the file is written beside its place and linked there, which only
    /// one of them can do, and never half written.
    pub fn claim_proctor_id(&self, candidate: &str) -> Result<String, WorkspaceError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if let Some(id) = self.proctor_id()? {
            return Ok(id);
        }
        let path = self.proctor_id_file();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
        let write = |file: io::Result<std::fs::File>| {
            let mut file = file?;
            file.write_all(format!("{candidate}\n").as_bytes())?;
            file.sync_all()
        };
        let linked = write(std::fs::File::create(&beside)).and_then(|()| std::fs::hard_link(&beside, &path));
        let _ = std::fs::remove_file(&beside);
        match linked {
            Ok(()) => Ok(candidate.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match self.proctor_id()? {
                Some(id) => Ok(id),
                // An empty file, as a full disk or a power cut can leave one.
                None => self.replace_proctor_id(candidate).map(|()| candidate.to_owned()),
            },
            // A file system without links. Two processes at the same moment could each believe in their own
            // id there, once; the next start finds one of them.
            Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
                self.replace_proctor_id(candidate).map(|()| candidate.to_owned())
            }
            Err(error) => Err(file_error(&path, "write")(error)),
        }
    }

    /// Replaces the id: for a repository that was copied together with the original's id.
    pub fn replace_proctor_id(&self, id: &str) -> Result<(), WorkspaceError> {
        let path = self.proctor_id_file();
        durable::write(&path, format!("{id}\n").as_bytes(), Durability::Synced).map_err(|source| WorkspaceError::Keep { path, source })
    }
}

/// A name for the lock of a work tree: 16 hex digits.
///
/// FNV-1a in 64 bits: the key must be the same in every version of Proctor and on every machine, which
/// the standard library's hasher does not promise; nothing hostile chooses the input, and two work trees
/// of one repository whose keys were the same would only wait for each other.
pub fn worktree_key(work_tree: &Path) -> String {
    let bytes = work_tree.as_os_str().as_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_work_tree_never_changes() {
        // The published test vectors of FNV-1a.
        assert_eq!(worktree_key(Path::new("")), "cbf29ce484222325");
        assert_eq!(worktree_key(Path::new("foobar")), "85944171f73967e8");
    }
}
