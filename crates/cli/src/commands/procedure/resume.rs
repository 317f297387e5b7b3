//! `proctor procedure resume`.

use proctor_cards::find_procedure;
use proctor_domain::procedure::Outcome;
use proctor_domain::{Clock, ExitCode, RunId};
use proctor_journal::{Journal, JournalStore, RunsWanted, snapshot_hash};
use proctor_orchestrator::procedure::{
    Attitude, NewDefinition, ProcedureError, ResumeRequest, Resumption, Standing, find_run, load_run, newest_run, resume_run,
};
use proctor_orchestrator::{Site, SystemClock};

use super::run::conclude;
use crate::Invocation;
use crate::args::Format;
use crate::args::procedure::ResumeArgs;
use crate::commands::question::refuse_under_session;
use crate::place::Place;
use crate::printer::visible_line;
use crate::progress::Progress;
use crate::report::Report;
use crate::run_document::RunDocument;
use crate::standing::{tell_inconclusive, ways_on};

/// Goes on with a run.
pub(super) fn run(invocation: &Invocation, args: &ResumeArgs) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let mut site = Place::find(invocation)?.into_site(invocation, None)?;
    let mut journal = Journal::open(site.state.root())?;
    let run = match &args.run {
        Some(text) => find_run(&site, &journal, text)?,
        None => newest_run(&site, &journal, RunsWanted::Resumable)?.ok_or(ProcedureError::NothingToResume)?,
    };
    args.engine.apply_to_run(&mut site.settings, &invocation.directory, &load_run(&journal, &run)?.run.started)?;
    let request = ResumeRequest {
        definition: definition(&site, &journal, &run, args.new_definition)?,
        run,
        directive: args.directive.clone(),
        attitude: if args.accept_foreign { Attitude::AcceptForeign } else { Attitude::Strict },
    };
    if !args.new_definition {
        tell_changed_card(invocation, &site, &journal, &request.run);
    }
    let format = Format::from_flag(args.json);
    let mut progress = Progress::new(&invocation.printer);
    let resumption = resume_run(&site, &mut journal, &SystemClock, &mut |notice| progress.tell(&notice), request);
    progress.finish();
    Ok(conclude_resumption(invocation, resumption?, format))
}

/// Goes on with a run as it was started, and says what came of it.
pub(crate) fn go_on(invocation: &Invocation, site: &Site, journal: &mut Journal, run: RunId, format: Format) -> Result<ExitCode, Report> {
    let request = ResumeRequest { run, directive: None, definition: NewDefinition::Keep, attitude: Attitude::Strict };
    let mut progress = Progress::new(&invocation.printer);
    let resumption = resume_run(site, journal, &SystemClock, &mut |notice| progress.tell(&notice), request);
    progress.finish();
    Ok(conclude_resumption(invocation, resumption?, format))
}

fn conclude_resumption(invocation: &Invocation, resumption: Resumption, format: Format) -> ExitCode {
    match resumption {
        Resumption::Driven(end) => conclude(invocation, &end, format),
        Resumption::Over { standing, loaded } => {
            let code = standing.exit_code();
            if standing == Standing::Ended(Outcome::Inconclusive) {
                tell_inconclusive(&invocation.printer, &loaded.run);
            }
            let name = visible_line(&loaded.run.started.procedure).into_owned();
            invocation.printer.say(&format!("{} of {name} is over: {}", loaded.run_id, crate::run_document::outcome(&standing)));
            if format == Format::Json {
                invocation.printer.json(&RunDocument::of(&loaded.run_id, &loaded.run, &standing, SystemClock.now()));
            }
            for way in ways_on(&loaded.run_id, &loaded.run, &standing) {
                invocation.printer.say(&visible_line(&way));
            }
            code
        }
    }
}

/// Says that a run follows the card it was started with, where the card is another one by now.
fn tell_changed_card(invocation: &Invocation, site: &Site, journal: &dyn JournalStore, run: &RunId) {
    let Ok(loaded) = load_run(journal, run) else { return };
    let path = site.repository.work_tree.join(loaded.run.started.card.to_string());
    let now = find_procedure(&site.card_root, site.layout, &path.to_string_lossy());
    if now.is_ok_and(|source| snapshot_hash(&source.text) != loaded.run.started.snapshot) {
        invocation
            .printer
            .say("the card has changed since; this run follows the one it was started with (`--new-definition` takes the new one)");
    }
}

fn definition(site: &Site, journal: &dyn JournalStore, run: &RunId, new: bool) -> Result<NewDefinition, Report> {
    if !new {
        return Ok(NewDefinition::Keep);
    }
    let card = load_run(journal, run)?.run.started.card.to_string();
    let path = site.repository.work_tree.join(card);
    Ok(NewDefinition::Take(find_procedure(&site.card_root, site.layout, &path.to_string_lossy())?))
}
