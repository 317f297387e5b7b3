//! Which git processes are at work: those that carry our marks, and those that may hold a lock.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proctor_process::ProcessIdentity;

use crate::Repository;

/// A living process, as `/proc` shows it.
#[derive(Debug)]
pub(crate) struct Seen {
    pid: u32,
    /// The first fifteen bytes of its program's name.
    name: Vec<u8>,
    /// The process that leads its session.
    session: u32,
}

impl Seen {
    /// The process with this pid, unless it is gone or a zombie.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold some itself, so the last one counts.
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let name = line.get(open + 1..close)?.to_vec();
        let fields = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X" | "x") {
            return None;
        }
        Some(Self { pid, name, session: fields.nth(2)?.parse().ok()? })
    }

    fn is_git(&self) -> bool {
        self.name == b"git" || self.name.starts_with(b"git-")
    }

    /// Whether it is part of a commit that we started, where it carries our mark.
    ///
    /// Our git leads a session of its own, and its hooks stay in it. What a hook or the signing program
    /// leaves behind on purpose (an agent that keeps keys, a build daemon) carries the mark too, and is
    /// nobody's effect any more: it has gone into another session, or, where it has not and the git that
    /// led the session is gone, has at least let go of the log that git and hooks write to.
    pub(crate) fn is_part_of_effect(&self) -> bool {
        if self.is_git() {
            return true;
        }
        match Self::of(self.session) {
            Some(leader) if leader.pid == self.pid => false,
            Some(leader) => leader.is_git(),
            None => link(self.pid, "fd/2").is_some_and(|target| target != Path::new("/dev/null")),
        }
    }
}

fn link(pid: u32, name: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/{name}")).ok()
}

/// All pids but our own.
fn others() -> Vec<u32> {
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| *pid != own).collect()
}

/// Those of the marked processes that are at work on an effect.
pub(crate) fn at_work(marked: Vec<ProcessIdentity>) -> Vec<ProcessIdentity> {
    marked.into_iter().filter(|process| Seen::of(process.pid).is_some_and(|seen| seen.is_part_of_effect())).collect()
}

impl Repository {
    /// Whether a process lives that can have made this lock file of the repository's.
    ///
    /// A lock names no owner, and git closes the file long before it removes it (all through a hook, or
    /// while an editor is open), so an open file proves a holder but its absence proves nothing. Hence
    /// any git process counts that works in this repository, and one that we may not look into counts as
    /// one that does, where it is the user's whom the lock belongs to. A wrong "lives" makes a person wait;
    /// a wrong "gone" makes them break a commit.
    pub(crate) fn lock_holder_lives(&self, lock: &Path) -> bool {
        let mut places = vec![self.work_tree.clone(), self.git_dir.clone(), self.common_dir.clone()];
        if !lock.starts_with(&self.git_dir) || self.git_dir == self.common_dir {
            // What is in the shared directory can be locked from every work tree.
            places.extend(self.other_work_trees());
        }
        let owner = owner_of(lock);
        others()
            .into_iter()
            .any(|pid| has_open(pid, lock) || (Seen::of(pid).is_some_and(|seen| seen.is_git()) && works_in(&places, pid, owner)))
    }

    /// The tops of all work trees of the repository but the main one's, which is where the shared directory usually lies.
    fn other_work_trees(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let pointers = entries.filter_map(|entry| std::fs::read(entry.path().join("gitdir")).ok());
        let linked = pointers.filter_map(|pointer| Path::new(OsStr::from_bytes(pointer.trim_ascii_end())).parent().map(Path::to_owned));
        linked.chain(self.common_dir.parent().map(Path::to_owned)).collect()
    }
}

fn owner_of(path: &Path) -> Option<u32> {
    std::fs::symlink_metadata(path).ok().map(|metadata| metadata.uid())
}

/// Whether a git process works in one of these places. One that is not ours to look into does where it is `owner`'s.
fn works_in(places: &[PathBuf], pid: u32, owner: Option<u32>) -> bool {
    let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if ["fsmonitor--daemon", "credential-cache--daemon"].iter().any(|daemon| holds(&cmdline, daemon.as_bytes())) {
        // They live for days, and lock nothing.
        return false;
    }
    match std::fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(directory) if places.iter().any(|place| directory.starts_with(place)) => return true,
        Ok(_) => {}
        // Somebody else's, or gone meanwhile.
        Err(error) => {
            let user = owner_of(Path::new(&format!("/proc/{pid}")));
            return error.kind() == io::ErrorKind::PermissionDenied && user.is_some() && user == owner;
        }
    }
    // Called from elsewhere with --git-dir or GIT_DIR.
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    [cmdline, environment].iter().any(|bytes| places.iter().any(|place| holds(bytes, place.as_os_str().as_bytes())))
}

fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    entries.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path))
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len().max(1)).any(|window| window == part)
}
