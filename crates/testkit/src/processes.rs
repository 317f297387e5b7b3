//! Processes that a test left behind.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// A living process that was started in a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its command line, for messages.
    pub command: String,
}

/// Every living process whose environment says that its home is `home`.
pub(crate) fn living(home: &Path) -> Vec<Leftover> {
    let mut marker = b"HOME=".to_vec();
    marker.extend_from_slice(home.as_os_str().as_encoded_bytes());
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| has(*pid, &marker)).filter(|pid| !is_zombie(*pid)).map(|pid| Leftover { pid, command: command(pid) }).collect()
}

/// Kills them. A process that starts others meanwhile is met by the next round.
pub(crate) fn kill_all(home: &Path) {
    for _ in 0..50 {
        let living = living(home);
        if living.is_empty() {
            return;
        }
        for leftover in living {
            if let Some(pid) = i32::try_from(leftover.pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

fn has(pid: u32, marker: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|pair| pair == marker))
}

fn is_zombie(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(')').is_none_or(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

fn command(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
}
