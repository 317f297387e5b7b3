//! Expressions (`when`) and templates (`env`, prompts) over a run's inputs and its steps' outputs.
//!
//! The language is minijinja's, reached through a scan of our own that finds every reference first. So a
//! step id with hyphens can be written as it is (`steps.build-app.outputs.tag`), a lint knows every name that
//! an expression needs, and nothing but inputs and outputs is in reach.

mod scan;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use proctor_domain::procedure::{Definition, InputKind, StepId};

pub use scan::{Literal, Parts, Problem, Reference, Scan, Target, TemplatePart, parts};

/// What expressions can see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    /// The run's inputs, defaults filled in.
    pub inputs: BTreeMap<String, String>,
    /// The types of the inputs: an `int`, `float` or `bool` is a number or truth value in an expression,
    /// so that `when: inputs.deploy` is false for `false`. An input without an entry is text.
    pub kinds: BTreeMap<String, InputKind>,
    /// What each step has written. Outputs are always text.
    pub outputs: BTreeMap<StepId, BTreeMap<String, String>>,
}

/// Steps that one evaluation may take. An expression has no loops, so this is far more than any needs.
const FUEL: u64 = 20_000;
/// No longer expression is read: compiling one takes memory and stack that grow with it.
pub(crate) const LONGEST_EXPRESSION: usize = 4 * 1024;

/// For conditions: an output that was not written, or an input that was not given, is simply not equal to anything.
static CONDITIONS: LazyLock<Environment<'static>> = LazyLock::new(|| environment(UndefinedBehavior::Lenient));

/// For templates: a text that is missing is an error, or a command would be built around a hole.
static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| environment(UndefinedBehavior::SemiStrict));

fn environment(undefined: UndefinedBehavior) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(undefined);
    environment.set_fuel(Some(FUEL));
    for function in ["range", "dict", "debug", "namespace"] {
        environment.remove_global(function);
    }
    environment
}

impl Values {
    /// The values of a run of `definition`.
    pub fn of(definition: &Definition, inputs: BTreeMap<String, String>, outputs: BTreeMap<StepId, BTreeMap<String, String>>) -> Self {
        let kinds = definition.inputs.iter().map(|input| (input.name.clone(), input.kind.clone())).collect();
        Self { inputs, kinds, outputs }
    }

    /// The text that a reference stands for; `None` when there is none.
    fn text(&self, target: &Target) -> Option<&str> {
        match target {
            Target::Input(name) => self.inputs.get(name).map(String::as_str),
            Target::Output { step, name } => {
                let step = StepId::try_from(step.clone()).ok()?;
                self.outputs.get(&step)?.get(name).map(String::as_str)
            }
        }
    }

    fn input_value(&self, name: &str, text: &str) -> Value {
        let typed = match self.kinds.get(name) {
            Some(InputKind::Int) => text.parse::<i64>().ok().map(Value::from),
            Some(InputKind::Float) => text.parse::<f64>().ok().map(Value::from),
            Some(InputKind::Bool) => text.parse::<bool>().ok().map(Value::from),
            Some(InputKind::String | InputKind::Path | InputKind::Choice(_)) | None => None,
        };
        typed.unwrap_or_else(|| Value::from(text))
    }

    /// What the references of an expression need, and no more: a run may have many large outputs.
    fn context(&self, references: &[Reference]) -> Value {
        let mut inputs: BTreeMap<String, Value> = BTreeMap::new();
        let mut steps: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for reference in references {
            let text = self.text(&reference.target);
            match &reference.target {
                Target::Input(name) => {
                    inputs.extend(text.map(|text| (name.clone(), self.input_value(name, text))));
                }
                Target::Output { step, name } => {
                    let outputs = steps.entry(step.clone()).or_default();
                    outputs.extend(text.map(|text| (name.clone(), Value::from(text))));
                }
            }
        }
        let steps: BTreeMap<String, Value> =
            steps.into_iter().map(|(id, outputs)| (id, Value::from(BTreeMap::from([("outputs", Value::from(outputs))])))).collect();
        Value::from(BTreeMap::from([("inputs", Value::from(inputs)), ("steps", Value::from(steps))]))
    }
}

/// Whether a `when` holds. It may stand in `${{ … }}` or not.
///
/// # Errors
/// One sentence without a full stop: the expression is not valid, or it is neither true nor false.
pub fn evaluate_when(expression: &str, values: &Values) -> Result<bool, String> {
    let (_, bare) = bare_condition(expression);
    let scan = checked(bare)?;
    let value = evaluate(&CONDITIONS, &scan, values)?;
    let kind = value.kind();
    if kind == ValueKind::Bool {
        Ok(value.is_true())
    } else if kind == ValueKind::Undefined {
        Ok(false)
    } else {
        Err(format!("it yields a {kind} where true or false is needed; compare it with something, as in `… == 'yes'`"))
    }
}

/// `template` with every `${{ … }}` replaced by its value.
///
/// # Errors
/// One sentence without a full stop: an expression is not valid or has no value.
pub fn render(template: &str, values: &Values) -> Result<String, String> {
    let mut rendered = String::new();
    for part in parts(template) {
        match part {
            TemplatePart::Text(range) => rendered.push_str(&template[range]),
            TemplatePart::Expression { inner, .. } => rendered.push_str(&render_expression(&template[inner], values)?),
            TemplatePart::Unclosed(_) => return Err("a `${{` has no `}}`".to_owned()),
        }
    }
    Ok(rendered)
}

fn render_expression(expression: &str, values: &Values) -> Result<String, String> {
    let scan = checked(expression)?;
    // A single reference is its text as it stands: a number would lose the form in which it was given.
    if let Some(target) = scan.single() {
        return values.text(target).map(str::to_owned).ok_or_else(|| no_value(target));
    }
    let value = evaluate(&TEMPLATES, &scan, values)?;
    if matches!(value.kind(), ValueKind::Undefined | ValueKind::None) {
        return Err(format!("`{}` has no value", expression.trim()));
    }
    Ok(value.to_string())
}

fn no_value(target: &Target) -> String {
    match target {
        Target::Input(name) => format!("the input `{name}` was not given; write `inputs.{name} | default('')` where it may be absent"),
        Target::Output { step, name } => {
            format!(
                "the step `{step}` has not written the output `{name}`; write `steps.{step}.outputs.{name} | default('')` where it may be absent"
            )
        }
    }
}

fn checked(expression: &str) -> Result<Scan, String> {
    let scan = check_expression(expression);
    match scan.problems.first() {
        None => Ok(scan),
        Some(problem) => Err(problem.message.clone()),
    }
}

fn evaluate(environment: &Environment<'static>, scan: &Scan, values: &Values) -> Result<Value, String> {
    environment.compile_expression(&scan.rewritten).and_then(|expression| expression.eval(values.context(&scan.references))).map_err(
        |error| {
            let missing = scan.references.iter().find(|reference| values.text(&reference.target).is_none());
            match missing {
                Some(reference) if error.kind() == ErrorKind::UndefinedError => no_value(&reference.target),
                Some(_) | None => describe(&error),
            }
        },
    )
}

/// What is wrong, without the place: it would be that of the rewritten text.
fn describe(error: &minijinja::Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return "the expression takes too long".to_owned();
    }
    error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()))
}

/// Reads an expression without evaluating it: everything it refers to and everything that is wrong with it.
pub fn check_expression(expression: &str) -> Scan {
    let mut scan = scan::scan(expression);
    // A single reference, which most are, has no grammar to get wrong.
    if scan.problems.is_empty()
        && scan.single().is_none()
        && let Err(error) = TEMPLATES.compile_expression(&scan.rewritten)
    {
        let range = 0..expression.len();
        scan.problems.push(Problem { range, message: format!("not a valid expression: {}", describe(&error)), hint: None });
    }
    scan
}

/// Reads every `${{ … }}` of a template without evaluating it. Ranges are those of the template.
pub fn check_template(template: &str) -> impl Iterator<Item = Scan> {
    let check = move |part| match part {
        TemplatePart::Text(_) => None,
        TemplatePart::Expression { inner, .. } => Some(check_expression(&template[inner.clone()]).shifted(inner.start)),
        TemplatePart::Unclosed(range) => Some(Scan::failed(Problem { range, message: "this `${{` has no `}}`".to_owned(), hint: None })),
    };
    parts(template).filter_map(check)
}

/// Reads a `when` without evaluating it, unless it depends on nothing: then it must be true or false as it stands.
/// Ranges are those of `condition`.
pub fn check_condition(condition: &str) -> Scan {
    let (start, bare) = bare_condition(condition);
    let mut scan = check_expression(bare).shifted(start);
    if scan.problems.is_empty()
        && scan.references.is_empty()
        && let Err(error) = evaluate_when(bare, &Values::default())
    {
        let range = start..start + bare.len();
        scan.problems.push(Problem { range, message: format!("the condition can't decide: {error}"), hint: None });
    }
    scan
}

/// A condition without the `${{ … }}` that may stand around it, and where it begins.
fn bare_condition(expression: &str) -> (usize, &str) {
    let mut found = parts(expression).filter(|part| match part {
        TemplatePart::Text(range) => !expression[range.clone()].trim().is_empty(),
        TemplatePart::Expression { .. } | TemplatePart::Unclosed(_) => true,
    });
    match (found.next(), found.next()) {
        (Some(TemplatePart::Expression { inner, .. }), None) => (inner.start, &expression[inner]),
        _ => (0, expression),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let text = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Values {
            inputs: text(&[
                ("version", "1.50"),
                ("dry-run", "false"),
                ("count", "7"),
                ("ratio", "1.50"),
                ("note", "a}}b ${{ x }}"),
                ("empty", ""),
            ]),
            kinds: [("dry-run", InputKind::Bool), ("count", InputKind::Int), ("ratio", InputKind::Float)]
                .map(|(name, kind)| (name.to_owned(), kind))
                .into(),
            outputs: [
                ("build-app", &[("image-tag", "v1"), ("changed", "false")][..]),
                ("v1.2_x", &[("n", "3")]),
                ("2nd", &[("ok", "yes")]),
            ]
            .map(|(id, outputs)| (StepId::try_from(id.to_owned()).unwrap(), text(outputs)))
            .into(),
        }
    }

    #[test]
    fn conditions_follow_inputs_and_outputs() {
        for (expression, expected) in [
            ("true", true),
            ("inputs.dry-run", false),
            ("not inputs.dry-run", true),
            ("${{ not inputs.dry-run }}", true),
            ("inputs['dry-run']", false),
            ("inputs.count > 6 and inputs.ratio < 2", true),
            ("inputs.count - 1 == 6", true),
            ("inputs.version == '1.50'", true),
            ("steps.build-app.outputs.image-tag == \"v1\"", true),
            ("steps['build-app'].outputs['changed'] == 'true'", false),
            ("steps.v1.2_x.outputs.n | int == 3", true),
            ("steps.2nd.outputs.ok == 'yes'", true),
            ("steps.skipped.outputs.anything == 'x'", false),
            ("steps.skipped.outputs.anything", false),
            ("steps.skipped.outputs.anything is defined", false),
            ("not steps.skipped.outputs.anything", true),
            ("inputs.version is startingwith('1.') and 'v' in steps.build-app.outputs.image-tag", true),
            ("inputs.note == 'a}}b ${{ x }}'", true),
            ("(inputs.count in [1, 7]) if inputs.version else false", true),
        ] {
            assert_eq!(evaluate_when(expression, &values()), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn a_condition_that_is_neither_true_nor_false_is_refused() {
        let refused = |expression: &str| evaluate_when(expression, &values()).unwrap_err();

        insta::assert_snapshot!(refused("steps.build-app.outputs.changed"), @"it yields a string where true or false is needed; compare it with something, as in `… == 'yes'`");
        insta::assert_snapshot!(refused("inputs.count"), @"it yields a number where true or false is needed; compare it with something, as in `… == 'yes'`");
        insta::assert_snapshot!(refused("inputs.count >"), @"not a valid expression: syntax error: unexpected end of input, expected expression");
        insta::assert_snapshot!(refused(""), @"the expression is empty");
        insta::assert_snapshot!(refused("env.HOME == 'x'"), @"`env` means nothing here");
        insta::assert_snapshot!(refused("inputs"), @"`inputs` is followed by the name of one, as in `inputs.version`");
        insta::assert_snapshot!(refused("range(10)"), @"`range` means nothing here");
        insta::assert_snapshot!(refused("inputs.count | lwer"), @"there is no filter `lwer`");
        insta::assert_snapshot!(refused("inputs.count is evn"), @"there is no test `evn`");
        insta::assert_snapshot!(refused("'x' * 100000000"), @"the expression takes too long");
    }

    #[test]
    fn templates_keep_everything_but_their_expressions() {
        for (template, expected) in [
            ("", ""),
            ("no expression, $HOME, {{ x }} and }}", "no expression, $HOME, {{ x }} and }}"),
            ("v${{ inputs.version }}!", "v1.50!"),
            ("${{inputs.ratio}}", "1.50"),
            ("${{ inputs.ratio * 2 }}", "3.0"),
            ("${{ inputs.count }}${{ inputs.dry-run }}", "7false"),
            ("${{ steps.build-app.outputs.image-tag | upper }}", "V1"),
            ("${{ inputs.note }}", "a}}b ${{ x }}"),
            ("${{ inputs.empty }}", ""),
            ("${{ inputs.absent | default('none') }}", "none"),
            ("${{ '}}' }}", "}}"),
            ("${{ {'a': {'b': 'c'}}['a']['b'] }}", "c"),
            ("${{ '${{' }}", "${{"),
        ] {
            assert_eq!(render(template, &values()).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn a_template_without_a_value_says_what_is_missing() {
        let refused = |template: &str| render(template, &values()).unwrap_err();

        insta::assert_snapshot!(refused("${{ inputs.absent }}"), @"the input `absent` was not given; write `inputs.absent | default('')` where it may be absent");
        insta::assert_snapshot!(refused("${{ steps.skipped.outputs.x }}"), @"the step `skipped` has not written the output `x`; write `steps.skipped.outputs.x | default('')` where it may be absent");
        insta::assert_snapshot!(refused("${{ inputs.absent ~ 'x' }}"), @"the input `absent` was not given; write `inputs.absent | default('')` where it may be absent");
        insta::assert_snapshot!(refused("${{ inputs.version"), @"a `${{` has no `}}`");
        insta::assert_snapshot!(refused("${{ }}"), @"the expression is empty");
        insta::assert_snapshot!(refused("${{ none }}"), @"`none` has no value");
    }

    #[test]
    fn deep_and_long_expressions_end_in_a_sentence() {
        for expression in
            ["(".repeat(100_000), "(".repeat(4_000), "-".repeat(4_000), "[".repeat(4_000), "not ".repeat(1_000), "a".repeat(1 << 20)]
        {
            assert!(evaluate_when(&expression, &values()).is_err(), "{}…", &expression[..10]);
        }
    }
}
