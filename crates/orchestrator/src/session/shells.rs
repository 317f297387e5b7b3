//! The session that runs the shells of a phase.

use proctor_domain::SessionId;
use proctor_domain::procedure::{Failure, PhaseSpec, StepSpec};
use proctor_domain::session::Phase;
use proctor_engine::{SessionSpec, SessionWork};

use super::{SessionOwner, environment};
use crate::Site;

/// The session that runs the shells of `phase`.
///
/// # Errors
/// A template under the step's `env` can't be evaluated; it fails the step.
pub(crate) fn shell_session(site: &Site, owner: &SessionOwner<'_>, session: SessionId, phase: Phase) -> Result<SessionSpec, Failure> {
    let environment = environment::of_shells(site, owner, &session)?;
    Ok(SessionSpec {
        folder: site.state.session(&session),
        lock: site.state.session_lock(&session),
        session,
        work: SessionWork::Shells(phase_of(owner.step, phase).map(|spec| spec.shells.clone()).unwrap_or_default()),
        directory: site.card_root.clone(),
        environment,
        secrets: environment::secret_values(site),
        wall_limit: owner.step.timeout.map_or(site.settings.shell_timeout, Into::into),
        linger: site.settings.linger.clone(),
    })
}

fn phase_of(step: &StepSpec, phase: Phase) -> Option<&PhaseSpec> {
    match phase {
        Phase::Precheck => step.precheck.as_ref().map(|precheck| &precheck.phase),
        Phase::Run => step.run.as_ref(),
        Phase::Validate => step.validate.as_ref().map(|validate| &validate.phase),
    }
}
