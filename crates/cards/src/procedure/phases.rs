//! The three phases of a step.

use proctor_domain::procedure::{AgentSpec, PhaseSpec, PrecheckSpec, Severity, ValidateSpec, output_variable, variable_name};

use super::fields::{Field, Fields, Reader};
use super::scalars::Part;
use super::steps::{Expression, ExpressionKind, Steps};
use crate::template::{Target, TemplatePart, check_expression, parts};
use crate::yaml::Node;

pub(super) fn precheck(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<PrecheckSpec> {
    let fields = open(reader, field, "steps[].precheck")?;
    let shells = shells(reader, fields.get("shells"));
    let whys = unused_whys(reader, &fields);
    let pass_output = fields.get("pass-output").and_then(|field| reader.truth(&field)).unwrap_or(false);
    if is_without(&fields, &["shells"]) {
        reader.findings.error(field.key_at, "the precheck can't work: without `shells` nothing decides whether the step is needed");
    }
    Some(PrecheckSpec { phase: PhaseSpec { shells, whys, ..PhaseSpec::default() }, pass_output })
}

pub(super) fn run<'n>(reader: &mut Reader<'_>, field: &Field<'n>, step: usize, steps: &mut Steps<'n>) -> Option<PhaseSpec> {
    let fields = open(reader, field, "steps[].run")?;
    let shells = shells(reader, fields.get("shells"));
    let whys = unused_whys(reader, &fields);
    let mut agents = Vec::new();
    if let Some(field) = fields.get("agents") {
        for entry in reader.list(&field) {
            agents.extend(agent(reader, &entry, step, steps));
        }
    }
    if is_without(&fields, &["shells", "agents"]) {
        reader.findings.error(field.key_at, "the run phase can't work: it has neither `shells` nor `agents`");
    }
    Some(PhaseSpec { shells, agents, whys, ..PhaseSpec::default() })
}

pub(super) fn validate(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<ValidateSpec> {
    let fields = open(reader, field, "steps[].validate")?;
    let shells = shells(reader, fields.get("shells"));
    let instructions = plain_texts(reader, fields.get("instructions"));
    let whys = plain_texts(reader, fields.get("whys"));
    let severities = [("warn", Severity::Warn), ("review", Severity::Review), ("abort", Severity::Abort)];
    let severity = fields.get("severity").and_then(|field| reader.word(&field, &severities)).unwrap_or(Severity::Warn);
    let model = fields.get("model").and_then(|field| reader.text(&field));
    if is_without(&fields, &["shells", "instructions"]) {
        reader.findings.error(field.key_at, "the validate phase can't work: it has neither `shells` nor `instructions`");
    }
    Some(ValidateSpec { phase: PhaseSpec { shells, instructions, whys, ..PhaseSpec::default() }, severity, model })
}

fn open<'n>(reader: &mut Reader<'_>, field: &Field<'n>, path: &'static str) -> Option<Fields<'n>> {
    if field.node.is_null() {
        reader.findings.error(field.key_at, format!("{} is empty: leave it out, or say what it does", field.label));
        return None;
    }
    Fields::open(reader, field, path)
}

/// Whether none of these lists is there or has an entry. What is there and is no list has its own finding, and
/// so has a key that was meant to be one of them.
fn is_without(fields: &Fields<'_>, names: &[&'static str]) -> bool {
    !fields.has_unknown
        && names.iter().filter_map(|name| fields.get(name)).all(|field| field.entries().next().is_none() && field.node.scalar().is_none())
}

fn agent<'n>(reader: &mut Reader<'_>, entry: &Field<'n>, step: usize, steps: &mut Steps<'n>) -> Option<AgentSpec> {
    let fields = Fields::open(reader, entry, "steps[].run.agents[]")?;
    let prompt = fields.need(reader, "prompt", "this agent").and_then(|field| {
        steps.expressions.push(Expression { step, kind: ExpressionKind::Template, node: field.node });
        reader.filled_text(&field)
    });
    let model = fields.get("model").and_then(|field| reader.text(&field));
    let max_turns = fields.get("max-turns").and_then(|field| reader.count(&field, 1, u32::MAX));
    Some(AgentSpec { prompt: prompt?, model, max_turns })
}

fn unused_whys(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<String> {
    if let Some(field) = fields.get("whys") {
        reader.findings.warning_hint(field.key_at, "`whys` are not used here", "they are given to the judge: put them under `validate`");
    }
    reader.texts(fields.get("whys"))
}

/// Texts in which `${{ … }}` means nothing, although it does in a prompt.
fn plain_texts(reader: &mut Reader<'_>, field: Option<Field<'_>>) -> Vec<String> {
    field.iter().flat_map(Field::entries).for_each(|entry| warn_of_template(reader, entry.node));
    reader.texts(field)
}

pub(super) fn warn_of_template(reader: &mut Reader<'_>, node: &Node) {
    let text = node.scalar().map_or("", |scalar| &*scalar.text);
    if let Some(offset) = text.find("${{") {
        let at = reader.place(Part { node, offset, text: "${{" });
        reader.findings.warning(at, "`${{ … }}` is not replaced here: it works in prompts, `env` and `when`");
    }
}

fn shells(reader: &mut Reader<'_>, field: Option<Field<'_>>) -> Vec<String> {
    for entry in field.iter().flat_map(Field::entries) {
        let text = entry.node.scalar().map_or("", |scalar| &*scalar.text);
        for part in parts(text) {
            match part {
                TemplatePart::Text(_) => {}
                TemplatePart::Unclosed(range) => refuse_expression(reader, Part { node: entry.node, offset: range.start, text: "${{" }, ""),
                TemplatePart::Expression { whole, inner } => {
                    let part = Part { node: entry.node, offset: whole.start, text: &text[whole] };
                    refuse_expression(reader, part, &text[inner]);
                }
            }
        }
    }
    reader.texts(field)
}

/// INVARIANT: untrusted text never becomes part of a shell text (I7). What an input or an output holds
/// comes from outside; pasted into a script it would be run, in a variable it is only read.
fn refuse_expression(reader: &mut Reader<'_>, part: Part<'_>, inner: &str) {
    let message =
        "`${{ … }}` can't stand in a shell text: what it yields comes from outside, and pasted into a script it would be run as one";
    let hint = match check_expression(inner).single() {
        Some(Target::Input(name)) => format!("read the variable instead: \"$INPUT_{}\"", variable_name(name)),
        Some(Target::Output { step, name }) => {
            format!("read the variable instead: \"${}\"", output_variable(step, name))
        }
        None => "put it under `env`, as in `VALUE: ${{ … }}`, and read \"$VALUE\"".to_owned(),
    };
    // An expression that is folded over lines is only found by its beginning.
    let exact = reader.place(part);
    let at = if exact == part.node.at { reader.place(Part { text: "${{", ..part }) } else { exact };
    reader.findings.error_hint(at, message, hint);
}
