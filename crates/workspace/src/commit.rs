//! Commits of exactly the named paths.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::{Oid, RepoPath};
use proctor_process::{Finished, Watch, killpoint};

use crate::effects::EFFECT_VARIABLE;
use crate::error::{complaint, lacks_identity, locked_path};
use crate::git::{Git, ending};
use crate::history::parse_message;
use crate::repository::{file_error, parse_oid};
use crate::staging::Staged;
use crate::tree_path::{Presence, TreePaths, split_nul};
use crate::{Head, Repository, WorkspaceError};

/// How much of what git and the hooks printed is reported; the log has it all.
const OUTPUT_BYTES: u64 = 16 * 1024;

/// A message and paths up to this size are arguments. Longer ones are files, for an argument has a limit; but to make and
/// remove two files costs a small commit more than all of git's own work on the index.
const ARGUMENT_BYTES: usize = 32 * 1024;

/// How often a commit is prepared anew because the repository changed under it.
const ATTEMPTS: usize = 4;

/// Whether a commit runs the repository's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    /// As the user's own commit would.
    Run,
    /// `--no-verify`: for commits that hold bookkeeping only.
    Skip,
}

/// A commit to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRequest {
    /// The paths it takes, with their present contents (absent ones as deletions).
    pub paths: Vec<RepoPath>,
    /// Those of `paths` that the index does not know (see [`crate::Status::untracked`]). One that is missing here costs a process, not the commit.
    pub untracked: Vec<RepoPath>,
    /// The whole message, trailers included.
    pub message: String,
    /// Whether hooks run.
    pub hooks: Hooks,
    /// The value of `PROCTOR_EFFECT` for git and its hooks, by which a resume finds them.
    pub marker: String,
    /// Gets what git and the hooks print. A file, so that git outlives us; for a long message or many paths two more are made beside it for the time of the commit.
    pub log: PathBuf,
    /// How long git and the hooks may take; `None` for as long as they want.
    pub limit: Option<Duration>,
}

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitEnd {
    /// It exists.
    Committed(Oid),
    /// A hook refused it.
    HookRefused {
        /// What it printed.
        output: String,
    },
    /// It could not be signed.
    SigningFailed {
        /// What git printed.
        output: String,
    },
    /// The paths are as they are in HEAD.
    NothingToCommit,
    /// Git refused it for another reason.
    Refused {
        /// What git printed.
        output: String,
    },
}

/// Why one attempt to commit did not end as a commit.
enum Attempt {
    Ended(CommitEnd),
    /// A path that neither the index nor HEAD knows.
    UnknownPath,
    /// Somebody committed while the commit was being prepared.
    HeadMoved,
    /// Nobody waits for it any more.
    Left,
}

impl Repository {
    /// Commits exactly these paths. What else is staged stays staged, and what is not named stays as it is.
    ///
    /// Git and its hooks run in a session of their own and outlive us. After an error (and after a kill)
    /// the commit may exist: [`Repository::commits_since`] tells.
    pub fn commit(&self, request: &CommitRequest) -> Result<CommitEnd, WorkspaceError> {
        let ended = self.commit_watched(request, None)?;
        // Without a watch it always ends.
        Ok(ended.unwrap_or_else(|| CommitEnd::Refused { output: "nobody waited for git".to_owned() }))
    }

    /// As [`Repository::commit`]; `None` when `watch` ended the wait before git and its hooks ended. They go on, and the
    /// index is as they leave it: what follows is as after a kill.
    pub fn commit_watched(&self, request: &CommitRequest, mut watch: Option<&mut Watch<'_>>) -> Result<Option<CommitEnd>, WorkspaceError> {
        self.patiently(|| self.commit_once(request, watch.as_deref_mut()))
    }

    fn commit_once(&self, request: &CommitRequest, mut watch: Option<&mut Watch<'_>>) -> Result<Option<CommitEnd>, WorkspaceError> {
        let mut sorted = (request.paths.clone(), request.untracked.clone());
        for _ in 0..ATTEMPTS {
            let before = self.head()?;
            match self.commit_paths(request, (&sorted.0, &sorted.1), &before, watch.as_deref_mut())? {
                Attempt::Ended(ended) => return Ok(Some(ended)),
                Attempt::Left => return Ok(None),
                Attempt::UnknownPath => sorted = self.sort_out(&request.paths, before.commit.as_ref())?,
                Attempt::HeadMoved => {}
            }
        }
        Ok(Some(CommitEnd::Refused { output: "the paths or HEAD changed again and again while they were being committed".to_owned() }))
    }

    /// One call of git, with what it needs in the index, which is put back where it makes no commit.
    fn commit_paths(
        &self,
        request: &CommitRequest,
        paths: (&[RepoPath], &[RepoPath]),
        before: &Head,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Attempt, WorkspaceError> {
        if paths.0.is_empty() {
            return Ok(Attempt::Ended(CommitEnd::NothingToCommit));
        }
        let staged = self.stage(paths, before.commit.as_ref(), &request.marker)?;
        killpoint::reach("commit staged");
        let ended = self.run_commit(request, before, &staged, watch);
        killpoint::reach("commit made");
        match &ended {
            Ok(Attempt::Ended(CommitEnd::Committed(commit))) => {
                if matches!(staged, Staged::OwnIndex(_)) || self.has_commit_hooks()? {
                    self.settle_index(commit)?;
                }
            }
            // Git reads the index of our own as it goes on.
            Ok(Attempt::Left) => std::mem::forget(staged),
            // The commit may have been made by a git that was killed afterwards, and then the entries are right.
            Err(_) if self.head().is_ok_and(|head| head != *before) => {}
            Ok(_) | Err(_) => self.unstage(&staged)?,
        }
        ended
    }

    fn run_commit(
        &self,
        request: &CommitRequest,
        before: &Head,
        staged: &Staged,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Attempt, WorkspaceError> {
        let log = File::create(&request.log).map_err(file_error(&request.log, "write"))?;
        let begun = log.metadata().and_then(|metadata| metadata.modified()).map_err(file_error(&request.log, "read"))?;
        let logged = self.logs_head();
        let (git, beside) = self.commit_command(request, staged)?;
        // What it prints of a commit that it made costs a tenth of its time.
        let git = if logged { git.arg("--quiet") } else { git };
        let git = match staged {
            Staged::Listed { pathspecs, .. } if pathspecs.len() <= ARGUMENT_BYTES => git.args(["--only", "--"]).args(arguments(pathspecs)),
            Staged::Listed { .. } => git,
            Staged::OwnIndex(index) => index.of(git),
        };
        if matches!(staged, Staged::OwnIndex(_)) && self.head()? != *before {
            // Our index holds what HEAD was; as a commit on another HEAD it would undo what came between.
            return Ok(Attempt::HeadMoved);
        }
        let Some(finished) = git.detached(log, request.limit).finish_watched(watch)? else {
            std::mem::forget(beside);
            return Ok(Attempt::Left);
        };
        let printed = String::from_utf8_lossy(&finished.stdout).into_owned();
        if finished.status.is_success() {
            return self.made_commit(&printed, before, &request.message).map(|commit| Attempt::Ended(CommitEnd::Committed(commit)));
        }
        // Git reports what fails *after* the commit (writing the index on a full disk) like what fails before.
        if let Some(commit) = self.own_commit_since(before, &request.message)? {
            // Ended between the reference and the index, it left its locks and an index that is behind.
            self.clear_own_stale_locks(&request.marker, begun)?;
            self.settle_index(&commit)?;
            return Ok(Attempt::Ended(CommitEnd::Committed(commit)));
        }
        self.refusal(&finished, &printed, request)
    }

    /// The command with its message, and the files that it reads, which go when the second value does.
    fn commit_command(&self, request: &CommitRequest, staged: &Staged) -> Result<(Git, Vec<Beside>), WorkspaceError> {
        let mut beside = Vec::new();
        let mut git = self
            .git("commit")
            // To look whether housekeeping is due costs more than a small commit: see `Repository::maintenance`.
            .set("gc.auto=0")
            .set("maintenance.auto=false")
            .env(EFFECT_VARIABLE, &request.marker)
            .args(["--no-edit", "--no-status", "--untracked-files=no", "--cleanup=whitespace"]);
        if request.hooks == Hooks::Skip {
            git = git.arg("--no-verify");
        }
        git = if request.message.len() <= ARGUMENT_BYTES {
            git.arg("--message").arg(&request.message)
        } else {
            git.arg("--file").arg(Beside::write(&mut beside, &request.log, "message", request.message.as_bytes())?)
        };
        if let Staged::Listed { pathspecs, .. } = staged
            && pathspecs.len() > ARGUMENT_BYTES
        {
            // From a file and not from a pipe: git outlives us, and half a list of paths would look to it like a whole one.
            let list = Beside::write(&mut beside, &request.log, "paths", pathspecs)?;
            git = git.args(["--only", "--pathspec-file-nul", "--pathspec-from-file"]).arg(list);
        }
        Ok((git, beside))
    }

    /// Whether git notes in a file what becomes of HEAD.
    fn logs_head(&self) -> bool {
        self.git_dir.join("logs/HEAD").is_file()
    }

    /// The commit that git made.
    ///
    /// The log of HEAD says which one followed `before`; where there is no such log, git prints the beginning of its name.
    /// Where HEAD is that commit, HEAD has the whole of it and no further process is needed; else a hook amended it, or
    /// somebody committed on top at once.
    fn made_commit(&self, printed: &str, before: &Head, message: &str) -> Result<Oid, WorkspaceError> {
        let head = self.head()?.commit;
        let named = |head: &Oid| printed_name(printed).is_some_and(|name| head.0.starts_with(name));
        match head {
            Some(head) if named(&head) || self.last_move_of_head() == Some((before.commit.clone(), head.clone())) => Ok(head),
            head => match (self.own_commit_since(before, message)?, head) {
                (Some(commit), _) => Ok(commit),
                // A hook rewrote the message as well. What HEAD is now is what became of our commit.
                (None, Some(head)) => Ok(head),
                (None, None) => Err(crate::git::unreadable("commit", printed.as_bytes())),
            },
        }
    }

    /// What HEAD was before its last change and what it became, by its log.
    fn last_move_of_head(&self) -> Option<(Option<Oid>, Oid)> {
        let end = read_end(&self.git_dir.join("logs/HEAD")).ok()?;
        let mut words = end.lines().last()?.split(' ');
        let (before, after) = (parse_oid(words.next()?.as_bytes())?, parse_oid(words.next()?.as_bytes())?);
        Some((Some(before).filter(|before| *before != self.object_format.null()), after))
    }

    /// The newest commit since `before` that has this message's subject and trailers.
    fn own_commit_since(&self, before: &Head, message: &str) -> Result<Option<Oid>, WorkspaceError> {
        if self.head()? == *before {
            return Ok(None);
        }
        let (subject, trailers) = parse_message(message);
        let commits = self.commits_since(before.commit.as_ref())?;
        let own =
            commits.into_iter().rev().find(|commit| commit.subject == subject && trailers.iter().all(|one| commit.trailers.contains(one)));
        Ok(own.map(|commit| commit.oid))
    }

    /// What it means that git made no commit. It exits with 1 where it, or a hook, decided against one,
    /// and with 128 where something is wrong.
    fn refusal(&self, finished: &Finished, printed: &str, request: &CommitRequest) -> Result<Attempt, WorkspaceError> {
        let output = read_end(&request.log)?;
        match finished.status.code {
            // On standard output, where hooks can't write.
            Some(1) if says_nothing_to_commit(printed) => Ok(Attempt::Ended(CommitEnd::NothingToCommit)),
            Some(1) if names_unknown_path(&output) => Ok(Attempt::UnknownPath),
            Some(1) => Ok(Attempt::Ended(self.refused_by_hook_or_git(request.hooks, output)?)),
            Some(_) if locked_path(&output).is_some() || lacks_identity(&output) => Err(complaint("commit", ending(finished), &output)),
            Some(_) if output.contains("aborted by hook") || output.contains("aborted by the reference-transaction hook") => {
                Ok(Attempt::Ended(CommitEnd::HookRefused { output }))
            }
            Some(_) if is_about_signing(&output) => Ok(Attempt::Ended(CommitEnd::SigningFailed { output })),
            Some(_) => Ok(Attempt::Ended(CommitEnd::Refused { output })),
            None => Err(complaint("commit", ending(finished), &output)),
        }
    }

    fn refused_by_hook_or_git(&self, hooks: Hooks, output: String) -> Result<CommitEnd, WorkspaceError> {
        let asked: &[&str] = match hooks {
            Hooks::Run => &["pre-commit", "prepare-commit-msg", "commit-msg"],
            Hooks::Skip => &["prepare-commit-msg"],
        };
        Ok(if self.has_hook(asked)? { CommitEnd::HookRefused { output } } else { CommitEnd::Refused { output } })
    }

    /// Those of the paths that can be committed at all, and those of them that the index does not know.
    fn sort_out(&self, paths: &[RepoPath], head: Option<&Oid>) -> Result<(Vec<RepoPath>, Vec<RepoPath>), WorkspaceError> {
        let index = self.quiet("ls-files")?.args(["--cached", "-z"]).run()?.stdout;
        let indexed: BTreeSet<&[u8]> = split_nul(&index).collect();
        let committed = match head {
            Some(head) => self.quiet("ls-tree")?.args(["-r", "-z", "--name-only", "--full-tree", &head.0]).run()?.stdout,
            None => Vec::new(),
        };
        let committed: BTreeSet<&[u8]> = split_nul(&committed).collect();
        let mut tree = TreePaths::new(&self.work_tree);
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for path in paths {
            let there = tree.presence(path)? != Presence::Absent;
            let in_index = indexed.contains(path.as_bytes());
            if there && !in_index {
                unknown.push(path.clone());
            }
            if there || in_index || committed.contains(path.as_bytes()) {
                known.push(path.clone());
            }
        }
        Ok((known, unknown))
    }
}

/// The name in `[main 1234567] subject`, `[main (root-commit) 1234567] subject` or `[detached HEAD 1234567] subject`.
fn printed_name(printed: &str) -> Option<&str> {
    let line = printed.lines().find(|line| line.starts_with('['))?;
    let words = line.split(' ').filter_map(|word| word.strip_suffix(']'));
    words.into_iter().find(|word| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn says_nothing_to_commit(printed: &str) -> bool {
    ["nothing to commit", "no changes added to commit", "nothing added to commit"].iter().any(|words| printed.contains(words))
}

/// Whether git stopped at a path that it does not know, which is before any hook can print.
fn names_unknown_path(output: &str) -> bool {
    let first = output.lines().find(|line| !line.starts_with("warning: "));
    first.is_some_and(|line| line.starts_with("error: pathspec '"))
}

/// Whether git could not write the commit because it could not sign it. It says the same about the
/// commit where the object store fails, after a line about that.
fn is_about_signing(output: &str) -> bool {
    const STORE: [&str; 6] =
        ["unable to write", "unable to create temporary file", "insufficient permission", "No space left", "file write error", "quota"];
    let signing = ["gpg failed to sign", "failed to sign the data", "Couldn't load public key", "user.signingKey"];
    let unwritten = output.contains("failed to write commit object");
    signing.iter().any(|words| output.contains(words)) || (unwritten && !STORE.iter().any(|words| output.contains(words)))
}

/// A file beside a commit's log, for the time of the commit.
struct Beside(PathBuf);

impl Beside {
    fn write<'a>(files: &'a mut Vec<Self>, log: &Path, what: &str, bytes: &[u8]) -> Result<&'a Path, WorkspaceError> {
        let mut name = log.as_os_str().to_owned();
        name.push(".");
        name.push(what);
        let file = files.push_mut(Self(PathBuf::from(name)));
        write_new(&file.0, bytes)?;
        Ok(&file.0)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), WorkspaceError> {
    File::create(path).and_then(|mut file| file.write_all(bytes)).map_err(file_error(path, "write"))
}

/// A list that ends each entry with a NUL, as arguments.
fn arguments(list: &[u8]) -> impl Iterator<Item = &OsStr> {
    split_nul(list).map(OsStr::from_bytes)
}

/// The end of a log.
fn read_end(path: &Path) -> Result<String, WorkspaceError> {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(OUTPUT_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map_err(file_error(path, "read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commits_name_is_read_from_what_git_prints() {
        for (printed, name) in [
            ("[main 0123abc] a [b] c\n 1 file changed\n", Some("0123abc")),
            ("[main (root-commit) 0123abc] x\n", Some("0123abc")),
            ("[detached HEAD 0123abc] x\n", Some("0123abc")),
            ("[odd] 0123abc] x\n", Some("0123abc")),
            ("", None),
            ("[main what] x", None),
        ] {
            assert_eq!(printed_name(printed), name, "{printed}");
        }
    }

    #[test]
    fn a_full_disk_is_not_taken_for_a_failed_signature() {
        assert!(is_about_signing("error: gpg failed to sign the data:\n\nfatal: failed to write commit object\n"));
        assert!(is_about_signing("error: cannot run gpg: No such file or directory\nfatal: failed to write commit object\n"));
        assert!(!is_about_signing("error: unable to write file x: No space left on device\nfatal: failed to write commit object\n"));
    }
}
