//! `proctor demo`: a small real repository, a procedure in which an agent is corrected and a step fails once, and how it
//! goes on.
//!
//! Everything is real: git, the shells, the sessions, the journal. What differs from daily use is where it happens: the
//! repository, its state and its git identity are the demo's own, so that nothing of the user's is read, written or
//! in the way. The agent follows a script, unless the real one is asked for.

mod error;
mod ground;

use proctor_cards::find_procedure;
use proctor_domain::procedure::{Outcome, Run, StepRecord, StepState};
use proctor_domain::session::{SessionRecord, Work};
use proctor_domain::{Clock, ExitCode, RunId};
use proctor_journal::Journal;
use proctor_orchestrator::procedure::{
    Attitude, Dirty, NewDefinition, Notice, ResumeRequest, Resumption, RunEnd, Standing, StartRequest, WhenBusy, resume_run, start_run,
    stop_run,
};
use proctor_orchestrator::{Site, SystemClock};
use proctor_process::confine::{self, ContainerSetup, Net};
use proctor_process::{Signal, Signals};

use super::procedure::RunView;
use crate::Invocation;
use crate::args::setup::{DemoArgs, DemoEngine};
use crate::printer::{Stream, Style, visible_line};
use crate::progress::Progress;
use crate::report::Report;
use crate::run_document::outcome;
pub use error::DemoError;
use ground::{FIX, Ground};

/// The procedure that is run.
const PROCEDURE: &str = "release-check";
/// Its step with an agent.
const AGENTS_STEP: &str = "changelog";
/// Its step that fails once.
const FAILING_STEP: &str = "build";

/// How a part of the demo ended.
enum Part<T> {
    /// As told.
    Played(T),
    /// Somebody does not want to see the rest.
    Interrupted,
}

/// Plays the demo from an empty folder to a completed run.
pub fn run(invocation: &Invocation, args: &DemoArgs) -> Result<ExitCode, Report> {
    // From here on a signal ends the demo in good order instead of leaving its folder behind.
    let signals = Signals::listen(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]).map_err(DemoError::Signals)?;
    let ground = match &args.keep {
        Some(folder) => Ground::kept(invocation, folder)?,
        None => Ground::temporary(invocation)?,
    };
    let played = Demo { invocation, ground: &ground, signals: &signals, engine: args.engine }.play();
    match played {
        Ok(Part::Played(())) => {
            ground.leave()?;
            Ok(ExitCode::Done)
        }
        Ok(Part::Interrupted) => {
            ground.remove()?;
            invocation.printer.say("interrupted; nothing of the demo is left");
            Ok(ExitCode::Interrupted)
        }
        // What the signal that ended the demo broke on its way is no news.
        Err(_) if !signals.pending().is_empty() => {
            ground.remove()?;
            Ok(ExitCode::Interrupted)
        }
        Err(report) => {
            ground.leave()?;
            Err(report)
        }
    }
}

struct Demo<'a> {
    invocation: &'a Invocation,
    ground: &'a Ground,
    signals: &'a Signals,
    engine: DemoEngine,
}

impl Demo<'_> {
    fn play(&self) -> Result<Part<()>, Report> {
        self.say(&format!(
            "A small project with a release check is made in {}.",
            visible_line(&self.ground.folder().display().to_string())
        ));
        self.say(match self.engine {
            DemoEngine::Scripted => "Its agent follows a script: no model is called, and its costs are made up.",
            DemoEngine::Claude => "Its agent is claude, with your login: a few short sessions, on your bill.",
        });
        self.ground.plant()?;
        if self.is_interrupted() {
            return Ok(Part::Interrupted);
        }
        let site = self.ground.site(self.engine.kind())?;
        self.want_box(&site)?;
        let mut journal = Journal::open(site.state.root())?;

        self.command(&format!("proctor procedure run {PROCEDURE}"));
        let Part::Played(failed) = self.start(&site, &mut journal)? else { return Ok(Part::Interrupted) };
        self.expect_failure(&failed)?;
        self.say("");
        self.tell_of_the_agent(&failed.run);
        self.say("The tests that check step `build` failed, so the run stopped there and the step was not committed.");
        self.command("proctor procedure status");
        self.view(&failed);

        self.say("");
        self.say("Somebody mends the program and commits that, as you would. Here the demo does it:");
        self.show_fix();
        self.ground.mend()?;
        if self.is_interrupted() {
            return Ok(Part::Interrupted);
        }

        self.say("");
        self.say("A commit that is not the run's own has to be accepted. The steps that are done stay done.");
        self.command(&format!("proctor procedure resume {} --accept-foreign", failed.run_id));
        let Part::Played(completed) = self.resume(&site, &mut journal, &failed.run_id)? else { return Ok(Part::Interrupted) };
        self.conclude(&completed)?;
        Ok(Part::Played(()))
    }

    fn start(&self, site: &Site, journal: &mut Journal) -> Result<Part<RunEnd>, Report> {
        let request = StartRequest {
            source: find_procedure(&site.card_root, site.layout, PROCEDURE)?,
            directive: None,
            inputs: Vec::new(),
            only: None,
            dirty: Dirty::Refuse,
            when_busy: WhenBusy::Refuse,
            records: None,
        };
        let end = self.follow(|notify| start_run(site, journal, &SystemClock, notify, &request))?;
        self.expect(site, journal, end, Outcome::Failed)
    }

    fn resume(&self, site: &Site, journal: &mut Journal, run: &RunId) -> Result<Part<RunEnd>, Report> {
        let request =
            ResumeRequest { run: run.clone(), directive: None, definition: NewDefinition::Keep, attitude: Attitude::AcceptForeign };
        let end = match self.follow(|notify| resume_run(site, journal, &SystemClock, notify, request))? {
            Resumption::Driven(end) => *end,
            Resumption::Over { standing, loaded } => RunEnd { run_id: loaded.run_id, run: loaded.run, standing },
        };
        self.expect(site, journal, end, Outcome::Completed)
    }

    /// Does something with live progress.
    fn follow<T, E>(&self, act: impl FnOnce(&mut dyn FnMut(Notice<'_>)) -> Result<T, E>) -> Result<T, E> {
        let mut progress = Progress::new(&self.invocation.printer);
        let end = act(&mut |notice| progress.tell(&notice));
        progress.finish();
        end
    }

    /// The end that the story needs; or an interruption, after which nothing of the run is alive.
    fn expect(&self, site: &Site, journal: &mut Journal, end: RunEnd, wanted: Outcome) -> Result<Part<RunEnd>, Report> {
        if end.standing == Standing::Running {
            // The driver was told to leave. Its session would go on in a folder that is about to be removed.
            stop_run(site, journal, &SystemClock, &mut |_| {}, &end.run_id)?;
        }
        if self.is_interrupted() {
            return Ok(Part::Interrupted);
        }
        if end.standing == Standing::Ended(wanted) {
            return Ok(Part::Played(end));
        }
        self.view(&end);
        Err(self.went_otherwise(wanted.name(), outcome(&end.standing).to_owned()).into())
    }

    fn expect_failure(&self, end: &RunEnd) -> Result<(), DemoError> {
        let failed = end.run.steps.iter().find(|step| matches!(step.state, StepState::Failed(_)));
        match failed.map(|step| step.plan.id.as_str()) {
            Some(FAILING_STEP) => Ok(()),
            step => {
                self.view(end);
                Err(self.went_otherwise("failed in the step `build`", format!("failed in `{}`", step.unwrap_or_default())))
            }
        }
    }

    fn went_otherwise(&self, wanted: &'static str, found: String) -> DemoError {
        DemoError::WentOtherwise { wanted, found, engine: self.engine }
    }

    /// A real agent that may do what it likes has to be held in a box; a script of ours need not.
    fn want_box(&self, site: &Site) -> Result<(), DemoError> {
        match self.engine {
            DemoEngine::Scripted => Ok(()),
            // The only kind that holds an agent in an in-place checkout.
            DemoEngine::Claude => confine::probe(&site.program, Net::All, &ContainerSetup::default())
                .bwrap
                .map(|_| ())
                .map_err(|reason| DemoError::NoBox { reason }),
        }
    }

    /// What went on in the step with the agent: with a real one it is not known beforehand.
    fn tell_of_the_agent(&self, run: &Run) {
        let Some(step) = run.steps.iter().find(|step| step.plan.id.as_str() == AGENTS_STEP) else { return };
        let repaired = step.sessions.iter().any(|session| session.work == Work::Repair);
        match objection(step) {
            Some(reasoning) if repaired => {
                self.say("An agent wrote the changelog. A judge, who saw the diff and not what the agent says about it, was not content:");
                self.say(&format!("  {}", visible_line(&reasoning)));
                self.say("So the agent repaired it, in the same conversation, and everything was checked again.");
            }
            Some(_) | None => self.say("An agent wrote the changelog, and a judge, who saw the diff, was content with it."),
        }
        self.say("");
    }

    fn is_interrupted(&self) -> bool {
        !self.signals.pending().is_empty()
    }

    fn view(&self, end: &RunEnd) {
        let now = SystemClock.now();
        RunView { run_id: &end.run_id, run: &end.run, standing: &end.standing, newest: end.run.ended_at.unwrap_or(now), now }
            .print(&self.invocation.printer);
    }

    fn show_fix(&self) {
        let printer = &self.invocation.printer;
        self.say(&format!("  {}", FIX.file));
        self.say(&format!("  {}", printer.paint(Stream::Err, Style::Bad, &format!("- {}", FIX.before))));
        self.say(&format!("  {}", printer.paint(Stream::Err, Style::Good, &format!("+ {}", FIX.after))));
        self.command(&format!("git commit --all --message '{}'", FIX.message));
    }

    /// Names what happened and how to look further.
    fn conclude(&self, end: &RunEnd) -> Result<(), Report> {
        let printer = &self.invocation.printer;
        self.say("");
        printer.line(&printer.paint(Stream::Out, Style::Strong, "What happened:"));
        printer.line(&format!("  run      {} of {PROCEDURE}: {}", end.run_id, summary(&end.run)));
        printer.line("  commits");
        for line in self.ground.log()?.lines() {
            printer.line(&format!("    {}", visible_line(line)));
        }
        printer.line("");
        printer.line(&printer.paint(Stream::Out, Style::Strong, "Look further:"));
        for line in self.ground.ways_on(&end.run_id) {
            printer.line(&format!("  {line}"));
        }
        Ok(())
    }

    fn command(&self, command: &str) {
        self.say(&self.invocation.printer.paint(Stream::Err, Style::Strong, &format!("$ {command}")));
    }

    fn say(&self, line: &str) {
        self.invocation.printer.say(line);
    }
}

/// What the first judge that was not content said.
fn objection(step: &StepRecord) -> Option<String> {
    let answer = |session: &SessionRecord| -> Option<serde_json::Value> {
        let result = session.report.as_ref()?.agent.as_ref()?.result.as_deref()?;
        serde_json::from_str(result).ok()
    };
    let judges = step.sessions.iter().filter(|session| matches!(session.work, Work::Judge(_)));
    let negative = judges.filter_map(answer).find(|answer| answer["passed"] == false)?;
    negative["reasoning"].as_str().map(str::to_owned)
}

/// `completed, 4 steps done, 1 skipped, 1 repeated after its failure`.
fn summary(run: &Run) -> String {
    let count = |wanted: fn(&StepState) -> bool| run.steps.iter().filter(|step| wanted(&step.state)).count();
    let done = count(|state| *state == StepState::Completed);
    let skipped = count(|state| matches!(state, StepState::Skipped(_)));
    let repeated = run.steps.iter().filter(|step| step.attempts > 1).count();
    format!("completed; {done} steps done, {skipped} skipped, {repeated} tried again after its failure")
}
