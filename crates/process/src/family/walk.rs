//! Who descends from whom, and what they are.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::OnceLock;

use crate::ProcessIdentity;
use crate::identity::boot_id;
use crate::proc_files::{self, Stat};

/// How many bytes of a program's name the kernel keeps.
const KERNEL_NAME: usize = 15;

/// The living children of the process with this pid.
pub fn children(of: u32) -> Vec<ProcessIdentity> {
    child_pids(of).into_iter().filter_map(ProcessIdentity::of).collect()
}

/// All living descendants of the process with this pid, parents before children.
pub fn descendants(of: u32) -> Vec<ProcessIdentity> {
    descendants_if(of, &mut |_| true)
}

/// The living descendants of the process with this pid, parents before children, without those that
/// `belongs` refuses and without what descends from them.
///
/// When the process with this pid is a subreaper, an empty answer is exact: there are none. A full one
/// can lack some that were started meanwhile; whoever must have all of them walks again until two
/// walks agree, with everything stopped that was found (see [`super::end`]).
pub fn descendants_if(of: u32, belongs: &mut dyn FnMut(&ProcessIdentity) -> bool) -> Vec<ProcessIdentity> {
    let Some(boot_id) = boot_id() else {
        return Vec::new();
    };
    let mut walk = Walk { of, boot_id, belongs, dead: BTreeSet::new(), met_death: false };
    let mut found = walk.pass();
    // When a process ends during a pass, its children move to a place that the pass may already have been
    // at. A chain in which each starts the next one and exits would slip through for ever.
    for _ in 0..PASSES {
        if !walk.met_death {
            break;
        }
        found = walk.pass();
    }
    found
}

/// How often a walk is repeated because somebody died on the way.
const PASSES: u32 = 64;

struct Walk<'a> {
    of: u32,
    boot_id: &'static str,
    belongs: &'a mut dyn FnMut(&ProcessIdentity) -> bool,
    /// The dead that were met so far. They stay where they are until somebody reaps them, and are news only once.
    dead: BTreeSet<(u32, u64)>,
    met_death: bool,
}

impl Walk<'_> {
    fn pass(&mut self) -> Vec<ProcessIdentity> {
        self.met_death = false;
        let tree = if has_children_files() { None } else { Some(parents_to_children()) };
        let mut found = Vec::new();
        let mut met = BTreeSet::from([self.of]);
        let mut open = vec![(self.of, Stat::of(self.of).map_or(1, |stat| stat.threads))];
        while let Some((pid, threads)) = open.pop() {
            let pids = tree.as_ref().map_or_else(|| listed_children(pid, threads), |tree| tree.get(&pid).cloned().unwrap_or_default());
            if pids.is_empty() && pid != self.of {
                // It has none, or it has just died and they have moved.
                self.stat_of_living(pid);
            }
            for child in pids {
                if !met.insert(child) {
                    continue;
                }
                let Some(stat) = self.stat_of_living(child) else {
                    continue;
                };
                let identity = ProcessIdentity { pid: child, start_ticks: stat.start_ticks, boot_id: self.boot_id.to_owned() };
                if (self.belongs)(&identity) {
                    found.push(identity);
                    open.push((child, stat.threads));
                }
            }
        }
        found
    }

    fn stat_of_living(&mut self, pid: u32) -> Option<Stat> {
        let stat = Stat::of(pid);
        match &stat {
            Some(stat) if stat.is_dead() => self.met_death |= self.dead.insert((pid, stat.start_ticks)),
            Some(_) => {}
            None => self.met_death = true,
        }
        stat.filter(|stat| !stat.is_dead())
    }
}

/// The children of the process with this pid, dead ones included.
pub(super) fn child_pids(of: u32) -> Vec<u32> {
    if has_children_files() {
        listed_children(of, Stat::of(of).map_or(1, |stat| stat.threads))
    } else {
        parents_to_children().remove(&of).unwrap_or_default()
    }
}

/// This process's parent, its parent's parent and so on.
pub fn ancestors() -> Vec<ProcessIdentity> {
    ancestors_of(std::process::id())
}

/// Whether the process with this pid descends from that of the other: as its child, or further down.
pub fn descends_from(pid: u32, from: u32) -> bool {
    ancestors_of(pid).iter().any(|ancestor| ancestor.pid == from)
}

fn ancestors_of(pid: u32) -> Vec<ProcessIdentity> {
    let mut found = Vec::new();
    // One that ends meanwhile leaves its child to an ancestor further up, and a walk that stopped there would hide all
    // of them: a session could get rid of its ancestors by a parent that exits at the right moment.
    for _ in 0..PASSES {
        found.clear();
        if walk_up(pid, &mut found) == Top::Reached {
            break;
        }
    }
    found
}

/// Whether a walk up came to the first process of all, or of this namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Top {
    Reached,
    Missed,
}

fn walk_up(mut pid: u32, found: &mut Vec<ProcessIdentity>) -> Top {
    while let Some(stat) = Stat::of(pid) {
        if stat.parent == 0 {
            return Top::Reached;
        }
        found.extend(ProcessIdentity::of(stat.parent));
        pid = stat.parent;
    }
    Top::Missed
}

/// The one of `names` that this process's program has: as its file name, or as the kernel's name of it, which
/// for a script is the script's and not the interpreter's.
pub fn program_among<'a>(identity: &ProcessIdentity, names: &'a [String]) -> Option<&'a str> {
    if names.is_empty() {
        return None;
    }
    let kernel_name = identity.stat()?.name;
    let file_name = proc_files::executable_name(identity.pid);
    let is_called = |name: &String| {
        let shortened = name.as_bytes().get(..KERNEL_NAME).unwrap_or(name.as_bytes());
        shortened == kernel_name || file_name.as_deref() == Some(OsStr::new(name))
    };
    let name = names.iter().find(|name| is_called(name))?;
    // Both names were read by pid; they are this process's if it is still there.
    identity.is_alive().then_some(name.as_str())
}

/// The value of a variable in the environment that a process was started with.
pub fn variable_of(identity: &ProcessIdentity, variable: &str) -> Option<Vec<u8>> {
    let mut environment = Vec::new();
    proc_files::read_whole(&format!("/proc/{}/environ", identity.pid), &mut environment);
    let value = proc_files::value_in(&environment, variable)?.to_vec();
    identity.is_alive().then_some(value)
}

/// A kernel built without `CONFIG_PROC_CHILDREN` has no lists of children, and the whole of `/proc` is read instead.
fn has_children_files() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| std::fs::exists("/proc/thread-self/children").unwrap_or(false))
}

/// Children belong to the thread that started them, and orphans to any thread of the subreaper.
fn listed_children(of: u32, threads: u64) -> Vec<u32> {
    let mut list = Vec::new();
    let mut found = Vec::new();
    let mut read = |thread: u32| {
        if proc_files::read_whole(&format!("/proc/{of}/task/{thread}/children"), &mut list)
            && let Ok(text) = std::str::from_utf8(&list)
        {
            found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    };
    if threads <= 1 {
        read(of);
    } else {
        proc_files::threads_of(of).into_iter().for_each(read);
    }
    found
}

fn parents_to_children() -> BTreeMap<u32, Vec<u32>> {
    let mut tree: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in proc_files::all_pids() {
        if let Some(stat) = Stat::of(pid) {
            tree.entry(stat.parent).or_default().push(pid);
        }
    }
    tree
}
