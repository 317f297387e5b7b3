//! Work trees of their own for runs: made so that half of one can be finished, removed so that nothing is lost.

use std::path::{Path, PathBuf};

use proctor_domain::{Branch, Oid, RepoPath};
use proctor_process::durable::{self, Durability};
use proctor_process::{killpoint, lock};

use crate::error::complaint;
use crate::git::{ending, unreadable};
use crate::refusal::Refusal;
use crate::repository::{file_error, parse_oid};
use crate::submodule::pointed_git_dir;
use crate::tree_path::{metadata_of, on_disk};
use crate::{ChangeKind, Repository, WorkspaceError};

/// In git's record of a worktree: its files were checked out by us. After that a missing index is
/// somebody's doing and no sign that we were interrupted.
const CHECKED_OUT: &str = "proctor-checked-out";

impl Repository {
    /// The commit that a worktree of its own would start at; refused where such a worktree could not do the work of this one.
    pub fn can_isolate(&self) -> Result<Oid, WorkspaceError> {
        let Some(head) = self.head()?.commit else {
            return Err(WorkspaceError::Refused(Refusal::NoCommit));
        };
        self.refuse_submodules(&head)?;
        Ok(head)
    }

    fn refuse_submodules(&self, commit: &Oid) -> Result<(), WorkspaceError> {
        let tree = self.quiet("ls-tree")?.args(["-r", "-z", "--full-tree", &commit.0]).run()?.stdout;
        let Some(entry) = tree.split(|&byte| byte == 0).find(|entry| entry.starts_with(b"160000 ")) else {
            return Ok(());
        };
        let path = entry.splitn(2, |&byte| byte == b'\t').nth(1).ok_or_else(|| unreadable("ls-tree", entry))?;
        Err(WorkspaceError::Refused(Refusal::Submodule { path: RepoPath::new(path) }))
    }

    /// A worktree at `path` with a branch of its own, which begins at `start`.
    ///
    /// A worktree that is there with this branch is taken as it is, and so is the branch; one that was
    /// half made is finished. Git's list of worktrees is changed under the lock `lock`, which is held
    /// shortly: the checkout comes after it.
    pub fn add_worktree(&self, path: &Path, branch: &str, start: &Oid, lock: &Path) -> Result<(), WorkspaceError> {
        self.refuse_submodules(start)?;
        let record = {
            let _held =
                lock::acquire(lock, "git worktree add").map_err(|source| WorkspaceError::Refused(Refusal::WorktreesLock { source }))?;
            self.patiently(|| self.register(path, branch, start))?
        };
        killpoint::reach("worktree registered");
        let worktree = self.linked(&record, path)?;
        let complete = || record.join("index").exists() || record.join(CHECKED_OUT).exists();
        if !complete() {
            worktree.patiently(|| if complete() { Ok(()) } else { worktree.check_out(branch) })?;
            let mark = record.join(CHECKED_OUT);
            durable::write(&mark, b"", Durability::Renamed).map_err(|source| WorkspaceError::Keep { path: mark, source })?;
        }
        Ok(())
    }

    /// Git's record of the worktree, made where there is none.
    fn register(&self, path: &Path, branch: &str, start: &Oid) -> Result<PathBuf, WorkspaceError> {
        match self.record_of(path) {
            Some(record) if is_half_made(&record) => self.discard(&record, path)?,
            Some(record) if metadata_of(path)?.is_some() => return self.reconnect(record, path, branch, start),
            Some(record) => self.forget(&record, path)?,
            None => {}
        }
        let occupied = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if occupied || metadata_of(path)?.is_some_and(|metadata| !metadata.is_dir()) {
            return Err(WorkspaceError::Refused(Refusal::InTheWay { path: path.to_owned() }));
        }
        // A post-checkout hook would run before there are files; it runs with the checkout.
        let git = self.quiet("worktree")?.args(["add", "--quiet", "--no-checkout"]);
        let git = match self.branch_tip(branch)? {
            Some(_) => git.arg(path).arg(branch),
            None => git.args(["-b", branch]).arg(path).arg(&start.0),
        };
        git.run()?;
        self.record_of(path).ok_or_else(|| WorkspaceError::Refused(Refusal::InTheWay { path: path.to_owned() }))
    }

    /// Takes a worktree that is there, and gives it back its `.git` where that was lost.
    fn reconnect(&self, record: PathBuf, path: &Path, branch: &str, start: &Oid) -> Result<PathBuf, WorkspaceError> {
        let pointer = path.join(".git");
        if metadata_of(&pointer)?.is_none() {
            use std::os::unix::ffi::OsStrExt;
            let text = [b"gitdir: ", record.as_os_str().as_bytes(), b"\n"].concat();
            durable::write(&pointer, &text, Durability::Renamed).map_err(|source| WorkspaceError::Keep { path: pointer, source })?;
        } else if pointed_git_dir(path) != record.canonicalize().ok() {
            return Err(WorkspaceError::Refused(Refusal::InTheWay { path: path.to_owned() }));
        }
        if self.linked(&record, path)?.head()?.branch != Branch::Named(branch.to_owned()) {
            return Err(WorkspaceError::Refused(Refusal::OtherBranch { path: path.to_owned(), branch: branch.to_owned() }));
        }
        // Somebody deleted the branch while nobody worked here. Without it the next commit would begin a history of its own.
        if self.branch_tip(branch)?.is_none() {
            let (reference, absent) = (format!("refs/heads/{branch}"), self.object_format.null());
            self.quiet("update-ref")?.args([&reference, &start.0, &absent.0]).run()?;
        }
        Ok(record)
    }

    /// Brings the files into a worktree that has none or a part of them.
    fn check_out(&self, branch: &str) -> Result<(), WorkspaceError> {
        let stale = self.git_dir.join("index.lock");
        if stale.exists() && !self.lock_holder_lives(&stale) {
            std::fs::remove_file(&stale).map_err(file_error(&stale, "remove"))?;
        }
        let finished = self.git("checkout").args(["--force", "--quiet", branch, "--"]).finish()?;
        // A hook that fails makes git fail after all is done.
        if finished.status.is_success() || self.git_dir.join("index").exists() {
            return Ok(());
        }
        Err(complaint("checkout", ending(&finished), &String::from_utf8_lossy(&finished.stderr)))
    }

    /// Removes a worktree and its branch.
    ///
    /// What is not committed there, and commits that no other branch, remote branch or tag has, are saved
    /// under the reference `salvage` (`refs/proctor/salvage/…`, used for this worktree alone) first. Where
    /// that can't be done the worktree stays. Asking twice is the same as asking once.
    pub fn remove_worktree(&self, path: &Path, branch: &str, salvage: &str) -> Result<(), WorkspaceError> {
        // Moved away in one step before it is deleted: a second try after a death in the middle would else
        // save a tree in which files are missing in place of the whole one.
        let aside = aside(path);
        let record = self.record_of(path);
        if metadata_of(path)?.is_some() {
            let Some(record) = record.as_ref().filter(|record| !is_half_made(record)) else {
                return self.remove_unfinished(record.as_deref(), path);
            };
            self.refuse_locked(record, path)?;
            self.save_worktree(&self.linked(record, path)?, branch, salvage)?;
            killpoint::reach("worktree saved");
            remove_folder(&aside)?;
            std::fs::rename(path, &aside).map_err(file_error(path, "move"))?;
            killpoint::reach("worktree moved");
        }
        if let Some(record) = &record {
            self.forget(record, path)?;
        }
        remove_folder(&aside)?;
        if let Some(tip) = self.branch_tip(branch)? {
            if !self.is_kept(&tip, branch, salvage)? {
                // The reference itself may hold what a detached HEAD was at.
                let place = if self.reference(salvage)?.is_some() { format!("{salvage}-branch") } else { salvage.to_owned() };
                self.set_ref(&place, &tip)?;
            }
            self.patiently(|| self.quiet("branch")?.args(["-D", "--quiet", "--", branch]).run().map(drop))?;
        }
        Ok(())
    }

    /// A worktree that git had not finished listing holds nobody's work; a folder without a record is not ours.
    fn remove_unfinished(&self, record: Option<&Path>, path: &Path) -> Result<(), WorkspaceError> {
        match record {
            Some(record) => self.discard(record, path),
            None => Err(WorkspaceError::Refused(Refusal::InTheWay { path: path.to_owned() })),
        }
    }

    fn save_worktree(&self, worktree: &Self, branch: &str, salvage: &str) -> Result<(), WorkspaceError> {
        let status = worktree.status()?;
        let foreign = |kind| matches!(kind, ChangeKind::NestedRepository | ChangeKind::SubmoduleDirty);
        let changed = status.changes.iter().find(|change| foreign(change.kind)).map(|change| change.path.clone());
        // One that was committed as a pointer is no change, and its files are in no commit of ours either.
        let committed = || Ok(worktree.pointers()?.into_iter().find(|path| pointed_git_dir(&on_disk(&worktree.work_tree, path)).is_some()));
        if let Some(repository) = changed.map_or_else(committed, |path| Ok(Some(path)))? {
            return Err(WorkspaceError::Refused(Refusal::NestedRepository { path: worktree.work_tree.clone(), repository }));
        }
        if !status.changes.is_empty() {
            let tree = worktree.snapshot(&status.paths())?;
            let message = format!("What was not committed in the worktree of {branch}\n");
            return self.save(salvage, &tree, status.head.as_ref(), &message).map(drop);
        }
        match status.head {
            Some(head) if !self.is_kept(&head, branch, salvage)? => self.set_ref(salvage, &head),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether something other than the branch reaches the commit.
    fn is_kept(&self, commit: &Oid, branch: &str, salvage: &str) -> Result<bool, WorkspaceError> {
        let git = self.quiet("rev-list")?.args(["--max-count=1", &commit.0, "--not"]);
        let git = git.arg(format!("--exclude={branch}")).args(["--branches", "--remotes", "--tags"]).arg(format!("--glob={salvage}*"));
        Ok(git.run()?.stdout.is_empty())
    }

    /// The commit that a branch is at; `None` where there is no such branch.
    pub(crate) fn branch_tip(&self, branch: &str) -> Result<Option<Oid>, WorkspaceError> {
        self.reference(&format!("refs/heads/{branch}"))
    }

    fn reference(&self, name: &str) -> Result<Option<Oid>, WorkspaceError> {
        let output = self
            .quiet("rev-parse")?
            .args(["--verify", "--quiet", "--end-of-options"])
            .arg(format!("{name}^{{commit}}"))
            .accept(&[0, 1])
            .run()?;
        // Before 2.43, `--end-of-options` is printed along.
        let line = output.stdout.split(|&byte| byte == b'\n').find_map(parse_oid);
        if output.code == 0 && line.is_none() { Err(unreadable("rev-parse", &output.stdout)) } else { Ok(line) }
    }

    /// The repository as it is in a linked worktree.
    fn linked(&self, record: &Path, path: &Path) -> Result<Self, WorkspaceError> {
        let mut worktree = Self::at(
            self.program.clone(),
            record.to_owned(),
            self.common_dir.clone(),
            path.to_owned(),
            self.object_format,
            self.environment.clone(),
        );
        worktree.lock_patience = self.lock_patience;
        worktree.guard_config_as(self)?;
        Ok(worktree)
    }

    /// Git's folder about the worktree at a path. Read from git's own list, because the worktree's `.git` is an agent's to write.
    fn record_of(&self, path: &Path) -> Option<PathBuf> {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let wanted = resolved(path);
        let records = std::fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut records = records.filter(|record| {
            let pointer = std::fs::read(record.join("gitdir")).unwrap_or_default();
            let pointer = record.join(OsStr::from_bytes(pointer.trim_ascii_end()));
            pointer.parent().is_some_and(|top| resolved(top) == wanted)
        });
        records.next()
    }

    /// Removes what a git that died while it added a worktree left: it had not come to the files.
    fn discard(&self, record: &Path, path: &Path) -> Result<(), WorkspaceError> {
        let lock = record.join("locked");
        if self.lock_holder_lives(&lock) {
            return Err(WorkspaceError::Locked { path: lock, live: true });
        }
        let pointer = path.join(".git");
        if metadata_of(&pointer)?.is_some_and(|metadata| metadata.is_file()) {
            std::fs::remove_file(&pointer).map_err(file_error(&pointer, "remove"))?;
        }
        // Where something else is in the folder it stays, and is said to be in the way.
        let _ = std::fs::remove_dir(path);
        remove_folder(record)
    }

    /// Removes git's record of a worktree whose folder is gone.
    fn forget(&self, record: &Path, path: &Path) -> Result<(), WorkspaceError> {
        self.refuse_locked(record, path)?;
        remove_folder(record)
    }

    fn refuse_locked(&self, record: &Path, path: &Path) -> Result<(), WorkspaceError> {
        if record.join("locked").exists() && !is_half_made(record) {
            return Err(WorkspaceError::Refused(Refusal::LockedWorktree { path: path.to_owned() }));
        }
        Ok(())
    }
}

/// Whether git died, or is still at it, before the record was complete: its own mark for that is there, or
/// there is no HEAD yet.
fn is_half_made(record: &Path) -> bool {
    let initializing = std::fs::read(record.join("locked")).is_ok_and(|reason| reason.trim_ascii() == b"initializing");
    initializing || !record.join("HEAD").exists()
}

/// Where a worktree is moved before it is deleted.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".removing");
    path.with_file_name(name)
}

fn remove_folder(path: &Path) -> Result<(), WorkspaceError> {
    if metadata_of(path)?.is_none() {
        return Ok(());
    }
    std::fs::remove_dir_all(path).map_err(file_error(path, "remove"))
}

/// A path without links and `..` in its folder; what it names itself need not be there.
fn resolved(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Ok(resolved), _, _) => resolved,
        (Err(_), Some(parent), Some(name)) => parent.join(name),
        (Err(_), _, _) => path.to_owned(),
    }
}
