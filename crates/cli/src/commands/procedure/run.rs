//! `proctor procedure run`.

use proctor_cards::find_procedure;
use proctor_domain::procedure::{Outcome, Records, Task};
use proctor_domain::{Clock, ExitCode};
use proctor_engine::agent::EngineSetup;
use proctor_journal::Journal;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{Dirty, Notice, Plan, RunEnd, Standing, StartRequest, WhenBusy, plan_run, start_run};
use serde::Serialize;

use crate::Invocation;
use crate::args::Format;
use crate::args::procedure::{RecordsChoice, RunArgs};
use crate::commands::engines::doubt_about_version;
use crate::place::Place;
use crate::printer::{Printer, Stream, Style, visible_line};
use crate::progress::Progress;
use crate::report::{Kind, Report};
use crate::run_document::RunDocument;
use crate::run_text::work_name;
use crate::standing::{login_hint, tell_inconclusive, ways_on, why};

/// Runs a procedure, or says what it would do.
pub(super) fn run(invocation: &Invocation, args: &RunArgs) -> Result<ExitCode, Report> {
    let place = Place::find(invocation)?;
    let source = find_procedure(&place.card_root, place.layout.value, &args.procedure)?;
    let records = args.records.map(|choice| match choice {
        RecordsChoice::State => Records::State,
        RecordsChoice::Git => Records::Git,
    });
    let request = StartRequest {
        source,
        directive: args.directive.clone(),
        inputs: args.inputs.iter().map(|input| (input.name.clone(), input.value.clone())).collect(),
        only: args.step.clone(),
        dirty: if args.allow_dirty { Dirty::Allow } else { Dirty::Refuse },
        when_busy: if args.wait { WhenBusy::Wait } else { WhenBusy::Refuse },
        records,
    };
    let mut site = place.into_site(invocation, records)?;
    args.engine.apply(&mut site.settings, &invocation.directory)?;
    let format = Format::from_flag(args.json);
    if args.dry_run {
        print_plan(invocation, &plan_run(&site, &request)?, format);
        return Ok(ExitCode::Done);
    }
    let mut journal = Journal::open(site.state.root())?;
    let mut progress = Progress::new(&invocation.printer);
    let mut notify = |notice: Notice<'_>| {
        progress.tell(&notice);
        // Said once per run that has agents, before the first of them begins.
        if matches!(notice, Notice::Confined { .. }) {
            let agents = &site.settings.agents;
            for setup in [&agents.engine].into_iter().chain(&agents.judge) {
                warn_of_version(invocation, setup);
            }
        }
    };
    let end = start_run(&site, &mut journal, &SystemClock, &mut notify, &request);
    progress.finish();
    Ok(conclude(invocation, &end?, format))
}

fn warn_of_version(invocation: &Invocation, engine: &EngineSetup) {
    if let Some(doubt) = doubt_about_version(invocation, engine) {
        invocation.printer.say(&format!("warning: {}: {}", engine.name, visible_line(&doubt)));
    }
}

/// Says how a driver left its run.
pub(super) fn conclude(invocation: &Invocation, end: &RunEnd, format: Format) -> ExitCode {
    let printer = &invocation.printer;
    let code = end.standing.exit_code();
    match &end.standing {
        Standing::Halted(reason) if reason.is_parked() => tell_parked(printer, end),
        Standing::Halted(reason) => {
            let message = format!("{} stopped in {}", end.run_id, visible_line(&end.run.started.procedure));
            Report::new(Kind::Refused, message).halted(end.run_id.as_str(), reason).print(printer, Format::Text);
        }
        Standing::Ended(Outcome::Inconclusive) => tell_inconclusive(printer, &end.run),
        Standing::Ended(_) | Standing::Interrupted | Standing::Running => {}
    }
    if format == Format::Json {
        printer.json(&RunDocument::of(&end.run_id, &end.run, &end.standing, SystemClock.now()));
        return code;
    }
    if let Some((style, sentence)) = sentence(end) {
        printer.say(&printer.paint(Stream::Err, style, &sentence));
    }
    if let Some(hint) = login_hint(&end.run).filter(|_| end.standing == Standing::Ended(Outcome::Failed)) {
        printer.say(&format!("{} {hint}", printer.paint(Stream::Err, Style::Strong, "hint:")));
    }
    if end.standing == Standing::Ended(Outcome::Inconclusive) {
        for way in ways_on(&end.run_id, &end.run, &end.standing).iter().skip(1) {
            printer.say(&visible_line(way));
        }
    }
    code
}

/// What a parked run waits for, and the commands that go on with it.
fn tell_parked(printer: &Printer, end: &RunEnd) {
    let why = why(&end.run, &end.standing).unwrap_or_default();
    let sentence = format!("{} is parked: {}", visible_line(&end.run.started.procedure), visible_line(&why));
    printer.insist(&printer.paint(Stream::Err, Style::Doubtful, &sentence));
    for way in ways_on(&end.run_id, &end.run, &end.standing) {
        printer.insist(&visible_line(&way));
    }
}

/// The last word; a halted run has had it.
fn sentence(end: &RunEnd) -> Option<(Style, String)> {
    let run = &end.run_id;
    let name = visible_line(&end.run.started.procedure).into_owned();
    Some(match &end.standing {
        Standing::Ended(Outcome::Completed) if end.run.has_warnings() => {
            (Style::Doubtful, format!("{name} completed with warnings; `proctor show {run}` has the record"))
        }
        Standing::Ended(Outcome::Completed) => (Style::Good, format!("{name} completed; `proctor show {run}` has the record")),
        Standing::Ended(Outcome::Skipped) => (Style::Dim, format!("{name}: nothing to do, every step was skipped")),
        Standing::Ended(Outcome::Inconclusive) => {
            (Style::Doubtful, format!("{name} completed, and a check reached no verdict; `proctor procedure rejudge {run}` judges again"))
        }
        Standing::Ended(Outcome::Failed) => {
            (Style::Bad, format!("{name} failed; `proctor procedure status {run}` says why, `proctor procedure resume {run}` goes on"))
        }
        Standing::Halted(_) => return None,
        Standing::Interrupted => (Style::Doubtful, format!("{name} was interrupted; `proctor procedure resume {run}` goes on")),
        Standing::Running => (Style::Doubtful, format!("{name} was left; `proctor procedure resume {run}` goes on with it")),
    })
}

#[derive(Serialize)]
struct PlanObject<'plan> {
    version: u32,
    procedure: &'plan str,
    description: &'plan str,
    records: Records,
    directive: Option<&'plan str>,
    inputs: std::collections::BTreeMap<&'plan str, &'plan str>,
    steps: Vec<PlannedStepObject<'plan>>,
}

#[derive(Serialize)]
struct PlannedStepObject<'plan> {
    id: &'plan str,
    description: &'plan str,
    phases: Vec<&'static str>,
    sessions: Vec<String>,
    approve: Option<&'plan str>,
    when: Option<&'plan str>,
    /// Whether memory is asked before its agents start.
    asks_memory: bool,
    selected: bool,
}

fn print_plan(invocation: &Invocation, plan: &Plan, format: Format) {
    let printer = &invocation.printer;
    if format == Format::Json {
        printer.json(&plan_object(plan));
        return;
    }
    printer.line(&format!("{}: {}", visible_line(&plan.procedure), visible_line(&plan.description)));
    if let Some(directive) = &plan.directive {
        printer.line(&format!("directive: {}", visible_line(directive)));
    }
    for (name, value) in &plan.inputs {
        printer.line(&format!("input {name} = {}", visible_line(value)));
    }
    for step in &plan.steps {
        let mut parts: Vec<String> = step.tasks.iter().map(|task| work_name(task.phase, task.work)).collect();
        parts.extend(step.approve.as_ref().map(|_| "asks a person".to_owned()));
        let phases = if parts.is_empty() { "nothing to run".to_owned() } else { parts.join(", ") };
        let when = step.when.as_ref().map(|when| format!(", when {}", visible_line(when))).unwrap_or_default();
        let chosen = if step.selected { "" } else { " (not selected)" };
        printer.line(&format!("  {}: {} [{phases}{when}]{chosen}", step.id, visible_line(&step.description)));
    }
}

fn phases(tasks: &[Task]) -> Vec<&'static str> {
    let mut phases: Vec<&'static str> = tasks.iter().map(|task| task.phase.name()).collect();
    phases.dedup();
    phases
}

fn plan_object(plan: &Plan) -> PlanObject<'_> {
    PlanObject {
        version: 1,
        procedure: &plan.procedure,
        description: &plan.description,
        records: plan.records,
        directive: plan.directive.as_deref(),
        inputs: plan.inputs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        steps: plan
            .steps
            .iter()
            .map(|step| PlannedStepObject {
                id: step.id.as_str(),
                description: &step.description,
                phases: phases(&step.tasks),
                sessions: step.tasks.iter().map(|task| work_name(task.phase, task.work)).collect(),
                approve: step.approve.as_deref(),
                when: step.when.as_deref(),
                asks_memory: step.asks_memory,
                selected: step.selected,
            })
            .collect(),
    }
}
