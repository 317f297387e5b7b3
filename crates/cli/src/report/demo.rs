//! What people are told when the demo can't be played.

use super::{Kind, Report};
use crate::commands::demo::DemoError;

impl From<DemoError> for Report {
    fn from(error: DemoError) -> Self {
        match &error {
            DemoError::Occupied { .. } => Self::failed_to(Kind::User, &error).hint("name a folder that is not there yet"),
            DemoError::Start(_) => Self::failed_to(Kind::Environment, &error).hint("install git 2.31 or later"),
            DemoError::Make { .. } | DemoError::Write(_) | DemoError::Remove { .. } | DemoError::Git { .. } | DemoError::Signals(_) => {
                Self::failed_to(Kind::Environment, &error)
            }
            DemoError::WentOtherwise { .. } => Self::failed_to(Kind::Environment, &error)
                .hint("`proctor doctor` checks what runs need; `proctor demo --keep DIR` keeps the folder"),
        }
    }
}
