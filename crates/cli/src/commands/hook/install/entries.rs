//! What is entered into each host's settings, and what of them is ours.

use std::path::Path;

use serde_json::{Value, json};

use super::json::{self as edit, Node};
use crate::args::hook::Host;

/// Seconds after which a host goes on without an answer.
const PATIENCE: u32 = 10;

/// One hook of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The host's name of the event.
    pub(super) event: &'static str,
    /// Which tools it is called for; for all without it.
    pub(super) matcher: Option<&'static str>,
    /// The command.
    pub(super) command: String,
}

impl Entry {
    /// The hooks of a host. `program` is what a shell is to start.
    pub(super) fn all(host: Host, program: &str, read_budget: bool) -> Vec<Self> {
        let (start, edit, read) = match host {
            Host::ClaudeCode => {
                (("SessionStart", None), ("PreToolUse", Some("Edit|Write|MultiEdit|NotebookEdit")), ("PreToolUse", Some("Read|Bash")))
            }
            Host::Codex => (("SessionStart", None), ("PreToolUse", Some("^apply_patch$")), ("PreToolUse", Some("^Bash$"))),
            Host::Cursor => (("sessionStart", None), ("postToolUse", Some("Read|Write")), ("preToolUse", Some("Read|Shell"))),
        };
        let entry = |(event, matcher), words: &str| Self { event, matcher, command: format!("{program} hook {} {words}", host.word()) };
        let mut entries = vec![entry(start, "session-start"), entry(edit, "pre-edit")];
        if read_budget {
            entries.push(entry(read, "pre-read --read-budget"));
        }
        entries
    }

    fn value(&self, host: Host) -> Value {
        let mut value = match host {
            Host::ClaudeCode | Host::Codex => {
                json!({"hooks": [{"type": "command", "command": self.command, "timeout": PATIENCE}]})
            }
            Host::Cursor => json!({"command": self.command, "timeout": PATIENCE}),
        };
        if let (Some(matcher), Value::Object(members)) = (self.matcher, &mut value) {
            members.insert("matcher".to_owned(), matcher.into());
        }
        value
    }
}

/// The program that a command of ours starts, if it is one: `PROGRAM hook HOST EVENT`, the program being a Proctor.
pub(super) fn program_of(host: Host, command: &str) -> Option<String> {
    let (program, rest) = command.rsplit_once(" hook ")?;
    let event = rest.strip_prefix(host.word())?.strip_prefix(' ')?;
    let is_event = matches!(event, "session-start" | "pre-edit" | "pre-read" | "pre-read --read-budget");
    let program = match program.strip_prefix('\'').and_then(|quoted| quoted.strip_suffix('\'')) {
        Some(quoted) => quoted.replace("'\\''", "'"),
        None => program.to_owned(),
    };
    let is_proctor = Path::new(&program).file_name().is_some_and(|name| name == "proctor");
    (is_event && is_proctor).then_some(program)
}

/// Where a hook of ours stands.
struct Ours<'text> {
    command: &'text str,
    /// What it is to be removed from: the innermost thing around it that holds something else too.
    container: &'text Node,
    position: usize,
}

fn ours(host: Host, root: &Node) -> Vec<Ours<'_>> {
    let mut found = Vec::new();
    let Some(at_hooks) = root.members().iter().rposition(|member| member.key == "hooks") else { return found };
    let hooks = &root.members()[at_hooks].value;
    for (at_event, event) in hooks.members().iter().enumerate() {
        for (at_item, item) in event.value.items().iter().enumerate() {
            let around = vec![(&event.value, at_item), (hooks, at_event), (root, at_hooks)];
            found.extend(one_of_ours(host, item, around.clone()));
            let list = item.get("hooks");
            for (at_hook, hook) in list.map_or(&[][..], Node::items).iter().enumerate() {
                let innermost = list.map(|list| (list, at_hook));
                found.extend(one_of_ours(host, hook, innermost.into_iter().chain(around.clone()).collect()));
            }
        }
    }
    found
}

/// The hook if it is ours; `around` are the things around it and its position in each, from the innermost on.
fn one_of_ours<'text>(host: Host, hook: &'text Node, around: Vec<(&'text Node, usize)>) -> Option<Ours<'text>> {
    let command = hook.get("command").and_then(Node::text).filter(|command| program_of(host, command).is_some())?;
    let shared = around.iter().find(|(container, _)| container.parts().len() > 1).or(around.last());
    shared.map(|(container, position)| Ours { command, container, position: *position })
}

/// The commands of ours that stand in a text.
pub(super) fn commands(host: Host, text: &str) -> Vec<String> {
    Node::parse(text).map(|root| ours(host, &root).into_iter().map(|ours| ours.command.to_owned()).collect()).unwrap_or_default()
}

/// The text without what is ours.
pub(super) fn without(host: Host, text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let Some(root) = Node::parse(&text) else { return text };
        // From the end, so that what is left of a list is as it was before its end grew.
        let Some(ours) = ours(host, &root).pop() else { return text };
        text = edit::remove(&text, ours.container, ours.position);
    }
}

/// Whether a text has these hooks of ours and no others, wherever they stand in their lists and however they are written.
pub(super) fn holds(host: Host, text: &str, entries: &[Entry]) -> bool {
    let Ok(root) = serde_json::from_str::<Value>(text) else { return false };
    let is_there = |entry: &Entry| root["hooks"][entry.event].as_array().is_some_and(|items| items.contains(&entry.value(host)));
    commands(host, text).len() == entries.len() && entries.iter().all(is_there)
}

/// Whether hooks can be entered there; the sentence says why not.
pub(super) fn check(text: &str) -> Result<(), &'static str> {
    let root = Node::parse(text).ok_or("it is not JSON")?;
    if !matches!(root.kind, edit::Kind::Object(_)) {
        return Err("it is no JSON object");
    }
    let Some(hooks) = root.get("hooks") else { return Ok(()) };
    if !matches!(hooks.kind, edit::Kind::Object(_)) {
        return Err("its `hooks` is no object");
    }
    let are_lists = hooks.members().iter().all(|member| matches!(member.value.kind, edit::Kind::Array(_)));
    if are_lists { Ok(()) } else { Err("an event in its `hooks` has no list") }
}

/// The text with these hooks, each at the end of its event's list.
pub(super) fn with(host: Host, text: &str, entries: &[Entry]) -> Option<String> {
    let mut text = text.to_owned();
    for entry in entries {
        let root = Node::parse(&text)?;
        let value = entry.value(host);
        text = match (root.get("hooks"), root.get("hooks").and_then(|hooks| hooks.get(entry.event))) {
            (_, Some(list)) => edit::append(&text, list, None, &value),
            (Some(hooks), None) => edit::append(&text, hooks, Some(entry.event), &json!([value])),
            (None, _) => edit::append(&text, &root, Some("hooks"), &json!({entry.event: [value]})),
        };
    }
    Some(text)
}

/// What a file of the host's holds before anything is entered.
pub(super) fn fresh(host: Host) -> &'static str {
    match host {
        Host::ClaudeCode | Host::Codex => "{\n}\n",
        Host::Cursor => "{\n  \"version\": 1\n}\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_is_told_from_what_is_not() {
        for (command, program) in [
            ("proctor hook claude-code pre-edit", Some("proctor")),
            ("/a/proctor hook claude-code session-start", Some("/a/proctor")),
            ("'/a b/it'\\''s/proctor' hook claude-code pre-read --read-budget", Some("/a b/it's/proctor")),
            ("proctor hook codex pre-edit", None),
            ("proctor hook claude-code pre-edit; rm -rf x", None),
            ("echo proctor hook claude-code pre-edit", None),
            ("logos hook claude-code pre-edit", None),
            ("proctor", None),
        ] {
            assert_eq!(program_of(Host::ClaudeCode, command).as_deref(), program, "{command}");
        }
    }

    #[test]
    fn removing_undoes_entering_whatever_was_there() {
        let other =
            r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}], "Stop": []}, "b": 1}"#;
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(other).unwrap()).unwrap();
        for host in Host::ALL {
            let (few, all) = (Entry::all(host, "proctor", false), Entry::all(host, "proctor", true));
            for text in [other, &pretty, "{\"a\": 1}", "{\n\t\"a\": [1,  2]\n}\n"] {
                let once = with(host, text, &all).unwrap();

                assert_eq!(without(host, &once), text, "{host:?}");
                assert_eq!(commands(host, &once).len(), 3);
                assert_eq!(check(&once), Ok(()));
                assert_ne!(with(host, text, &few).unwrap(), once);
            }
        }
    }

    #[test]
    fn a_hook_of_somebody_else_in_our_group_stays() {
        let text =
            r#"{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[{"command":"proctor hook claude-code pre-edit"},{"command":"x"}]}]}}"#;

        assert_eq!(without(Host::ClaudeCode, text), r#"{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[{"command":"x"}]}]}}"#);
    }

    #[test]
    fn what_has_another_form_is_refused() {
        for (text, expected) in [
            ("{\"a\":1,}", "it is not JSON"),
            ("[]", "it is no JSON object"),
            ("{\"hooks\":[]}", "its `hooks` is no object"),
            ("{\"hooks\":{\"Stop\":{}}}", "an event in its `hooks` has no list"),
        ] {
            assert_eq!(check(text), Err(expected));
        }
    }
}
