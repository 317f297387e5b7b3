//! The inputs of a run: what the caller gave, checked against the card, defaults filled in.

use std::collections::BTreeMap;

use proctor_domain::procedure::InputSpec;

use super::ProcedureError;

/// Bytes of one input. An environment variable may have no more than 128 KiB with its name.
pub(crate) const LONGEST_INPUT: usize = 64 * 1024;

/// Checks `given` against `declared` and fills in the defaults. Of two values for one name the last one counts.
///
/// An optional input without a default is set to the empty text, so that shells under `set -u` can read it.
pub(crate) fn resolve(declared: &[InputSpec], given: &[(String, String)]) -> Result<BTreeMap<String, String>, ProcedureError> {
    let mut inputs = BTreeMap::new();
    for (name, value) in given {
        let spec = declared.iter().find(|spec| spec.name == *name).ok_or_else(|| unknown(declared, name))?;
        if value.len() > LONGEST_INPUT {
            return Err(ProcedureError::InputTooLong { name: name.clone(), bytes: value.len() });
        }
        spec.check(value)?;
        inputs.insert(name.clone(), value.clone());
    }
    for spec in declared {
        if inputs.contains_key(&spec.name) {
            continue;
        }
        match &spec.default {
            Some(default) => inputs.insert(spec.name.clone(), default.clone()),
            None if spec.required => return Err(ProcedureError::MissingInput(spec.name.clone())),
            None => inputs.insert(spec.name.clone(), String::new()),
        };
    }
    Ok(inputs)
}

fn unknown(declared: &[InputSpec], name: &str) -> ProcedureError {
    let names = declared.iter().map(|spec| spec.name.as_str());
    ProcedureError::UnknownInput { name: name.to_owned(), nearest: proctor_cards::nearest(name, names).map(str::to_owned) }
}
