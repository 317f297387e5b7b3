//! Procedures: what a card declares, what happened in a run, and what a run owes next.
//!
//! [`Definition`] is a card's meaning. A run is the fold of its [`RunEvent`]s into a [`Run`];
//! [`Run::owes`] is asked after every event and after every restart, so recovery has no code of its own.

mod agents;
mod apply;
mod definition;
mod event;
mod failure;
mod lessons;
mod owed;
mod run;
mod task;
mod verdict;

pub use apply::UnexpectedEvent;
pub use definition::{
    AgentSpec, Definition, InputKind, InputSpec, InvalidInput, InvalidStepId, Isolation, MemoryUse, PhaseSpec, PrecheckSpec, Records,
    RetrySpec, Severity, StepId, StepSpec, ValidateSpec, output_variable, variable_name,
};
pub use event::{Answer, CommitPurpose, Evidence, HaltReason, Isolated, RunEngine, RunEvent, RunStarted, SkipReason, StepPlan};
pub use failure::Failure;
pub use lessons::{Lesson, LessonKind, Proposal, Reception};
pub use owed::Owed;
pub use run::{Approval, Confinement, LastCommit, Leftovers, Outcome, Position, QuestionAnswer, Run, Stage, StepRecord, StepState};
pub use task::Task;
pub use verdict::{CheckResult, PrecheckResult, Unjudged, Verdict, judge_precheck, judge_run, judge_validate};
