//! One session of a step.

use serde::{Deserialize, Serialize};

use crate::session::{Phase, Work};

/// What one session of a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    /// The phase it serves.
    pub phase: Phase,
    /// What it does in it.
    pub work: Work,
}

impl Task {
    /// The step's only agent, asked to repair what a check found.
    pub const REPAIR: Self = Self { phase: Phase::Run, work: Work::Repair };

    /// The shells of a phase.
    pub const fn shells(phase: Phase) -> Self {
        Self { phase, work: Work::Shells }
    }

    /// A judge's try, from 1.
    pub const fn judge(number: u32) -> Self {
        Self { phase: Phase::Validate, work: Work::Judge(number) }
    }

    /// Whether an agent changes the tree in it.
    pub fn is_of_an_agent(self) -> bool {
        matches!(self.work, Work::Agent(_) | Work::Repair)
    }
}
