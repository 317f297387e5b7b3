//! Exit codes of the command line. `docs/exit-codes.md` is generated from this table.

/// What a `proctor` command says to the shell that called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// The work is done.
    Done,
    /// The work failed, or a linter has findings.
    Failed,
    /// Wrong usage or unreadable configuration.
    Usage,
    /// A check reached no verdict, or only part of the work was done.
    Inconclusive,
    /// Refused: busy, dirty, foreign changes, locked.
    Refused,
    /// Waits for a person or for a limit to reset.
    Parked,
    /// There was nothing to do.
    NothingToDo,
    /// Interrupted by a signal.
    Interrupted,
}

impl ExitCode {
    /// Every code, in the order of the documentation.
    pub const ALL: [Self; 8] =
        [Self::Done, Self::Failed, Self::Usage, Self::Inconclusive, Self::Refused, Self::Parked, Self::NothingToDo, Self::Interrupted];

    /// The number a shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Inconclusive => 3,
            Self::Refused => 4,
            Self::Parked => 5,
            Self::NothingToDo => 75,
            Self::Interrupted => 130,
        }
    }

    /// One line for the documentation.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed, or `lint` and `doctor` have findings",
            Self::Usage => "wrong usage, or a card or setting that can't be read",
            Self::Inconclusive => "inconclusive or partial: a check reached no verdict",
            Self::Refused => "refused: busy, dirty, foreign changes, locked",
            Self::Parked => "parked: waits for a person or a reset",
            Self::NothingToDo => "nothing to do: every step was skipped",
            Self::Interrupted => "interrupted",
        }
    }
}
