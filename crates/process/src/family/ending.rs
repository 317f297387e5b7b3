//! Ending a set of processes that changes while it is being ended.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::identity::{IdentityError, ProcessIdentity, send};
use crate::signals::Signal;
use crate::{Child, SignalEnd};

use super::reap_orphan;

/// How processes are ended.
pub struct Ending<'a> {
    /// How long those may take that were asked to end; zero makes them end at once.
    pub grace: Duration,
    /// A child that is ended together with the others. Its group is asked as a whole, because asking one
    /// after the other would let a shell see its command end and start the next one.
    pub first: Option<&'a Child>,
    /// Waits until one of these descriptors is readable or the time is over. It may return early, and it
    /// may do something useful meanwhile, such as emptying pipes that the processes write to.
    pub wait: &'a mut dyn FnMut(&[BorrowedFd<'_>], Duration),
}

/// What ending processes came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedProcesses {
    /// Those that are no more.
    pub ended: Vec<ProcessIdentity>,
    /// Those that could not be ended: they changed their user, or hang in the kernel.
    pub survivors: Vec<ProcessIdentity>,
}

/// How long a set may take to stop growing once its members are being stopped.
const STOP_LIMIT: Duration = Duration::from_secs(1);
/// How long killed processes may take to be gone; more than that means that they hang in the kernel.
const KILL_LIMIT: Duration = Duration::from_secs(2);
/// How long is waited between two looks when there is no descriptor to wait on.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How many processes are waited on by descriptor. Descriptors are scarce and a fork bomb has no end; the
/// others are looked for every [`LOOK_AGAIN`].
const WATCHED: usize = 128;

/// Ends every process that `find` finds, until it finds none.
///
/// They are asked first (TERM) and have `ending.grace`. What is left then is stopped, looked for again until the
/// set no longer grows, because a stopped process starts no others, and killed. `find` must not
/// return dead processes; those that were our orphans are reaped on the way.
pub fn end(find: &mut dyn FnMut() -> Vec<ProcessIdentity>, ending: Ending<'_>) -> EndedProcesses {
    let mut sweep = Sweep { find, ending, seen: BTreeMap::new(), gone: BTreeSet::new(), denied: BTreeSet::new() };
    let mut survivors = BTreeSet::new();
    if !sweep.ask() {
        sweep.stop();
        survivors.extend(sweep.kill());
    }
    survivors.extend(sweep.denied.into_iter().filter(ProcessIdentity::is_alive));
    EndedProcesses {
        ended: sweep.seen.into_keys().filter(|identity| !survivors.contains(identity)).collect(),
        survivors: survivors.into_iter().collect(),
    }
}

struct Sweep<'a, 'b> {
    find: &'a mut dyn FnMut() -> Vec<ProcessIdentity>,
    ending: Ending<'b>,
    /// Everything that was found so far, with a descriptor for those that are waited on.
    seen: BTreeMap<ProcessIdentity, Option<OwnedFd>>,
    /// What was seen and is no more.
    gone: BTreeSet<ProcessIdentity>,
    /// What may not be signalled by us.
    denied: BTreeSet<ProcessIdentity>,
}

impl Sweep<'_, '_> {
    /// Asks everything to end; true when everything did.
    fn ask(&mut self) -> bool {
        let deadline = Instant::now() + self.ending.grace;
        let group = self.ending.first.filter(|child| child.leads_group()).map(Child::pid);
        if let Some(first) = self.ending.first
            && !self.ending.grace.is_zero()
        {
            // Refused only by members that changed their user, and those are met again one by one.
            let _ = first.signal_group(Signal::Terminate);
        }
        loop {
            let alive = self.look();
            if alive.is_empty() {
                return true;
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return false;
            }
            for identity in &alive {
                if !self.seen.contains_key(identity) {
                    self.ask_one(identity, group);
                }
            }
            self.wait(&alive, remaining);
        }
    }

    fn ask_one(&mut self, identity: &ProcessIdentity, asked_group: Option<u32>) {
        let mut pidfd = None;
        match identity.open() {
            Ok(Some((opened, stat))) => {
                if asked_group != Some(stat.group) {
                    self.note(identity, send(identity.pid, &opened, Signal::Terminate));
                }
                // A stopped one could not act on the request. Whether it is stopped is not asked first: a stop
                // that is under way does not show yet.
                self.note(identity, send(identity.pid, &opened, Signal::Continue));
                pidfd = Some(opened);
            }
            Ok(None) => {}
            Err(error) => self.note(identity, Err(error)),
        }
        let watched = self.seen.values().filter(|pidfd| pidfd.is_some()).count();
        self.seen.insert(identity.clone(), pidfd.filter(|_| watched < WATCHED));
    }

    /// Stops everything until nothing new turns up.
    fn stop(&mut self) {
        let deadline = Instant::now() + STOP_LIMIT;
        let mut stopped = BTreeSet::new();
        while Instant::now() < deadline {
            let alive = self.look();
            let before = stopped.len();
            for identity in alive.iter().filter(|identity| !stopped.contains(*identity)).cloned().collect::<Vec<_>>() {
                self.signal(&identity, Signal::Stop);
                stopped.insert(identity);
            }
            if stopped.len() > before {
                continue;
            }
            // The signal takes effect a moment after it was sent, and a fork may be under way on another processor.
            if alive.iter().all(|identity| identity.stat().is_none_or(|stat| stat.is_halted())) {
                return;
            }
            (self.ending.wait)(&[], LOOK_AGAIN);
        }
    }

    /// Kills everything; returns what would not go.
    fn kill(&mut self) -> Vec<ProcessIdentity> {
        let deadline = Instant::now() + KILL_LIMIT;
        loop {
            let alive = self.look();
            let remaining = deadline.saturating_duration_since(Instant::now());
            if alive.is_empty() || remaining.is_zero() {
                return alive;
            }
            for identity in &alive {
                self.signal(identity, Signal::Kill);
            }
            self.wait(&alive, remaining);
        }
    }

    fn signal(&mut self, identity: &ProcessIdentity, signal: Signal) {
        let sent = identity.signal(signal);
        self.note(identity, sent);
        self.seen.entry(identity.clone()).or_default();
    }

    fn note(&mut self, identity: &ProcessIdentity, sent: Result<SignalEnd, IdentityError>) {
        match sent {
            // Out of descriptors is for the next round; what lasts shows as a survivor.
            Ok(_) | Err(IdentityError::System { .. } | IdentityError::Proc { .. }) => {}
            Err(IdentityError::NotPermitted { .. }) => {
                self.denied.insert(identity.clone());
            }
        }
    }

    /// What is alive now and can be signalled. Reaps what is not.
    fn look(&mut self) -> Vec<ProcessIdentity> {
        let mut alive = (self.find)();
        let found: BTreeSet<ProcessIdentity> = alive.iter().cloned().collect();
        for (identity, pidfd) in &mut self.seen {
            if found.contains(identity) || self.denied.contains(identity) || self.gone.contains(identity) {
                continue;
            }
            // What is on its way out has lost its marker with its memory, and is not dead yet.
            if identity.stat().is_some_and(|stat| stat.is_exiting && !stat.is_dead()) {
                alive.push(identity.clone());
                continue;
            }
            self.gone.insert(identity.clone());
            *pidfd = None;
            reap_orphan(identity.pid);
        }
        alive.retain(|identity| !self.denied.contains(identity));
        alive
    }

    fn wait(&mut self, alive: &[ProcessIdentity], limit: Duration) {
        let watched: Vec<BorrowedFd<'_>> = alive.iter().filter_map(|identity| self.seen.get(identity)?.as_ref()).map(AsFd::as_fd).collect();
        let limit = if watched.len() == alive.len() { limit } else { limit.min(LOOK_AGAIN) };
        (self.ending.wait)(&watched, limit);
    }
}
