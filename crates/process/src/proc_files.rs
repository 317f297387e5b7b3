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
    /// Whether it is on its way out. It has given up its memory then, its environment included, and is not dead yet.
    pub(crate) is_exiting: bool,
    /// What is known of its environment.
    pub(crate) environment: Environment,
}

/// Whether a process whose environment reads as empty has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Environment {
    /// It never gets one: it is no program, or no more.
    None,
    /// An empty one, or one that is just being filled at the end of an exec, which looks the same for a moment.
    Empty,
    /// It has one, or gets one in the middle of an exec. Nothing is known of processes that are not ours to look into.
    Unread,
}

/// Set in the flags of a process that is on its way out, for as long as Linux has had them.
const EXITING: u64 = 4;

/// Places of fields behind the name, as proc(5) lists them, counted from 0.
const FLAGS: usize = 6;
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
            is_exiting: field(FLAGS).parse().is_ok_and(|flags: u64| flags & EXITING != 0),
            environment: match (field(VIRTUAL_MEMORY), field(ENVIRONMENT_BEGIN), field(ENVIRONMENT_END)) {
                ("0", _, _) => Environment::None,
                (_, begin, end) if end != "0" && begin == end => Environment::Empty,
                (_, _, _) => Environment::Unread,
            },
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
///
/// Bash ends each name where its `=` is while it reads it, in the very memory that is shown here, and puts the `=` back.
pub(crate) fn value_in<'a>(environment: &'a [u8], variable: &str) -> Option<&'a [u8]> {
    let mut entries = environment.split(|&byte| byte == 0);
    while let Some(entry) = entries.next() {
        match entry.strip_prefix(variable.as_bytes()) {
            Some([]) => return entries.next(),
            Some([b'=', value @ ..]) => return Some(value),
            Some(_) | None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) S) R 7 8 9 0 -1 4194564 1 0 0 0 0 0 0 0 20 0 3 0 98765 1 2";

        let stat = Stat::parse(line);

        let expected = Stat {
            name: b"a) S".to_vec(),
            state: b'R',
            parent: 7,
            group: 8,
            threads: 3,
            start_ticks: 98765,
            is_exiting: true,
            environment: Environment::Unread,
        };
        assert_eq!(stat, Some(expected));
    }

    #[test]
    fn a_process_without_an_environment_is_told_from_one_in_the_middle_of_an_exec() {
        let of = |memory: &str, begin: &str, end: &str| {
            let middle = "0 ".repeat(26);
            let line = format!("42 (a) S 7 8 9 0 -1 0 1 0 0 0 0 0 0 0 20 0 3 0 98765 {memory} {middle}{begin} {end}");
            Stat::parse(line.as_bytes()).unwrap().environment
        };

        assert_eq!(of("0", "0", "0"), Environment::None, "a thread of the kernel");
        assert_eq!(of("4096", "140", "140"), Environment::Empty);
        assert_eq!(of("4096", "0", "0"), Environment::Unread, "in the middle of an exec");
        assert_eq!(of("4096", "140", "150"), Environment::Unread);
    }

    #[test]
    fn a_leader_that_ended_before_its_threads_is_not_dead() {
        let of = |state: char, threads: u64| {
            let line = format!("42 (a) {state} 7 8 9 0 -1 0 1 0 0 0 0 0 0 0 20 0 {threads} 0 98765 1 2");
            Stat::parse(line.as_bytes()).unwrap()
        };

        assert!(of('Z', 1).is_dead());
        assert!(!of('Z', 2).is_dead());
        assert!(!of('S', 1).is_dead());
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"XMARK=no\0MARK_TWO=no\0MARK=a:b\0";

        assert_eq!(value_in(environment, "MARK"), Some(&b"a:b"[..]));
        assert_eq!(value_in(environment, "ARK"), None);
    }

    #[test]
    fn a_variable_that_bash_is_reading_is_found_too() {
        assert_eq!(value_in(b"PATH=/bin\0MARK\0a:b\0PWD=/\0", "MARK"), Some(&b"a:b"[..]));
    }
}
