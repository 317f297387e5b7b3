//! Errors of memory.

use proctor_recall::StoreError;
use proctor_recall::logos::ImportError;

use super::{Kind, Report};

impl From<StoreError> for Report {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        let report = match &error {
            StoreError::NoRecord { .. } | StoreError::Ambiguous { .. } | StoreError::Incomplete(_) => Self::from_error(Kind::User, &error),
            StoreError::Damaged { .. } | StoreError::Newer { .. } | StoreError::Elsewhere { .. } => Self::from_error(Kind::Refused, &error),
            StoreError::Busy { .. } | StoreError::Restless { .. } | StoreError::ChangedMeanwhile { .. } => {
                Self::from_error(Kind::Refused, &error)
            }
            StoreError::Unreadable { .. } | StoreError::Folder { .. } | StoreError::Write(_) | StoreError::Lock(_) => {
                Self::failed_to(Kind::Environment, &error)
            }
        };
        report.hints(hint)
    }
}

impl From<ImportError> for Report {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::File(error) => error.into(),
            ImportError::Unreadable { .. } => Self::failed_to(Kind::Environment, &error),
            ImportError::Unknown { .. } => Self::from_error(Kind::User, &error),
        }
    }
}
