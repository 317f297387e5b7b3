//! `proctor say`: a person's word to an agent at work.

use std::io::{self, Read};

use proctor_domain::{ExitCode, RunId, SessionId};
use proctor_engine::{LONGEST_WORD, Said};
use serde::Serialize;

use super::CommandError;
use super::question::refuse_under_session;
use crate::Invocation;
use crate::archive::{Archive, Seen, Target, nothing_like};
use crate::args::Format;
use crate::args::runs::SayArgs;
use crate::report::{Kind, Report};

#[derive(Serialize)]
struct Passed<'a> {
    version: u32,
    run: &'a RunId,
    session: &'a SessionId,
    step: Option<&'a str>,
    /// Bytes of the text.
    bytes: usize,
}

/// Hands the text to the agent of the run's present session.
pub fn run(invocation: &Invocation, args: &SayArgs) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let archive = Archive::open(invocation)?.ok_or_else(|| nothing_like(&args.run))?;
    let (run, only) = match archive.target(&args.run)? {
        Target::Run(run) => (run, None),
        Target::Session(run, session) => (run, Some(session)),
    };
    let text = text(&args.text)?;
    let seen = archive.look(&run)?;
    let session = seen.loaded.run.open_session().filter(|session| only.as_ref().is_none_or(|only| only == *session));
    let session = session.ok_or_else(|| nobody_hears(&run))?;
    let folder = archive.site.state.session(session);
    match proctor_engine::say(&folder, &text) {
        Ok(Some(Said::Passed)) => {}
        Ok(Some(Said::Over)) => return Err(nobody_hears(&run)),
        Ok(Some(Said::NoPerson)) => return Err(CommandError::UnderSession.into()),
        Ok(Some(Said::NoAgent)) => return Err(Report::new(Kind::Refused, format!("{session} of {run} runs shells, which hear nothing"))),
        Ok(Some(Said::Deaf)) => return Err(is_deaf(&run, session)),
        Ok(None) => {
            return Err(Report::new(Kind::Refused, format!("the host of {session} does not answer"))
                .hint("it may be stopped, or have more connections than it takes; an older Proctor's takes no word"));
        }
        Err(error) => return Err(Report::new(Kind::Environment, format!("failed to reach the host of {session}")).because(&error)),
    }
    let step = step_of(&seen, session);
    match Format::from_flag(args.json) {
        Format::Json => invocation.printer.json(&Passed { version: 1, run: &run, session, step, bytes: text.len() }),
        Format::Text => {
            let whose = step.map(|step| format!("the agent of step `{step}`")).unwrap_or_else(|| session.to_string());
            invocation.printer.say(&format!("said to {whose}; `proctor log {session} --follow` shows what it does"));
        }
    }
    Ok(ExitCode::Done)
}

/// What is to be said: the argument, or standard input where that is `-`.
fn text(given: &str) -> Result<String, Report> {
    let text = if given == "-" {
        let mut bytes = Vec::new();
        let most = u64::try_from(LONGEST_WORD).unwrap_or(u64::MAX);
        io::stdin().take(most + 1).read_to_end(&mut bytes).map_err(CommandError::Answer)?;
        String::from_utf8(bytes).map_err(|_| Report::new(Kind::User, "what comes from standard input is not UTF-8"))?
    } else {
        given.to_owned()
    };
    if text.trim().is_empty() {
        return Err(Report::new(Kind::User, "there is nothing to say: the text is empty"));
    }
    if text.len() > LONGEST_WORD {
        return Err(Report::new(Kind::User, format!("the text is longer than {} KiB", LONGEST_WORD / 1024))
            .hint("put it into a file that the agent can read, and say where that is"));
    }
    Ok(text)
}

fn nobody_hears(run: &RunId) -> Report {
    Report::new(Kind::Refused, format!("no agent of {run} is at work")).hint(format!("proctor procedure status {run}"))
}

fn is_deaf(run: &RunId, session: &SessionId) -> Report {
    Report::new(Kind::Refused, format!("the engine of {session} hears nothing while it works"))
        .hint("`proctor engines` says which do (steering)")
        .hint(format!("stop it, and go on with another prompt: proctor stop {run}"))
}

fn step_of<'seen>(seen: &'seen Seen, session: &SessionId) -> Option<&'seen str> {
    let step = seen.loaded.run.steps.iter().find(|step| step.sessions.iter().any(|record| record.id == *session))?;
    Some(step.plan.id.as_str())
}
