//! What git would run in a repository: remembered before an agent's session, compared and put back after it.
//!
//! An agent that can write to git's settings, hooks or pointers could have the next git of Proctor's run
//! what it likes, outside the agent's box. So these are remembered as a whole, compared without asking
//! the repository anything, and put back before git works there again.
//!
//! The user's own settings (`~/.gitconfig`) are not among them: they are no part of the repository, and
//! the user may change them at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proctor_domain::RepoPath;
use serde::{Deserialize, Serialize};

use crate::environment::expand_home;
use crate::git::Git;
use crate::guard::{names_a_program, parts};
use crate::hidden::Hidden;
use crate::keepsake::Keepsake;
use crate::refusal::Refusal;
use crate::repository::file_error;
use crate::ways::{Way, Ways};
use crate::{Repository, WorkspaceError};

/// What git would run in a repository. Made by [`Repository::programs`]; it can be kept as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The settings of the repository that name programs, with their values.
    pub settings: Vec<(String, String)>,
    /// The hooks that are there, with the SHA-256 of each.
    pub hooks: Vec<(String, String)>,
    watched: Vec<Watched>,
    #[serde(default)]
    ways: Ways,
    #[serde(default)]
    pub(crate) hidden: Hidden,
}

/// One file that decides what runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Watched {
    what: What,
    /// Absolute. Not of the repository; the type is taken for its form in JSON, which holds any bytes.
    path: RepoPath,
    was: Keepsake,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// `.git`, or a linked work tree's way to the shared directory and back.
    Pointer,
    /// Of which only matters that it is a file and no link.
    Head,
    Config,
    /// What changes how files are read or written, or where objects come from.
    Rule,
    /// A folder in which git looks for hooks.
    HooksFolder,
    Hook,
}

/// A file that is not as it was, and what to say about it.
#[derive(Debug)]
struct Difference {
    what: What,
    path: PathBuf,
    was: Keepsake,
    words: Vec<String>,
}

/// Files in a git directory that change what git reads and writes.
const RULES: [&str; 6] =
    ["info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout", "objects/info/alternates", "objects/info/http-alternates"];

/// What is said of so many ways out of git's folders; an agent could make any number.
const MOST_WAYS_SAID: usize = 20;

/// Names and values of the settings that name programs.
type Named = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

impl Watched {
    fn new(what: What, path: &Path) -> Result<Self, WorkspaceError> {
        Ok(Self { what, path: RepoPath::new(path.as_os_str().as_bytes()), was: Keepsake::of(path)? })
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(self.path.as_bytes()))
    }
}

impl Repository {
    /// What git would run here: settings of the repository and the work tree that name programs, with the
    /// files that they include; hooks; `info/attributes`; where `.git` points. Read before an agent's session.
    pub fn programs(&self) -> Result<Programs, WorkspaceError> {
        let mut watched = vec![Watched::new(What::Pointer, &self.work_tree.join(".git"))?];
        // Also where git has no use for one yet: it follows each that it finds.
        for folder in BTreeSet::from([&self.git_dir, &self.common_dir]) {
            for name in ["commondir", "gitdir"] {
                watched.push(Watched::new(What::Pointer, &folder.join(name))?);
            }
            watched.push(Watched::new(What::Head, &folder.join("HEAD"))?);
            for name in RULES {
                watched.push(Watched::new(What::Rule, &folder.join(name))?);
            }
        }
        for record in self.other_records() {
            watched.push(Watched::new(What::Pointer, &record.join("commondir"))?);
        }
        let modules = modules_in(&self.common_dir.join("modules"));
        for module in &modules {
            watched.push(Watched::new(What::Pointer, &module.join("commondir"))?);
        }
        let settings = self.watch_settings(&modules, &mut watched)?;
        let mut hooks = Vec::new();
        let own = [self.common_dir.join("hooks"), self.hooks_folder()?];
        for folder in own.into_iter().chain(modules.iter().map(|module| module.join("hooks"))).collect::<BTreeSet<_>>() {
            watched.push(Watched::new(What::HooksFolder, &folder)?);
            for path in hooks_in(&folder)? {
                let hook = Watched::new(What::Hook, &path)?;
                hooks.push((name_of(&path), hook.was.sha256()));
                watched.push(hook);
            }
        }
        Ok(Programs { settings, hooks, watched, ways: Ways::of(self)?, hidden: self.hidden()? })
    }

    /// Git's folders about the repository's other worktrees.
    pub(crate) fn other_records(&self) -> Vec<PathBuf> {
        let records = std::fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
        records.filter(|record| *record != self.git_dir).collect()
    }

    /// Adds the files that settings come from, those that are not there yet included.
    fn watch_settings(&self, modules: &[PathBuf], watched: &mut Vec<Watched>) -> Result<Vec<(String, String)>, WorkspaceError> {
        let mut settings = Vec::new();
        let mut seen = BTreeSet::new();
        let mut files = vec![self.git_dir.join("config.worktree"), self.common_dir.join("config.worktree"), self.common_dir.join("config")];
        files.extend(modules.iter().map(|module| module.join("config")));
        while let Some(file) = files.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            let config = Watched::new(What::Config, &file)?;
            let named = self.named_programs(&config.was)?.unwrap_or_default();
            let folder = file.parent().unwrap_or(&self.common_dir);
            for (name, values) in named {
                for value in values {
                    if is_include(&name) {
                        files.push(folder.join(expand_home(&value, self.environment.home())));
                    }
                    settings.push((readable(&name), readable(&value)));
                }
            }
            watched.push(config);
        }
        Ok(settings)
    }

    /// The settings in a file that name programs; `None` where git can't read it.
    ///
    /// Git gets the bytes and not the file: so what is compared is what was kept, and git has no
    /// repository around it whose settings it would read first.
    fn named_programs(&self, file: &Keepsake) -> Result<Option<Named>, WorkspaceError> {
        let Some(bytes) = file.bytes() else {
            return Ok(file.is_absent().then(Named::new));
        };
        let git = Git::new(&self.program, "config", Path::new("/"), self.environment.variables().to_vec());
        let finished = git.args(["--file", "-", "--no-includes", "--list", "-z"]).input(bytes.to_vec()).finish()?;
        if !finished.status.is_success() {
            return Ok(None);
        }
        let mut named = Named::new();
        for entry in finished.stdout.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()) {
            let mut halves = entry.splitn(2, |&byte| byte == b'\n');
            let name = halves.next().unwrap_or_default();
            if decides_what_runs(name) {
                named.entry(name.to_vec()).or_default().push(halves.next().unwrap_or(b"true").to_vec());
            }
        }
        Ok(Some(named))
    }
}

impl Programs {
    /// What differs now, one short phrase each; empty when nothing does.
    ///
    /// Runs nothing but `git config` on bytes, and works also where `.git` was replaced or removed.
    /// Settings that name no programs may have changed.
    pub fn differences(&self, repository: &Repository) -> Result<Vec<String>, WorkspaceError> {
        let ways = self.ways_now(repository)?;
        let said = ways.since(&self.ways).take(MOST_WAYS_SAID).map(|way| readable(way.words(repository).as_bytes()));
        let differences = self.compare(repository)?.into_iter().flat_map(|difference| difference.words);
        Ok(differences.chain(said).collect())
    }

    /// Puts settings files, hooks and pointers back as they were, and closes ways out of git's folders. What
    /// stands there now is kept in the folder `kept`, for a person to look at. Asking twice is the same as asking once.
    pub fn put_back(&self, repository: &Repository, kept: &Path) -> Result<(), WorkspaceError> {
        let index_lost = self.close_ways(repository, kept)?;
        // Compared after that: through a link, what was replaced could look as it was.
        self.put_files_back(repository, kept)?;
        if index_lost && repository.head()?.commit.is_some() {
            repository.quiet("read-tree")?.arg("HEAD").run()?;
        }
        Ok(())
    }

    fn ways_now(&self, repository: &Repository) -> Result<Ways, WorkspaceError> {
        if repository.common_dir.is_dir() { Ways::of(repository) } else { Ok(self.ways.clone()) }
    }

    /// Whether the index was among them.
    fn close_ways(&self, repository: &Repository, kept: &Path) -> Result<bool, WorkspaceError> {
        let now = self.ways_now(repository)?;
        let ways: Vec<&Way> = now.since(&self.ways).collect();
        ways.iter().try_for_each(|way| way.refuse_lost(repository))?;
        if !ways.is_empty() {
            std::fs::create_dir_all(kept).map_err(file_error(kept, "make"))?;
        }
        ways.iter().try_for_each(|way| way.close(&self.ways, kept))?;
        Ok(ways.iter().any(|way| way.is_index(repository)))
    }

    fn put_files_back(&self, repository: &Repository, kept: &Path) -> Result<(), WorkspaceError> {
        let differences = self.compare(repository)?;
        if differences.is_empty() {
            return Ok(());
        }
        if let Some(gone) = differences.iter().find(|difference| difference.what == What::Pointer && difference.was.is_whole_folder()) {
            return Err(WorkspaceError::Refused(Refusal::GitDirectoryGone { path: gone.path.clone() }));
        }
        std::fs::create_dir_all(kept).map_err(file_error(kept, "make"))?;
        for Difference { path, was, .. } in differences {
            Keepsake::of(&path)?.set_aside(&path, kept)?;
            was.put_back(&path)?;
        }
        Ok(())
    }

    fn compare(&self, repository: &Repository) -> Result<Vec<Difference>, WorkspaceError> {
        let mut differences = Vec::new();
        let of = |what| self.watched.iter().filter(move |watched| watched.what == what);
        for pointer in of(What::Pointer) {
            let (path, now) = pointer.now()?;
            // Another worktree may be removed meanwhile, with all that git knows of it.
            let gone = path.starts_with(repository.common_dir.join("worktrees"))
                && path.parent().is_some_and(|record| record != repository.git_dir && !record.exists());
            if !gone && !now.holds_what(&pointer.was) {
                let what = match change(&pointer.was, &now) {
                    "changed" => "points elsewhere".to_owned(),
                    change => format!("was {change}"),
                };
                differences.push(pointer.differs(vec![format!("{} {what}", name_of(&path))]));
            }
        }
        // Without the git directory all that was in it is missing, and to say so of each would say nothing.
        if !repository.common_dir.is_dir() {
            return Ok(differences);
        }
        for config in of(What::Config) {
            let (path, now) = config.now()?;
            let words = repository.config_words(&path, &config.was, &now)?;
            if !words.is_empty() {
                differences.push(config.differs(words));
            }
        }
        for head in of(What::Head) {
            let (path, now) = head.now()?;
            if head.was.bytes().is_some() && (now.bytes().is_none() || now.is_link() != head.was.is_link()) {
                differences.push(head.differs(vec![format!("{} was {}", name_of(&path), change(&head.was, &now))]));
            }
        }
        for rule in of(What::Rule) {
            let (path, now) = rule.now()?;
            if !now.holds_what(&rule.was) {
                let name = RULES.iter().find(|name| path.ends_with(name)).copied().unwrap_or_default();
                differences.push(rule.differs(vec![format!("{name} was {}", change(&rule.was, &now))]));
            }
        }
        for folder in of(What::HooksFolder) {
            self.compare_hooks(folder, &mut differences)?;
        }
        Ok(differences)
    }

    fn compare_hooks(&self, folder: &Watched, differences: &mut Vec<Difference>) -> Result<(), WorkspaceError> {
        let (path, now) = folder.now()?;
        let known: Vec<&Watched> =
            self.watched.iter().filter(|hook| hook.what == What::Hook && hook.path().parent() == Some(&path)).collect();
        if !folder.was.has_link_of(&now) || !(now.is_folder() || now.is_absent()) {
            differences.push(folder.differs(vec![format!("the hooks folder {} was replaced", path.display())]));
            // What seems to be as it was is so in another folder.
            differences.extend(known.iter().map(|hook| hook.differs(Vec::new())));
            return Ok(());
        }
        for hook in &known {
            let (path, now) = hook.now()?;
            if now != hook.was {
                differences.push(hook.differs(vec![format!("hook {} was {}", name_of(&path), change(&hook.was, &now))]));
            }
        }
        for path in hooks_in(&path)?.into_iter().filter(|path| known.iter().all(|hook| hook.path() != *path)) {
            let words = vec![format!("hook {} was added", name_of(&path))];
            differences.push(Difference { what: What::Hook, path, was: Keepsake::absent(), words });
        }
        Ok(())
    }
}

impl Watched {
    fn now(&self) -> Result<(PathBuf, Keepsake), WorkspaceError> {
        let path = self.path();
        let now = Keepsake::of(&path)?;
        Ok((path, now))
    }

    fn differs(&self, words: Vec<String>) -> Difference {
        Difference { what: self.what, path: self.path(), was: self.was.clone(), words }
    }
}

impl Repository {
    fn config_words(&self, path: &Path, was: &Keepsake, now: &Keepsake) -> Result<Vec<String>, WorkspaceError> {
        if was == now {
            return Ok(Vec::new());
        }
        if !was.has_link_of(now) {
            return Ok(vec![format!("config {} was replaced by a link", path.display())]);
        }
        let before = self.named_programs(was)?.unwrap_or_default();
        let Some(after) = self.named_programs(now)? else {
            return Ok(vec![format!("config {} can't be read", path.display())]);
        };
        let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
        let word = |name: &Vec<u8>| match (before.get(name), after.get(name)) {
            (None, _) => Some("set"),
            (Some(_), None) => Some("removed"),
            (Some(before), Some(after)) => (before != after).then_some("changed"),
        };
        Ok(names.into_iter().filter_map(|name| Some(format!("config {} was {}", readable(name), word(name)?))).collect())
    }
}

fn change(was: &Keepsake, now: &Keepsake) -> &'static str {
    match (was.is_absent(), now.is_absent()) {
        (true, _) => "added",
        (false, true) => "removed",
        (false, false) => "changed",
    }
}

/// The files in a folder that git would run as hooks. Git runs what is executable; the samples that it
/// brings are so too, but have names that it never looks for.
fn hooks_in(folder: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let mut hooks = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.map_err(file_error(folder, "read"))?.path();
        let sample = path.extension().is_some_and(|extension| extension == "sample");
        if !sample && crate::repository::is_runnable(&path) {
            hooks.push(path);
        }
    }
    hooks.sort();
    Ok(hooks)
}

/// The git directories of submodules, whose names may hold slashes, and of theirs.
fn modules_in(folder: &Path) -> Vec<PathBuf> {
    let (mut modules, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if path.join("HEAD").is_file() {
                folders.push(path.join("modules"));
                modules.push(path);
            } else {
                folders.push(path);
            }
        }
    }
    modules
}

fn name_of(path: &Path) -> String {
    readable(path.file_name().unwrap_or_default().as_bytes())
}

/// Bytes that a stranger chose, as one line of text.
fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .flat_map(|char| if char.is_control() { char.escape_default().collect() } else { vec![char] })
        .collect()
}

fn is_include(name: &[u8]) -> bool {
    matches!(parts(name), Some((b"include", false, b"path") | (b"includeif", true, b"path")))
}

const DECIDING_CORE_KEYS: [&[u8]; 7] =
    [b"attributesfile", b"checkstat", b"excludesfile", b"ignorestat", b"sparsecheckout", b"trustctime", b"worktree"];

/// Whether a setting decides which programs some git command starts, also one that Proctor itself never
/// calls: a person will. Wider than need be, as a setting that is listed for nothing costs an agent
/// nothing that it needs for its work.
fn decides_what_runs(name: &[u8]) -> bool {
    const KEYS: [&[u8]; 22] = [
        b"askpass",
        b"browser",
        b"clean",
        b"cmd",
        b"command",
        b"defaultkeycommand",
        b"difffilter",
        b"driver",
        b"editor",
        b"external",
        b"fsmonitor",
        b"helper",
        b"hookspath",
        b"pager",
        b"process",
        b"program",
        b"proxy",
        b"smudge",
        b"sshcommand",
        b"templatedir",
        b"textconv",
        b"tool",
    ];
    if names_a_program(name) || is_include(name) {
        return true;
    }
    let Some((section, has_subsection, key)) = parts(name) else {
        return false;
    };
    match (section, has_subsection) {
        (b"alias" | b"pager" | b"sendemail" | b"protocol" | b"hook" | b"gpg" | b"guitool", _) => true,
        // Some of these run nothing, but hide work from git.
        (b"core", false) => DECIDING_CORE_KEYS.contains(&key) || KEYS.contains(&key),
        // `update = !command` runs it.
        (b"submodule", true) => key == b"update",
        (b"mergetool" | b"difftool" | b"browser" | b"man" | b"lfs", true) if key == b"path" => true,
        (b"lfs", _) => key == b"standalonetransferagent" || KEYS.contains(&key),
        (b"imap", _) => key == b"tunnel",
        // A branch's or a user's settings never name programs, whatever the key.
        (b"branch" | b"user", _) => false,
        (_, _) => KEYS.contains(&key) || key.ends_with(b"hook"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_decide_what_runs_are_told_from_others() {
        for name in [
            "core.fsmonitor",
            "core.hookspath",
            "core.sshcommand",
            "core.pager",
            "core.worktree",
            "alias.st",
            "filter.x.clean",
            "diff.x.textconv",
            "include.path",
            "includeif.onbranch:main.path",
            "submodule.x.update",
            "mergetool.x.cmd",
            "credential.helper",
            "credential.https://x.y.helper",
            "protocol.ext.allow",
            "sequence.editor",
            "interactive.difffilter",
            "uploadpack.packobjectshook",
            "trailer.x.command",
            "gpg.ssh.program",
            "lfs.customtransfer.x.path",
            "pager.log",
            "remote.o.proxy",
            "init.templatedir",
        ] {
            assert!(decides_what_runs(name.as_bytes()), "{name}");
        }
        for name in [
            "user.name",
            "branch.a.b.remote",
            "branch.editor",
            "remote.origin.url",
            "remote.origin.fetch",
            "core.bare",
            "push.default",
            "nosection",
        ] {
            assert!(!decides_what_runs(name.as_bytes()), "{name}");
        }
    }
}
