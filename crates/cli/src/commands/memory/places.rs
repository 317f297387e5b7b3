//! The two folders of memory, as they are seen from where a command works.

use std::path::PathBuf;

use proctor_recall::hygiene::Mask;
use proctor_recall::{Contents, Entry, Folder, StoreError};
use proctor_workspace::{GitEnvironment, Repository, WorkspaceError};

use crate::Invocation;
use crate::args::memory::PlaceArgs;
use crate::environment::{self, Environment};
use crate::place::{Place, SettingsHere};
use crate::report::{Kind, Report};

/// A folder of memory, under the name that its flag has.
pub(super) struct Named {
    /// `project` or `user`.
    pub(super) name: &'static str,
    pub(super) folder: Folder,
}

/// The folders that a command is about, and what is known of the place.
pub(super) struct Places {
    /// The repository's first.
    pub(super) folders: Vec<Named>,
    /// Where it works, if that is a repository.
    pub(super) repository: Option<Repository>,
    /// Where its lock files are looked for.
    pub(super) card_root: Option<PathBuf>,
    /// The repository's name.
    pub(super) project: Option<String>,
    /// What must not be written.
    pub(super) mask: Mask,
}

/// The name of the main working tree's folder: what people call the repository.
fn name_of(repository: &Repository) -> String {
    let folder = match repository.common_dir.file_name() {
        Some(name) if name == ".git" => repository.common_dir.parent().unwrap_or(&repository.common_dir),
        Some(_) | None => &repository.common_dir,
    };
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Places {
    /// Looks around. Makes nothing.
    ///
    /// # Errors
    /// The repository's memory is wanted and there is no repository, or there is no place for the user's.
    pub(super) fn find(invocation: &Invocation, args: PlaceArgs) -> Result<Self, Report> {
        let git = GitEnvironment::from_user(invocation.environment.pairs());
        let place = match Repository::discover(&invocation.directory, &git) {
            Err(WorkspaceError::NotARepository { .. }) if !args.project => None,
            Ok(_) | Err(_) => Some(Place::find(invocation)?),
        };
        let settings = SettingsHere::find(invocation)?;
        let values = settings.agents.secrets.iter().filter_map(|name| invocation.environment.value_of(name));
        let mask = Mask::new(&values.collect::<Vec<_>>());
        let project = place.as_ref().map(|place| name_of(&place.repository));
        let mut folders = Vec::new();
        if let (Some(place), Some(project), false) = (&place, &project, args.user) {
            folders.push(Named { name: "project", folder: Folder::of_project(&place.card_root, project) });
        }
        match home_of_memory(&invocation.environment) {
            Some(data) if !args.project => folders.push(Named { name: "user", folder: Folder::of_user(&data) }),
            None if args.user || folders.is_empty() => {
                return Err(Report::new(
                    Kind::Environment,
                    "there is no place for your memory: neither HOME nor XDG_DATA_HOME names a folder",
                ));
            }
            Some(_) | None => {}
        }
        let card_root = place.as_ref().map(|place| place.card_root.clone());
        Ok(Self { folders, repository: place.map(|place| place.repository), card_root, project, mask })
    }

    /// The folder that new records go to.
    pub(super) fn first(&self) -> Result<&Named, Report> {
        self.folders.first().ok_or_else(|| Report::new(Kind::Internal, "there is no folder of memory"))
    }

    /// What is in each folder.
    pub(super) fn read(&self) -> Result<Vec<(&Named, Contents)>, Report> {
        self.folders.iter().map(|named| Ok((named, named.folder.read()?))).collect()
    }

    /// The record that an id means, and its folder.
    pub(super) fn find_record(&self, text: &str) -> Result<(&Named, Entry), Report> {
        let mut missing = None;
        let mut found = Vec::new();
        for (named, contents) in self.read()? {
            match contents.find(text) {
                Ok(entry) => found.push((named, entry.clone())),
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
