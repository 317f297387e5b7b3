//! A home, a repository in it, and git as a person there would call it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_domain::RepoPath;
use proctor_process::{Finished, Program};
use proctor_workspace::{Change, ChangeKind, CommitEnd, CommitRequest, GitEnvironment, Hooks, Repository, Status};

pub(crate) struct World {
    root: tempfile::TempDir,
    /// Top of the work tree.
    pub(crate) top: PathBuf,
    extra: Vec<(OsString, OsString)>,
}

pub(crate) fn path(bytes: impl AsRef<[u8]>) -> RepoPath {
    RepoPath::new(bytes.as_ref())
}

pub(crate) fn paths(names: &[&str]) -> Vec<RepoPath> {
    names.iter().map(path).collect()
}

impl World {
    /// A folder and a home with an identity; no repository.
    pub(crate) fn without_repository() -> Self {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap().join("work");
        let world = Self { root, top, extra: Vec::new() };
        std::fs::create_dir_all(world.home()).unwrap();
        std::fs::create_dir_all(&world.top).unwrap();
        // What the test's user does need not survive a power cut.
        let settings = "[user]\nname = A User\nemail = user@example.com\n[init]\ndefaultBranch = main\n\
                        [protocol \"file\"]\nallow = always\n[core]\nfsync = none\n[maintenance]\nauto = false\n";
        write(&world.home().join(".gitconfig"), settings);
        world
    }

    /// A repository without a commit.
    pub(crate) fn unborn() -> Self {
        let world = Self::without_repository();
        world.git(&["init", "--quiet", "--template="]);
        world
    }

    /// A repository with one commit that holds `kept`, `dir/a` and `dir/b`.
    pub(crate) fn new() -> Self {
        let world = Self::unborn();
        world.populate();
        world
    }

    pub(crate) fn populate(&self) {
        for name in ["kept", "dir/a", "dir/b"] {
            self.write(name, &format!("{name}\n"));
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "first"]);
    }

    pub(crate) fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.top.parent().unwrap().join("home")
    }

    /// A place for files that belong to no repository.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), self.home().into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), self.home().join(".gitconfig").into()),
        ];
        variables.extend(self.extra.iter().cloned());
        variables
    }

    pub(crate) fn environment(&self) -> GitEnvironment {
        GitEnvironment::from_user(self.variables())
    }

    pub(crate) fn repository(&self) -> Repository {
        let mut repository = Repository::discover(&self.top, &self.environment()).unwrap();
        repository.lock_patience = Duration::ZERO;
        repository
    }

    /// Runs git as the user; what it prints.
    pub(crate) fn git<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        self.git_in(&self.top, arguments)
    }

    pub(crate) fn git_in<A: AsRef<OsStr>>(&self, directory: &Path, arguments: &[A]) -> String {
        let finished = self.try_git(directory, arguments);
        let words: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect();
        assert!(finished.status.is_success(), "git {words:?}: {}", String::from_utf8_lossy(&finished.stderr));
        String::from_utf8(finished.stdout).unwrap()
    }

    pub(crate) fn try_git<A: AsRef<OsStr>>(&self, directory: &Path, arguments: &[A]) -> Finished {
        let program = Program::new("git").args(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        program.dir(directory).env(self.variables()).run(Some(Duration::from_secs(120))).unwrap()
    }

    pub(crate) fn on_disk(&self, name: impl AsRef<[u8]>) -> PathBuf {
        self.top.join(OsStr::from_bytes(name.as_ref()))
    }

    pub(crate) fn write(&self, name: impl AsRef<[u8]>, contents: &str) {
        write(&self.on_disk(name), contents);
    }

    pub(crate) fn read(&self, name: impl AsRef<[u8]>) -> String {
        std::fs::read_to_string(self.on_disk(name)).unwrap()
    }

    pub(crate) fn remove(&self, name: impl AsRef<[u8]>) {
        std::fs::remove_file(self.on_disk(name)).unwrap();
    }

    /// A hook of the repository's.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        write_script(&self.top.join(".git/hooks").join(name), script);
    }

    pub(crate) fn request(&self, paths: &[RepoPath], status: &Status) -> CommitRequest {
        let untracked = status.untracked();
        CommitRequest {
            paths: paths.to_vec(),
            untracked: untracked.into_iter().filter(|path| paths.contains(path)).collect(),
            message: "Subject\n\nRun: run_1\nStep: a\n".to_owned(),
            hooks: Hooks::Run,
            marker: format!("test-{}/a/1/commit", self.top.display()),
            log: self.outside("commit.log"),
            limit: Some(Duration::from_secs(60)),
        }
    }

    /// Commits these paths and says how it ended.
    pub(crate) fn commit(&self, repository: &Repository, paths: &[RepoPath]) -> CommitEnd {
        let status = repository.status().unwrap();
        repository.commit(&self.request(paths, &status)).unwrap()
    }

    /// Commits everything that changed.
    pub(crate) fn commit_all(&self, repository: &Repository) -> CommitEnd {
        let status = repository.status().unwrap();
        repository.commit(&self.request(&status.paths(), &status)).unwrap()
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// What `git status --short` says, without what is ignored.
    pub(crate) fn short_status(&self) -> String {
        self.git(&["status", "--short", "--untracked-files=all", "--no-renames"])
    }

    /// The names that the newest commit changed, with how.
    pub(crate) fn committed(&self) -> String {
        self.git(&["show", "--format=", "--name-status", "--no-renames", "--root", "HEAD"])
    }
}

pub(crate) fn write(path: &Path, contents: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), contents.as_bytes()).unwrap();
}

pub(crate) fn write_script(path: &Path, script: &str) {
    write(path, &format!("#!/bin/sh\n{script}\n"));
    make_executable(path);
}

pub(crate) fn make_executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Kinds by path, as `(path, kind, staged)`.
pub(crate) fn changes(status: &Status) -> Vec<(String, ChangeKind, bool)> {
    status.changes.iter().map(|Change { path, kind, staged }| (path.to_string(), *kind, *staged)).collect()
}

/// Waits until `there` says so.
pub(crate) fn wait_until(what: &str, there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what} did not come about");
        std::thread::yield_now();
    }
}
