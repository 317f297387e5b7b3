//! `proctor procedure pin` and `unpin`: how long a run is kept.

use proctor_domain::ExitCode;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{Keep, keep_run};

use crate::Invocation;
use crate::archive::{Archive, nothing_like};
use crate::commands::question::refuse_under_session;
use crate::report::Report;
use crate::run_text::local_time;

/// Keeps a run for ever, or as long as its procedure says.
pub(super) fn run(invocation: &Invocation, text: &str, keep: Keep) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let mut archive = Archive::open_to_change(invocation)?.ok_or_else(|| nothing_like(text))?;
    let run = archive.run(text)?;
    let expires = keep_run(&archive.site, &mut archive.journal, &SystemClock, &run, keep)?;
    invocation.printer.say(&match expires {
        None => format!("{run} is kept until `proctor procedure unpin {run}`"),
        Some(at) => format!("{run} may be removed by `proctor procedure gc` from {}", local_time(at)),
    });
    Ok(ExitCode::Done)
}
