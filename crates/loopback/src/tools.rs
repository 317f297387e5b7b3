//! Which tool of the client does what a scripted call asks.
//!
//! Clients name the same tool differently, and a script is to work with all of them: what a client calls its shell is
//! known here and nowhere else.

use serde_json::{Value, json};

use crate::script::Call;
use crate::text::Placeholders;

/// A tool that the client offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    /// The group that it is offered in, where the format has groups.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) takes: Takes,
}

/// What a tool is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Json,
    Text,
}

/// What a tool is given in a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Json(Value),
    Text(String),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) input: Input,
}

impl Tool {
    /// A tool that stands alone and takes JSON.
    pub(crate) fn plain(name: &str) -> Self {
        Self { namespace: None, name: name.to_owned(), takes: Takes::Json }
    }

    /// As a script and the list of requests name it.
    pub(crate) fn full_name(&self) -> String {
        match &self.namespace {
            None => self.name.clone(),
            Some(namespace) => format!("{}__{}", namespace.trim_end_matches('_'), self.name),
        }
    }

    fn call(&self, input: Value) -> ToolCall {
        let input = match self.takes {
            Takes::Json => Input::Json(input),
            Takes::Text => Input::Text(as_text(input)),
        };
        ToolCall { namespace: self.namespace.clone(), name: self.name.clone(), input }
    }
}

impl Input {
    /// As one text, for the formats that send it so.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Json(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// As an object, for the formats that send it so.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Text(text) => json!({"input": text}),
        }
    }
}

/// The text for a tool that takes one: what a script puts under `input`, for lack of another name.
fn as_text(input: Value) -> String {
    match &input["input"] {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => input.to_string(),
    }
}

/// The tool by which some models of Codex call all others: it runs a program.
const CODE: &str = "exec";

/// What a shell tool is given for a command.
type Given = fn(&str) -> Value;

/// Tools that run a command, by client.
const SHELLS: [(&str, Given); 7] = [
    // Claude Code.
    ("Bash", described),
    // OpenCode.
    ("bash", described),
    // Codex, by its model and version.
    ("exec_command", |command| json!({"cmd": command})),
    ("shell_command", |command| json!({"command": command})),
    ("shell", |command| json!({"command": ["bash", "-lc", command]})),
    (CODE, |command| code("exec_command", &json!({"cmd": command}), ".output")),
    // Gemini CLI.
    ("run_shell_command", described),
];

/// Tools that write a file, by client, and how each calls the path.
const WRITERS: [(&str, &str); 3] = [("Write", "file_path"), ("write", "filePath"), ("write_file", "file_path")];

/// A program that calls a tool and prints `part` of what it returns.
fn code(tool: &str, input: &Value, part: &str) -> Value {
    json!({"input": format!("const result = await tools.{tool}({input});\ntext(result{part});\n")})
}

fn described(command: &str) -> Value {
    json!({"command": command, "description": "a scripted command"})
}

/// The tool of this name.
pub(crate) fn find<'a>(tools: &'a [Tool], name: &str) -> Option<&'a Tool> {
    tools.iter().find(|tool| tool.full_name() == name)
}

/// The call that does what `call` asks; `None` when the client offers nothing for it.
pub(crate) fn resolve(call: &Call, tools: &[Tool], placeholders: Placeholders) -> Option<ToolCall> {
    match call {
        Call::Named { name, input } => Some(named(tools, name, placeholders.fill_value(input))),
        Call::Shell(command) => shell(tools, &placeholders.fill(command)),
        Call::Write { path, content } => {
            let (path, content) = (placeholders.fill(path), placeholders.fill(content));
            let writer = WRITERS.into_iter().find_map(|(name, key)| Some((find(tools, name)?, key)));
            match writer {
                Some((tool, key)) => Some(tool.call(json!({key: path, "content": content}))),
                None => shell(tools, &format!("printf %s {} > {}", quoted(&content), quoted(&path))),
            }
        }
    }
}

/// A tool called by its name is called even when it is not on offer: what a client does then is worth a try.
fn named(tools: &[Tool], name: &str, input: Value) -> ToolCall {
    if let Some(tool) = find(tools, name).or_else(|| of_server(tools, name)) {
        return tool.call(input);
    }
    match find(tools, CODE).filter(|tool| tool.takes == Takes::Text && is_identifier(name)) {
        Some(program) => program.call(code(name, &input, "")),
        None => Tool::plain(name).call(input),
    }
}

/// The tool of an MCP server that Claude Code would call `mcp__SERVER__TOOL`. Others join the names in their own way.
fn of_server<'a>(tools: &'a [Tool], name: &str) -> Option<&'a Tool> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    [format!("{server}_{tool}"), format!("mcp_{server}_{tool}"), format!("{server}__{tool}"), tool.to_owned()]
        .iter()
        .find_map(|name| find(tools, name))
}

fn shell(tools: &[Tool], command: &str) -> Option<ToolCall> {
    SHELLS.into_iter().find_map(|(name, input)| Some(find(tools, name)?.call(input(command))))
}

/// Whether `name` can be called in a program as it stands.
fn is_identifier(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// One word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tools: &[Tool], call: &Call) -> Option<(String, Input)> {
        let call = resolve(call, tools, Placeholders { prompt: "", last_tool_output: "" })?;
        Some((Tool { namespace: call.namespace, name: call.name, takes: Takes::Json }.full_name(), call.input))
    }

    #[test]
    fn a_command_is_given_to_the_shell_that_the_client_has() {
        for (name, input) in [
            ("Bash", json!({"command": "ls", "description": "a scripted command"})),
            ("bash", json!({"command": "ls", "description": "a scripted command"})),
            ("exec_command", json!({"cmd": "ls"})),
            ("shell_command", json!({"command": "ls"})),
            ("shell", json!({"command": ["bash", "-lc", "ls"]})),
            ("run_shell_command", json!({"command": "ls", "description": "a scripted command"})),
        ] {
            let tools = [Tool::plain("other"), Tool::plain(name)];

            assert_eq!(call(&tools, &Call::Shell("ls".to_owned())), Some((name.to_owned(), Input::Json(input))));
        }
        assert_eq!(call(&[Tool::plain("other")], &Call::Shell("ls".to_owned())), None);
    }

    #[test]
    fn a_file_is_written_by_the_tool_for_it_or_by_a_shell() {
        let write = Call::Write { path: "it's".to_owned(), content: "$x".to_owned() };
        for (name, key) in WRITERS {
            let tools = [Tool::plain("Bash"), Tool::plain(name)];

            assert_eq!(call(&tools, &write), Some((name.to_owned(), Input::Json(json!({key: "it's", "content": "$x"})))));
        }
        let by_shell = json!({"cmd": r"printf %s '$x' > 'it'\''s'"});
        assert_eq!(call(&[Tool::plain("exec_command")], &write), Some(("exec_command".to_owned(), Input::Json(by_shell))));
        assert_eq!(call(&[], &write), None);
    }

    #[test]
    fn a_tool_of_a_server_is_found_under_every_name_that_clients_give_it() {
        let named = Call::Named { name: "mcp__srv__look".to_owned(), input: json!({"a": 1}) };
        let grouped = Tool { namespace: Some("mcp__srv".to_owned()), name: "look".to_owned(), takes: Takes::Json };
        let other = Tool { namespace: Some("mcp__srv2".to_owned()), name: "look".to_owned(), takes: Takes::Json };
        for tool in [
            grouped,
            Tool::plain("mcp__srv__look"),
            Tool::plain("srv_look"),
            Tool::plain("mcp_srv_look"),
            Tool::plain("srv__look"),
            Tool::plain("look"),
        ] {
            let expected = (tool.full_name(), Input::Json(json!({"a": 1})));

            assert_eq!(call(&[other.clone(), tool], &named), Some(expected));
        }
        assert_eq!(call(&[other], &named), Some(("mcp__srv__look".to_owned(), Input::Json(json!({"a": 1})))));
    }

    #[test]
    fn a_client_that_runs_programs_is_given_one_for_every_call() {
        let tools = [Tool { namespace: None, name: "exec".to_owned(), takes: Takes::Text }];
        let named = |name: &str| Call::Named { name: name.to_owned(), input: json!({"a": "b"}) };
        for (scripted, program) in [
            (Call::Shell("ls \"x\"".to_owned()), r#"const result = await tools.exec_command({"cmd":"ls \"x\""});|text(result.output);|"#),
            (named("mcp__srv__look"), r#"const result = await tools.mcp__srv__look({"a":"b"});|text(result);|"#),
        ] {
            assert_eq!(call(&tools, &scripted), Some(("exec".to_owned(), Input::Text(program.replace('|', "\n")))));
        }
        assert_eq!(call(&tools, &named("a.b")), Some(("a.b".to_owned(), Input::Json(json!({"a": "b"})))));
    }

    #[test]
    fn a_tool_that_takes_a_text_gets_one() {
        let patch = Tool { namespace: None, name: "apply_patch".to_owned(), takes: Takes::Text };
        for (input, expected) in [(json!({"input": "*** Begin"}), "*** Begin"), (json!({"a": 1}), r#"{"a":1}"#)] {
            let named = Call::Named { name: "apply_patch".to_owned(), input };

            assert_eq!(call(std::slice::from_ref(&patch), &named), Some(("apply_patch".to_owned(), Input::Text(expected.to_owned()))));
        }
    }
}
