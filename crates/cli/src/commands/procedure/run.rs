//! `proctor procedure run`.

use proctor_cards::find_procedure;
use proctor_domain::procedure::{Outcome, Records};
use proctor_domain::session::Phase;
use proctor_domain::{Clock, ExitCode};
use proctor_journal::Journal;
use proctor_orchestrator::SystemClock;
use proctor_orchestrator::procedure::{Dirty, Plan, RunEnd, Standing, StartRequest, WhenBusy, plan_run, start_run};
use serde::Serialize;

use crate::Invocation;
use crate::args::Format;
use crate::args::procedure::{RecordsChoice, RunArgs};
use crate::place::Place;
use crate::printer::{Stream, Style, visible_line};
use crate::progress::Progress;
use crate::report::{Kind, Report};
use crate::run_document::RunDocument;

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
    let site = place.into_site(invocation, records)?;
    let format = Format::from_flag(args.json);
    if args.dry_run {
        print_plan(invocation, &plan_run(&site, &request)?, format);
        return Ok(ExitCode::Done);
    }
    let mut journal = Journal::open(site.state.root())?;
    let mut progress = Progress::new(&invocation.printer);
    let end = start_run(&site, &mut journal, &SystemClock, &mut |notice| progress.tell(&notice), &request);
    progress.finish();
    Ok(conclude(invocation, &end?, format))
}

/// Says how a driver left its run.
pub(super) fn conclude(invocation: &Invocation, end: &RunEnd, format: Format) -> ExitCode {
    let printer = &invocation.printer;
    let code = end.standing.exit_code();
    if let Standing::Halted(reason) = &end.standing {
        let message = format!("{} stopped in {}", end.run_id, visible_line(&end.run.started.procedure));
        Report::new(Kind::Refused, message).halted(end.run_id.as_str(), reason).print(printer, Format::Text);
    }
    if format == Format::Json {
        printer.json(&RunDocument::of(&end.run_id, &end.run, &end.standing, SystemClock.now()));
        return code;
    }
    if let Some((style, sentence)) = sentence(end) {
        printer.say(&printer.paint(Stream::Err, style, &sentence));
    }
    code
}

/// The last word; a halted run has had it.
fn sentence(end: &RunEnd) -> Option<(Style, String)> {
    let run = &end.run_id;
    let name = visible_line(&end.run.started.procedure).into_owned();
    Some(match &end.standing {
        Standing::Ended(Outcome::Completed) => (Style::Good, format!("{name} completed; `proctor show {run}` has the record")),
        Standing::Ended(Outcome::Skipped) => (Style::Dim, format!("{name}: nothing to do, every step was skipped")),
        Standing::Ended(Outcome::Inconclusive) => (Style::Doubtful, format!("{name} completed, and a check reached no verdict")),
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
    when: Option<&'plan str>,
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
        let phases: Vec<&str> = step.phases.iter().copied().map(Phase::name).collect();
        let phases = if phases.is_empty() { "nothing to run".to_owned() } else { phases.join(", ") };
        let when = step.when.as_ref().map(|when| format!(", when {}", visible_line(when))).unwrap_or_default();
        let chosen = if step.selected { "" } else { " (not selected)" };
        printer.line(&format!("  {}: {} [{phases}{when}]{chosen}", step.id, visible_line(&step.description)));
    }
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
                phases: step.phases.iter().copied().map(Phase::name).collect(),
                when: step.when.as_deref(),
                selected: step.selected,
            })
            .collect(),
    }
}
