//! What a run teaches, read from what was seen of it: proposals to memory.
//!
//! Nothing is a lesson because an agent says so. A check has to have said yes after it, or no at the end.

use serde::{Deserialize, Serialize};

use super::run::{Run, StepRecord, StepState};
use super::{CheckResult, Failure, StepId};
use crate::RecordId;
use crate::session::{Learned, Phase, SessionRecord, SessionReport, Work};

/// What one step of a run taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lesson<'run> {
    /// The step.
    pub step: &'run StepRecord,
    /// The session that did the work.
    pub session: &'run SessionRecord,
    /// What it is.
    pub kind: LessonKind<'run>,
}

/// What a lesson is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LessonKind<'run> {
    /// The repair passed every check, and its agent had said what the way and the trap are.
    Repaired(&'run Learned),
    /// The step failed because a shell of its check said no.
    Refuted {
        /// How.
        failure: &'run Failure,
        /// What the check left.
        report: &'run SessionReport,
    },
    /// The step failed because its judge said no.
    Judged {
        /// Why, in the judge's words.
        reasoning: &'run str,
    },
}

impl LessonKind<'_> {
    /// The word that tells it from other lessons of the same step.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repaired(_) => "repaired",
            Self::Refuted { .. } => "refuted",
            Self::Judged { .. } => "judged",
        }
    }
}

/// What became of a lesson in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The step that taught it.
    pub step: StepId,
    /// The record.
    pub record: RecordId,
    /// What became of it.
    pub reception: Reception,
}

/// How memory took a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reception {
    /// It is a new record, which waits for a person or for somebody who meets the same.
    Proposed,
    /// A record that waited says the same, of another run: it counts from now on.
    Corroborated,
    /// The same is there already, and stays as it is.
    Known,
}

impl Reception {
    /// The word used in JSON and in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Corroborated => "corroborated",
            Self::Known => "known",
        }
    }
}

impl Run {
    /// What the run taught, once its steps are decided.
    pub fn lessons(&self) -> Vec<Lesson<'_>> {
        self.steps.iter().filter_map(StepRecord::lesson).collect()
    }

    /// The records of memory that any of its sessions was shown: nothing that it comes to says more about them.
    pub fn shown_records(&self) -> impl Iterator<Item = &RecordId> {
        self.steps.iter().flat_map(|step| &step.sessions).flat_map(|session| &session.known)
    }

    /// The run whose session this is has told memory.
    pub(super) fn note_proposals(&mut self, records: Vec<Proposal>, obstacle: Option<String>) {
        self.has_proposed = true;
        self.proposal_obstacle = obstacle;
        for proposal in records {
            self.proposals.retain(|earlier| earlier.record != proposal.record);
            self.proposals.push(proposal);
        }
    }
}

impl StepRecord {
    /// What it taught. Only an agent's work does: shells do what their card says.
    fn lesson(&self) -> Option<Lesson<'_>> {
        let session = self.present_sessions().iter().rev().find(|session| is_work(session))?;
        let kind = match &self.state {
            StepState::Completed if self.validate == Some(CheckResult::Pass) => LessonKind::Repaired(self.learned_in_repair()?),
            StepState::Failed(Failure::Judged { reasoning }) => LessonKind::Judged { reasoning },
            StepState::Failed(failure @ (Failure::Exit { phase, .. } | Failure::Timeout { phase })) if *phase == Phase::Validate => {
                LessonKind::Refuted { failure, report: self.last_report(Phase::Validate)? }
            }
            StepState::Pending
            | StepState::Running
            | StepState::Failing(_)
            | StepState::Skipping
            | StepState::Completed
            | StepState::Skipped(_)
            | StepState::Failed(_) => return None,
        };
        Some(Lesson { step: self, session, kind })
    }

    /// What the agent said in the repair, after which every check was made again.
    fn learned_in_repair(&self) -> Option<&Learned> {
        let repairs = self.present_sessions().iter().rev().filter(|session| session.work == Work::Repair);
        repairs.filter_map(|session| session.report.as_ref()?.agent.as_ref()).find_map(|agent| agent.told.learned.as_ref())
    }
}

/// Whether an agent worked in this session and its model answered.
fn is_work(session: &SessionRecord) -> bool {
    let responded = session.report.as_ref().and_then(|report| report.agent.as_ref()).is_some_and(|agent| agent.responded);
    matches!(session.work, Work::Agent(_) | Work::Repair) && responded
}
