//! The folder in which the demo is played.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_cards::{BoxDefaults, Layout};
use proctor_domain::RunId;
use proctor_domain::procedure::Records;
use proctor_engine::agent::EngineKind;
use proctor_orchestrator::{AgentSettings, RunSettings, Site};
use proctor_process::Program;
use proctor_process::durable::{self, Durability};
use proctor_workspace::{GitEnvironment, Repository};
use tempfile::TempDir;

use super::DemoError;
use crate::Invocation;
use crate::commands::CommandError;
use crate::environment::{self, Environment};
use crate::report::Report;
use crate::state::{self, StateHome};

/// No git command of the demo takes longer, and neither does a phase of its procedure.
const PATIENCE: Duration = Duration::from_secs(60);
/// No agent of the demo takes longer.
const AGENTS_PATIENCE: Duration = Duration::from_secs(300);

/// The project: path, text, mode.
const FILES: [(&str, &str, u32); 8] = [
    ("README.md", include_str!("../../demo/README.md"), 0o644),
    ("VERSION", "1.4.0\n", 0o644),
    ("CHANGELOG.md", include_str!("../../demo/CHANGELOG.md"), 0o644),
    ("src/acorn.sh", include_str!("../../demo/acorn.sh"), 0o755),
    ("tests/run.sh", include_str!("../../demo/run.sh"), 0o755),
    ("proctor/procedures/release-check.procedure.card", include_str!("../../demo/release-check.procedure.card"), 0o644),
    (SCRIPT, include_str!("../../demo/agent.toml"), 0o644),
    ("proctor/model.toml", include_str!("../../demo/model.toml"), 0o644),
];

/// What the scripted engine does.
const SCRIPT: &str = "proctor/agent.toml";

/// What the program said before the change that the next release is about.
const OLDER: Fix =
    Fix { file: "src/acorn.sh", before: "*) echo \"Hello, $1\" ;;", after: "*) echo \"Hello\" ;;", message: "Greet by name" };

/// The repository's own git settings, which win over the user's: the demo needs an identity and no key, and leaves no
/// housekeeping behind that would still write while the folder is removed. They also serve whoever looks around in
/// a kept demo.
const GIT_SETTINGS: &str = "[user]\n\tname = Demo User\n\temail = demo@example.invalid\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n\
                            [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";

/// What the person in the story changes.
pub(super) struct Fix {
    pub(super) file: &'static str,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    pub(super) message: &'static str,
}

pub(super) const FIX: Fix = Fix {
    file: "src/acorn.sh",
    before: "*) echo \"Hello, $1\" ;;",
    after: "*) echo \"Hello, $1!\" ;;",
    message: "Greet with an exclamation mark",
};

/// What becomes of the folder at the end.
enum Fate {
    /// It goes.
    Temporary(TempDir),
    /// It was made for the demo and stays.
    Made,
    /// It was there, empty, and stays.
    Found,
}

/// The folder: a repository, with the demo's state inside its git directory, where no step's `git clean` looks.
pub(super) struct Ground {
    folder: PathBuf,
    fate: Fate,
    environment: Environment,
}

impl Ground {
    /// In a temporary folder.
    pub(super) fn temporary(invocation: &Invocation) -> Result<Self, DemoError> {
        let wanted = std::env::temp_dir();
        let made = |source| DemoError::Make { path: wanted.clone(), source };
        let temporary = tempfile::Builder::new().prefix("proctor-demo-").tempdir().map_err(made)?;
        Self::new(invocation, temporary.path().to_owned(), Fate::Temporary(temporary))
    }

    /// In a folder of the user's choice, which must be absent or empty.
    pub(super) fn kept(invocation: &Invocation, folder: &Path) -> Result<Self, DemoError> {
        let folder = invocation.directory.join(folder);
        let unusable = |source| DemoError::Make { path: folder.clone(), source };
        let fate = match std::fs::read_dir(&folder).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Fate::Found,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(unusable)?;
                Fate::Made
            }
            Err(error) if error.kind() != ErrorKind::NotADirectory => return Err(unusable(error)),
            Ok(false) | Err(_) => return Err(DemoError::Occupied { folder }),
        };
        Self::new(invocation, folder, fate)
    }

    fn new(invocation: &Invocation, folder: PathBuf, fate: Fate) -> Result<Self, DemoError> {
        let folder = folder.canonicalize().map_err(|source| DemoError::Make { path: folder, source })?;
        let environment = environment_for(&invocation.environment, &folder);
        Ok(Self { folder, fate, environment })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the project and its first commit.
    pub(super) fn plant(&self) -> Result<(), DemoError> {
        // No template: the user's may bring hooks.
        self.git(&["init", "--quiet", "--initial-branch=main", "--template="])?;
        let config = self.folder.join(".git/config");
        let made = std::fs::read_to_string(&config).map_err(|source| DemoError::Make { path: config.clone(), source })?;
        let hooks = self.folder.join(".git/hooks");
        let settings = format!("{made}{GIT_SETTINGS}[core]\n\thooksPath = {}\n\tautocrlf = false\n", config_value(&hooks));
        durable::write(&config, settings.as_bytes(), Durability::Renamed)?;
        for (path, text, mode) in FILES {
            let text = if path == OLDER.file { text.replace(OLDER.before, OLDER.after) } else { text.to_owned() };
            self.write(path, &text, mode)?;
        }
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", "Begin acorn"])?;
        self.change(OLDER.file, (OLDER.after, OLDER.before), OLDER.message)
    }

    /// Does and commits what the person in the story does.
    pub(super) fn mend(&self) -> Result<(), DemoError> {
        self.change(FIX.file, (FIX.before, FIX.after), FIX.message)
    }

    fn change(&self, file: &str, (before, after): (&str, &str), message: &str) -> Result<(), DemoError> {
        let path = self.folder.join(file);
        let text = std::fs::read_to_string(&path).map_err(|source| DemoError::Make { path, source })?;
        self.write(file, &text.replace(before, after), 0o755)?;
        self.git(&["commit", "--quiet", "--all", "--message", message])?;
        Ok(())
    }

    fn write(&self, path: &str, text: &str, mode: u32) -> Result<(), DemoError> {
        let path = self.folder.join(path);
        let made = |source| DemoError::Make { path: path.clone(), source };
        std::fs::create_dir_all(path.parent().unwrap_or(&self.folder)).map_err(made)?;
        durable::write(&path, text.as_bytes(), Durability::Renamed)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(made)
    }

    /// The place as runs need it. Built here and not found: the user's settings have no part in the demo.
    pub(super) fn site(&self, engine: EngineKind) -> Result<Site, Report> {
        let repository = Repository::discover(&self.folder, &GitEnvironment::from_user(self.environment.pairs()))?;
        let home = StateHome::of(Some(&state_home(&self.folder)), &self.environment)?;
        let program = std::env::current_exe().map_err(CommandError::OwnProgram)?;
        Ok(Site {
            state: state::establish(&home, &repository)?,
            card_root: repository.work_tree.clone(),
            repository,
            layout: Layout::Proctor,
            box_defaults: BoxDefaults::default(),
            settings: RunSettings {
                records: Some(Records::State),
                pass_env: Vec::new(),
                linger: Vec::new(),
                shell_timeout: PATIENCE,
                known_here: false,
                proposals: false,
                agents: self.agents(engine, program.clone())?,
            },
            memory: None,
            program,
            environment: self.environment.pairs(),
        })
    }

    fn agents(&self, engine: EngineKind, program: PathBuf) -> Result<AgentSettings, Report> {
        let mut agents = AgentSettings { timeout: AGENTS_PATIENCE, silence: AGENTS_PATIENCE, ..AgentSettings::usual(program) };
        agents.choose(&engine.engine_name())?;
        agents.follow_script(&self.folder.join(SCRIPT));
        Ok(agents)
    }

    /// The commits, oldest first.
    pub(super) fn log(&self) -> Result<String, DemoError> {
        self.git(&["log", "--reverse", "--format=%h %s", "--abbrev=12"])
    }

    /// Commands to look further.
    pub(super) fn ways_on(&self, run: &RunId) -> Vec<String> {
        match self.fate {
            Fate::Temporary(_) => vec![
                "proctor demo --keep proctor-demo".to_owned(),
                "  or, from its source: cargo run --release -- demo --keep proctor-demo".to_owned(),
                "(this folder is removed now; that one stays, to be looked at with `proctor show`, `proctor log` and `proctor cost`)"
                    .to_owned(),
            ],
            Fate::Made | Fate::Found => vec![
                format!("cd {}", quoted(&self.folder)),
                format!("export {}={}", environment::STATE_DIR.name, quoted(&state_home(&self.folder))),
                format!("proctor show {run}"),
                format!("proctor log {run}"),
                "proctor cost".to_owned(),
                "proctor procedure show release-check".to_owned(),
                "git log --stat".to_owned(),
            ],
        }
    }

    /// Ends the demo: a temporary folder goes, a kept one stays.
    pub(super) fn leave(self) -> Result<(), DemoError> {
        match self.fate {
            Fate::Temporary(folder) => folder.close().map_err(|source| DemoError::Remove { path: self.folder, source }),
            Fate::Made | Fate::Found => Ok(()),
        }
    }

    /// Removes everything that was made.
    pub(super) fn remove(self) -> Result<(), DemoError> {
        let Self { folder, fate, .. } = self;
        let removed = match fate {
            Fate::Temporary(temporary) => temporary.close(),
            Fate::Made => std::fs::remove_dir_all(&folder),
            Fate::Found => empty(&folder),
        };
        removed.map_err(|source| DemoError::Remove { path: folder, source })
    }

    /// Runs git in a session of its own, so that a Ctrl-C meant for the demo does not kill it half way.
    fn git(&self, arguments: &[&str]) -> Result<String, DemoError> {
        let program = Program::new("git").args(arguments.iter().copied()).dir(self.folder.as_path()).env(self.environment.pairs());
        let finished = program.own_session().run(Some(PATIENCE))?;
        if finished.status.is_success() {
            return Ok(String::from_utf8_lossy(&finished.stdout).into_owned());
        }
        let output = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        Err(DemoError::Git { command: arguments.join(" "), output })
    }
}

fn empty(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() { std::fs::remove_dir_all(entry.path())? } else { std::fs::remove_file(entry.path())? }
    }
    Ok(())
}

fn state_home(folder: &Path) -> PathBuf {
    folder.join(".git").join("proctor-state")
}

/// The user's environment without what git or Proctor would take from it, plus the demo's own.
///
/// The marker of a session stays: a demo that an agent plays must end with the agent's session.
fn environment_for(users: &Environment, folder: &Path) -> Environment {
    let is_ours = |name: &OsStr| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"GIT_") || (name.starts_with(b"PROCTOR_") && name != environment::SESSION.name.as_bytes())
    };
    let kept = users.pairs().into_iter().filter(|(name, _)| !is_ours(name));
    let own = [
        ("GIT_CONFIG_GLOBAL", OsString::from("/dev/null")),
        ("GIT_CONFIG_NOSYSTEM", OsString::from("1")),
        ("GIT_TERMINAL_PROMPT", OsString::from("0")),
        (environment::STATE_DIR.name, state_home(folder).into_os_string()),
    ];
    kept.chain(own.into_iter().map(|(name, value)| (OsString::from(name), value))).collect()
}

/// A path as a value in git's settings.
fn config_value(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', r"\\").replace('"', "\\\""))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_git_and_proctor_variables_stay_out_and_the_session_marker_stays_in() {
        let users: Environment =
            [("GIT_DIR", "/x"), ("PROCTOR_LAYOUT", "beebox"), ("PROCTOR_SESSION", "ses_0000000000"), ("HOME", "/home/ann")]
                .into_iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect();

        let names: Vec<OsString> = environment_for(&users, Path::new("/d")).pairs().into_iter().map(|(name, _)| name).collect();

        assert_eq!(
            names,
            ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT", "HOME", "PROCTOR_SESSION", "PROCTOR_STATE_DIR"]
        );
    }

    #[test]
    fn the_fix_changes_the_shipped_program() {
        let program = FILES.iter().find(|(path, ..)| *path == FIX.file).map(|(_, text, _)| *text).unwrap();

        assert_eq!((program.matches(FIX.before).count(), program.matches(OLDER.before).count()), (1, 1));
    }
}
