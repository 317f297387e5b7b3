//! Checks conditions and templates once every input and step is known.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use proctor_domain::procedure::{InputKind, StepSpec, variable_name};

use super::fields::Reader;
use super::inputs::Inputs;
use super::scalars::Part;
use super::steps::{Expression, ExpressionKind, Steps};
use crate::finding::shown;
use crate::nearest::nearest;
use crate::template::{Reference, Target, TemplatePart, bare_condition, parts, scan};

pub(super) fn check(reader: &mut Reader<'_>, inputs: &Inputs, steps: &Steps<'_>) {
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    for (index, step) in steps.specs.iter().enumerate() {
        indexes.entry(step.id.as_str()).or_insert(index);
    }
    let kinds = inputs.specs.iter().map(|input| (input.name.as_str(), &input.kind)).collect();
    let outputs = steps.outputs.iter().map(|(step, name, _)| (*step, name.as_str())).collect();
    let known = Known { inputs, steps, indexes, kinds, outputs };
    for expression in &steps.expressions {
        let text = expression.node.scalar().map_or("", |scalar| &*scalar.text);
        match expression.kind {
            // An empty condition has its finding already.
            ExpressionKind::Condition if text.trim().is_empty() => {}
            ExpressionKind::Condition => {
                let (start, bare) = bare_condition(text);
                known.check_expression(reader, expression, start..start + bare.len());
            }
            ExpressionKind::Template => {
                for part in parts(text) {
                    match part {
                        TemplatePart::Text(_) => {}
                        TemplatePart::Expression { inner, .. } => known.check_expression(reader, expression, inner),
                        TemplatePart::Unclosed(range) => {
                            let at = reader.place(Part { node: expression.node, offset: range.start, text: "${{" });
                            reader.findings.error(at, "this `${{` has no `}}`");
                        }
                    }
                }
            }
        }
    }
    check_shared_variables(reader, steps);
}

struct Known<'k, 'n> {
    inputs: &'k Inputs,
    steps: &'k Steps<'n>,
    indexes: HashMap<&'k str, usize>,
    kinds: HashMap<&'k str, &'k InputKind>,
    outputs: HashSet<(usize, &'k str)>,
}

impl Known<'_, '_> {
    /// Checks the expression in `range` of its scalar's text.
    fn check_expression(&self, reader: &mut Reader<'_>, expression: &Expression<'_>, range: Range<usize>) {
        let text = expression.node.scalar().map_or("", |scalar| &*scalar.text);
        let source = &text[range.clone()];
        let mut scanned = scan(source);
        let problems = std::mem::take(&mut scanned.problems);
        let part = |part: &Range<usize>| {
            let text = &source[part.clone()];
            let blank = text.len() - text.trim_start().len();
            Part { node: expression.node, offset: range.start + part.start + blank, text: text.trim() }
        };
        for problem in problems {
            let at = reader.place(part(&problem.range));
            reader.findings.add(crate::Level::Error, at, problem.message, problem.hint);
        }
        for reference in &scanned.references {
            self.check_reference(reader, expression.step, part(&reference.range), reference);
        }
        if let Some(target) = scanned.single()
            && expression.kind == ExpressionKind::Condition
            && !self.may_be_truth(target)
        {
            let message = format!("`{}` is a text, which is neither true nor false", shown(source.trim()));
            let hint = format!("compare it with something, as in `{} == 'yes'`", shown(source.trim()));
            let at = reader.place(part(&(0..source.len())));
            reader.findings.error_hint(at, message, hint);
        }
    }

    /// Whether a reference alone can decide. Outputs are always text; an input that is not known has its own finding.
    fn may_be_truth(&self, target: &Target) -> bool {
        match target {
            Target::Input(name) => self.kinds.get(name.as_str()).is_none_or(|kind| **kind == InputKind::Bool),
            Target::Output { .. } => false,
        }
    }

    fn check_reference(&self, reader: &mut Reader<'_>, step: usize, part: Part<'_>, reference: &Reference) {
        match &reference.target {
            Target::Input(name) => self.check_input(reader, part, name),
            Target::Output { step: of, name } => self.check_output(reader, step, part, of, name),
        }
    }

    fn check_input(&self, reader: &mut Reader<'_>, part: Part<'_>, name: &str) {
        if !self.inputs.complete || self.kinds.contains_key(name) {
            return;
        }
        let message = format!("there is no input `{}`", shown(name));
        let known: Vec<&str> = self.inputs.specs.iter().map(|input| input.name.as_str()).collect();
        unknown(reader, part, message, name, &known, "declare it under `inputs`");
    }

    fn check_output(&self, reader: &mut Reader<'_>, step: usize, part: Part<'_>, of: &str, name: &str) {
        let Some(&index) = self.indexes.get(of) else {
            if self.steps.complete {
                let known: Vec<&str> = self.steps.specs.iter().take(step).map(|step| step.id.as_str()).collect();
                unknown(reader, part, format!("there is no step `{}`", shown(of)), of, &known, "only outputs of earlier steps can be used");
            }
            return;
        };
        if index >= step {
            let message = if index == step {
                format!("the step `{of}` can't use its own outputs here: they are written while it runs")
            } else {
                format!("the step `{of}` comes later, so its outputs are not known here")
            };
            let at = reader.place(part);
            return reader.findings.error(at, message);
        }
        if let Some(StepSpec { outputs: Some(outputs), .. }) = self.steps.specs.get(index)
            && !self.outputs.contains(&(index, name))
        {
            let known: Vec<&str> = outputs.iter().map(String::as_str).collect();
            let message = format!("the step `{of}` does not declare the output `{}`", shown(name));
            unknown(reader, part, message, name, &known, "add it to the step's `outputs`");
        }
    }
}

fn unknown(reader: &mut Reader<'_>, part: Part<'_>, message: String, name: &str, known: &[&str], otherwise: &str) {
    // With a hundred findings already there nobody reads this one, and a search over many names takes time.
    let nearest = if reader.findings.is_full() { None } else { nearest(name, known.iter().copied()) };
    let hint = nearest.map_or_else(|| otherwise.to_owned(), |nearest| format!("did you mean `{nearest}`?"));
    let at = reader.place(part);
    reader.findings.error_hint(at, message, hint);
}

/// `STEP_A_B_C` can be the output `b-c` of `a` or the output `c` of `a-b`.
fn check_shared_variables(reader: &mut Reader<'_>, steps: &Steps<'_>) {
    let mut variables: HashMap<String, (usize, &str)> = HashMap::new();
    for (step, name, at) in &steps.outputs {
        let Some(spec) = steps.specs.get(*step) else { continue };
        let variable = format!("STEP_{}_{}", variable_name(spec.id.as_str()), variable_name(name));
        match variables.get(&variable) {
            // Ids that are the same or share their variables have a finding of their own.
            Some((other, _))
                if steps.specs.get(*other).is_none_or(|other| variable_name(other.id.as_str()) == variable_name(spec.id.as_str())) => {}
            Some((other, earlier)) => {
                let other = steps.specs.get(*other).map_or("", |other| other.id.as_str());
                let message =
                    format!("the outputs `{name}` of `{}` and `{earlier}` of `{other}` would share the variable `{variable}`", spec.id);
                reader.findings.error(*at, message);
            }
            None => {
                variables.insert(variable, (*step, name));
            }
        }
    }
}
