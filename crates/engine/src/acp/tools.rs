//! The calls of one session, which agents tell piece by piece: first that there is one, then what it is given, then how it went.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::update::{CommandEnded, Printed, ToolChange};
use super::wire::parsed;
use super::words::append;
use crate::agent::AgentEvent;
use crate::tools::ToolServer;

/// How many calls are remembered. An agent that makes more begins anew, and may be told of a call twice.
const MOST: usize = 4096;
/// Of how many commands is remembered what they printed.
const COMMANDS: usize = 64;
/// Bytes kept of what one printed.
const PRINTED: usize = 16 * 1024;

/// The calls that were told of.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: BTreeMap<String, Call>,
    /// What commands printed, by their terminals.
    commands: BTreeMap<String, String>,
}

/// One call, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    name: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    input: Option<Value>,
    output: Option<String>,
    terminal: Option<String>,
    step: Step,
    is_refused: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    /// Its input may still be coming.
    #[default]
    Begun,
    /// It was told of.
    Told,
    /// Its result was told of.
    Over,
}

impl Tools {
    pub(super) fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    /// Takes in that a command has ended that was run for the agent.
    pub(super) fn command_ended(&mut self, params: &str) {
        if let Some(CommandEnded { terminal_id, output }) = parsed(params) {
            self.printed(&Printed { terminal: terminal_id, data: output });
        }
    }

    fn printed(&mut self, part: &Printed) {
        if self.commands.len() >= COMMANDS && !self.commands.contains_key(&part.terminal) {
            self.commands.clear();
        }
        append(self.commands.entry(part.terminal.clone()).or_default(), &part.data, PRINTED);
    }

    /// Whether a call is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.calls.values().any(|call| call.step != Step::Over && !call.is_refused)
    }

    /// Notes that a call may not be made, of which some agents tell no more.
    pub(super) fn refuse(&mut self, id: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.is_refused = true;
        }
    }

    /// What a call is with this change, which is not taken in.
    pub(super) fn changed(&self, change: &ToolChange) -> Call {
        let mut call = self.calls.get(&change.tool_call_id).cloned().unwrap_or_default();
        call.learn(change.clone());
        call
    }

    /// Takes in what is new about a call. Returns whether a result came.
    pub(super) fn take(&mut self, change: ToolChange, is_new: bool, events: &mut Vec<AgentEvent>) -> bool {
        if self.calls.len() >= MOST && !self.calls.contains_key(&change.tool_call_id) {
            self.calls.clear();
        }
        let has_input = change.raw_input.as_ref().is_some_and(is_something);
        let failed = match change.status.as_deref() {
            Some("completed") => Some(false),
            Some("failed") => Some(true),
            _ => None,
        };
        // The input of one that is announced and not begun may be a part of it.
        let is_whole = failed.is_some() || change.status.as_deref() == Some("in_progress") || (has_input && !is_new);
        let id = change.tool_call_id.clone();
        if let Some(part) = change.printed() {
            self.printed(part);
        }
        let call = self.calls.entry(id.clone()).or_default();
        call.learn(change);
        if is_whole {
            call.tell(&id, events);
        }
        let Some(failed) = failed.filter(|_| call.step == Step::Told) else { return false };
        call.step = Step::Over;
        let printed = || call.terminal.as_ref().and_then(|terminal| self.commands.get(terminal)).cloned();
        let text = call.output.take().filter(|text| !text.is_empty()).or_else(printed).unwrap_or_default();
        events.push(AgentEvent::ToolResult { id, failed, text });
        true
    }

    /// Tells of a call as it is known now.
    pub(super) fn tell(&mut self, id: &str, events: &mut Vec<AgentEvent>) {
        if let Some(call) = self.calls.get_mut(id) {
            call.tell(id, events);
        }
    }

    /// Tells of all calls that were not told of yet.
    pub(super) fn tell_all(&mut self, events: &mut Vec<AgentEvent>) {
        for (id, call) in &mut self.calls {
            call.tell(id, events);
        }
    }
}

impl Call {
    /// What kind of tool the agent says that it is.
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    /// Whether it is one of a tool of the session, which each agent says in its own way: the protocol has none.
    ///
    /// INVARIANT: no model can have another tool taken for one of these. A title may be a model's own words, so it counts only
    /// where the agent's program says that the tool runs nothing and writes nothing, or names the server.
    pub(super) fn is_of_session_tool(&self) -> bool {
        let server = ToolServer::NAME;
        let (long, dotted) = (format!("mcp__{server}__"), format!("mcp.{server}."));
        let (short, behind) = (format!("{server}_"), format!(" ({server} MCP Server)"));
        let by_name = self.name.as_deref().is_some_and(ToolServer::has);
        let titled = |before: &str, after: &str| self.title.as_deref().is_some_and(|title| is_tool_between(title, before, after));
        let is_apart = matches!(self.kind(), "" | "other");
        let names_server = self.input.as_ref().is_some_and(|input| input["server"] == server && input["tool"].is_string());
        by_name || (is_apart && (titled(&long, "") || titled(&short, "") || titled("", &behind))) || (names_server && titled(&dotted, ""))
    }

    fn learn(&mut self, change: ToolChange) {
        let output = change.output();
        self.output = output.or(self.output.take());
        self.terminal = change.terminal().map(str::to_owned).or(self.terminal.take());
        self.name = change.name.or(self.name.take());
        self.title = change.title.or(self.title.take());
        self.kind = change.kind.or(self.kind.take());
        self.input = change.raw_input.filter(is_something).or(self.input.take());
    }

    fn tell(&mut self, id: &str, events: &mut Vec<AgentEvent>) {
        if self.step != Step::Begun {
            return;
        }
        self.step = Step::Told;
        let kind = self.kind.as_ref().filter(|kind| !kind.is_empty() && *kind != "other");
        let name = self.name.as_ref().or(kind).or(self.title.as_ref());
        let input = match (&self.input, &self.title) {
            (Some(input), _) => input.to_string(),
            // All that is known of what it does.
            (None, Some(title)) => json!({ "title": title }).to_string(),
            (None, None) => "{}".to_owned(),
        };
        events.push(AgentEvent::ToolCall { id: id.to_owned(), name: name.cloned().unwrap_or_else(|| "tool".to_owned()), input });
    }
}

/// Whether a text is the name of a tool between these.
fn is_tool_between(text: &str, before: &str, after: &str) -> bool {
    let tool = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    tool.is_some_and(|tool| !tool.is_empty() && tool.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
}

fn is_something(input: &Value) -> bool {
    match input {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::parsed;
    use super::*;

    fn told(changes: &[(bool, &str)]) -> Vec<AgentEvent> {
        let (mut tools, mut events) = (Tools::default(), Vec::new());
        for (is_new, text) in changes {
            tools.take(parsed(text).unwrap(), *is_new, &mut events);
        }
        events
    }

    fn call(id: &str, name: &str, input: &str) -> AgentEvent {
        AgentEvent::ToolCall { id: id.to_owned(), name: name.to_owned(), input: input.to_owned() }
    }

    fn result(id: &str, failed: bool, text: &str) -> AgentEvent {
        AgentEvent::ToolResult { id: id.to_owned(), failed, text: text.to_owned() }
    }

    #[test]
    fn a_call_is_told_of_when_its_input_is_there_and_only_once() {
        let events = told(&[
            (true, r#"{"toolCallId":"a","title":"Terminal","name":"Bash","kind":"execute","status":"pending","rawInput":{}}"#),
            (false, r#"{"toolCallId":"a","rawInput":{"command":"ls"},"title":"ls"}"#),
            (false, r#"{"toolCallId":"a","rawInput":{"command":"ls","description":"list"},"title":"ls"}"#),
            (false, r#"{"toolCallId":"a","content":[{"type":"content","content":{"type":"text","text":"one"}}]}"#),
            (false, r#"{"toolCallId":"a","status":"completed","rawOutput":"one\ntwo"}"#),
            (false, r#"{"toolCallId":"a","status":"failed"}"#),
        ]);

        assert_eq!(events, [call("a", "Bash", r#"{"command":"ls"}"#), result("a", false, "one\ntwo")]);
    }

    #[test]
    fn a_call_that_was_never_announced_is_told_of_with_its_result() {
        let events = told(&[
            (false, r#"{"toolCallId":"a","status":"failed","title":"make","kind":"execute","content":[]}"#),
            (
                true,
                r#"{"toolCallId":"b","title":"Edit x","kind":"other","status":"completed","content":[{"type":"diff","path":"/x","newText":""}]}"#,
            ),
            (true, r#"{"toolCallId":"c","title":"T","status":"completed","rawInput":{"a":1},"rawOutput":{"code":0}}"#),
        ]);

        assert_eq!(
            events,
            [
                call("a", "execute", r#"{"title":"make"}"#),
                result("a", true, ""),
                call("b", "Edit x", r#"{"title":"Edit x"}"#),
                result("b", false, "/x"),
                call("c", "T", r#"{"a":1}"#),
                result("c", false, r#"{"code":0}"#),
            ]
        );
    }

    #[test]
    fn a_call_is_one_of_a_session_tool_where_the_agents_program_says_so() {
        let is = |text: &str| Tools::default().changed(&parsed(text).unwrap()).is_of_session_tool();

        for own in [
            r#"{"toolCallId":"a","name":"mcp__proctor__note","title":"x","kind":"other"}"#,
            r#"{"toolCallId":"a","title":"proctor_submit_result","kind":"other"}"#,
            r#"{"toolCallId":"a","title":"submit_result (proctor MCP Server)","kind":"other"}"#,
            r#"{"toolCallId":"a","title":"mcp.proctor.note","kind":"execute","rawInput":{"server":"proctor","tool":"note"}}"#,
        ] {
            assert!(is(own), "{own}");
        }
        for other in [
            r#"{"toolCallId":"a"}"#,
            r#"{"toolCallId":"a","name":"mcp__other__note","title":"mcp__other__note","kind":"other"}"#,
            r#"{"toolCallId":"a","name":"Bash","title":"proctor_note","kind":"execute"}"#,
            r#"{"toolCallId":"a","title":"rm -rf x # (proctor MCP Server)","kind":"other"}"#,
            r#"{"toolCallId":"a","title":"mcp.proctor.note","kind":"execute","rawInput":{"command":"mcp.proctor.note"}}"#,
            r#"{"toolCallId":"a","title":"rm -rf x","kind":"execute","rawInput":{"server":"proctor","tool":"note"}}"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn one_that_makes_calls_without_end_is_not_remembered_without_end() {
        let (mut tools, mut events) = (Tools::default(), Vec::new());
        for number in 0..=2 * MOST {
            tools.take(parsed(&format!(r#"{{"toolCallId":"{number}","title":"t"}}"#)).unwrap(), true, &mut events);
        }

        assert!(tools.calls.len() <= MOST && tools.is_busy());
    }
}
