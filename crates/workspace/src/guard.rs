//! What the settings named as programs when the run began.
//!
//! A step may write to git's settings. Where a shell of the user's did it, commits follow what it set;
//! but a status or diff that Proctor makes for its own purposes must not start a program because a step
//! asked for it. So the settings are remembered when the run begins, the files they come from are
//! compared before each reading command, and what names a program and is new or changed is overridden.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use proctor_process::durable::{self, Durability};

use crate::environment::expand_home;
use crate::git::unreadable;
use crate::{Repository, WorkspaceError};

/// A settings file over this size is not git's work; it is compared by its size alone.
const LARGEST_FILE: u64 = 4 * 1024 * 1024;

/// Marks the file that carries the settings from a run's start to its resume.
const KEPT_HEADER: &[u8] = b"proctor git settings 1\0";

/// Names and values of settings, as bytes: the name of a filter can be any. The last value of a name counts, as it does for git.
type Settings = BTreeMap<Vec<u8>, Vec<u8>>;

/// How a reading command is kept from what was planted.
#[derive(Debug, Default)]
pub(crate) struct Defence {
    /// Settings that take the planted ones' place.
    pub(crate) overrides: Vec<(OsString, OsString)>,
    /// Whether what would be asked for objects that are missing here is no longer what it was: then nothing
    /// is asked. (In a partial clone git fetches what it misses, by whatever program a remote names.)
    pub(crate) fetch: Fetch,
}

/// Whether git may fetch objects that it misses.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    #[default]
    AsUsual,
    Nothing,
}

/// The settings at a run's start, and the newest that were read.
#[derive(Debug)]
pub(crate) struct ConfigGuard {
    /// What named a program, or decided about fetching, at the start.
    start: Settings,
    /// What holds now.
    current: Listing,
}

/// The settings as git listed them, with the files that they came or might have come from.
#[derive(Debug)]
struct Listing {
    settings: Settings,
    files: Vec<(PathBuf, Contents)>,
}

/// A settings file as it was. The bytes themselves and not a digest of them: the files are small, and
/// whoever plants a setting may choose contents that collide under any quick hash.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Contents {
    Absent,
    Bytes(Vec<u8>),
    TooLarge(u64),
    /// Not a plain file, or not ours to read.
    Other,
}

impl Contents {
    fn of(path: &Path) -> Self {
        // The kind is asked first, because opening a FIFO would wait for a writer.
        let length = match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => return Self::Other,
            Ok(metadata) if metadata.len() > LARGEST_FILE => return Self::TooLarge(metadata.len()),
            Ok(metadata) => usize::try_from(metadata.len()).unwrap_or_default(),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return Self::Absent;
            }
            Err(_) => return Self::Other,
        };
        // With room for all of it, one call reads a file and one more finds its end, as often as a run has steps.
        let mut bytes = Vec::with_capacity(length + 64);
        match std::fs::File::open(path).and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes)) {
            Ok(_) => Self::Bytes(bytes),
            Err(_) => Self::Other,
        }
    }
}

impl Repository {
    /// Remembers the settings as the user's own. Where the file `kept` exists, what it holds is taken
    /// instead, so that a resume does not take for the user's what a step set before the run died; else
    /// the file is written. Without a call of this, the first command that reads remembers.
    pub fn guard_config(&self, kept: Option<&Path>) -> Result<(), WorkspaceError> {
        let current = self.list_settings()?;
        let earlier = kept.and_then(|path| std::fs::read(path).ok()).and_then(|bytes| parse_kept(&bytes));
        let start = match (earlier, kept) {
            (Some(start), _) => start,
            (None, None) => remembered(&current.settings),
            (None, Some(path)) => {
                let start = remembered(&current.settings);
                durable::write(path, &render_kept(&start), Durability::Renamed)
                    .map_err(|source| WorkspaceError::Keep { path: path.to_owned(), source })?;
                start
            }
        };
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = Some(ConfigGuard { start, current });
        Ok(())
    }

    /// Takes what another repository's guard remembers for the start of this one's: for a submodule that
    /// appeared during the run.
    pub(crate) fn guard_config_as(&self, other: &Self) -> Result<(), WorkspaceError> {
        let start = other.with_guard(|guard| guard.start.clone())?;
        let current = self.list_settings()?;
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = Some(ConfigGuard { start, current });
        Ok(())
    }

    /// The program-naming settings that appeared or changed since the run began. Reading commands run without them.
    pub fn planted_settings(&self) -> Result<Vec<String>, WorkspaceError> {
        Ok(self.defence()?.overrides.into_iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect())
    }

    /// What reading commands need to be safe now.
    pub(crate) fn defence(&self) -> Result<Defence, WorkspaceError> {
        self.with_guard(|guard| {
            let now = remembered(&guard.current.settings);
            let changed = now.iter().filter(|(name, value)| guard.start.get(*name) != Some(*value));
            let mut defence = Defence::default();
            for (name, _) in changed {
                defence.fetch = Fetch::Nothing;
                if names_a_program(name) {
                    let neutral = guard.start.get(name).cloned().unwrap_or_else(|| neutral_value(name).to_vec());
                    defence.overrides.push((OsString::from_vec(name.clone()), OsString::from_vec(neutral)));
                }
            }
            defence
        })
    }

    /// The present value of a setting; the name in git's canonical form.
    pub(crate) fn setting(&self, name: &str) -> Result<Option<String>, WorkspaceError> {
        let text = |value: &Vec<u8>| String::from_utf8_lossy(value).into_owned();
        self.with_guard(|guard| guard.current.settings.get(name.as_bytes()).map(text))
    }

    /// Whether there is a setting whose name is accepted.
    pub(crate) fn has_setting(&self, accepted: impl Fn(&[u8]) -> bool) -> Result<bool, WorkspaceError> {
        self.with_guard(|guard| guard.current.settings.keys().any(|name| accepted(name)))
    }

    /// Looks at the guard after making sure that it knows the settings as they are now.
    fn with_guard<T>(&self, look: impl FnOnce(&ConfigGuard) -> T) -> Result<T, WorkspaceError> {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = guard.as_mut() {
            if known.current.files.iter().any(|(path, contents)| Contents::of(path) != *contents) {
                known.current = self.list_settings()?;
            }
            return Ok(look(known));
        }
        let current = self.list_settings()?;
        let start = remembered(&current.settings);
        Ok(look(guard.insert(ConfigGuard { start, current })))
    }

    /// Asks git. The files are read *before* git reads them: a change in between shows as a difference
    /// at the next comparison, while the other order would hide it for good.
    fn list_settings(&self) -> Result<Listing, WorkspaceError> {
        let mut paths = self.settings_files();
        loop {
            let files: Vec<(PathBuf, Contents)> = paths.iter().map(|path| (path.clone(), Contents::of(path))).collect();
            let git = self.git("config").args(["--list", "-z", "--show-origin"]);
            let output = git.run()?.stdout;
            let (settings, named) = parse_listing(&output, self).ok_or_else(|| unreadable("config", &output))?;
            let unknown: Vec<PathBuf> = named.into_iter().filter(|path| !paths.contains(path)).collect();
            if unknown.is_empty() {
                return Ok(Listing { settings, files });
            }
            paths.extend(unknown);
        }
    }

    /// Where git looks for settings, whether or not there is a file.
    fn settings_files(&self) -> Vec<PathBuf> {
        let mut files = self.environment.user_config_files();
        files.push(self.environment.get("GIT_CONFIG_SYSTEM").map_or_else(|| PathBuf::from("/etc/gitconfig"), PathBuf::from));
        files.push(self.common_dir.join("config"));
        files.push(self.git_dir.join("config.worktree"));
        files
    }
}

/// Reads `git config --list -z --show-origin`: the settings, and all files that are named by them or as their origin.
fn parse_listing(output: &[u8], repository: &Repository) -> Option<(Settings, Vec<PathBuf>)> {
    let mut settings = Settings::new();
    let mut files: Vec<PathBuf> = Vec::new();
    let mut fields = output.split(|&byte| byte == 0);
    loop {
        let origin = fields.next()?;
        let Some(entry) = fields.next() else {
            return origin.is_empty().then_some((settings, files));
        };
        let mut halves = entry.splitn(2, |&byte| byte == b'\n');
        let name = halves.next()?;
        // A name without `=` is git's short form of "yes".
        let value = halves.next().unwrap_or(b"true");
        let file = origin.strip_prefix(b"file:").map(|path| repository.work_tree.join(expand_home(path, None)));
        if name == b"include.path" || (name.starts_with(b"includeif.") && name.ends_with(b".path")) {
            // Watched even where the condition does not hold or the file is not there: both can change.
            let folder = file.as_deref().and_then(Path::parent).unwrap_or(&repository.work_tree);
            push_new(&mut files, folder.join(expand_home(value, repository.environment.home())));
        }
        if let Some(file) = file {
            push_new(&mut files, file);
        }
        settings.insert(name.to_vec(), value.to_vec());
    }
}

fn push_new(files: &mut Vec<PathBuf>, file: PathBuf) {
    if !files.contains(&file) {
        files.push(file);
    }
}

/// What is to be as it was at the start, for reading commands.
fn remembered(settings: &Settings) -> Settings {
    let kept = settings.iter().filter(|(name, _)| names_a_program(name) || decides_about_fetching(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Section, whether there is a subsection, and key. A subsection may have dots in it.
pub(crate) fn parts(name: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let first = name.iter().position(|&byte| byte == b'.')?;
    let last = name.iter().rposition(|&byte| byte == b'.')?;
    Some((&name[..first], first != last, &name[last + 1..]))
}

/// Whether the setting decides where missing objects come from.
fn decides_about_fetching(name: &[u8]) -> bool {
    match parts(name) {
        Some((b"remote", true, key)) => matches!(key, b"url" | b"promisor" | b"partialclonefilter"),
        Some((b"extensions", false, key)) => key == b"partialclone",
        Some((b"protocol" | b"url", _, _)) => true,
        Some(_) | None => false,
    }
}

/// Whether a command that only reads might start what this setting names.
///
/// Wider than what git's reading commands use today: a setting that is overridden for nothing costs
/// nothing. Aliases and pagers are left out, since we use neither; hooks are switched off altogether.
pub(crate) fn names_a_program(name: &[u8]) -> bool {
    let Some((section, has_subsection, key)) = parts(name) else {
        return false;
    };
    match (section, has_subsection) {
        (b"core", false) => matches!(key, b"sshcommand" | b"askpass" | b"editor" | b"gitproxy" | b"alternaterefscommand"),
        (b"filter", true) => matches!(key, b"clean" | b"smudge" | b"process" | b"required"),
        (b"diff", false) => key == b"external",
        (b"diff", true) => matches!(key, b"command" | b"textconv"),
        (b"gpg", _) => matches!(key, b"program" | b"defaultkeycommand"),
        (b"credential", _) => key == b"helper",
        (b"merge", true) => key == b"driver",
        (b"hook", true) => key == b"command",
        (b"remote", true) => matches!(key, b"uploadpack" | b"receivepack" | b"vcs" | b"proxy"),
        (_, _) => false,
    }
}

/// The value that makes git start nothing.
fn neutral_value(name: &[u8]) -> &'static [u8] {
    // A filter that is required and not there would make the command fail.
    if name.ends_with(b".required") { b"false" } else { b"" }
}

fn render_kept(settings: &Settings) -> Vec<u8> {
    let mut bytes = KEPT_HEADER.to_vec();
    for (name, value) in settings {
        for text in [name, value] {
            bytes.extend_from_slice(text);
            bytes.push(0);
        }
    }
    bytes
}

fn parse_kept(bytes: &[u8]) -> Option<Settings> {
    let rest = bytes.strip_prefix(KEPT_HEADER)?;
    let mut texts = rest.split(|&byte| byte == 0).map(<[u8]>::to_vec);
    let mut settings = Settings::new();
    loop {
        let name = texts.next()?;
        match texts.next() {
            Some(value) => settings.insert(name, value),
            None => return name.is_empty().then_some(settings),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_programs_are_told_from_others() {
        for name in ["filter.x.clean", "filter.a.b=c.process", "diff.external", "diff.x.textconv", "core.sshcommand", "gpg.program"] {
            assert!(names_a_program(name.as_bytes()), "{name}");
        }
        for name in ["core.bare", "filter.clean", "diff.x", "user.name", "alias.x", "nosection", "remote.origin.url"] {
            assert!(!names_a_program(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn kept_settings_read_back_as_themselves() {
        let settings = Settings::from([(b"filter.\xff.clean".to_vec(), b"x\ny".to_vec()), (b"diff.external".to_vec(), Vec::new())]);

        assert_eq!(parse_kept(&render_kept(&settings)), Some(settings));
        assert_eq!(parse_kept(&render_kept(&Settings::new())), Some(Settings::new()));
    }

    #[test]
    fn a_kept_file_of_another_version_is_not_taken() {
        assert_eq!(parse_kept(b"proctor git settings 2\0a\0b\0"), None);
        assert_eq!(parse_kept(b"proctor git settings 1\0a\0"), None);
        assert_eq!(parse_kept(b""), None);
    }
}
