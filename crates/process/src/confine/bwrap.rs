//! Boxes out of namespaces, made by the program `bwrap`.
//!
//! The whole file system is mounted read-only, and what is writable, hidden or read-only again is mounted over it. All
//! capabilities are dropped, because a root user's would undo the mounts. The process namespace ends with its first
//! process: nothing in it can outlive the box.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::enter::{self, Stage};
use super::mounts::{Mount, Mounts, governing, of_rules, pin};
use super::{BoxRules, Net, real};

/// Made new for each box: what sessions and people put there meets in no box, and sockets of terminal multiplexers
/// and editors, through which a command could be run outside, are not there.
const SHARED_TEMPORARY: &str = "/tmp";

/// Sockets of programs that would start others outside of the box. `<uid>` stands for the user's number.
const DOORS: [&str; 9] = [
    "/run/containerd",
    "/run/dbus",
    "/run/docker.sock",
    "/run/podman",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/run/user/<uid>/bus",
    "/run/user/<uid>/podman",
    "/run/user/<uid>/systemd",
];

/// Switches of the whole machine, which a root user may set without any capability. `bwrap` means to cover them, and
/// passes over `/proc/sys`, which says of itself that nobody may write to it.
const SWITCHES: [&str; 6] = ["/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Where `bwrap` is: in `PATH`, whose relative entries are passed over.
pub(super) fn find() -> Option<PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&search)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("bwrap"))
        .find(|candidate| rustix::fs::access(candidate, Access::EXEC_OK).is_ok() && candidate.is_file())
}

/// The command line. `bwrap` itself must not end when its group is asked to, or everything in the box would be killed
/// before it could act on the request; so signals are ignored before it and given back behind it.
pub(super) fn wrap(rules: &BoxRules, own_program: &Path, argv: Vec<OsString>) -> Vec<OsString> {
    let program = argv.first().map(PathBuf::from).filter(|program| program.is_absolute());
    let shown: Vec<PathBuf> = std::iter::once(own_program.to_owned()).chain(program).collect();
    let mut command = vec![find().map_or_else(|| "bwrap".into(), PathBuf::into_os_string)];
    command.extend(namespaces());
    if rules.net == Net::None {
        command.push("--unshare-net".into());
    }
    for (path, mount) in mounts(rules, &shown) {
        command.extend(mount_arguments(path, mount));
    }
    command.push("--".into());
    command.extend(enter::command(own_program, Stage::Inside, [], argv));
    enter::command(own_program, Stage::Outside, [], command)
}

fn namespaces() -> impl Iterator<Item = OsString> {
    let fixed = "--unshare-pid --unshare-ipc --die-with-parent --cap-drop ALL --ro-bind / / --dev /dev --proc /proc";
    fixed.split(' ').map(OsString::from)
}

fn mount_arguments(path: PathBuf, mount: Mount) -> Vec<OsString> {
    let path_text = path.clone().into_os_string();
    match mount {
        Mount::Writable => vec!["--bind".into(), path_text.clone(), path_text],
        Mount::ReadOnly => vec!["--ro-bind".into(), path_text.clone(), path_text],
        Mount::Hidden if path.is_dir() => vec!["--tmpfs".into(), path_text],
        Mount::Hidden => vec!["--ro-bind".into(), "/dev/null".into(), path_text],
    }
}

/// What is mounted where, parents before what is in them, so that the longest path decides.
fn mounts(rules: &BoxRules, shown: &[PathBuf]) -> Mounts {
    let temporary = real(Path::new(SHARED_TEMPORARY));
    let mut mounts = of_rules(rules);
    let user = rustix::process::getuid().to_string();
    let doors = DOORS.iter().map(|door| PathBuf::from(door.replace("<uid>", &user))).filter(|door| door.exists());
    for path in doors.chain([temporary.clone()]) {
        mounts.entry(real(&path)).or_insert(Mount::Hidden);
    }
    for path in SWITCHES.map(PathBuf::from).into_iter().filter(|path| path.exists()) {
        mounts.entry(path).or_insert(Mount::ReadOnly);
    }
    pin(&mut mounts);
    show_neighbours(&mut mounts, &temporary);
    for program in shown.iter().map(|program| real(program)) {
        if governing(&mounts, &program) == Some(Mount::Hidden) && program.exists() {
            mounts.insert(program, Mount::ReadOnly);
        }
    }
    mounts
}

/// Shows, read-only, what lies in the shared temporary folder next to what the session works on: a repository there
/// needs its settings as much as one elsewhere.
fn show_neighbours(mounts: &mut Mounts, temporary: &Path) {
    let is_seen = |mount: &Mount| !matches!(mount, Mount::Hidden);
    let tops: Vec<PathBuf> = mounts
        .iter()
        .filter(|(_, mount)| is_seen(mount))
        .filter_map(|(path, _)| path.strip_prefix(temporary).ok()?.components().next().map(|first| temporary.join(first)))
        .collect();
    for top in tops {
        mounts.entry(top).or_insert(Mount::ReadOnly);
    }
}

/// The first line that says something, without the program's name.
pub(super) fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing");
    line.strip_prefix("bwrap: ").unwrap_or(line).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mounts without those that a machine has or has not.
    fn planned(writable: &[&str], read_only: &[&str], hidden: &[&str]) -> Vec<(String, Mount)> {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap();
        let paths = |names: &[&str]| -> Vec<PathBuf> {
            let make = |name: &&str| {
                let path = root.join(name);
                std::fs::create_dir_all(&path).unwrap();
                path
            };
            names.iter().map(make).collect()
        };
        let rules =
            BoxRules { writable: paths(writable), read_only_inside: paths(read_only), hidden: paths(hidden), ..BoxRules::default() };

        let mounts = mounts(&rules, &[]);

        let inside = |(path, mount): (PathBuf, Mount)| Some((path.strip_prefix(&root).ok()?.to_str()?.to_owned(), mount));
        mounts.into_iter().filter_map(inside).collect()
    }

    #[test]
    fn folders_on_the_way_to_what_is_protected_are_pinned() {
        assert_eq!(
            planned(&["tree"], &["tree/sub/.git/config"], &[]),
            [
                ("tree".to_owned(), Mount::Writable),
                ("tree/sub".to_owned(), Mount::Writable),
                ("tree/sub/.git".to_owned(), Mount::Writable),
                ("tree/sub/.git/config".to_owned(), Mount::ReadOnly),
            ]
        );
    }

    #[test]
    fn a_pin_opens_nothing_that_is_read_only() {
        assert_eq!(
            planned(&["tree"], &["tree/.git", "tree/.git/a/config"], &[]),
            [
                ("tree".to_owned(), Mount::Writable),
                ("tree/.git".to_owned(), Mount::ReadOnly),
                ("tree/.git/a/config".to_owned(), Mount::ReadOnly),
            ]
        );
    }

    #[test]
    fn the_longest_path_decides_and_the_stricter_of_two_rules() {
        assert_eq!(
            planned(&["state/tree", "both"], &["state/tools"], &["state", "both"]),
            [
                ("both".to_owned(), Mount::Hidden),
                ("state".to_owned(), Mount::Hidden),
                ("state/tools".to_owned(), Mount::ReadOnly),
                ("state/tree".to_owned(), Mount::Writable),
            ]
        );
    }

    #[test]
    fn a_complaint_is_one_line_without_the_program() {
        assert_eq!(complaint(b"\nbwrap: No permissions to create a new namespace.\nmore\n"), "No permissions to create a new namespace");
        assert_eq!(complaint(b""), "it said nothing");
    }
}
