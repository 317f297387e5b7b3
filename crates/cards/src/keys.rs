//! Every key of a procedure card: what the readers accept and what the card reference prints.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One key of a procedure card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDoc {
    /// Where it stands: `steps[].run.shells`.
    pub path: &'static str,
    /// What its value is, for people.
    pub kind: &'static str,
    /// What holds without it: empty when nothing does, `required` when it can't be left out.
    pub default: &'static str,
    /// What it does: one or more sentences.
    pub description: &'static str,
}

const fn key(path: &'static str, kind: &'static str, default: &'static str, description: &'static str) -> KeyDoc {
    KeyDoc { path, kind, default, description }
}

const REQUIRED: &str = "required";
const TEMPLATE: &str = "text; `${{ … }}` is replaced";

const KEYS: &[KeyDoc] = &[
    key("name", "text", REQUIRED, "Names runs, commits and run folders. Need not be the file's name."),
    key("description", "text", "", "One line for lists."),
    key("type", "`procedure`", "", "Accepted when it agrees with the file's name; not needed."),
    key("run-expiry", "duration or `never`", "30d", "How long a completed run is kept."),
    key("failed-run-expiry", "duration or `never`", "90d", "How long a failed or inconclusive run is kept."),
    key(
        "records",
        "`state` or `git`",
        "`state`; `git` in the layout `beebox`",
        "Where a run is recorded. `state`: in the journal, with one commit for each step that changed something. `git`: also as a run card in the repository, with a commit for each step.",
    ),
    key(
        "isolation",
        "`in-place` or `worktree`",
        "in-place",
        "Where the steps work: in the working tree they were started in, or in a worktree and branch of their own.",
    ),
    key(
        "memory",
        "`on` or `off`",
        "on",
        "Whether memory is asked before an agent starts, and told what its checked work taught. `off` is neither.",
    ),
    key("inputs", "list", "", "What a caller may or must give with `--input name=value`."),
    key(
        "inputs[].name",
        "name",
        REQUIRED,
        "Letters, digits, `-` and `_`, beginning with a letter. Shells read `INPUT_<NAME>`: upper case, `-` becomes `_`.",
    ),
    key("inputs[].type", "`string`, `int`, `float`, `bool`, `path` or `choice`", "string", "What the given text must be."),
    key("inputs[].default", "one value", "", "Used when the input is not given. Must be of the type."),
    key("inputs[].required", "`true` or `false`", "false", "Whether a run without it is refused. Excludes a default."),
    key("inputs[].description", "text", "", "One line for people."),
    key("inputs[].choices", "list of values", "", "What a `choice` can be. Required there, and not allowed for other types."),
    key("steps", "list", REQUIRED, "The steps, in the order in which they run. May be empty."),
    key(
        "steps[].id",
        "name",
        REQUIRED,
        "Unique in the procedure. Letters, digits, `-`, `_` and `.`, beginning with a letter or digit, at most 64 characters.",
    ),
    key("steps[].description", "text", "", "One line for people."),
    key(
        "steps[].when",
        "expression",
        "",
        "Over `inputs.NAME` and `steps.ID.outputs.NAME` of earlier steps. When it is false the step is skipped (`condition`).",
    ),
    key(
        "steps[].approve",
        "text or `true`",
        "",
        "What a person is asked before the step does its work, after its precheck. The run parks (exit 5) until `proctor answer RUN approve` or `reject`.",
    ),
    key(
        "steps[].budget",
        "dollars",
        "no limit",
        "What the step's agents and a repair may cost together, in USD: `2` or `0.25`. A judge is not counted.",
    ),
    key("steps[].memory", "`on` or `off`", "on", "The same for one step. Where the procedure says `off`, no step has it on."),
    key("steps[].timeout", "duration", "30m; 60m with agents", "Wall-clock limit of each phase of the step."),
    key(
        "steps[].env",
        "mapping of names to templates",
        "",
        "Variables for the step's shells. Values may hold `${{ … }}` over inputs and outputs of earlier steps. Names that begin with `PROCTOR_`, `INPUT_` or `STEP_`, and `CHECK_SKIP`, are taken.",
    ),
    key(
        "steps[].outputs",
        "list of names",
        "whatever the step writes",
        "The outputs that the step must write, as lines `name=value`, to the file `$PROCTOR_OUTPUT`. Later shells read `STEP_<ID>_<NAME>`.",
    ),
    key("steps[].retry", "mapping", "", "Further attempts after a failure, on the tree as it is."),
    key("steps[].retry.max", "whole number from 1 to 100", REQUIRED, "Attempts after the first."),
    key("steps[].retry.backoff", "duration", "0s", "Pause before the second attempt. Doubles with each further one, up to an hour."),
    key(
        "steps[].retry.on",
        "list of `shell`",
        "[shell]",
        "What is repeated: a shell of `run` or `validate` that failed or ran out of time.",
    ),
    key(
        "steps[].precheck",
        "phase",
        "",
        "Decides whether the step is needed. Exit 0 goes on, 75 (`$CHECK_SKIP`) skips the step, anything else fails it.",
    ),
    key("steps[].precheck.shells", "list of bash texts", REQUIRED, "Run in order under `set -euo pipefail`."),
    key("steps[].precheck.pass-output", "`true` or `false`", "false", "Whether what it printed is given to the step's agents."),
    key("steps[].precheck.whys", "list of texts", "", "Accepted for the cards of Bee Box; not used."),
    key("steps[].run", "phase", "", "Does the work: agents first, then shells, each in order."),
    key("steps[].run.shells", "list of bash texts", "", "Run in order under `set -euo pipefail`. Exit 75 is a failure here."),
    key("steps[].run.agents", "list", "", "Agents, run in order before the shells."),
    key("steps[].run.agents[].prompt", TEMPLATE, REQUIRED, "What the agent is asked to do."),
    key(
        "steps[].run.agents[].model",
        "text",
        "the engine's default",
        "A tier (`efficient`, `balanced`, `strong`, `strongest`) or a model.",
    ),
    key("steps[].run.agents[].max-turns", "whole number, at least 1", "20", "Cap on the agent's turns."),
    key("steps[].run.whys", "list of texts", "", "Accepted for the cards of Bee Box; not used."),
    key("steps[].validate", "phase", "", "Checks the work: shells first, then criteria. Is carried out with or without `run`."),
    key("steps[].validate.shells", "list of bash texts", "", "Run in order under `set -euo pipefail`. Any exit but 0 is a negative check."),
    key("steps[].validate.instructions", "list of texts", "", "Criteria that a model judges."),
    key("steps[].validate.whys", "list of texts", "", "Why the criteria matter; given to the judge and to a repair."),
    key(
        "steps[].validate.severity",
        "`warn`, `review` or `abort`",
        "warn",
        "What a negative check does. `warn`: it is recorded and the run goes on. `abort`: the step fails. `review`: the step's only agent gets one chance to repair, then the step fails.",
    ),
    key("steps[].validate.model", "text", "balanced", "Tier or model of the judge."),
];

/// Keys that every card of a box may have.
const BOX_KEYS: &[KeyDoc] = &[
    key("title", "anything", "", BOX_ONLY),
    key("contains", "anything", "", BOX_ONLY),
    key("contains-evidence", "anything", "", BOX_ONLY),
    key("todos", "anything", "", BOX_ONLY),
    key("symbol", "anything", "", BOX_ONLY),
    key("prominence", "anything", "", BOX_ONLY),
    key("theme", "anything", "", BOX_ONLY),
];

const BOX_ONLY: &str = "Accepted in the layout `beebox` only, where every card may have it; not used.";

/// Keys that look right and can't work where they stand, and why.
const REFUSED: &[(&str, &str, &str)] = &[
    ("steps[].precheck", "agents", "a precheck can't start agents: only shells can say that a step is not needed"),
    ("steps[].precheck", "instructions", "a precheck has no judge: only shells can say that a step is not needed"),
    ("steps[].run", "instructions", "criteria are judged after the work: they belong under `validate`"),
    ("steps[].validate", "agents", "agents do the work: they belong under `run`; `validate` has `instructions` for a judge"),
    ("steps[].run", "severity", "only a check has a severity: it belongs under `validate`"),
    ("steps[].run", "pass-output", "only a precheck passes its output on: it belongs under `precheck`"),
    ("steps[].validate", "pass-output", "only a precheck passes its output on: it belongs under `precheck`"),
];

/// What other programs call a key.
const SYNONYMS: &[(&str, &str, &str)] = &[
    ("inputs[]", "id", "name"),
    ("inputs[]", "options", "choices"),
    ("inputs[]", "values", "choices"),
    ("inputs[]", "enum", "choices"),
    ("steps[]", "name", "id"),
    ("steps[]", "title", "description"),
    ("steps[]", "if", "when"),
    ("steps[]", "condition", "when"),
    ("steps[]", "environment", "env"),
    ("steps[]", "check", "validate"),
    ("steps[].retry", "attempts", "max"),
    ("steps[].retry", "delay", "backoff"),
    ("steps[].run", "bash", "shells"),
    ("steps[].run", "script", "shells"),
    ("steps[].run", "commands", "shells"),
    ("steps[].validate", "bash", "shells"),
    ("steps[].validate", "criteria", "instructions"),
];

/// The key that is called `name` elsewhere.
pub(crate) fn synonym(path: &str, name: &str) -> Option<&'static str> {
    SYNONYMS.iter().find(|(place, other, _)| *place == path && *other == name).map(|(_, _, key)| *key)
}

/// Every key of a procedure card, in the order of the reference.
pub fn key_reference() -> Vec<KeyDoc> {
    KEYS.iter().chain(BOX_KEYS).copied().collect()
}

/// The keys that the mapping at `path` can have; the empty path is the card itself.
pub(crate) fn children(path: &str) -> &'static [&'static str] {
    static CHILDREN: LazyLock<BTreeMap<&str, Vec<&str>>> = LazyLock::new(|| {
        let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for key in KEYS {
            let (parent, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
            children.entry(parent).or_default().push(name);
        }
        children
    });
    CHILDREN.get(path).map_or(&[], Vec::as_slice)
}

/// The keys that every card of a box may have.
pub(crate) fn box_keys() -> impl Iterator<Item = &'static str> {
    BOX_KEYS.iter().map(|key| key.path)
}

/// Why `name` can't work at `path`, where that is known.
pub(crate) fn refusal(path: &str, name: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(place, key, _)| *place == path && *key == name).map(|(_, _, reason)| *reason)
}

/// Where else a key of this name would be right, for people: `run, validate`.
pub(crate) fn homes(name: &str) -> Option<String> {
    let homes: Vec<&str> = KEYS
        .iter()
        .filter_map(|key| key.path.rsplit_once('.'))
        .filter(|(_, last)| *last == name)
        .map(|(parent, _)| parent.rsplit('.').next().unwrap_or(parent).trim_end_matches("[]"))
        .collect();
    if homes.is_empty() { None } else { Some(homes.iter().map(|home| format!("`{home}`")).collect::<Vec<_>>().join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_in_a_mapping_that_is_itself_a_key() {
        for key in key_reference() {
            if let Some((parent, _)) = key.path.rsplit_once('.') {
                let container = parent.trim_end_matches("[]");

                assert!(KEYS.iter().any(|other| other.path == container), "{}", key.path);
            }
        }
    }

    #[test]
    fn refused_keys_are_not_documented_and_stand_where_others_are() {
        for (path, name, _) in REFUSED {
            assert!(!children(path).is_empty(), "{path}");
            assert!(!children(path).contains(name), "{path}.{name}");
        }
        for (path, name, key) in SYNONYMS {
            assert!(children(path).contains(key), "{path}.{key}");
            assert!(!children(path).contains(name), "{path}.{name}");
        }
    }
}
