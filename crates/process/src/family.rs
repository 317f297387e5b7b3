//! Finding and ending the processes that belong together: the descendants of one, or those that carry a marker.

use std::io;
use std::time::Duration;

use crate::ProcessIdentity;

/// What ending processes came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedProcesses {
    /// Those that are no more.
    pub ended: Vec<ProcessIdentity>,
    /// Those that could not be ended: they changed their user, or hang in the kernel.
    pub survivors: Vec<ProcessIdentity>,
}

/// Makes this process the one that orphaned descendants are handed to.
///
/// # Errors
/// The kernel has no subreapers.
pub fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// All living descendants of the process with this pid, parents before children.
pub fn descendants(of: u32) -> Vec<ProcessIdentity> {
    let _ = of;
    todo!()
}

/// All processes whose variable `variable` has a value that `has` accepts.
pub fn marked(variable: &str, has: impl Fn(&[u8]) -> bool) -> Vec<ProcessIdentity> {
    let _ = (variable, has);
    todo!()
}

/// Ends all processes whose variable `variable` has a value that `has` accepts, but never this process or its ancestors.
pub fn end_marked(variable: &str, has: impl Fn(&[u8]) -> bool, grace: Duration) -> EndedProcesses {
    let _ = (variable, has, grace);
    todo!()
}
