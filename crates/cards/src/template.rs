//! Expressions (`when`) and templates (`env`, prompts) over a run's inputs and its steps' outputs.

use std::collections::BTreeMap;

use proctor_domain::procedure::{Definition, InputKind, StepId};

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

impl Values {
    /// The values of a run of `definition`.
    pub fn of(definition: &Definition, inputs: BTreeMap<String, String>, outputs: BTreeMap<StepId, BTreeMap<String, String>>) -> Self {
        let kinds = definition.inputs.iter().map(|input| (input.name.clone(), input.kind.clone())).collect();
        Self { inputs, kinds, outputs }
    }
}

/// Whether a `when` holds. The error is one sentence without a full stop.
pub fn evaluate_when(_expression: &str, _values: &Values) -> Result<bool, String> {
    todo!()
}

/// `template` with every `${{ … }}` replaced by its value. The error is one sentence without a full stop.
pub fn render(_template: &str, _values: &Values) -> Result<String, String> {
    todo!()
}
