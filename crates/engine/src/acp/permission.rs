//! What an agent may do that asks first.

use serde::Deserialize;

use super::update::ToolChange;
use super::wire::{field, list};
use crate::agent::{Access, Permission};

/// Kinds of tools that only look.
const LOOKING: [&str; 3] = ["read", "search", "think"];

/// The parameters of `session/request_permission`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    pub(super) session_id: String,
    pub(super) tool_call: ToolChange,
    #[serde(deserialize_with = "list")]
    options: Vec<Offer>,
}

/// One answer to choose from.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offer {
    option_id: String,
    #[serde(default, deserialize_with = "field")]
    kind: String,
}

impl Question {
    /// The answer to be given, where one of its sort is offered. What is allowed is allowed once: for ever would be written
    /// down by some agents, in the working tree even.
    pub(super) fn answer(&self, is_allowed: bool) -> Option<&str> {
        let kinds = if is_allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
        let offer = |kind: &str| self.options.iter().find(|offer| offer.kind == kind).map(|offer| offer.option_id.as_str());
        kinds.into_iter().find_map(offer)
    }
}

/// Whether a tool of this kind may be used. The kind is what the agent's program says, and not its model.
pub(super) fn may(kind: &str, access: Access, permission: Permission) -> bool {
    LOOKING.contains(&kind) || (access == Access::Full && permission == Permission::Bypass)
}

#[cfg(test)]
mod tests {
    use super::super::wire::parsed;
    use super::*;

    fn question(options: &str) -> Question {
        parsed(&format!(r#"{{"sessionId":"s","toolCall":{{"toolCallId":"t"}},"options":[{options}]}}"#)).unwrap()
    }

    const ALL: &str = r#"{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"o","name":"O","kind":"allow_once"},
        {"optionId":"r","name":"R","kind":"reject_once"},{"optionId":"n","name":"N","kind":"reject_always"}"#;

    #[test]
    fn only_one_in_a_box_with_full_access_may_change_anything() {
        let asked = question(ALL);
        let cases = [
            (Access::ReadOnly, Permission::Ask),
            (Access::ReadOnly, Permission::Bypass),
            (Access::Full, Permission::Ask),
            (Access::Full, Permission::Bypass),
        ];
        let answers = |kind| cases.map(|(access, permission)| asked.answer(may(kind, access, permission)).unwrap());

        for kind in ["edit", "delete", "move", "execute", "fetch", "switch_mode", "other", "", "reading"] {
            assert_eq!(answers(kind), ["r", "r", "r", "o"], "{kind}");
        }
        for kind in ["read", "search", "think"] {
            assert_eq!(answers(kind), ["o"; 4], "{kind}");
        }
    }

    #[test]
    fn the_next_best_answer_is_given_and_none_where_there_is_none_of_its_sort() {
        let always = question(r#"{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"n","name":"N","kind":"reject_always"}"#);
        let odd = question(r#"{"optionId":"x","name":"X","kind":"perhaps"},7"#);

        assert_eq!(always.answer(true), Some("a"));
        assert_eq!(always.answer(false), Some("n"));
        assert_eq!(odd.answer(false), None);
    }
}
