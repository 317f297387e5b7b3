//! One work tree and the git directory that was recorded for it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use proctor_domain::{Branch, Oid};

use crate::environment::expand_home;
use crate::git::{Git, unreadable};
use crate::guard::ConfigGuard;
use crate::submodule::Submodules;
use crate::{GitEnvironment, WorkspaceError};

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 40 hex digits.
    Sha1,
    /// 64 hex digits.
    Sha256,
}

/// Where HEAD is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What it points at.
    pub branch: Branch,
    /// The commit; `None` on a branch that has none yet.
    pub commit: Option<Oid>,
}

/// One work tree of one repository.
#[derive(Debug)]
pub struct Repository {
    /// The git directory of this work tree, absolute.
    pub git_dir: PathBuf,
    /// The git directory that all work trees of the repository share, absolute.
    pub common_dir: PathBuf,
    /// The top of the work tree, absolute.
    pub work_tree: PathBuf,
    /// How objects are named.
    pub object_format: ObjectFormat,
    /// How long a call waits for a lock that a living process holds. Ten seconds unless it is set.
    pub lock_patience: Duration,
    pub(crate) program: PathBuf,
    pub(crate) environment: GitEnvironment,
    pub(crate) guard: Mutex<Option<ConfigGuard>>,
    pub(crate) submodules: Mutex<Submodules>,
}

impl Repository {
    /// Finds the repository that `directory` is in.
    pub fn discover(directory: &Path, environment: &GitEnvironment) -> Result<Self, WorkspaceError> {
        const QUESTIONS: [&str; 7] = [
            "--is-bare-repository",
            "--is-inside-work-tree",
            "--path-format=absolute",
            "--absolute-git-dir",
            "--git-common-dir",
            "--show-object-format",
            "--show-toplevel",
        ];
        let program = environment.find_git()?;
        let ask = |questions: &[&str]| {
            let git = Git::new(&program, "rev-parse", directory, environment.variables().to_vec());
            git.args(questions).accept(&[0, 128]).run()
        };
        let output = ask(&QUESTIONS)?;
        let lines: Vec<&[u8]> = output.stdout.split(|&byte| byte == b'\n').collect();
        match (output.code, lines.as_slice()) {
            (0, [_, _, git_dir, common_dir, format, work_tree, b""]) => {
                let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
                Ok(Self::at(program, path(git_dir), path(common_dir), path(work_tree), parse_format(format)?, environment.clone()))
            }
            // A path with a line break in it: one question at a time, so that nothing can run together.
            (0, _) => {
                let path = |question: &str| {
                    let bytes = ask(&["--path-format=absolute", question])?.stdout;
                    Ok(PathBuf::from(OsStr::from_bytes(bytes.strip_suffix(b"\n").unwrap_or(&bytes))))
                };
                let format = ask(&["--show-object-format"])?.stdout;
                let format = parse_format(format.trim_ascii())?;
                let (git_dir, common_dir, work_tree) = (path("--absolute-git-dir")?, path("--git-common-dir")?, path("--show-toplevel")?);
                Ok(Self::at(program, git_dir, common_dir, work_tree, format, environment.clone()))
            }
            (_, [b"true", ..]) => Err(WorkspaceError::Bare { directory: directory.to_owned() }),
            (_, [b"false", b"false", ..]) => Err(WorkspaceError::InsideGitDirectory { directory: directory.to_owned() }),
            (_, _) if output.stderr.contains("not a git repository") => {
                Err(WorkspaceError::NotARepository { directory: directory.to_owned() })
            }
            (code, _) => Err(crate::error::complaint("rev-parse", format!("exit {code}"), &output.stderr)),
        }
    }

    pub(crate) fn at(
        program: PathBuf,
        git_dir: PathBuf,
        common_dir: PathBuf,
        work_tree: PathBuf,
        object_format: ObjectFormat,
        environment: GitEnvironment,
    ) -> Self {
        Self {
            git_dir,
            common_dir,
            work_tree,
            object_format,
            lock_patience: Duration::from_secs(10),
            program,
            environment,
            guard: Mutex::new(None),
            submodules: Mutex::new(Submodules::default()),
        }
    }

    /// Another work tree, with the same git and environment.
    pub fn elsewhere(&self, directory: &Path) -> Result<Self, WorkspaceError> {
        let repository = Self::discover(directory, &self.environment)?;
        Ok(Self { lock_patience: self.lock_patience, ..repository })
    }

    /// Where HEAD is. Needs no process where references are plain files and the branch is not packed.
    pub fn head(&self) -> Result<Head, WorkspaceError> {
        if let Some(head) = self.head_from_files() {
            return Ok(head);
        }
        let name = self.quiet("symbolic-ref")?.args(["--quiet", "HEAD"]).accept(&[0, 1]).run()?;
        let commit = self.quiet("rev-parse")?.args(["--verify", "--quiet", "HEAD"]).accept(&[0, 1]).run()?;
        let branch = match name.code {
            0 => Branch::Named(short_name(&name.line("symbolic-ref")?).to_owned()),
            _ => Branch::Detached,
        };
        let commit = match commit.code {
            0 => Some(parse_oid(commit.line("rev-parse")?.as_bytes()).ok_or_else(|| unreadable("rev-parse", &commit.stdout))?),
            _ => None,
        };
        Ok(Head { branch, commit })
    }

    /// HEAD where it can be read without git, else `None`: a packed branch, one without a commit, a
    /// reference that points at another, a store that does not use files.
    fn head_from_files(&self) -> Option<Head> {
        let path = self.git_dir.join("HEAD");
        if !std::fs::symlink_metadata(&path).ok()?.is_file() {
            return None;
        }
        let text = std::fs::read(path).ok()?;
        match text.strip_prefix(b"ref: ") {
            Some(name) => {
                let name = std::str::from_utf8(name).ok()?.trim_end();
                let short = name.strip_prefix("refs/heads/").filter(|short| *short != ".invalid")?;
                let commit = parse_oid(std::fs::read(self.common_dir.join(name)).ok()?.trim_ascii_end())?;
                Some(Head { branch: Branch::Named(short.to_owned()), commit: Some(commit) })
            }
            None => Some(Head { branch: Branch::Detached, commit: Some(parse_oid(text.trim_ascii_end())?) }),
        }
    }

    /// The merge, rebase, cherry-pick, revert, bisect or am in progress, by its name. Needs no process.
    pub fn operation_in_progress(&self) -> Option<String> {
        let there = |name: &str| self.git_dir.join(name).exists();
        // A rebase comes first: while it stops at a commit, the marks of a cherry-pick are there too.
        let name = if there("rebase-merge") {
            "rebase"
        } else if there("rebase-apply/applying") {
            "am"
        } else if there("rebase-apply") {
            "rebase"
        } else if there("MERGE_HEAD") {
            "merge"
        } else if there("CHERRY_PICK_HEAD") {
            "cherry-pick"
        } else if there("REVERT_HEAD") {
            "revert"
        } else if there("sequencer/todo") {
            // Between two commits of a series nothing but its list of what is left tells which one it is.
            let todo = std::fs::read(self.git_dir.join("sequencer/todo")).unwrap_or_default();
            if todo.starts_with(b"revert") { "revert" } else { "cherry-pick" }
        } else if there("BISECT_LOG") {
            "bisect"
        } else {
            return None;
        };
        Some(name.to_owned())
    }

    /// Whether a commit would run a hook of the repository's. Needs no process once the settings are known.
    pub fn has_commit_hooks(&self) -> Result<bool, WorkspaceError> {
        const HOOKS: [&str; 5] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"];
        if self.has_setting(|name| name.starts_with(b"hook.") && name.ends_with(b".command"))? {
            return Ok(true);
        }
        let folder = self.hooks_folder()?;
        Ok(HOOKS.iter().any(|hook| is_runnable(&folder.join(hook))))
    }

    /// Whether one of these hooks exists.
    pub(crate) fn has_hook(&self, names: &[&str]) -> Result<bool, WorkspaceError> {
        let folder = self.hooks_folder()?;
        Ok(names.iter().any(|hook| is_runnable(&folder.join(hook))))
    }

    pub(crate) fn hooks_folder(&self) -> Result<PathBuf, WorkspaceError> {
        Ok(match self.setting("core.hookspath")? {
            // Relative to where hooks run, which is the top of the work tree.
            Some(path) => self.work_tree.join(expand_home(path.as_bytes(), self.environment.home())),
            None => self.common_dir.join("hooks"),
        })
    }

    /// Refreshes what the index knows of the files once, so that the statuses that follow need not read files again.
    /// A status alone can't: it takes no lock.
    pub fn refresh_index(&self) -> Result<(), WorkspaceError> {
        // Exit 1: some paths need an update, which is not this command's business.
        self.quiet("update-index")?.args(["-q", "--refresh"]).accept(&[0, 1]).run().map(drop)
    }

    /// Git's own housekeeping, which Proctor's commits leave out because to start it costs more than the
    /// commit's own work: called once at the end of a run. It goes on by itself.
    pub fn maintenance(&self) -> Result<(), WorkspaceError> {
        let wanted = self.setting("maintenance.auto")?.is_none_or(|value| !is_false(&value));
        if wanted { self.git("maintenance").args(["run", "--auto", "--quiet"]).leave() } else { Ok(()) }
    }
}

/// Whether git takes a setting's value for "no".
pub(crate) fn is_false(value: &str) -> bool {
    value.is_empty() || ["false", "no", "off", "0"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

pub(crate) fn is_runnable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn short_name(reference: &str) -> &str {
    reference.strip_prefix("refs/heads/").unwrap_or(reference)
}

fn parse_format(text: &[u8]) -> Result<ObjectFormat, WorkspaceError> {
    match text {
        b"sha1" => Ok(ObjectFormat::Sha1),
        b"sha256" => Ok(ObjectFormat::Sha256),
        other => Err(unreadable("rev-parse", other)),
    }
}

/// An object name, where the bytes are one.
pub(crate) fn parse_oid(bytes: &[u8]) -> Option<Oid> {
    let digits = bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(bytes).ok()?;
    (digits && matches!(bytes.len(), 40 | 64)).then(|| Oid(text.to_owned()))
}

impl ObjectFormat {
    /// The name of no object.
    pub(crate) fn null(self) -> Oid {
        Oid("0".repeat(match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
        }))
    }
}

/// Wraps an error about a file.
pub(crate) fn file_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> WorkspaceError {
    let path = path.to_owned();
    move |source| WorkspaceError::File { path, action, source }
}
