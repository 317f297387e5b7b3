//! What a killed host leaves behind, as its driver can find it.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use proctor_process::ProcessIdentity;
use proctor_process::family::{self, EndedProcesses, Ending};

/// Names the sessions that a process belongs to, outermost first, separated by colons.
pub(crate) const MARKER: &str = "PROCTOR_SESSION";
/// In the environment of a host: the first session that it was started for.
pub(super) const HOST_MARKER: &str = "PROCTOR_HOST_OF";
/// Names the effect that an external command of the driver's own serves; git's background work has it too.
const EFFECT: &str = "PROCTOR_EFFECT";

/// Between asking processes to end and making them.
const GRACE: Duration = Duration::from_secs(5);

/// Makes this process the one that the orphans of a killed host are handed to, so that they are found although they
/// have nothing left that names their session. Done once, before the first host is started.
pub(super) fn adopt_orphans() {
    had_children();
}

/// Whether this process had children before it started any: a shell that executes `proctor` in its own place hands
/// over its background jobs. Theirs could not be told from a session's, so then only markers count.
fn had_children() -> bool {
    static HAD: OnceLock<bool> = OnceLock::new();
    *HAD.get_or_init(|| {
        let own = std::process::id();
        let had = family::has_children() && family::children(own).iter().any(|child| !family::is_own_child(child.pid));
        // Without it, orphans go to init and are found by their marker alone.
        let _ = family::become_subreaper();
        had
    })
}

/// How the remains of a session are recognised.
#[derive(Debug, Clone, Default)]
pub(super) struct Remains {
    /// The session's id.
    pub(super) session: String,
    /// When the session began, where this process had started its dead host and so was handed the orphans.
    pub(super) handed_over_since: Option<u64>,
    /// Names of programs that may stay.
    pub(super) linger: Vec<String>,
}

impl Remains {
    /// Ends them.
    pub(super) fn end(&self) -> EndedProcesses {
        let mut find = || self.find();
        family::end(&mut find, Ending { grace: GRACE, first: None, wait: &mut family::wait_for_end })
    }

    fn find(&self) -> Vec<ProcessIdentity> {
        let mut found: BTreeSet<ProcessIdentity> = self.handed_over().into_iter().collect();
        found.extend(family::marked_others(MARKER, |value| names(value, &self.session)));
        if !self.linger.is_empty() {
            self.spare_lingering(&mut found);
        }
        found.into_iter().collect()
    }

    /// The orphans that this process was handed when the host died, and their descendants.
    ///
    /// What else could be a child of ours that we did not start? The background work of a git of ours, which names its
    /// effect; the host of another driver that died; a job that was here before us, see [`had_children`]; and what is older
    /// than the session. A host that was started inside the session is found by its marker.
    fn handed_over(&self) -> Vec<ProcessIdentity> {
        let Some(since) = self.handed_over_since.filter(|_| !had_children()) else {
            return Vec::new();
        };
        let is_foreign = |process: &ProcessIdentity| [EFFECT, HOST_MARKER].iter().any(|name| family::variable_of(process, name).is_some());
        let is_orphan = |child: &ProcessIdentity| !family::is_own_child(child.pid) && child.start_ticks >= since && !is_foreign(child);
        let orphans = family::children(std::process::id()).into_iter().filter(is_orphan);
        orphans
            .flat_map(|orphan| family::descendants_if(orphan.pid, &mut |process| !is_foreign(process)).into_iter().chain([orphan]))
            .collect()
    }

    /// Takes out what may linger, and what descends from it: a build server without its workers is of no use.
    fn spare_lingering(&self, found: &mut BTreeSet<ProcessIdentity>) {
        let lingering: Vec<ProcessIdentity> =
            found.iter().filter(|identity| family::program_among(identity, &self.linger).is_some()).cloned().collect();
        for identity in lingering {
            for descendant in family::descendants(identity.pid) {
                found.remove(&descendant);
            }
            found.remove(&identity);
        }
    }
}

/// Whether a living host was started for this session first.
pub(super) fn is_host_of(session: &str) -> bool {
    !family::marked_others(HOST_MARKER, |value| value == session.as_bytes()).is_empty()
}

/// Whether a marker's value names this session, as the innermost or as one around it.
pub(super) fn names(value: &[u8], session: &str) -> bool {
    value.split(|&byte| byte == b':').any(|part| part == session.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_names_every_session_around_a_process_and_no_other() {
        for (value, expected) in
            [("ses_a", true), ("ses_x:ses_a", true), ("ses_a:ses_b:ses_c", true), ("ses_ab", false), ("xses_a", false), ("", false)]
        {
            assert_eq!(names(value.as_bytes(), "ses_a"), expected, "{value}");
        }
    }
}
