//! `proctor doctor --repair`: what can be mended without losing anything.

use proctor_journal::{Journal, JournalError, SalvageReport};

use super::quoted;
use crate::Invocation;
use crate::place::Place;
use crate::report::Report;
use crate::run_text::counted;

/// What is wrong with the journal, as far as it can be mended.
enum Damage {
    /// Nothing.
    None,
    /// The list of runs is not what the events say; it is made anew from them.
    List,
    /// The file or records in it.
    File,
}

/// Mends the journal, saying first what will be done.
pub(super) fn run(invocation: &Invocation) -> Result<(), Report> {
    let printer = &invocation.printer;
    let Some(state) = Place::find(invocation)?.find_state(invocation)? else {
        printer.say("nothing to repair: this repository has no state yet");
        return Ok(());
    };
    match damage(state.root())? {
        Damage::None => printer.say("nothing to repair: the journal is sound"),
        Damage::List => {
            printer.say("the list of runs will be made anew from their events");
            let listed = Journal::open(state.root())?.rebuild_rows()?;
            printer.say(&format!("{} listed", counted(listed, "run")));
        }
        Damage::File => {
            let path = state.root().join(proctor_journal::FILE_NAME);
            printer
                .say(&format!("everything readable of {} will be moved to a new file; the damaged one is kept beside it", quoted(&path)));
            tell(invocation, &Journal::salvage(state.root())?);
        }
    }
    Ok(())
}

fn damage(root: &std::path::Path) -> Result<Damage, Report> {
    let health = match Journal::open_read_only(root) {
        Ok(journal) => journal.check(),
        Err(JournalError::Missing { .. }) => return Ok(Damage::None),
        Err(JournalError::Corrupt { .. } | JournalError::Truncated { .. }) => return Ok(Damage::File),
        Err(error) => return Err(error.into()),
    };
    Ok(if !health.pages.is_empty() || !health.damaged.is_empty() {
        Damage::File
    } else if !health.stale.is_empty() {
        Damage::List
    } else {
        Damage::None
    })
}

fn tell(invocation: &Invocation, report: &SalvageReport) {
    let printer = &invocation.printer;
    if let Some(reason) = &report.unreadable {
        printer.warn(&format!("nothing of it could be read: {reason}"));
    }
    printer.say(&format!(
        "kept {} and {}; the damaged file is {}",
        counted(report.runs.len(), "run"),
        counted(report.snapshots, "card text"),
        quoted(&report.set_aside)
    ));
    for run in report.runs.iter().filter(|run| run.left_behind > 0 || run.reason.is_some()) {
        let reason = run.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        printer.warn(&format!(
            "{} keeps its first {}{reason}; `proctor procedure resume {}` goes on from there",
            run.run,
            counted(usize::try_from(run.kept).unwrap_or(usize::MAX), "event"),
            run.run
        ));
    }
}
