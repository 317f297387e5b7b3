//! What people are told when the journal can't be read or written.

use proctor_journal::{AppendError, JournalError, ReadError, ResolveError};

use super::{Kind, Report};

impl From<JournalError> for Report {
    fn from(error: JournalError) -> Self {
        let kind = match &error {
            JournalError::Busy { .. } | JournalError::Newer { .. } => Kind::Refused,
            JournalError::Missing { .. } => Kind::User,
            JournalError::Full { .. }
            | JournalError::ReadOnly { .. }
            | JournalError::Corrupt { .. }
            | JournalError::Foreign { .. }
            | JournalError::Truncated { .. }
            | JournalError::Moved { .. }
            | JournalError::Io { .. }
            | JournalError::Storage { .. } => Kind::Environment,
            JournalError::Statement { .. } => Kind::Internal,
        };
        Self::failed_to(kind, &error).hints(error.hint())
    }
}

impl From<AppendError> for Report {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Journal(error) => error.into(),
            AppendError::Conflict { .. } => Self::failed_to(Kind::Refused, &error).hint("`proctor runs` lists what is running"),
            AppendError::OutOfPlace { .. } | AppendError::Unwritable { .. } => Self::failed_to(Kind::Internal, &error),
        }
    }
}

impl From<ReadError> for Report {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Journal(error) => error.into(),
            ReadError::Newer { .. } => Self::failed_to(Kind::Refused, &error).hint("use the newer proctor"),
            ReadError::Damaged { .. } => {
                Self::failed_to(Kind::Environment, &error).hint("`proctor doctor` names what is damaged; other runs are not affected")
            }
        }
    }
}

impl From<ResolveError> for Report {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Journal(error) => error.into(),
            ResolveError::NotFound { .. } => Self::failed_to(Kind::User, &error).hint("`proctor runs --all` lists every run"),
            ResolveError::Ambiguous { .. } => Self::failed_to(Kind::User, &error).hint("give more of the id"),
        }
    }
}
