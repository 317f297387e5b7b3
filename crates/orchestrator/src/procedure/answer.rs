//! A person's answer to a step that asks before it does its work.

use proctor_domain::procedure::{Answer, RunEvent, StepId};
use proctor_domain::{Clock, RunId};
use proctor_journal::JournalStore;

use super::lookup::load_run;
use super::start::lock_run;
use super::{ProcedureError, Refusal};
use crate::Site;

/// Records the answer to what a run waits for. The run itself goes on when it is resumed. An agent that asked wants words,
/// and goes on with them unless they come with a rejection; a step that asks before its work wants a decision.
///
/// # Errors
/// The run does not wait for an answer, or for one of this kind, or is at work.
pub fn answer_run(
    site: &Site,
    journal: &mut dyn JournalStore,
    clock: &dyn Clock,
    run_id: &RunId,
    (answer, message): (Option<Answer>, Option<String>),
) -> Result<(StepId, Answer), ProcedureError> {
    let _lock = lock_run(site, run_id)?.ok_or_else(|| Refusal::Live { run: run_id.clone() })?;
    let mut loaded = load_run(journal, run_id)?;
    let step = loaded.run.asks().ok_or_else(|| Refusal::NotAsking { run: run_id.clone() })?;
    let answer = match (answer, loaded.run.question()) {
        (None | Some(Answer::Approve), Some(_)) if message.is_none() => return Err(Refusal::WantsWords { run: run_id.clone() }.into()),
        (None, Some(_)) => Answer::Approve,
        (None, None) => return Err(Refusal::WantsDecision { run: run_id.clone() }.into()),
        (Some(answer), _) => answer,
    };
    let event = RunEvent::Answered { step: step.clone(), answer, message };
    let at = clock.now();
    loaded.run.apply(at, event.clone()).map_err(|source| ProcedureError::DamagedRun { run: run_id.clone(), source })?;
    journal.append(run_id, loaded.version, &[(at, event)])?;
    Ok((step, answer))
}
