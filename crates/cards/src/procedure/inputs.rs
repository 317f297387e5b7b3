//! What a procedure asks of its caller.

use std::collections::{HashMap, HashSet};

use proctor_domain::procedure::{InputKind, InputSpec, variable_name};

use super::fields::{Field, Fields, Reader};
use crate::finding::{At, shown};

/// The inputs of a card.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) specs: Vec<InputSpec>,
    /// Whether every input's name is known, so that another one is wrong for certain.
    pub(super) complete: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    String,
    Int,
    Float,
    Bool,
    Path,
    Choice,
}

const KINDS: [(&str, Kind); 6] = [
    ("string", Kind::String),
    ("int", Kind::Int),
    ("float", Kind::Float),
    ("bool", Kind::Bool),
    ("path", Kind::Path),
    ("choice", Kind::Choice),
];

pub(super) fn read(reader: &mut Reader<'_>, field: Option<Field<'_>>) -> Inputs {
    let mut inputs = Inputs { specs: Vec::new(), complete: true };
    let Some(field) = field else { return inputs };
    inputs.complete = field.entries().next().is_some() || !field.node.is_null();
    let mut variables: HashMap<String, (String, At)> = HashMap::new();
    for entry in reader.list(&field) {
        let Some((spec, name_at)) = read_input(reader, &entry) else {
            inputs.complete = false;
            continue;
        };
        match variables.get(&variable_name(&spec.name)) {
            Some((earlier, first)) => {
                let line = reader.findings.located.line(first.start());
                let message = if *earlier == spec.name {
                    format!("duplicate input `{}`: it is already on line {line}", spec.name)
                } else {
                    format!(
                        "the inputs `{}` and `{earlier}` (line {line}) would share the variable `INPUT_{}`",
                        spec.name,
                        variable_name(&spec.name)
                    )
                };
                reader.findings.error(name_at, message);
            }
            None => {
                variables.insert(variable_name(&spec.name), (spec.name.clone(), name_at));
                inputs.specs.push(spec);
            }
        }
    }
    inputs
}

/// One input and where its name stands; `None` when even the name is not known.
fn read_input(reader: &mut Reader<'_>, entry: &Field<'_>) -> Option<(InputSpec, At)> {
    let fields = Fields::open(reader, entry, "inputs[]")?;
    let kind = fields.get("type").map_or(Some(Kind::String), |field| reader.word(&field, &KINDS));
    let kind = read_kind(reader, &fields, kind);
    let default = fields.get("default").and_then(|field| reader.loose_text(&field).map(|text| (field, text)));
    let required = fields.get("required").and_then(|field| reader.truth(&field)).unwrap_or(false);
    let description = fields.get("description").and_then(|field| reader.text(&field)).unwrap_or_default();
    let name_field = fields.need(reader, "name", "this input")?;
    let name = reader.name(&name_field)?;
    let known_kind = kind.clone().unwrap_or(InputKind::String);
    let spec = InputSpec { name, kind: known_kind, default: default.as_ref().map(|(_, text)| text.clone()), required, description };
    if let Some((field, text)) = &default {
        if required {
            let message = format!("the input `{}` is required, so its default is never used", spec.name);
            reader.findings.error_hint(field.key_at, message, "leave one of the two out");
        }
        if kind.is_some()
            && let Err(error) = spec.check(text)
        {
            let message = format!("the default of `{}` is `{}`, which is not {}", spec.name, shown(text), error.wanted);
            reader.findings.error(field.at(), message);
        }
    }
    Some((spec, name_field.at()))
}

/// The type with its choices; `None` when it is not known, so that nothing is checked against it.
fn read_kind(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: Option<Kind>) -> Option<InputKind> {
    let choices = fields.get("choices");
    match (kind?, choices) {
        (Kind::Choice, Some(field)) => read_choices(reader, &field),
        (Kind::Choice, None) => {
            if let Some(field) = fields.get("type") {
                reader.findings.error_hint(field.at(), "a `choice` needs `choices`", "as in `choices: [fast, thorough]`");
            }
            None
        }
        (other, choices) => {
            if let Some(field) = choices {
                reader.findings.error_hint(field.key_at, "only a `choice` has `choices`", "write `type: choice`, or leave the choices out");
            }
            match other {
                Kind::Int => Some(InputKind::Int),
                Kind::Float => Some(InputKind::Float),
                Kind::Bool => Some(InputKind::Bool),
                Kind::Path => Some(InputKind::Path),
                Kind::String | Kind::Choice => Some(InputKind::String),
            }
        }
    }
}

fn read_choices(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<InputKind> {
    let entries = reader.list(field);
    if entries.is_empty() && field.entries().next().is_none() && !field.node.is_null() && field.node.scalar().is_none() {
        reader.findings.error(field.at(), "`choices` is empty, so nothing could be chosen");
        return None;
    }
    let mut choices: Vec<String> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    for entry in entries {
        let text = reader.loose_text(&entry)?;
        if !seen.insert(text.clone()) {
            reader.findings.error(entry.at(), format!("duplicate choice `{}`", shown(&text)));
        } else {
            choices.push(text);
        }
    }
    (!choices.is_empty()).then_some(InputKind::Choice(choices))
}
