//! Finds, and where asked for makes, the state folder of a repository.
//!
//! `<git common dir>/proctor-id` names the state: `repos/<name>-<id>/` in the folder that holds the state of all
//! repositories. `repo.json` in it records whose it is. The same id elsewhere means that the repository was moved
//! (the recorded place no longer has the id: the state is adopted) or copied (it still has it: the copy gets an id
//! of its own, or two repositories would write one journal).
//!
//! What only reads uses [`find`], which creates and changes nothing, so that it works on read-only state; what
//! writes uses [`establish`].

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_domain::RepoPath;
use proctor_orchestrator::{StateFolder, random_bits};
use proctor_process::durable::{self, Durability, DurableError};
use proctor_process::lock::{self, Attempt, HeldLock, LockError};
use proctor_workspace::{Repository, WorkspaceError};
use serde::{Deserialize, Serialize};

use crate::environment::{self, Environment};

const RECORD: &str = "repo.json";
const RECORD_VERSION: u32 = 1;
const ID_FILE: &str = "proctor-id";
/// Long enough for many first starts at once; the lock is held for a few file writes.
const PATIENCE: Duration = Duration::from_secs(10);

/// State that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There is no place for it.
    #[error("there is no place for state: neither HOME nor XDG_STATE_HOME names a folder")]
    NoHome,
    /// Locks don't work there.
    #[error("state can't be in {}: file locks don't work there (a network or shared file system?), so two runs could not be kept apart", path.display())]
    NoLocks {
        /// The folder.
        path: PathBuf,
    },
    /// It can't be written.
    #[error("state in {} can't be written", path.display())]
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It can't be read.
    #[error("state in {} can't be read", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A newer Proctor made it and it would have to be changed.
    #[error("state in {} was made by a newer proctor (version {version})", path.display())]
    Newer {
        /// The folder.
        path: PathBuf,
        /// The record's version.
        version: u32,
    },
    /// Somebody holds the lock under which state is made.
    #[error("{} is held by another proctor", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// A file of it can't be written.
    #[error(transparent)]
    Durable(#[from] DurableError),
    /// The lock can't be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There are no random numbers for a new id.
    #[error("the system gives no random numbers for a new id")]
    NoRandomness(#[from] getrandom::Error),
    /// The repository's id can't be read or written.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

impl StateError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoHome | Self::NoLocks { .. } | Self::Unwritable { .. } => {
                Some(format!("set {} to a folder on a local disk that you can write", environment::STATE_DIR.name))
            }
            Self::Newer { .. } => Some("use the newer proctor".to_owned()),
            Self::Busy { .. } => Some("try again".to_owned()),
            Self::Unreadable { .. } | Self::Durable(_) | Self::Lock(_) | Self::NoRandomness(_) | Self::Workspace(_) => None,
        }
    }
}

/// The folder that holds the state of all repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateHome(PathBuf);

impl StateHome {
    /// The folder that a setting names, else the XDG place.
    ///
    /// # Errors
    /// Neither is there.
    pub fn of(setting: Option<&Path>, environment: &Environment) -> Result<Self, StateError> {
        if let Some(folder) = setting {
            return Ok(Self(folder.to_owned()));
        }
        let xdg = environment.folder(&environment::XDG_STATE_HOME);
        let home = || environment.folder(&environment::HOME).map(|home| home.join(".local").join("state"));
        xdg.or_else(home).map(|folder| Self(folder.join("proctor"))).ok_or(StateError::NoHome)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn repositories(&self) -> PathBuf {
        self.0.join("repos")
    }
}

/// `repo.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// The common git directory, in git's quoted form where it is not UTF-8.
    common_dir: String,
}

/// What the id and the records say.
#[derive(Debug, PartialEq, Eq)]
enum Claim {
    /// The folder is this repository's.
    Ours(PathBuf),
    /// The folder was this repository's when it was elsewhere, or its making was cut short.
    Adopt(PathBuf),
    /// The repository has this id and the folder of that id is not there.
    Missing(String),
    /// The repository has no id.
    New,
    /// The id was copied along with the repository.
    Copied,
}

/// The state folder of a repository, if it has one. Creates and changes nothing.
///
/// # Errors
/// What is there can't be read.
pub fn find(home: &StateHome, repository: &Repository) -> Result<Option<StateFolder>, StateError> {
    Ok(match claim(home, repository)? {
        Claim::Ours(folder) | Claim::Adopt(folder) => Some(StateFolder::new(folder)),
        Claim::Missing(_) | Claim::New | Claim::Copied => None,
    })
}

/// The state folder of a repository, made where there is none, and checked: it can be written and locks work.
///
/// # Errors
/// It can't be made, or can't be used.
pub fn establish(home: &StateHome, repository: &Repository) -> Result<StateFolder, StateError> {
    let repositories = home.repositories();
    create_private(&repositories)?;
    check_locks(&repositories)?;
    let folder = match claim(home, repository)? {
        Claim::Ours(folder) => folder,
        Claim::Adopt(_) | Claim::Missing(_) | Claim::New | Claim::Copied => settle(home, repository)?,
    };
    let state = StateFolder::new(folder);
    state.folders().iter().try_for_each(|folder| create_private(folder))?;
    check_locks(state.root())?;
    Ok(state)
}

/// Makes or adopts the folder under a lock, so that of two first starts the second finds what the first made.
fn settle(home: &StateHome, repository: &Repository) -> Result<PathBuf, StateError> {
    let _lock = hold(&home.repositories().join(".lock"))?;
    let folder = match claim(home, repository)? {
        Claim::Ours(folder) => return Ok(folder),
        Claim::Adopt(folder) => {
            repair_id(repository, &folder)?;
            folder
        }
        Claim::Missing(id) => home.repositories().join(folder_name(repository, &id)),
        Claim::New => {
            let id = repository.claim_proctor_id(&new_id()?)?;
            home.repositories().join(folder_name(repository, &id))
        }
        Claim::Copied => {
            let id = new_id()?;
            repository.replace_proctor_id(&id)?;
            home.repositories().join(folder_name(repository, &id))
        }
    };
    create_private(&folder)?;
    write_record(&folder, repository)?;
    Ok(folder)
}

fn claim(home: &StateHome, repository: &Repository) -> Result<Claim, StateError> {
    let Some(id) = repository.proctor_id()?.map(|id| id.trim().to_owned()) else {
        // An empty file was meant to hold an id.
        return if repository.common_dir.join(ID_FILE).exists() { garbled(home, repository) } else { Ok(Claim::New) };
    };
    if !is_id(&id) {
        return garbled(home, repository);
    }
    let Some(folder) = folder_of(home, &id)? else { return Ok(Claim::Missing(id)) };
    let Some(record) = read_record(&folder)? else { return Ok(Claim::Adopt(folder)) };
    let recorded = record.path();
    if same_place(&recorded, &repository.common_dir) {
        return Ok(Claim::Ours(folder));
    }
    if std::fs::read_to_string(recorded.join(ID_FILE)).is_ok_and(|other| other.trim() == id) {
        return Ok(Claim::Copied);
    }
    if record.version > RECORD_VERSION {
        return Err(StateError::Newer { path: folder, version: record.version });
    }
    Ok(Claim::Adopt(folder))
}

/// The id file holds no id: a disk error, or another program wrote it. State that records this very place is taken
/// back, because losing a run's journal is worse than asking twice.
fn garbled(home: &StateHome, repository: &Repository) -> Result<Claim, StateError> {
    for folder in folders(home)? {
        if read_record(&folder)?.is_some_and(|record| same_place(&record.path(), &repository.common_dir)) {
            return Ok(Claim::Adopt(folder));
        }
    }
    Ok(Claim::Copied)
}

fn repair_id(repository: &Repository, folder: &Path) -> Result<(), StateError> {
    let id = id_of(folder);
    if let Some(id) = id.filter(|id| is_id(id))
        && repository.proctor_id()?.as_deref().map(str::trim) != Some(id)
    {
        repository.replace_proctor_id(id)?;
    }
    Ok(())
}

fn is_id(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn new_id() -> Result<String, StateError> {
    Ok(format!("{:08x}", random_bits()? & 0xffff_ffff))
}

/// `<name>-<id>`: the name is for people who look around, the id decides.
fn folder_name(repository: &Repository, id: &str) -> String {
    let place = match repository.common_dir.file_name() {
        Some(name) if name == ".git" => repository.common_dir.parent().unwrap_or(&repository.common_dir),
        _ => &repository.common_dir,
    };
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let safe = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    let name: String = name.trim_start_matches('.').chars().take(40).map(safe).collect();
    format!("{}-{id}", if name.is_empty() { "repository" } else { &name })
}

fn folders(home: &StateHome) -> Result<Vec<PathBuf>, StateError> {
    let path = home.repositories();
    let unreadable = |source| StateError::Unreadable { path: path.clone(), source };
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(unreadable)).collect()
}

fn folder_of(home: &StateHome, id: &str) -> Result<Option<PathBuf>, StateError> {
    Ok(folders(home)?.into_iter().find(|folder| id_of(folder) == Some(id)))
}

fn id_of(folder: &Path) -> Option<&str> {
    folder.file_name()?.to_str()?.rsplit_once('-').map(|(_, id)| id)
}

impl Record {
    fn path(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsStr::from_bytes(RepoPath::parse(&self.common_dir).as_bytes()))
    }
}

/// `None` where there is none, or one that can't be understood: the making of the folder was cut short.
fn read_record(folder: &Path) -> Result<Option<Record>, StateError> {
    let path = folder.join(RECORD);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(StateError::Unreadable { path, source }),
    }
}

fn write_record(folder: &Path, repository: &Repository) -> Result<(), StateError> {
    let common_dir = RepoPath::new(repository.common_dir.as_os_str().as_bytes()).to_string();
    let record = serde_json::json!({ "version": RECORD_VERSION, "common_dir": common_dir });
    Ok(durable::write(&folder.join(RECORD), format!("{record}\n").as_bytes(), Durability::Synced)?)
}

/// Whether two paths are one folder, also through symbolic links and bind mounts.
fn same_place(left: &Path, right: &Path) -> bool {
    if left == right {
        return true;
    }
    match (std::fs::metadata(left), std::fs::metadata(right)) {
        (Ok(left), Ok(right)) => (left.dev(), left.ino()) == (right.dev(), right.ino()),
        (Ok(_) | Err(_), _) => false,
    }
}

/// Makes a folder, with the folders above it, that only its owner can look into.
fn create_private(folder: &Path) -> Result<(), StateError> {
    let unwritable = |source| StateError::Unwritable { path: folder.to_owned(), source };
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() && metadata.permissions().mode() & 0o077 == 0 => Ok(()),
        // A folder that others made readable, say with `cp -r`, becomes private again.
        Ok(metadata) if metadata.is_dir() => std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(unwritable),
        Ok(_) | Err(_) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable),
    }
}

fn check_locks(folder: &Path) -> Result<(), StateError> {
    if lock::locks_work(folder)? { Ok(()) } else { Err(StateError::NoLocks { path: folder.to_owned() }) }
}

fn hold(path: &Path) -> Result<HeldLock, StateError> {
    let started = Instant::now();
    loop {
        match lock::try_acquire(path, &std::process::id().to_string())? {
            Attempt::Acquired(lock) => return Ok(lock),
            Attempt::Held { .. } if started.elapsed() > PATIENCE => return Err(StateError::Busy { path: path.to_owned() }),
            Attempt::Held { .. } => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
