//! One settings file of a host: found, read, and changed without losing what others write.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use proctor_process::durable::{self, Durability, Replaced};
use proctor_workspace::{GitEnvironment, Repository};
use sha2::{Digest, Sha256};

use super::Change;
use super::entries;
use crate::Invocation;
use crate::args::hook::{HookPlaceArgs, Host};
use crate::environment::{self, Environment};
use crate::report::{Kind, Report};
use crate::state::StateHome;

const LONGEST: u64 = 16 << 20;

/// A file of settings; it need not be there.
pub(super) struct SettingsFile {
    pub(super) host: Host,
    /// Where it is, all links followed.
    pub(super) path: PathBuf,
    /// Where the copy of it is kept.
    backups: Option<PathBuf>,
    /// Mode of the file and its folders, where they have to be made.
    modes: (u32, u32),
}

impl SettingsFile {
    /// Where the host looks for it. A link is followed, but never from a repository to what is outside it: somebody else may have
    /// put it there.
    pub(super) fn find(invocation: &Invocation, host: Host, place: HookPlaceArgs) -> Result<Self, Report> {
        let git = GitEnvironment::from_user(invocation.environment.pairs());
        let (path, within) = if place.project {
            let top = Repository::discover(&invocation.directory, &git)?.work_tree;
            let (folder, name) = names(host);
            (top.join(folder).join(name), Some(top))
        } else {
            (of_user(host, &invocation.environment)?, None)
        };
        let backups = StateHome::of(None, &invocation.environment).ok().map(|home| home.path().join("hooks").join("before"));
        let modes = if place.project { (0o666, 0o777) } else { (0o600, 0o700) };
        let file = Self { host, path, backups, modes };
        let resolved = file.resolve()?;
        match within.and_then(|top| top.canonicalize().ok()) {
            Some(top) if !resolved.starts_with(&top) => {
                Err(file.refused(&format!("it leads out of the repository, to {}", resolved.display())))
            }
            Some(_) | None => Ok(Self { path: resolved, ..file }),
        }
    }

    fn resolve(&self) -> Result<PathBuf, Report> {
        let Some((there, above)) = self.path.ancestors().find_map(|above| Some((fs::symlink_metadata(above).ok()?, above))) else {
            return Ok(self.path.clone());
        };
        let resolved = above.canonicalize().map_err(|_| self.refused(&format!("{} is a link that leads nowhere", above.display())))?;
        let rest = self.path.strip_prefix(above).unwrap_or(Path::new(""));
        let is_file = there.is_file() || there.is_symlink() && resolved.is_file();
        match (rest.as_os_str().is_empty(), is_file) {
            (true, true) => Ok(resolved),
            (true, false) => Err(self.refused("it is no ordinary file")),
            (false, _) => Ok(resolved.join(rest)),
        }
    }

    /// Why nothing was changed.
    pub(super) fn refused(&self, why: &str) -> Report {
        Report::new(Kind::Config, format!("{} was left alone: {why}", self.path.display()))
    }

    /// What it holds, if it is there.
    pub(super) fn read(&self) -> Result<Option<String>, Report> {
        let unreadable = |error: &std::io::Error| self.refused("it can't be read").because(error);
        match fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&error)),
            Ok(metadata) if !metadata.is_file() => return Err(self.refused("it is no ordinary file")),
            Ok(metadata) if metadata.len() > LONGEST => return Err(self.refused("it is longer than 16 MiB")),
            Ok(_) => {}
        }
        let bytes = fs::read(&self.path).map_err(|error| unreadable(&error))?;
        let text = String::from_utf8(bytes).map_err(|_| self.refused("it is not UTF-8"))?;
        entries::check(&text).map_err(|why| self.refused(why))?;
        Ok(Some(text))
    }

    /// Changes it, unless it no longer holds `known`. Says whether it did.
    pub(super) fn change(&self, known: Option<&str>, change: &Change) -> Result<bool, Report> {
        let failed = |error: &dyn std::error::Error| {
            Report::new(Kind::Environment, format!("{} can't be changed", self.path.display())).because(error)
        };
        match change {
            Change::None => Ok(true),
            Change::Remove => {
                if self.read()?.as_deref() != known {
                    return Ok(false);
                }
                fs::remove_file(&self.path).map(|()| true).map_err(|error| failed(&error))
            }
            Change::Write(text) => {
                self.keep(known)?;
                if let Some(folder) = self.path.parent() {
                    DirBuilder::new().recursive(true).mode(self.modes.1).create(folder).map_err(|error| failed(&error))?;
                }
                let known = known.map(str::as_bytes);
                let replaced = durable::replace(&self.path, known, text.as_bytes(), Durability::Synced, self.modes.0);
                Ok(replaced.map_err(|error| failed(&error))? == Replaced::Done)
            }
        }
    }

    /// Keeps a copy of the file as it is without hooks of ours.
    fn keep(&self, known: Option<&str>) -> Result<(), Report> {
        let Some(path) = self.backup_path() else {
            return Err(Report::new(Kind::Environment, "there is no place for a copy: neither HOME nor XDG_STATE_HOME names a folder"));
        };
        let failed = |error: &dyn std::error::Error| self.refused("a copy of it can't be kept").because(error);
        match known {
            None => self.forget_backup(),
            Some(text) if entries::commands(self.host, text).is_empty() => {
                if let Some(folder) = path.parent() {
                    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(&error))?;
                }
                durable::write(&path, text.as_bytes(), Durability::Synced).map_err(|error| failed(&error))?;
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// What it held before hooks were entered, if it was there.
    pub(super) fn backup(&self) -> Result<Option<String>, Report> {
        let Some(path) = self.backup_path() else { return Ok(None) };
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Report::new(Kind::Environment, format!("{} can't be read", path.display())).because(&error)),
        }
    }

    pub(super) fn forget_backup(&self) {
        if let Some(path) = self.backup_path() {
            let _ = fs::remove_file(path);
        }
    }

    pub(super) fn backup_path(&self) -> Option<PathBuf> {
        let hash: String = Sha256::digest(self.path.as_os_str().as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.backups.as_ref().map(|folder| folder.join(format!("{}-{hash}.json", self.host.word())))
    }
}

fn names(host: Host) -> (&'static str, &'static str) {
    match host {
        Host::ClaudeCode => (".claude", "settings.json"),
        Host::Codex => (".codex", "hooks.json"),
        Host::Cursor => (".cursor", "hooks.json"),
    }
}

fn of_user(host: Host, environment: &Environment) -> Result<PathBuf, Report> {
    let (folder, name) = names(host);
    let own = match host {
        Host::ClaudeCode => environment.folder(&environment::CLAUDE_CONFIG_DIR),
        Host::Codex => environment.folder(&environment::CODEX_HOME),
        Host::Cursor => None,
    };
    let folder = own.or_else(|| environment.folder(&environment::HOME).map(|home| home.join(folder)));
    folder.map(|folder| folder.join(name)).ok_or_else(|| Report::new(Kind::Environment, "HOME names no folder"))
}
