//! Reading `/proc`. Every answer may be out of date when it arrives; callers check identities.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// What `/proc/<pid>/stat` says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The first fifteen bytes of the program's name.
    pub(crate) name: Vec<u8>,
    /// `R`, `S`, `D`, `T`, `Z` and so on.
    pub(crate) state: u8,
    /// Its parent.
    pub(crate) parent: u32,
    /// Its process group.
    pub(crate) group: u32,
    /// How many threads it has.
    pub(crate) threads: u64,
    /// When it was started, in clock ticks since the boot.
    pub(crate) start_ticks: u64,
    /// Whether it has no environment and gets none: it is no program, or was started with an empty one. In the middle of an
    /// exec there is none either, but not for long. Nothing is known of processes that are not ours to look into.
    pub(crate) has_no_environment: bool,
}

/// Places of fields behind the name, as proc(5) lists them, counted from 0.
const VIRTUAL_MEMORY: usize = 20;
const ENVIRONMENT_BEGIN: usize = 47;
const ENVIRONMENT_END: usize = 48;

impl Stat {
    /// Of the process that has this pid now, zombies included.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let mut buffer = [0; 1024];
        Self::parse(read_small(&format!("/proc/{pid}/stat"), &mut buffer)?)
    }

    /// The name stands in parentheses and may hold some itself, so the last one counts.
    fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let name = line.get(open + 1..close)?.to_vec();
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or("0");
        Some(Self {
            name,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
            has_no_environment: field(VIRTUAL_MEMORY) == "0"
                || (field(ENVIRONMENT_END) != "0" && field(ENVIRONMENT_END) == field(ENVIRONMENT_BEGIN)),
        })
    }

    /// Whether nothing of it runs any more. A leader that ended before its other threads looks like a
    /// zombie, and its process is alive.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    /// Whether it can't start further processes until it is continued: stopped, or about to be in
    /// an uninterruptible wait, at whose end the stop takes effect.
    pub(crate) fn is_halted(&self) -> bool {
        matches!(self.state, b'T' | b't' | b'D') || self.is_dead()
    }
}

/// Reads a file that fits into `buffer`; `None` when it is not there or not ours to read.
pub(crate) fn read_small<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::read(&file, &mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(&buffer[..filled])
}

/// Reads a file of any size into `bytes`, replacing what was there; false when it can't be read.
pub(crate) fn read_whole(path: &str, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let mut chunk = [0; 4096];
    loop {
        match rustix::io::read(&file, &mut chunk) {
            Ok(0) => return true,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// All pids there are now.
pub(crate) fn all_pids() -> Vec<u32> {
    numbers_in(Path::new("/proc"))
}

/// The threads of a process.
pub(crate) fn threads_of(pid: u32) -> Vec<u32> {
    numbers_in(&Path::new("/proc").join(pid.to_string()).join("task"))
}

fn numbers_in(folder: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The file name of the program that a process runs, as the kernel knows it.
pub(crate) fn executable_name(pid: u32) -> Option<OsString> {
    let target = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = target.file_name()?.to_owned().into_vec();
    // The kernel marks a program whose file was replaced, as an update of it does.
    let name = name.strip_suffix(b" (deleted)").map_or_else(|| name.clone(), <[u8]>::to_vec);
    Some(OsString::from_vec(name))
}

/// The value of `variable` in an environment as `/proc/<pid>/environ` holds it.
pub(crate) fn value_in<'a>(environment: &'a [u8], variable: &str) -> Option<&'a [u8]> {
    environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(variable.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) S) R 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 98765 1 2";

        let stat = Stat::parse(line);

        let expected =
            Stat { name: b"a) S".to_vec(), state: b'R', parent: 7, group: 8, threads: 3, start_ticks: 98765, has_no_environment: false };
        assert_eq!(stat, Some(expected));
    }

    #[test]
    fn a_process_without_an_environment_is_told_from_one_in_the_middle_of_an_exec() {
        let of = |memory: &str, begin: &str, end: &str| {
            let middle = "0 ".repeat(26);
            let line = format!("42 (a) S 7 8 9 0 -1 0 1 0 0 0 0 0 0 0 20 0 3 0 98765 {memory} {middle}{begin} {end}");
            Stat::parse(line.as_bytes()).unwrap().has_no_environment
        };

        assert!(of("0", "0", "0"), "a thread of the kernel");
        assert!(of("4096", "140", "140"), "an empty one");
        assert!(!of("4096", "0", "0"), "in the middle of an exec");
        assert!(!of("4096", "140", "150"));
    }

    #[test]
    fn a_leader_that_ended_before_its_threads_is_not_dead() {
        let of = |state, threads| Stat { name: Vec::new(), state, parent: 1, group: 1, threads, start_ticks: 1, has_no_environment: false };

        assert!(of(b'Z', 1).is_dead());
        assert!(!of(b'Z', 2).is_dead());
        assert!(!of(b'S', 1).is_dead());
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"XMARK=no\0MARK_TWO=no\0MARK=a:b\0";

        assert_eq!(value_in(environment, "MARK"), Some(&b"a:b"[..]));
        assert_eq!(value_in(environment, "ARK"), None);
    }
}
