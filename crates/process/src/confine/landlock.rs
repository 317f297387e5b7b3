//! Boxes by the kernel's Landlock: a process gives up, for itself and all that it will start, writing anywhere but in
//! the folders that it names.
//!
//! It limits neither reading nor changes of mode, owner and times, and it has no rule that takes back a part of
//! a folder.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::{BoxRules, ConfineError, Net, real};

/// The first version that can forbid truncating a file by its path; with less, every file could be emptied.
const NEEDED: ABI = ABI::V3;
/// The first version that can forbid TCP.
pub(super) const KNOWS_TCP: u32 = ABI::V4 as u32;
/// The newest whose rights are asked for. Later ones would also close the sockets of the session's own tools.
const KNOWN: ABI = ABI::V6;
/// Devices that programs write to and that keep nothing.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// The version of the kernel's Landlock, or one sentence about why it is of no use.
pub(super) fn version() -> Result<u32, String> {
    const VERSION_FLAG: libc::c_ulong = 1;
    #[allow(unsafe_code, reason = "the landlock crate tells the version only to who confines itself")]
    // SAFETY: with this flag the call reads no memory (the pointer must be null) and makes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION_FLAG) };
    match u32::try_from(answer) {
        Ok(version) if version >= NEEDED as u32 => Ok(version),
        Ok(version) => {
            Err(format!("the kernel's Landlock is version {version}, and only from 3 (Linux 6.2) can it protect a file's contents"))
        }
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Err("the kernel's Landlock is switched off (`lsm=` at boot does not name it)".to_owned())
        }
        Err(_) => Err("the kernel has no Landlock".to_owned()),
    }
}

/// What would be writable although the rules say otherwise.
pub(super) fn first_not_expressible(rules: &BoxRules) -> Option<PathBuf> {
    let writable: Vec<PathBuf> = rules.writable.iter().map(|path| real(path)).collect();
    let protected = rules.read_only_inside.iter().chain(&rules.hidden);
    protected.map(|path| real(path)).find(|path| writable.iter().any(|folder| path.starts_with(folder)))
}

/// Confines this thread, and with it the program that it becomes.
pub(super) fn restrict(writable: &[PathBuf], net: Net) -> Result<(), ConfineError> {
    let refused = |source: RulesetError| ConfineError::Restrict { source: Box::new(source) };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(NEEDED))
        .and_then(|ruleset| match net {
            Net::All => Ok(ruleset),
            // No rule follows that allows a port.
            Net::None => ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp),
        })
        .and_then(|ruleset| ruleset.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_write(KNOWN)))
        // Signals to processes outside, and abstract sockets, where the kernel can tell (Linux 6.12).
        .and_then(|ruleset| ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket))
        .and_then(Ruleset::create)
        .map_err(refused)?;
    let devices = DEVICES.iter().map(PathBuf::from).filter(|device| device.exists());
    let ruleset = devices.chain(writable.iter().cloned()).try_fold(ruleset, |ruleset, path| {
        let rule = beneath(&path)?;
        ruleset.add_rule(rule).map_err(refused)
    })?;
    let status = ruleset.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(ConfineError::Restrict { source: "the kernel did not enforce it".into() });
    }
    // A root user could otherwise load modules or restart the machine. Programs started later get nothing back,
    // because no new privileges may be gained.
    let none = CapabilitySets { effective: CapabilitySet::empty(), permitted: CapabilitySet::empty(), inheritable: CapabilitySet::empty() };
    set_capabilities(None, none).map_err(|errno| ConfineError::Restrict { source: Box::new(std::io::Error::from(errno)) })
}

fn beneath(path: &Path) -> Result<PathBeneath<PathFd>, ConfineError> {
    let unusable = |source| ConfineError::Path { path: path.to_owned(), source };
    let is_folder = path.metadata().map_err(unusable)?.is_dir();
    let opened = PathFd::new(path).map_err(|error| unusable(std::io::Error::other(error)))?;
    let access: BitFlags<AccessFs> = AccessFs::from_write(KNOWN);
    Ok(PathBeneath::new(opened, if is_folder { access } else { access & AccessFs::from_file(KNOWN) }))
}
