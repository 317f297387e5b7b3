//! `proctor procedure show`

use proctor_cards::{Card, find_procedure, read_procedure};
use proctor_domain::procedure::{Definition, InputKind, InputSpec, Isolation, PhaseSpec, Records, Severity, StepSpec};
use proctor_domain::{ExitCode, Expiry};
use serde::Serialize;

use super::FindingObject;
use crate::Invocation;
use crate::args::procedure::ShowArgs;
use crate::place::Place;
use crate::printer::{Stream, Style, visible, visible_line};
use crate::report::Report;
use crate::run_text::counted;

#[derive(Serialize)]
struct Shown<'card> {
    version: u32,
    name: &'card str,
    card: String,
    description: &'card str,
    records: &'static str,
    isolation: &'static str,
    run_expiry: Option<String>,
    failed_run_expiry: Option<String>,
    needs_agents: bool,
    inputs: Vec<ShownInput<'card>>,
    steps: Vec<ShownStep<'card>>,
    findings: Vec<FindingObject<'card>>,
}

#[derive(Serialize)]
struct ShownInput<'card> {
    name: &'card str,
    #[serde(rename = "type")]
    kind: &'static str,
    choices: &'card [String],
    default: Option<&'card str>,
    required: bool,
    description: &'card str,
}

#[derive(Serialize)]
struct ShownStep<'card> {
    id: &'card str,
    description: &'card str,
    when: Option<&'card str>,
    timeout: Option<String>,
    retries: u32,
    outputs: Option<&'card [String]>,
    precheck: Option<ShownPhase>,
    run: Option<ShownPhase>,
    validate: Option<ShownPhase>,
    severity: Option<&'static str>,
    lines: [usize; 2],
}

#[derive(Serialize)]
struct ShownPhase {
    shells: usize,
    agents: usize,
    instructions: usize,
}

/// Prints what the card declares.
pub(super) fn run(invocation: &Invocation, args: &ShowArgs) -> Result<ExitCode, Report> {
    let place = Place::find(invocation)?;
    let source = find_procedure(&place.card_root, place.layout.value, &args.procedure)?;
    let path = source.path.display().to_string();
    let card = read_procedure(&source, place.layout.value, &place.box_defaults()?)
        .map_err(|findings| Report::from_findings(format!("{path} can't be used"), findings))?;
    let shown = Shown::of(&card, path, card.definition.records.unwrap_or(place.records()));
    if args.json {
        invocation.printer.json(&shown);
    } else {
        print(invocation, &shown);
        for finding in &card.warnings {
            invocation.printer.say(&format!("\n{}", visible(&finding.to_string())));
        }
    }
    Ok(ExitCode::Done)
}

impl<'card> Shown<'card> {
    fn of(card: &'card Card, path: String, records: Records) -> Self {
        let definition: &'card Definition = &card.definition;
        Self {
            version: 1,
            name: &definition.name,
            card: path,
            description: &definition.description,
            records: match records {
                Records::State => "state",
                Records::Git => "git",
            },
            isolation: match definition.isolation {
                None | Some(Isolation::InPlace) => "in-place",
                Some(Isolation::Worktree) => "worktree",
            },
            run_expiry: definition.run_expiry.map(expiry),
            failed_run_expiry: definition.failed_run_expiry.map(expiry),
            needs_agents: definition.needs_agents(),
            inputs: definition.inputs.iter().map(ShownInput::of).collect(),
            steps: definition.steps.iter().map(ShownStep::of).collect(),
            findings: card.warnings.iter().map(FindingObject::from).collect(),
        }
    }
}

fn expiry(expiry: Expiry) -> String {
    match expiry {
        Expiry::After(duration) => duration.to_string(),
        Expiry::Never => "never".to_owned(),
    }
}

impl<'card> ShownInput<'card> {
    fn of(input: &'card InputSpec) -> Self {
        let (kind, choices): (_, &[String]) = match &input.kind {
            InputKind::String => ("string", &[]),
            InputKind::Int => ("int", &[]),
            InputKind::Float => ("float", &[]),
            InputKind::Bool => ("bool", &[]),
            InputKind::Path => ("path", &[]),
            InputKind::Choice(choices) => ("choice", choices),
        };
        let default = input.default.as_deref();
        Self { name: &input.name, kind, choices, default, required: input.required, description: &input.description }
    }

    /// Type and default, in one bracket.
    fn facts(&self) -> String {
        let kind = if self.choices.is_empty() { self.kind.to_owned() } else { self.choices.join("|") };
        match (self.default, self.required) {
            (Some(default), _) => format!("{kind}, default {default}"),
            (None, true) => format!("{kind}, required"),
            (None, false) => kind,
        }
    }
}

impl<'card> ShownStep<'card> {
    fn of(step: &'card StepSpec) -> Self {
        let severity = step.validate.as_ref().map(|validate| match validate.severity {
            Severity::Warn => "warn",
            Severity::Review => "review",
            Severity::Abort => "abort",
        });
        Self {
            id: step.id.as_str(),
            description: &step.description,
            when: step.when.as_deref(),
            timeout: step.timeout.map(|timeout| timeout.to_string()),
            retries: step.retry.map_or(0, |retry| retry.max),
            outputs: step.outputs.as_deref(),
            precheck: step.precheck.as_ref().map(|precheck| ShownPhase::of(&precheck.phase)),
            run: step.run.as_ref().map(ShownPhase::of),
            validate: step.validate.as_ref().map(|validate| ShownPhase::of(&validate.phase)),
            severity,
            lines: [step.lines.0, step.lines.1],
        }
    }

    /// What it is made of, as in `precheck: 1 shell; run: 2 shells; validate (abort): 1 shell`.
    fn phases(&self) -> String {
        let validate = self.severity.map_or_else(String::new, |severity| format!("validate ({severity})"));
        let phases = [("precheck", &self.precheck), ("run", &self.run), (validate.as_str(), &self.validate)];
        let parts: Vec<String> =
            phases.iter().filter_map(|(name, phase)| phase.as_ref().map(|phase| format!("{name}: {}", phase.contents()))).collect();
        parts.join("; ")
    }

    /// What else is declared for it.
    fn conditions(&self) -> Vec<String> {
        let when = self.when.map(|when| format!("when {}", visible_line(when)));
        let timeout = self.timeout.as_ref().map(|timeout| format!("timeout {timeout}"));
        let retries = (self.retries > 0)
            .then(|| format!("up to {}", if self.retries == 1 { "1 retry".to_owned() } else { format!("{} retries", self.retries) }));
        let outputs = self.outputs.map(|outputs| format!("outputs {}", visible_line(&outputs.join(", "))));
        [when, timeout, retries, outputs].into_iter().flatten().collect()
    }
}

impl ShownPhase {
    fn of(phase: &PhaseSpec) -> Self {
        Self { shells: phase.shells.len(), agents: phase.agents.len(), instructions: phase.instructions.len() }
    }

    fn contents(&self) -> String {
        let counts = [(self.agents, "agent"), (self.shells, "shell"), (self.instructions, "criterion")];
        let parts: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| if noun == "criterion" && count > 1 { format!("{count} criteria") } else { counted(count, noun) })
            .collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }
}

fn print(invocation: &Invocation, shown: &Shown<'_>) {
    let printer = &invocation.printer;
    let strong = |text: &str| printer.paint(Stream::Out, Style::Strong, &visible_line(text)).into_owned();
    let described = |text: &str| if text.is_empty() { String::new() } else { format!("  {}", visible_line(text)) };
    printer.line(&format!("{}{}", strong(shown.name), described(shown.description)));
    printer.line(&format!("card     {}", visible_line(&shown.card)));
    printer.line(&format!("records  {}", shown.records));
    if shown.needs_agents {
        printer.line("agents   needed");
    }
    if !shown.inputs.is_empty() {
        printer.line("\ninputs");
        for input in &shown.inputs {
            printer.line(&format!("  {} ({}){}", strong(input.name), visible_line(&input.facts()), described(input.description)));
        }
    }
    printer.line(if shown.steps.is_empty() { "\nno steps" } else { "\nsteps" });
    for (position, step) in shown.steps.iter().enumerate() {
        printer.line(&format!("  {}. {}{}", position + 1, strong(step.id), described(step.description)));
        for line in std::iter::once(step.phases()).chain(step.conditions()).filter(|line| !line.is_empty()) {
            printer.line(&format!("     {line}"));
        }
    }
}
