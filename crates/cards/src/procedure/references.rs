//! Checks conditions and templates once every input and step is known.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use proctor_domain::procedure::{InputKind, StepSpec, output_variable, variable_name};

use super::fields::Reader;
use super::inputs::Inputs;
use super::scalars::Part;
use super::steps::{Expression, ExpressionKind, Steps};
use crate::finding::{Level, shown};
use crate::nearest::nearest;
use crate::template::{Literal, Reference, Scan, Target, check_condition, check_template};

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
                let scan = check_condition(text);
                known.check_scan(reader, expression, &scan);
                known.check_truth(reader, expression, &scan);
            }
            ExpressionKind::Template => {
                for scan in check_template(text) {
                    known.check_scan(reader, expression, &scan);
                }
            }
        }
    }
    check_shared_variables(reader, steps);
}

/// A range of an expression's text, without the blank space around it.
fn part<'n>(expression: &Expression<'n>, range: &Range<usize>) -> Part<'n> {
    let whole = expression.node.scalar().map_or("", |scalar| &*scalar.text);
    let text = whole.get(range.clone()).unwrap_or("");
    let blank = text.len() - text.trim_start().len();
    Part { node: expression.node, offset: range.start + blank, text: text.trim() }
}

/// What a value is in an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Number,
    Truth,
}

struct Known<'k, 'n> {
    inputs: &'k Inputs,
    steps: &'k Steps<'n>,
    indexes: HashMap<&'k str, usize>,
    kinds: HashMap<&'k str, &'k InputKind>,
    outputs: HashSet<(usize, &'k str)>,
}

impl Known<'_, '_> {
    /// Reports what a scan of `expression` found, and what its references say.
    fn check_scan(&self, reader: &mut Reader<'_>, expression: &Expression<'_>, scan: &Scan) {
        for problem in &scan.problems {
            let at = reader.place(part(expression, &problem.range));
            reader.findings.add(Level::Error, at, problem.message.clone(), problem.hint.clone());
        }
        for reference in &scan.references {
            let part = part(expression, &reference.range);
            self.check_comparison(reader, part, reference);
            self.check_reference(reader, expression.step, part, reference);
        }
    }

    /// A condition that is a single reference must be true or false by its type.
    fn check_truth(&self, reader: &mut Reader<'_>, expression: &Expression<'_>, scan: &Scan) {
        let (Some(target), Some(reference)) = (scan.single(), scan.references.first()) else { return };
        let part = part(expression, &reference.range);
        let spelled = shown(part.text);
        let (what, example) = match self.shape(target) {
            Some(Shape::Text) => ("a text", format!("{spelled} == 'yes'")),
            Some(Shape::Number) => ("a number", format!("{spelled} > 0")),
            Some(Shape::Truth) | None => return,
        };
        let at = reader.place(part);
        let message = format!("`{spelled}` is {what}, which is neither true nor false");
        reader.findings.error_hint(at, message, format!("compare it with something, as in `{example}`"));
    }

    /// A comparison of different kinds of values yields the same whatever the values are.
    fn check_comparison(&self, reader: &mut Reader<'_>, part: Part<'_>, reference: &Reference) {
        if reference.compared_with.is_none() {
            return;
        }
        let spelled = shown(part.text);
        let (what, hint) = match (self.shape(&reference.target), reference.compared_with) {
            (Some(Shape::Text), Some(Literal::Number)) => {
                ("a text, and here it is compared with a number", format!("write `{spelled} | int`"))
            }
            (Some(Shape::Number), Some(Literal::Text)) => {
                ("a number, and here it is compared with a text", "leave the quotes out".to_owned())
            }
            (Some(Shape::Truth), Some(Literal::Number | Literal::Text)) => {
                ("true or false by itself", format!("write `{spelled}` or `not {spelled}`"))
            }
            (Some(Shape::Text), Some(Literal::Text)) | (Some(Shape::Number), Some(Literal::Number)) | (None, _) | (_, None) => return,
        };
        let at = reader.place(part);
        reader.findings.error_hint(at, format!("`{spelled}` is {what}"), hint);
    }

    /// What a reference stands for. Outputs are always text; an input that is not known has its own finding.
    fn shape(&self, target: &Target) -> Option<Shape> {
        let Target::Input(name) = target else { return Some(Shape::Text) };
        self.kinds.get(name.as_str()).map(|kind| match kind {
            InputKind::String | InputKind::Path | InputKind::Choice(_) => Shape::Text,
            InputKind::Int | InputKind::Float => Shape::Number,
            InputKind::Bool => Shape::Truth,
        })
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
        let known = self.inputs.specs.iter().map(|input| input.name.as_str());
        unknown(reader, part, message, name, known, "declare it under `inputs`");
    }

    fn check_output(&self, reader: &mut Reader<'_>, step: usize, part: Part<'_>, of: &str, name: &str) {
        let Some(&index) = self.indexes.get(of) else {
            if self.steps.complete {
                let known = self.steps.specs.iter().take(step).map(|step| step.id.as_str());
                unknown(reader, part, format!("there is no step `{}`", shown(of)), of, known, "only outputs of earlier steps can be used");
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
            let known = outputs.iter().map(String::as_str);
            let message = format!("the step `{of}` does not declare the output `{}`", shown(name));
            unknown(reader, part, message, name, known, "add it to the step's `outputs`");
        }
    }
}

fn unknown<'k>(
    reader: &mut Reader<'_>,
    part: Part<'_>,
    message: String,
    name: &str,
    known: impl Iterator<Item = &'k str>,
    otherwise: &str,
) {
    // With a hundred findings already there nobody reads this one, and a search over many names takes time.
    let nearest = if reader.findings.is_full() { None } else { nearest(name, known) };
    let hint = nearest.map_or_else(|| otherwise.to_owned(), |nearest| format!("did you mean `{nearest}`?"));
    let at = reader.place(part);
    reader.findings.error_hint(at, message, hint);
}

/// `STEP_A_B_C` can be the output `b-c` of `a` or the output `c` of `a-b`.
fn check_shared_variables(reader: &mut Reader<'_>, steps: &Steps<'_>) {
    let mut variables: HashMap<String, (usize, &str)> = HashMap::new();
    for (step, name, at) in &steps.outputs {
        let Some(spec) = steps.specs.get(*step) else { continue };
        let variable = output_variable(spec.id.as_str(), name);
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
