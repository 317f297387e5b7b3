//! Commits of exactly the named paths.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::{Oid, RepoPath};
use proctor_process::Finished;

use crate::effects::EFFECT_VARIABLE;
use crate::error::{complaint, lacks_identity, locked_path};
use crate::git::{Git, ending};
use crate::history::parse_message;
use crate::repository::file_error;
use crate::salvage::index_entries;
use crate::tree_path::{Presence, TreePaths, nul_separated, split_nul};
use crate::{Head, Repository, WorkspaceError};

/// How much of what git and the hooks printed is reported; the log has it all.
const OUTPUT_BYTES: u64 = 16 * 1024;

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
    /// Gets what git and the hooks print. A file, so that git outlives us; two more are made beside it for the time of the commit.
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

/// Index entries as they were before new files were added.
#[derive(Debug, Default)]
struct IndexBefore {
    /// What was added.
    added: Vec<RepoPath>,
    /// `git ls-files --stage -z` of the paths that adding can push out: a file whose place a folder takes, and the reverse.
    displaced: Vec<u8>,
}

/// Why one attempt to commit did not end as a commit.
enum Attempt {
    Ended(CommitEnd),
    /// A path that neither the index nor HEAD knows.
    UnknownPath,
}

impl Repository {
    /// Commits exactly these paths. What else is staged stays staged, and what is not named stays as it is.
    ///
    /// Git and its hooks run in a session of their own and outlive us. After an error (and after a kill)
    /// the commit may exist: [`Repository::commits_since`] tells.
    pub fn commit(&self, request: &CommitRequest) -> Result<CommitEnd, WorkspaceError> {
        let message = beside(&request.log, "message");
        let list = beside(&request.log, "paths");
        write_new(&message, request.message.as_bytes())?;
        let ended = self.patiently(|| self.commit_once(request, &message, &list));
        for path in [message, list] {
            let _ = std::fs::remove_file(path);
        }
        ended
    }

    fn commit_once(&self, request: &CommitRequest, message: &Path, list: &Path) -> Result<CommitEnd, WorkspaceError> {
        let before = self.head()?;
        match self.commit_paths(request, (&request.paths, &request.untracked), &before, message, list)? {
            Attempt::Ended(ended) => Ok(ended),
            Attempt::UnknownPath => {
                let (paths, unknown) = self.sort_out(&request.paths, before.commit.as_ref())?;
                match self.commit_paths(request, (&paths, &unknown), &before, message, list)? {
                    Attempt::Ended(ended) => Ok(ended),
                    Attempt::UnknownPath => Ok(CommitEnd::Refused { output: read_end(&request.log)? }),
                }
            }
        }
    }

    /// One call of git, with the new files added before and taken out again where it makes no commit.
    fn commit_paths(
        &self,
        request: &CommitRequest,
        (paths, untracked): (&[RepoPath], &[RepoPath]),
        before: &Head,
        message: &Path,
        list: &Path,
    ) -> Result<Attempt, WorkspaceError> {
        if paths.is_empty() {
            return Ok(Attempt::Ended(CommitEnd::NothingToCommit));
        }
        write_new(list, &pathspecs(paths))?;
        let index = self.add_new_files(paths, untracked, &request.marker)?;
        let ended = self.run_commit(request, before, message, list);
        match &ended {
            Ok(Attempt::Ended(CommitEnd::Committed(_))) => {}
            // The commit may have been made by a git that was killed afterwards, and then the entries are right.
            Err(_) if self.head().is_ok_and(|head| head != *before) => {}
            Ok(_) | Err(_) => self.take_out(&index)?,
        }
        ended
    }

    /// Adds files to the index that it does not know, since `git commit` takes known paths only.
    ///
    /// By `update-index`, which takes exact paths, and not by `git add`, which takes patterns (and for two
    /// thousand of them needs twenty times as long).
    fn add_new_files(&self, paths: &[RepoPath], untracked: &[RepoPath], marker: &str) -> Result<IndexBefore, WorkspaceError> {
        if untracked.is_empty() {
            return Ok(IndexBefore::default());
        }
        let displaced =
            if may_displace(paths, untracked) { self.quiet("ls-files")?.args(["--stage", "-z"]).run()?.stdout } else { Vec::new() };
        // Not a quiet command: the user's filters apply to what is committed.
        let git = self.git("update-index").args(["--add", "--remove", "--replace", "-z", "--stdin"]);
        git.env(EFFECT_VARIABLE, marker).input(nul_separated(untracked)).run()?;
        Ok(IndexBefore { added: untracked.to_vec(), displaced })
    }

    /// Puts the index entries back that [`Self::add_new_files`] changed.
    fn take_out(&self, before: &IndexBefore) -> Result<(), WorkspaceError> {
        if before.added.is_empty() {
            return Ok(());
        }
        let null = self.object_format.null();
        let mut input = index_entries(before.added.iter().map(|path| ("0", &null, path)));
        // `ls-files --stage` writes what `update-index --index-info` reads. All entries of the index, in the
        // rare case that there are any here: those that nobody changed meanwhile are as they were.
        for entry in split_nul(&before.displaced).filter(|entry| displaced_by(entry, &before.added)) {
            input.extend_from_slice(entry);
            input.push(0);
        }
        self.patiently(|| self.quiet("update-index")?.args(["-z", "--index-info"]).input(input.clone()).run().map(drop))
    }

    fn run_commit(&self, request: &CommitRequest, before: &Head, message: &Path, list: &Path) -> Result<Attempt, WorkspaceError> {
        let log = File::create(&request.log).map_err(file_error(&request.log, "write"))?;
        let finished = self.commit_command(request, message, list).detached(log, request.limit).finish()?;
        let printed = String::from_utf8_lossy(&finished.stdout).into_owned();
        if finished.status.is_success() {
            return self.made_commit(&printed, before, &request.message).map(|commit| Attempt::Ended(CommitEnd::Committed(commit)));
        }
        // Git reports what fails *after* the commit (writing the index on a full disk) like what fails before.
        if let Some(commit) = self.own_commit_since(before, &request.message)? {
            return Ok(Attempt::Ended(CommitEnd::Committed(commit)));
        }
        self.refusal(&finished, &printed, request)
    }

    fn commit_command(&self, request: &CommitRequest, message: &Path, list: &Path) -> Git {
        let git = self
            .git("commit")
            // To look whether housekeeping is due costs more than a small commit: see `Repository::maintenance`.
            .set("gc.auto=0")
            .set("maintenance.auto=false")
            .env(EFFECT_VARIABLE, &request.marker)
            .args(["--only", "--no-edit", "--no-status", "--untracked-files=no", "--cleanup=whitespace", "--file"])
            .arg(message)
            // Both from files and not from a pipe: git outlives us, and half a list of paths or half a
            // message would look to it like a whole one.
            .arg("--pathspec-from-file")
            .arg(list)
            .arg("--pathspec-file-nul");
        match request.hooks {
            Hooks::Run => git,
            Hooks::Skip => git.arg("--no-verify"),
        }
    }

    /// The commit that git says it made.
    ///
    /// Git prints the beginning of its name. Where HEAD is that commit, HEAD has the whole of it and no
    /// further process is needed; else a hook amended it, or somebody committed on top at once.
    fn made_commit(&self, printed: &str, before: &Head, message: &str) -> Result<Oid, WorkspaceError> {
        let head = self.head()?.commit;
        match (head, printed_name(printed)) {
            (Some(head), Some(name)) if head.0.starts_with(name) => Ok(head),
            (head, _) => match (self.own_commit_since(before, message)?, head) {
                (Some(commit), _) => Ok(commit),
                // A hook rewrote the message as well. What HEAD is now is what became of our commit.
                (None, Some(head)) => Ok(head),
                (None, None) => Err(crate::git::unreadable("commit", printed.as_bytes())),
            },
        }
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
            Some(1) if output.starts_with("error: pathspec '") => Ok(Attempt::UnknownPath),
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

/// Paths as git reads a list of patterns: each says of itself that it is none. Not by the option
/// `--literal-pathspecs`, which hooks would inherit for patterns of their own.
fn pathspecs(paths: &[RepoPath]) -> Vec<u8> {
    let named: BTreeSet<&[u8]> = paths.iter().map(RepoPath::as_bytes).collect();
    let mut bytes = Vec::new();
    for path in &named {
        // A path that is a folder now, with files in it that are named: those push its entry out. As a
        // pattern it would take everything in the folder.
        let below = [path, &b"/"[..]].concat();
        if named.range::<&[u8], _>(below.as_slice()..).next().is_some_and(|next| next.starts_with(&below)) {
            continue;
        }
        bytes.extend_from_slice(b":(top,literal)");
        bytes.extend_from_slice(path);
        bytes.push(0);
    }
    bytes
}

/// Whether adding these files can push other entries out of the index.
fn may_displace(paths: &[RepoPath], untracked: &[RepoPath]) -> bool {
    let untracked: BTreeSet<&[u8]> = untracked.iter().map(RepoPath::as_bytes).collect();
    let named: BTreeSet<&[u8]> = paths.iter().map(RepoPath::as_bytes).collect();
    let is_below = |path: &RepoPath, set: &BTreeSet<&[u8]>| crate::tree_path::parents(path).any(|parent| set.contains(parent));
    paths.iter().any(|path| is_below(path, &untracked) || (untracked.contains(path.as_bytes()) && is_below(path, &named)))
}

/// Whether an entry of `git ls-files --stage` is at a path that one of these takes, or below it, or above it.
fn displaced_by(entry: &[u8], added: &[RepoPath]) -> bool {
    let Some(tab) = entry.iter().position(|&byte| byte == b'\t') else {
        return false;
    };
    let path = &entry[tab + 1..];
    let is_above = |above: &[u8], below: &[u8]| below.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
    added.iter().any(|one| is_above(one.as_bytes(), path) || is_above(path, one.as_bytes()))
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

/// Whether git could not write the commit because it could not sign it. It says the same about the
/// commit where the object store fails, after a line about that.
fn is_about_signing(output: &str) -> bool {
    const STORE: [&str; 6] =
        ["unable to write", "unable to create temporary file", "insufficient permission", "No space left", "file write error", "quota"];
    let signing = ["gpg failed to sign", "failed to sign the data", "Couldn't load public key", "user.signingKey"];
    let unwritten = output.contains("failed to write commit object");
    signing.iter().any(|words| output.contains(words)) || (unwritten && !STORE.iter().any(|words| output.contains(words)))
}

fn beside(log: &Path, what: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    PathBuf::from(name)
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), WorkspaceError> {
    File::create(path).and_then(|mut file| file.write_all(bytes)).map_err(file_error(path, "write"))
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

    fn paths(names: &[&str]) -> Vec<RepoPath> {
        names.iter().map(|name| RepoPath::new(*name)).collect()
    }

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
    fn a_file_that_became_a_folder_is_no_pattern_for_all_in_it() {
        assert_eq!(pathspecs(&paths(&["x", "x.y", "x/a", "z"])), b":(top,literal)x.y\0:(top,literal)x/a\0:(top,literal)z\0");
    }

    #[test]
    fn files_and_folders_that_change_places_are_noticed() {
        assert!(may_displace(&paths(&["x", "x/y"]), &paths(&["x/y"])));
        assert!(may_displace(&paths(&["x/y", "x"]), &paths(&["x"])));
        assert!(!may_displace(&paths(&["x", "xy", "z/a"]), &paths(&["xy", "z/a"])));
    }

    #[test]
    fn a_full_disk_is_not_taken_for_a_failed_signature() {
        assert!(is_about_signing("error: gpg failed to sign the data:\n\nfatal: failed to write commit object\n"));
        assert!(is_about_signing("error: cannot run gpg: No such file or directory\nfatal: failed to write commit object\n"));
        assert!(!is_about_signing("error: unable to write file x: No space left on device\nfatal: failed to write commit object\n"));
    }
}
