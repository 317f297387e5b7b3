//! The steps of a procedure.

use std::collections::HashMap;

use proctor_domain::procedure::{RetrySpec, Severity, StepId, StepSpec, variable_name};
use proctor_domain::{CardDuration, MicroDollars};

use super::fields::{Field, Fields, Label, Reader};
use super::phases;
use crate::Layout;
use crate::finding::{At, Level, shown};
use crate::yaml::Node;

/// The steps of a card, and what is to be checked once all of them are known.
#[derive(Default)]
pub(super) struct Steps<'n> {
    pub(super) specs: Vec<StepSpec>,
    /// Whether every step's id is known, so that another one is wrong for certain.
    pub(super) complete: bool,
    pub(super) expressions: Vec<Expression<'n>>,
    /// Where declared outputs stand, by step.
    pub(super) outputs: Vec<(usize, String, At)>,
}

/// A condition or template, to be checked once all steps are known.
pub(super) struct Expression<'n> {
    /// The step it belongs to, as an index into the specs.
    pub(super) step: usize,
    pub(super) kind: ExpressionKind,
    pub(super) node: &'n Node,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpressionKind {
    Condition,
    Template,
}

/// Attempts that a card can ask for.
const MOST_ATTEMPTS: u32 = 100;

pub(super) fn read<'n>(reader: &mut Reader<'_>, field: &Field<'n>) -> Steps<'n> {
    let entries = reader.list(field);
    let mut steps = Steps { complete: !field.node.is_null() && field.node.scalar().is_none(), ..Steps::default() };
    let mut ids: HashMap<String, (StepId, At)> = HashMap::new();
    for entry in entries {
        let Some((spec, id_at)) = read_step(reader, &entry, &mut steps) else {
            steps.complete = false;
            continue;
        };
        match ids.get(&variable_name(spec.id.as_str())) {
            Some((earlier, first)) => {
                let line = reader.findings.located.line(first.start());
                let message = if *earlier == spec.id {
                    format!("duplicate step id `{earlier}`: it is already on line {line}")
                } else {
                    let variable = variable_name(earlier.as_str());
                    format!("the step ids `{}` and `{earlier}` (line {line}) would share the variables `STEP_{variable}_…`", spec.id)
                };
                reader.findings.error(id_at, message);
            }
            None => {
                ids.insert(variable_name(spec.id.as_str()), (spec.id.clone(), id_at));
            }
        }
        steps.specs.push(spec);
    }
    steps
}

/// One step and where its id stands; `None` when even the id is not known.
fn read_step<'n>(reader: &mut Reader<'_>, entry: &Field<'n>, steps: &mut Steps<'n>) -> Option<(StepSpec, At)> {
    let fields = Fields::open(reader, entry, "steps[]")?;
    let index = steps.specs.len();
    let (noted_expressions, noted_outputs) = (steps.expressions.len(), steps.outputs.len());
    let description = fields.get("description").and_then(|field| reader.text(&field)).unwrap_or_default();
    let when = fields.get("when").and_then(|field| {
        steps.expressions.push(Expression { step: index, kind: ExpressionKind::Condition, node: field.node });
        reader.filled_text(&field)
    });
    let timeout = fields.get("timeout").and_then(|field| read_timeout(reader, &field));
    let env = fields.get("env").map(|field| read_env(reader, &field, index, steps)).unwrap_or_default();
    let outputs = fields.get("outputs").map(|field| read_outputs(reader, &field, index, steps));
    let retry = fields.get("retry").and_then(|field| read_retry(reader, &field));
    let approve = fields.get("approve").and_then(|field| read_approve(reader, &field));
    let budget = fields.get("budget").and_then(|field| read_budget(reader, &field));
    let memory = fields.get("memory").and_then(|field| super::read_memory(reader, &field)).unwrap_or_default();
    let precheck = fields.get("precheck").and_then(|field| phases::precheck(reader, &field));
    let run = fields.get("run").and_then(|field| phases::run(reader, &field, index, steps));
    let validate = fields.get("validate").and_then(|field| phases::validate(reader, &field));
    let id = fields.need(reader, "id", "this step").and_then(|field| read_id(reader, &field).map(|id| (id, field.at())));
    let Some((id, id_at)) = id else {
        // The index belongs to the next step, so nothing may be noted under it.
        steps.expressions.truncate(noted_expressions);
        steps.outputs.truncate(noted_outputs);
        return None;
    };
    let lines = reader.findings.located.lines(entry.node.at);
    let spec = StepSpec { id, description, precheck, run, validate, timeout, env, when, outputs, retry, approve, budget, memory, lines };
    check_whole(reader, &fields, &spec, id_at);
    Some((spec, id_at))
}

/// What only shows when the phases of a step are seen together.
fn check_whole(reader: &mut Reader<'_>, fields: &Fields<'_>, spec: &StepSpec, id_at: At) {
    let agents = spec.run.as_ref().map_or(0, |run| run.agents.len());
    let has_phase = ["precheck", "run", "validate"].iter().any(|phase| fields.get(phase).is_some());
    if !has_phase {
        reader.findings.warning(id_at, format!("the step `{}` does nothing: it has no precheck, run or validate", spec.id));
    }
    if spec.precheck.as_ref().is_some_and(|precheck| precheck.pass_output)
        && agents == 0
        && let Some(field) = fields.get("precheck")
    {
        let at = field.node.get("pass-output").map_or(field.key_at, |node| node.at);
        reader.findings.warning(at, "`pass-output` does nothing: the step has no agent to pass it to");
    }
    let severity = spec.validate.as_ref().map(|validate| validate.severity);
    if severity == Some(Severity::Review)
        && agents != 1
        && let Some(field) = fields.get("validate")
    {
        let at = field.node.get("severity").map_or(field.key_at, |node| node.at);
        let level = match reader.layout {
            Layout::Proctor => Level::Error,
            Layout::BeeBox => Level::Warning,
        };
        let count = if agents == 0 { "no agent".to_owned() } else { format!("{agents} agents") };
        let message = format!("`review` lets the step's only agent repair its work, and this step has {count}");
        reader.findings.add(level, at, message, Some("write `severity: abort` when a negative check is to fail the step".to_owned()));
    }
    if spec.budget.is_some()
        && !spec.needs_agents()
        && let Some(field) = fields.get("budget")
    {
        reader.findings.warning(field.key_at, "`budget` does nothing: the step has neither agents nor a judge");
    }
    if !spec.starts_agents()
        && let Some(field) = fields.get("memory")
    {
        reader.findings.warning(field.key_at, "`memory` does nothing: the step has no agent");
    }
    let shells = spec.run.as_ref().is_some_and(|run| !run.shells.is_empty())
        || spec.validate.as_ref().is_some_and(|validate| !validate.phase.shells.is_empty());
    if spec.retry.is_some()
        && !shells
        && let Some(field) = fields.get("retry")
    {
        reader.findings.warning(field.key_at, "`retry` does nothing: neither `run` nor `validate` has a shell");
    }
}

fn read_id(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<StepId> {
    let text = reader.text(field)?;
    match StepId::try_from(text) {
        Ok(id) => Some(id),
        Err(error) => {
            let message = format!("`{}` can't be a step id", shown(&error.0));
            let hint = "use letters, digits, `-`, `_` and `.`, beginning with a letter or digit, at most 64";
            reader.findings.error_hint(field.at(), message, hint);
            None
        }
    }
}

fn read_timeout(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<CardDuration> {
    let timeout = reader.duration(field)?;
    if timeout.millis() == 0 {
        reader.findings.error_hint(field.at(), "`timeout` is 0, so nothing could ever run", "leave it out for the default");
        return None;
    }
    Some(timeout)
}

/// A question to a person, or `true` for the usual one.
fn read_approve(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<String> {
    phases::warn_of_template(reader, field.node);
    let text = reader.filled_text(field)?;
    match text.as_str() {
        "true" => Some("go on with this step?".to_owned()),
        "false" => None,
        // Who writes `no` does not want to be asked "no".
        "yes" | "no" | "on" | "off" => {
            reader.findings.error(field.at(), format!("`approve` must be a question, `true` or `false`, and is `{text}`"));
            None
        }
        _ => Some(text),
    }
}

fn read_budget(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<MicroDollars> {
    let budget = reader.dollars(field)?;
    if budget == MicroDollars(0) {
        reader.findings.error_hint(field.at(), "`budget` is 0, so no agent could ever answer", "leave it out for no limit");
        return None;
    }
    Some(budget)
}

fn read_env<'n>(reader: &mut Reader<'_>, field: &Field<'n>, step: usize, steps: &mut Steps<'n>) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut seen: HashMap<&str, At> = HashMap::new();
    for (key, node) in reader.mapping(field).unwrap_or_default() {
        let Some(name) = key.scalar().map(|scalar| &*scalar.text) else {
            reader.findings.error(key.at, "a key must be a text");
            continue;
        };
        if let Some(first) = seen.insert(name, key.at) {
            reader.duplicate_key(key.at, name, first);
            continue;
        }
        check_variable(reader, key.at, name);
        steps.expressions.push(Expression { step, kind: ExpressionKind::Template, node });
        if let Some(text) = reader.loose_text(&Field { label: Label::EntryOf("env"), key_at: key.at, node }) {
            variables.push((name.to_owned(), text));
        }
    }
    variables
}

fn check_variable(reader: &mut Reader<'_>, at: At, name: &str) {
    let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !starts_well || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        let message = format!("`{}` can't be the name of a variable", shown(name));
        return reader.findings.error_hint(at, message, "use letters, digits and `_`, not beginning with a digit");
    }
    let taken = ["PROCTOR_", "INPUT_", "STEP_"].into_iter().find(|prefix| name.starts_with(prefix));
    if let Some(prefix) = taken {
        reader.findings.error(at, format!("`{}` is taken: Proctor sets the variables that begin with `{prefix}`", shown(name)));
    } else if name == "CHECK_SKIP" {
        reader.findings.error(at, "`CHECK_SKIP` is taken: Proctor sets it to the exit code that skips a step");
    }
}

fn read_outputs(reader: &mut Reader<'_>, field: &Field<'_>, step: usize, steps: &mut Steps<'_>) -> Vec<String> {
    let mut outputs: Vec<String> = Vec::new();
    let mut variables: HashMap<String, String> = HashMap::new();
    for entry in reader.list(field) {
        let Some(name) = reader.name(&entry) else { continue };
        match variables.get(&variable_name(&name)) {
            Some(earlier) if *earlier == name => reader.findings.error(entry.at(), format!("duplicate output `{name}`")),
            Some(earlier) => {
                reader.findings.error(entry.at(), format!("the outputs `{name}` and `{earlier}` would share one variable"));
            }
            None => {
                variables.insert(variable_name(&name), name.clone());
                steps.outputs.push((step, name.clone(), entry.at()));
                outputs.push(name);
            }
        }
    }
    outputs
}

fn read_retry(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<RetrySpec> {
    let fields = Fields::open(reader, field, "steps[].retry")?;
    let max = fields.need(reader, "max", "`retry`").and_then(|field| reader.count(&field, 1, MOST_ATTEMPTS));
    let backoff = fields.get("backoff").map_or(Some(CardDuration::from_millis(0)), |field| reader.duration(&field));
    if let Some(on) = fields.get("on") {
        let entries = reader.list(&on);
        if entries.is_empty() && on.node.scalar().is_none() {
            reader.findings.error_hint(on.at(), "`on` is empty, so nothing would be repeated", "write `on: [shell]`, or leave it out");
        }
        for entry in entries {
            reader.word(&entry, &[("shell", ())]);
        }
    }
    Some(RetrySpec { max: max?, backoff: backoff? })
}
