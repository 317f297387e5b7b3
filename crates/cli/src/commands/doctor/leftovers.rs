//! What dead runs and sessions left behind: runs without a driver, processes, folders.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proctor_domain::{RunId, SessionId};
use proctor_journal::{Journal, JournalStore, ResolveError, RunFilter, RunsWanted, SkippedRuns, Standing};
use proctor_orchestrator::StateFolder;
use proctor_orchestrator::procedure::load_run;
use proctor_process::{ProcessIdentity, family, lock};

use super::{Check, listed, quoted};
use crate::Invocation;
use crate::environment;
use crate::report::Report;
use crate::run_text::counted;

/// No more of a list are named.
const NAMED: usize = 5;

pub(super) fn check(invocation: &Invocation, state: &StateFolder) -> Vec<Check> {
    let sessions = match session_folders(state) {
        Ok(sessions) => sessions,
        Err(error) => {
            return vec![Check::failure("sessions", format!("the folders of sessions can't be listed: {error}"), "check the disk")];
        }
    };
    // What is wrong with the journal itself, its own check says.
    let journal = Journal::open_read_only(state.root()).ok();
    let mut checks = Vec::new();
    if let Some(journal) = &journal {
        checks.push(dead_drivers(state, journal).unwrap_or_else(|report| Check::from_report("runs", &report)));
    }
    checks.push(orphans(invocation, state, journal.as_ref(), &sessions));
    if let Some(journal) = &journal {
        checks.push(forgotten_folders(state, journal, &sessions));
    }
    checks
}

/// The sessions that have a folder in the state.
fn session_folders(state: &StateFolder) -> std::io::Result<BTreeSet<SessionId>> {
    let entries = match std::fs::read_dir(state.root().join("sessions")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let mut sessions = BTreeSet::new();
    for entry in entries {
        if let Some(session) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            sessions.insert(session);
        }
    }
    Ok(sessions)
}

fn is_held(path: &std::path::Path) -> bool {
    // A lock that can't be looked at counts as held: nothing is said to be dead that may live.
    lock::holder_if_held(path).map_or(true, |holder| holder.is_some())
}

/// Runs that are recorded as going on and have neither a driver nor a host.
fn dead_drivers(state: &StateFolder, journal: &Journal) -> Result<Check, Report> {
    let filter = RunFilter { wanted: RunsWanted::Unended, skipped: SkippedRuns::Shown, ..RunFilter::default() };
    let rows = journal.runs(&filter)?;
    let (open, halted): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.standing == Standing::Open);
    let (alive, dead): (Vec<_>, Vec<_>) = open.into_iter().map(|row| row.run).partition(|run| run_is_alive(state, journal, run));
    if !dead.is_empty() {
        let (verb, detail) = if dead.len() == 1 { ("has", "it") } else { ("have", "each") };
        return Ok(Check::warning(
            "runs",
            format!("{} {verb} not ended, and the proctor that drove {detail} is gone", listed(&dead, NAMED)),
            format!("proctor procedure resume {}", dead[0]),
        ));
    }
    let left: Vec<RunId> = alive.iter().filter(|run| !is_held(&state.run_lock(run))).cloned().collect();
    if let Some(first) = left.first() {
        return Ok(Check::warning(
            "runs",
            format!("{}: a session goes on, and the proctor that drove it is gone", listed(&left, NAMED)),
            format!("proctor procedure resume {first}"),
        ));
    }
    let stopped = if halted.is_empty() { String::new() } else { format!(", {} stopped and can be resumed", halted.len()) };
    Ok(Check::ok("runs", format!("{} going on{stopped}", counted(alive.len(), "run"))))
}

fn run_is_alive(state: &StateFolder, journal: &Journal, run: &RunId) -> bool {
    if is_held(&state.run_lock(run)) {
        return true;
    }
    // A record that can't be read is the journal check's business.
    let Ok(loaded) = load_run(journal, run) else { return true };
    // It may have ended since the list was read.
    matches!(loaded.run.position, proctor_domain::procedure::Position::Ended(_))
        || loaded.run.open_session().is_some_and(|session| is_held(&state.session_lock(session)))
}

/// Processes that carry the marker of one of our sessions whose host is dead.
fn orphans(invocation: &Invocation, state: &StateFolder, journal: Option<&Journal>, sessions: &BTreeSet<SessionId>) -> Check {
    let ours = |value: &[u8]| dead_session_in(value, state, sessions).is_some();
    let spared = family::ancestors();
    let mut lingering = 0;
    let mut found: Vec<(ProcessIdentity, SessionId)> = Vec::new();
    for process in family::marked(environment::SESSION.name, ours) {
        // A terminal that a dead session started, and in which somebody works now, is not a leftover.
        if process.pid == std::process::id() || spared.contains(&process) {
            continue;
        }
        let Some(value) = family::variable_of(&process, environment::SESSION.name) else { continue };
        let Some(session) = dead_session_in(&value, state, sessions) else { continue };
        if was_left_on_purpose(invocation, journal, &session, &process) { lingering += 1 } else { found.push((process, session)) }
    }
    let purpose = if lingering == 0 { String::new() } else { format!("; {} left on purpose (`linger`)", counted(lingering, "process")) };
    if found.is_empty() {
        return Check::ok("orphans", format!("no process of a dead session is alive{purpose}"));
    }
    let processes: Vec<String> = found.iter().map(|(process, session)| format!("{} of {session}", process.pid)).collect();
    let pids: Vec<String> = found.iter().map(|(process, _)| process.pid.to_string()).collect();
    let detail = format!("alive although their session is dead: {}{purpose}", listed(&processes, NAMED));
    Check::warning("orphans", detail, format!("look at them with `ps -fp {}`, then `kill {}`", pids.join(","), pids.join(" ")))
}

/// The innermost session in a marker that is one of ours and has no living host.
fn dead_session_in(value: &[u8], state: &StateFolder, sessions: &BTreeSet<SessionId>) -> Option<SessionId> {
    let chain = std::str::from_utf8(value).ok()?;
    let ids = chain.rsplit(':').filter_map(|id| id.parse::<SessionId>().ok());
    ids.filter(|session| sessions.contains(session)).find(|session| !is_held(&state.session_lock(session)))
}

fn was_left_on_purpose(invocation: &Invocation, journal: Option<&Journal>, session: &SessionId, process: &ProcessIdentity) -> bool {
    let recorded = || {
        let (run, _) = journal?.resolve_session(session.as_str()).ok()?;
        let loaded = load_run(journal?, &run).ok()?;
        let record = loaded.run.steps.into_iter().flat_map(|step| step.sessions).find(|record| record.id == *session)?;
        record.report.map(|report| report.lingering)
    };
    if recorded().is_some_and(|lingering| lingering.iter().any(|left| left.pid == process.pid)) {
        return true;
    }
    // What a build server started since carries the same marker.
    let Ok(place) = crate::place::Place::find(invocation) else { return false };
    let linger = place.layers.settle(crate::settings::trust::Consent::Missing).linger.value;
    family::program_among(process, &linger).is_some()
}

/// Folders of sessions that the journal knows nothing of: their run was removed, or was lost with a damaged journal.
fn forgotten_folders(state: &StateFolder, journal: &Journal, sessions: &BTreeSet<SessionId>) -> Check {
    let is_unknown = |session: &&SessionId| {
        matches!(journal.resolve_session(session.as_str()), Err(ResolveError::NotFound { .. })) && !is_held(&state.session_lock(session))
    };
    let unknown: Vec<PathBuf> = sessions.iter().filter(is_unknown).map(|session| state.session(session)).collect();
    if unknown.is_empty() {
        return Check::ok("sessions", format!("{} kept", counted(sessions.len(), "folder")));
    }
    let paths: Vec<String> = unknown.iter().take(NAMED).map(|path| quoted(path)).collect();
    let detail = format!("{} of sessions that no recorded run has", counted(unknown.len(), "folder"));
    Check::warning("sessions", detail, format!("rm -r {}", paths.join(" ")))
}
