//! The system call side of starting a child.
//!
//! The standard library falls back to `fork` as soon as a child needs a session of its own, and `fork`
//! copies page tables: 0.2 ms in a small process, 3 ms in one of 60 MiB, on every step.
//! `posix_spawn` has `POSIX_SPAWN_SETSID` and shares the memory until the exec.
#![allow(unsafe_code, reason = "posix_spawn has no safe wrapper that can set a session and a directory")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// What a child's standard descriptor is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// `/dev/null`.
    Null,
    /// A copy of this descriptor.
    Descriptor(BorrowedFd<'a>),
}

/// Which processes a child starts out with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// Our own group.
    Ours,
    /// A new process group, in our session.
    OwnGroup,
    /// A new session, without a terminal.
    OwnSession,
}

/// Everything a child is started with; nothing is inherited that is not named here.
#[derive(Debug)]
pub(crate) struct Recipe<'a> {
    pub(crate) program: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    pub(crate) directory: CString,
    pub(crate) streams: [Source<'a>; 3],
    pub(crate) company: Company,
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> io::Result<Box<Self>> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the pointer is valid for writes, and `init` fills what it points to when it returns 0.
        let actions = unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            actions.assume_init()
        };
        Ok(Box::new(Self(actions)))
    }

    fn set_directory(&mut self, directory: &CStr) -> io::Result<()> {
        // SAFETY: `self.0` was initialised, and the string is copied before the call returns.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&raw mut self.0, directory.as_ptr()) })
    }

    fn set_stream(&mut self, target: libc::c_int, source: Source<'_>) -> io::Result<()> {
        match source {
            Source::Null => {
                let flags = if target == 0 { libc::O_RDONLY } else { libc::O_WRONLY };
                // SAFETY: `self.0` was initialised, and the path is a literal that ends in NUL.
                check(unsafe { libc::posix_spawn_file_actions_addopen(&raw mut self.0, target, c"/dev/null".as_ptr(), flags, 0) })
            }
            // SAFETY: `self.0` was initialised; the descriptor stays open until the spawn, since the
            // recipe borrows it.
            Source::Descriptor(source) => {
                check(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, source.as_raw_fd(), target) })
            }
        }
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: it was initialised in `new` and is destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new(company: Company) -> io::Result<Box<Self>> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: as in `FileActions::new`.
        let mut attributes = unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            Box::new(Self(attributes.assume_init()))
        };
        let company = match company {
            Company::Ours => 0,
            Company::OwnGroup => libc::POSIX_SPAWN_SETPGROUP,
            Company::OwnSession => c_int_from(libc::POSIX_SPAWN_SETSID),
        };
        let flags = company | libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        let flags = libc::c_short::try_from(flags).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut none = MaybeUninit::uninit();
        let mut defaults = MaybeUninit::uninit();
        // SAFETY: both sets are filled by `sigemptyset` before they are read; the attributes were
        // initialised; group 0 means "the child's own pid".
        unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigemptyset(defaults.as_mut_ptr());
            // The Rust runtime ignores SIGPIPE, and ignored signals are inherited: `yes | head` would
            // print an error. Signals with a handler go back to their default by themselves; what our
            // caller ignores (nohup) stays ignored.
            libc::sigaddset(defaults.as_mut_ptr(), libc::SIGPIPE);
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes.0, none.as_ptr()))?;
            check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, defaults.as_ptr()))?;
            check(libc::posix_spawnattr_setpgroup(&raw mut attributes.0, 0))?;
            check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: it was initialised in `new` and is destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

fn c_int_from(flag: impl Into<libc::c_int>) -> libc::c_int {
    flag.into()
}

/// The calls of this family return the error instead of setting `errno`.
fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// Starts the child and returns its pid. When this returns, the exec has happened.
///
/// # Errors
/// What the system said about the directory, the program or the arguments; it does not tell which.
pub(crate) fn spawn(recipe: &Recipe<'_>) -> io::Result<u32> {
    let mut actions = FileActions::new()?;
    for (target, source) in (0..).zip(recipe.streams) {
        actions.set_stream(target, source)?;
    }
    actions.set_directory(&recipe.directory)?;
    let attributes = Attributes::new(recipe.company)?;
    let arguments = pointers(&recipe.arguments);
    let environment = pointers(&recipe.environment);
    let mut pid: libc::pid_t = 0;
    // SAFETY: `actions` and `attributes` are initialised; the program, the arguments and the environment
    // are NUL-terminated strings that live until the end of this function, in arrays that end in a null
    // pointer; `posix_spawn` only reads them, although its type says `*mut`.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            recipe.program.as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    })?;
    u32::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}
