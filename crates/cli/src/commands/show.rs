//! `proctor show`: everything recorded about a run or a session.

mod claims;
mod document;
mod text;

use proctor_domain::procedure::StepRecord;
use proctor_domain::session::SessionRecord;
use proctor_domain::{Clock, ExitCode, SessionId};
use proctor_orchestrator::SystemClock;

use crate::Invocation;
use crate::archive::{Archive, Seen, Target, nothing_like};
use crate::args::Format;
use crate::args::runs::ShowRunArgs;
use crate::report::{Kind, Report};

/// Shows a run or a session.
pub fn run(invocation: &Invocation, args: &ShowRunArgs) -> Result<ExitCode, Report> {
    let archive = Archive::open(invocation)?.ok_or_else(|| nothing_like(&args.id))?;
    let target = archive.target(&args.id)?;
    let (Target::Run(run) | Target::Session(run, _)) = &target;
    let seen = archive.look(run)?;
    let view = View { archive: &archive, seen: &seen, now: SystemClock.now() };
    let format = Format::from_flag(args.json);
    match (&target, format) {
        (Target::Run(_), Format::Json) => invocation.printer.json(&document::run(&view)),
        (Target::Run(_), Format::Text) => text::run(&invocation.printer, &view),
        (Target::Session(_, session), format) => {
            let (step, record) = find_session(&seen, session)?;
            match format {
                Format::Json => invocation.printer.json(&document::session(&view, step, record)),
                Format::Text => text::session(&invocation.printer, &view, step, record),
            }
        }
    }
    Ok(ExitCode::Done)
}

/// What is shown, and from where.
struct View<'a> {
    archive: &'a Archive,
    seen: &'a Seen,
    now: proctor_domain::Timestamp,
}

impl View<'_> {
    /// The word for how a session ended, or that it did not.
    fn session_end(&self, session: &SessionRecord) -> &'static str {
        crate::run_document::session_end(session, &self.seen.loaded.run, &self.seen.standing)
    }

    /// The bash texts of a session, as they were handed to it; empty when its files are gone.
    fn shells(&self, session: &SessionId) -> Vec<String> {
        let folder = self.archive.site.state.session(session);
        (1..).map_while(|number: u32| std::fs::read(folder.join(format!("shell-{number}.sh"))).ok()).map(|bytes| text_of(&bytes)).collect()
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The session within its run. A new definition may have dropped its step.
fn find_session<'a>(seen: &'a Seen, session: &SessionId) -> Result<(&'a StepRecord, &'a SessionRecord), Report> {
    let mut all = seen.loaded.run.steps.iter().flat_map(|step| step.sessions.iter().map(move |record| (step, record)));
    all.find(|(_, record)| record.id == *session).ok_or_else(|| {
        let run = &seen.loaded.run_id;
        Report::new(Kind::User, format!("{session} served a step that {run} no longer has"))
            .hint(format!("`proctor log {session}` prints what it wrote, `proctor show {run}` shows the run"))
    })
}
