//! The sessions of one run that an engine was opened for.

use std::collections::BTreeMap;

use proctor_domain::procedure::{Run, RunEvent};
use proctor_domain::session::{AgentReport, Work};
use proctor_domain::{RunId, SessionId, Timestamp};
use proctor_journal::JournalStore;
use proctor_orchestrator::procedure::ProcedureError;

use crate::archive::Archive;

/// One session.
pub(super) struct Entry {
    /// The step it served.
    pub(super) step: String,
    /// What it did.
    pub(super) work: Work,
    /// When it ended, or was found to be gone; of one that is open, the run's newest event.
    pub(super) at: Timestamp,
    /// What is known of it.
    pub(super) report: Option<AgentReport>,
    /// Whether the provider turned it away before the model had answered, so that it is known to have cost nothing.
    pub(super) is_free: bool,
}

/// Every such session of a run, in the order of their ends. The events are read and not only the run that they fold
/// into, because that one has forgotten the times, and the sessions of steps that a new definition dropped.
pub(super) fn entries(archive: &Archive, run_id: &RunId) -> Result<Vec<Entry>, ProcedureError> {
    let mut open: BTreeMap<SessionId, (String, Work)> = BTreeMap::new();
    let mut entries = Vec::new();
    let mut run: Option<Run> = None;
    let mut newest = Timestamp(0);
    for (at, event) in archive.journal.read(run_id)? {
        newest = at;
        let mut opened = None;
        if let RunEvent::SessionOpened { session, work, .. } = &event {
            opened = work.needs_engine().then(|| (session.clone(), *work));
        } else if let RunEvent::SessionEnded { session, report, .. } = &event
            && let Some((step, work)) = open.remove(session)
        {
            entries.push(Entry { step, work, at, report: report.agent.as_deref().cloned(), is_free: report.is_free() });
        } else if let RunEvent::SessionLost { session, .. } = &event
            && let Some((step, work)) = open.remove(session)
        {
            entries.push(Entry { step, work, at, report: archive.transcribed(session), is_free: false });
        }
        run = match (run, event) {
            (None, RunEvent::Started(started)) => Some(Run::start(at, *started)),
            (Some(mut run), event) => {
                run.apply(at, event).map_err(|source| ProcedureError::DamagedRun { run: run_id.clone(), source })?;
                Some(run)
            }
            (None, _) => None,
        };
        if let Some((session, work)) = opened {
            let step = run.as_ref().and_then(Run::current_step).map(|step| step.plan.id.to_string());
            open.insert(session, (step.unwrap_or_default(), work));
        }
    }
    entries.extend(open.into_iter().map(|(session, (step, work))| Entry {
        step,
        work,
        at: newest,
        report: archive.transcribed(&session),
        is_free: false,
    }));
    Ok(entries)
}
