//! What people are told when the demo can't be played.

use crate::args::setup::DemoEngine;

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
            DemoError::NoBox { .. } => Self::failed_to(Kind::Environment, &error)
                .hint("install bubblewrap, or see what keeps it from working with `proctor doctor`")
                .hint("`proctor demo` without `--engine` needs none"),
            DemoError::WentOtherwise { engine, .. } => {
                let report = Self::failed_to(Kind::Environment, &error)
                    .hint("`proctor doctor` checks what runs need; `proctor demo --keep DIR` keeps the folder");
                match engine {
                    DemoEngine::Scripted => report,
                    DemoEngine::Claude => report.hint("`claude -p hello` tells whether claude is installed and logged in"),
                }
            }
        }
    }
}
