//! What a session is given: environment, limits, files, and for an agent its words and its box.

mod agent;
mod confinement;
mod environment;
mod frame;
mod prompts;
mod shells;

use proctor_domain::RunId;
use proctor_domain::procedure::{Definition, Run, StepRecord, StepSpec};
use proctor_recall::advice::Brief;

pub(crate) use agent::{AgentErrand, VERDICT_SCHEMA, agent_session};
pub(crate) use confinement::{box_rules, choose_box};
pub(crate) use environment::{step_variables, template_values};
pub(crate) use shells::shell_session;

/// The run and step that a session belongs to.
pub(crate) struct SessionOwner<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) run: &'a Run,
    pub(crate) definition: &'a Definition,
    pub(crate) step: &'a StepSpec,
    pub(crate) record: &'a StepRecord,
    /// What memory knows about it, for an agent.
    pub(crate) known: Option<&'a Brief>,
}
