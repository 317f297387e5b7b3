//! The world of one test.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{Background, Leftover, Output, processes};

/// No command of a test takes longer, on the slowest machine.
const LONGEST: Duration = Duration::from_secs(60);

/// A folder with a home, a git repository with one commit, and an environment that has nothing of the machine's
/// but PATH.
///
/// Dropping it kills what was left running in it and removes it.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    root: PathBuf,
    program: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    started: Cell<usize>,
}

impl World {
    /// A world for the binary at `program`: tests pass `env!("CARGO_BIN_EXE_proctor")`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let world = Self::without_repository(program);
        fs::create_dir(world.repository()).expect("the repository's folder");
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world.write("README.md", "A repository for a test.\n");
        world.commit_all("Begin");
        world
    }

    /// The same without a repository; its folder is not made either.
    pub fn without_repository(program: impl Into<PathBuf>) -> Self {
        let folder = tempfile::Builder::new().prefix("proctor-world-").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("its real path");
        for name in ["home", "printed", "tmp"] {
            fs::create_dir(root.join(name)).expect("a folder in it");
        }
        let identity = "[user]\n\tname = Ann Author\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n";
        fs::write(root.join("home").join(".gitconfig"), identity).expect("the git identity");
        let home = root.join("home");
        let environment = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", home.clone().into()),
            ("XDG_CONFIG_HOME", home.join(".config").into()),
            ("XDG_STATE_HOME", home.join(".local/state").into()),
            ("XDG_CACHE_HOME", home.join(".cache").into()),
            ("TMPDIR", root.join("tmp").into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("LC_ALL", "C".into()),
            ("TZ", "UTC".into()),
        ];
        let environment = environment.into_iter().map(|(name, value)| (OsString::from(name), value)).collect();
        Self { folder, root, program: program.into(), environment, started: Cell::new(0) }
    }

    /// The same with a file in the repository, not committed.
    #[must_use]
    pub fn with_file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    /// The same with a procedure card, committed. `keys` is its YAML without `name`.
    #[must_use]
    pub fn with_card(self, name: &str, keys: &str) -> Self {
        self.write(format!("proctor/procedures/{name}.procedure.card"), format!("---\nname: {name}\n{keys}---\n"));
        self.commit_all(&format!("Add procedure {name}"));
        self
    }

    /// The same with an environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.set_variable(name, value);
        self
    }

    /// The same without an environment variable.
    #[must_use]
    pub fn without_variable(mut self, name: &str) -> Self {
        self.environment.remove(OsStr::new(name));
        self
    }

    /// Sets an environment variable for what is started from now on.
    pub fn set_variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.insert(name.into(), value.into());
    }

    /// Removes an environment variable for what is started from now on.
    pub fn remove_variable(&mut self, name: &str) {
        self.environment.remove(OsStr::new(name));
    }

    /// The binary under test.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The folder that holds everything.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The home folder.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The repository's working tree.
    pub fn repository(&self) -> PathBuf {
        self.root.join("repository")
    }

    /// The user's settings file, which is not made.
    pub fn user_settings(&self) -> PathBuf {
        self.home().join(".config/proctor/config.toml")
    }

    /// The state folder of the only repository that has one.
    pub fn state(&self) -> PathBuf {
        let repos = self.home().join(".local/state/proctor/repos");
        let entries =
            fs::read_dir(&repos).map(|entries| entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect());
        let folders: Vec<PathBuf> = entries.unwrap_or_default();
        match folders.as_slice() {
            [state] => state.clone(),
            others => panic!("one state folder was expected: {others:?}"),
        }
    }

    /// Writes a file; a relative path is one in the repository. Folders are made.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.repository().join(path);
        let folder = path.parent().expect("a file in a folder");
        fs::create_dir_all(folder).expect("the file's folder");
        fs::write(&path, text).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
    }

    /// Reads a file; a relative path is one in the repository.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.repository().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
    }

    /// Whether there is such a file or folder; a relative path is one in the repository.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.repository().join(path).symlink_metadata().is_ok()
    }

    /// Commits everything that is in the working tree.
    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    /// Subjects of the commits, oldest first.
    pub fn commits(&self) -> Vec<String> {
        self.git(&["log", "--reverse", "--format=%s"]).lines().map(str::to_owned).collect()
    }

    /// Runs git in the repository and returns what it printed, without the last line break; panics when it fails.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = self.run_program(Path::new("git"), &self.repository(), arguments);
        assert_eq!(output.code, Some(0), "git {arguments:?}: {output}");
        output.stdout.trim_end_matches('\n').to_owned()
    }

    /// Runs git in the repository, however it ends.
    pub fn try_git(&self, arguments: &[&str]) -> Output {
        self.run_program(Path::new("git"), &self.repository(), arguments)
    }

    /// Runs the binary in the repository.
    pub fn proctor(&self, arguments: &[&str]) -> Output {
        self.proctor_in(self.repository(), arguments)
    }

    /// Runs the binary in another folder; a relative path is one in the repository.
    pub fn proctor_in(&self, folder: impl AsRef<Path>, arguments: &[&str]) -> Output {
        self.run_program(&self.program, &self.repository().join(folder), arguments)
    }

    /// Starts the binary in the repository and lets it run.
    pub fn start(&self, arguments: &[&str]) -> Background {
        self.start_program(&self.program, &self.repository(), arguments)
    }

    /// Runs any program in the repository with this world's environment.
    pub fn run(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Output {
        self.run_program(program.as_ref(), &self.repository(), arguments)
    }

    /// Runs any program in a folder; a relative path is one in the repository.
    pub fn run_in(&self, folder: impl AsRef<Path>, program: impl AsRef<Path>, arguments: &[&str]) -> Output {
        self.run_program(program.as_ref(), &self.repository().join(folder), arguments)
    }

    /// Living processes that were started in this world, by it or by what it started. Those that were given a
    /// clean environment are not seen.
    pub fn leftovers(&self) -> Vec<Leftover> {
        processes::living(&self.home())
    }

    /// Starts the binary in a folder, to be spoken to; a relative path is one in the repository.
    pub fn start_to_speak_with(&self, folder: impl AsRef<Path>, arguments: &[&str]) -> Background {
        self.spawn(&self.program, &self.repository().join(folder), arguments, Stdio::piped())
    }

    fn run_program(&self, program: &Path, folder: &Path, arguments: &[&str]) -> Output {
        self.start_program(program, folder, arguments).wait(LONGEST)
    }

    fn start_program(&self, program: &Path, folder: &Path, arguments: &[&str]) -> Background {
        self.spawn(program, folder, arguments, Stdio::null())
    }

    fn spawn(&self, program: &Path, folder: &Path, arguments: &[&str], stdin: Stdio) -> Background {
        let number = self.started.replace(self.started.get() + 1);
        let printed = |name: &str| self.root.join("printed").join(format!("{number}.{name}"));
        let (stdout, stderr) = (printed("stdout"), printed("stderr"));
        let file = |path: &Path| Stdio::from(File::create(path).expect("a file for what it prints"));
        let child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(&self.environment)
            .stdin(stdin)
            .stdout(file(&stdout))
            .stderr(file(&stderr))
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", program.display()));
        Background { child, stdout, stderr, root: self.root.clone() }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        processes::kill_all(&self.home());
        // A test may have taken away the right to remove files.
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.folder.path()).stderr(Stdio::null()).status();
    }
}
