//! `proctor answer`: a person's word on a step that asks for it.

use proctor_domain::procedure::Answer;
use proctor_domain::{ExitCode, RunId};
use proctor_journal::Journal;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{answer_run, find_run, load_run};
use serde::Serialize;

use super::procedure::go_on;
use super::question::refuse_under_session;
use crate::Invocation;
use crate::archive::{Archive, nothing_like};
use crate::args::Format;
use crate::args::runs::{AnswerArgs, AnswerChoice};
use crate::place::Place;
use crate::report::Report;

#[derive(Serialize)]
struct Answered<'a> {
    version: u32,
    run: &'a RunId,
    step: &'a str,
    answer: Answer,
    message: Option<&'a str>,
    /// The commands that go on with the run.
    go_on: [String; 1],
}

/// Records the answer and says how to go on, or goes on.
pub fn run(invocation: &Invocation, args: &AnswerArgs) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let answer = args.answer.map(|choice| match choice {
        AnswerChoice::Approve => Answer::Approve,
        AnswerChoice::Reject => Answer::Reject,
    });
    let said = (answer, args.message.clone().filter(|message| !message.trim().is_empty()));
    let format = Format::from_flag(args.json);
    if args.resume {
        // First what may be refused, so that an answer is not recorded for a run that can't go on here.
        let mut site = Place::find(invocation)?.into_site(invocation, None)?;
        let mut journal = Journal::open(site.state.root())?;
        let run = find_run(&site, &journal, &args.run)?;
        args.engine.apply_to_run(&mut site.settings, &invocation.directory, &load_run(&journal, &run)?.run.started)?;
        answer_run(&site, &mut journal, &SystemClock, &run, said)?;
        return go_on(invocation, &site, &mut journal, run, format);
    }
    let mut archive = Archive::open_to_change(invocation)?.ok_or_else(|| nothing_like(&args.run))?;
    let run = archive.run(&args.run)?;
    let is_question = load_run(&archive.journal, &run)?.run.question().is_some();
    let (step, answer) = answer_run(&archive.site, &mut archive.journal, &SystemClock, &run, said.clone())?;
    let go_on = format!("proctor procedure resume {run}");
    match format {
        Format::Json => {
            let message = said.1.as_deref();
            invocation.printer.json(&Answered { version: 1, run: &run, step: step.as_str(), answer, message, go_on: [go_on] });
        }
        Format::Text => {
            let (word, then) = match answer {
                Answer::Approve if is_question => ("answered", "goes on with it"),
                Answer::Approve => ("approved", "goes on with it"),
                Answer::Reject => ("rejected", "ends it as failed"),
            };
            invocation.printer.say(&format!("step `{step}` of {run} is {word}; `{go_on}` {then}"));
        }
    }
    Ok(ExitCode::Done)
}
