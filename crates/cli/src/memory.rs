//! Memory as it is seen from where a command works: its two folders, and the library that they are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proctor_orchestrator::Memory;
use proctor_recall::embedding::{Embedder, MiniLm};
use proctor_recall::hygiene::Mask;
use proctor_recall::matching::Bars;
use proctor_recall::{Contents, Entry, Folder, Library, Sense, Shelf, StoreError};
use proctor_workspace::{GitEnvironment, Repository, WorkspaceError};

use crate::Invocation;
use crate::args::memory::PlaceArgs;
use crate::environment::{self, Environment};
use crate::place::{SettingsHere, card_root};
use crate::report::{Kind, Report};

/// The folders that a command is about, and what is known of the place. It costs one call of git, and reads no settings.
pub struct Places {
    /// The repository's first.
    pub shelves: Vec<Shelf>,
    /// Where it works, if that is a repository.
    pub repository: Option<Repository>,
    /// Where its lock files are looked for.
    pub card_root: Option<PathBuf>,
    /// The repository's name.
    pub project: Option<String>,
    /// Where indexes are kept.
    pub cache: Option<PathBuf>,
    /// Where the files of the model of meaning are, if not in this program.
    pub model: Option<PathBuf>,
}

/// What must not be written: values of the variables that settings name, and of those whose name says that they are secret.
///
/// # Errors
/// Settings can't be read.
pub fn mask(invocation: &Invocation) -> Result<Mask, Report> {
    Ok(mask_of(invocation, &SettingsHere::find(invocation)?.agents.secrets))
}

/// The same, where the names that settings have are known.
fn mask_of(invocation: &Invocation, secrets: &[String]) -> Mask {
    let named = secrets.iter().filter_map(|name| invocation.environment.value_of(name));
    let pairs = invocation.environment.pairs();
    let telling = pairs.iter().filter(|(name, _)| is_named_as_secret(name)).map(|(_, value)| value.as_bytes().to_vec());
    Mask::new(&named.chain(telling).collect::<Vec<_>>())
}

/// Whether a variable says by its name that its value is a secret, though no setting does.
fn is_named_as_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY"].iter().any(|end| name.ends_with(end))
}

/// The name of the main working tree's folder: what people call the repository.
fn name_of(repository: &Repository) -> String {
    let folder = match repository.common_dir.file_name() {
        Some(name) if name == ".git" => repository.common_dir.parent().unwrap_or(&repository.common_dir),
        Some(_) | None => &repository.common_dir,
    };
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Memory as runs use it. Nothing is read before it is asked.
pub fn memory_of_runs(invocation: &Invocation, repository: &Repository, card_root: &Path, secrets: &[String]) -> Memory {
    let project = name_of(repository);
    let user = home_of_memory(&invocation.environment).map(|data| Folder::of_user(&data));
    let of_project = Shelf { name: "project", folder: Folder::of_project(card_root, &project) };
    let of_user = user.clone().map(|folder| Shelf { name: "user", folder });
    let shelves = [of_project].into_iter().chain(of_user).collect();
    let (cache, model) = (cache_of_memory(&invocation.environment), invocation.environment.folder(&environment::MODEL));
    let places = Places { shelves, repository: None, card_root: Some(card_root.to_owned()), project: Some(project.clone()), cache, model };
    Memory {
        library: places.library().with_top(repository.work_tree.clone()),
        proposals: user,
        project: Some(project),
        mask: mask_of(invocation, secrets),
    }
}

impl Places {
    /// Looks around. Makes nothing.
    ///
    /// # Errors
    /// The repository's memory is wanted and there is no repository, or there is no place for the user's.
    pub fn find(invocation: &Invocation, args: PlaceArgs) -> Result<Self, Report> {
        let git = GitEnvironment::from_user(invocation.environment.pairs());
        let repository = match Repository::discover(&invocation.directory, &git) {
            Err(WorkspaceError::NotARepository { .. }) if !args.project => None,
            other => Some(other?),
        };
        let card_root = repository.as_ref().map(|repository| card_root(&invocation.directory, &repository.work_tree).0);
        let project = repository.as_ref().map(name_of);
        let mut shelves = Vec::new();
        if let (Some(root), Some(project), false) = (&card_root, &project, args.user) {
            shelves.push(Shelf { name: "project", folder: Folder::of_project(root, project) });
        }
        match home_of_memory(&invocation.environment) {
            Some(data) if !args.project => shelves.push(Shelf { name: "user", folder: Folder::of_user(&data) }),
            None if args.user || shelves.is_empty() => {
                return Err(Report::new(
                    Kind::Environment,
                    "there is no place for your memory: neither HOME nor XDG_DATA_HOME names a folder",
                ));
            }
            Some(_) | None => {}
        }
        let (cache, model) = (cache_of_memory(&invocation.environment), invocation.environment.folder(&environment::MODEL));
        Ok(Self { shelves, repository, card_root, project, cache, model })
    }

    /// All of it, to be searched.
    pub fn library(&self) -> Library {
        let library = Library::new(self.shelves.clone(), self.project.clone(), self.card_root.clone());
        let library = match &self.repository {
            Some(repository) => library.with_top(repository.work_tree.clone()),
            None => library,
        };
        let library = match &self.cache {
            Some(folder) => library.with_cache(folder.clone()),
            None => library,
        };
        match self.sense() {
            Some(sense) => library.with_sense(Arc::new(sense)),
            None => library,
        }
    }

    /// The model of meaning, if there is one: the folder that the environment names, or what is part of this program. Nothing
    /// is read before somebody asks.
    fn sense(&self) -> Option<Sense> {
        let embedder: Box<dyn Embedder> = match &self.model {
            Some(folder) => Box::new(MiniLm::in_folder(folder.clone())),
            None => Box::new(MiniLm::bundled()?),
        };
        Some(Sense::new(embedder, Bars::of_minilm(), self.cache.clone()))
    }

    /// The folder that new records go to.
    ///
    /// # Errors
    /// There is none.
    pub fn first(&self) -> Result<&Shelf, Report> {
        self.shelves.first().ok_or_else(|| Report::new(Kind::Internal, "there is no folder of memory"))
    }

    /// What is in each folder.
    ///
    /// # Errors
    /// A file is damaged or can't be read.
    pub fn read(&self) -> Result<Vec<(&Shelf, Contents)>, Report> {
        self.shelves.iter().map(|shelf| Ok((shelf, shelf.folder.read()?))).collect()
    }

    /// The record that an id means, and its folder.
    ///
    /// # Errors
    /// There is none, or more than one, or a file is damaged.
    pub fn find_record(&self, text: &str) -> Result<(&Shelf, Entry), Report> {
        let mut missing = None;
        let mut found = Vec::new();
        for (shelf, contents) in self.read()? {
            match contents.find(text) {
                Ok(entry) => found.push((shelf, entry.clone())),
                Err(error @ StoreError::NoRecord { .. }) => missing = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        let ids = found.iter().map(|(_, entry)| entry.record.id.to_string()).collect();
        match (found.pop(), found.is_empty(), missing) {
            (Some(only), true, _) => Ok(only),
            (Some(_), false, _) => Err(StoreError::Ambiguous { text: text.to_owned(), ids }.into()),
            (None, _, Some(error)) => Err(error.into()),
            (None, _, None) => Err(StoreError::NoRecord { text: text.to_owned() }.into()),
        }
    }
}

fn home_of_memory(environment: &Environment) -> Option<PathBuf> {
    let home = || environment.folder(&environment::HOME).map(|home| home.join(".local").join("share"));
    environment.folder(&environment::XDG_DATA_HOME).or_else(home)
}

fn cache_of_memory(environment: &Environment) -> Option<PathBuf> {
    let home = || environment.folder(&environment::HOME).map(|home| home.join(".cache"));
    let cache = environment.folder(&environment::XDG_CACHE_HOME).or_else(home);
    cache.map(|cache| cache.join("proctor").join("memory"))
}
