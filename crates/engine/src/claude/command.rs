//! How `claude` is called.

use std::ffi::OsString;

use serde_json::{Map, Value, json};

use crate::agent::{Access, AgentCommand, AgentFiles, AgentTask, Arguments, EngineSetup, Input, Permission};
use crate::tools::ToolServer;

/// Tools that only look. A tool that isn't in the list does not exist in the session, so this holds whatever may be done
/// without asking.
const READING_TOOLS: &str = "Read,Grep,Glob";

/// Tools that ask whoever is at the terminal.
const ASKING_TOOLS: &str = "AskUserQuestion,EnterPlanMode,ExitPlanMode";

/// Variables of every session: nothing is sent but requests to the model, nothing is replaced while it runs.
const QUIET: [(&str, &str); 4] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
];

/// The file that names the server of the session's tools, among the engine's own.
const SERVERS: &str = "servers.json";

/// How often a request is sent again, where the client's own ten take two minutes and a half. A provider that is overloaded
/// for longer parks the run instead, which costs no attempt. A login that is refused twice is given up before that, by the
/// reader.
const RETRIES: &str = "3";

/// What the session host starts for this task.
pub(super) fn command(setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, is_root: bool) -> AgentCommand {
    let mut argv = Arguments(vec![setup.program.clone().into()]);
    argv.words(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    // What it would ask a person comes to its reader. The tools that it offers because of that are of no use: what they ask,
    // nobody answers.
    argv.words(&["--permission-prompt-tool", "stdio", "--disallowedTools", ASKING_TOOLS]);
    // A long answer is no silence. The pieces are passed over as they come, and not kept.
    argv.words(&["--include-partial-messages"]);
    // Appended, so that the client's own instructions about its tools stay; as a file, since an argument has a limit.
    argv.pair("--append-system-prompt-file", &files.system);
    let values = [
        ("--resume", task.resume.clone()),
        ("--model", task.model.clone()),
        ("--fallback-model", setup.fallback_model.clone()),
        ("--effort", setup.effort.clone()),
        ("--json-schema", task.schema.clone()),
        ("--max-turns", task.max_turns.map(|turns| turns.to_string())),
        ("--max-budget-usd", task.max_cost.map(|cost| cost.to_string())),
    ];
    for (flag, value) in values {
        if let Some(value) = value {
            argv.pair(flag, value);
        }
    }
    let only_looks = task.access == Access::ReadOnly;
    if only_looks {
        // Skills can run commands while they are read.
        argv.words(&["--tools", READING_TOOLS, "--disable-slash-commands"]);
    }
    if only_looks || !setup.inherit {
        // Also when the user's own tools are taken in: a server's tools are in no list, and may write.
        argv.words(&["--strict-mcp-config"]);
    }
    if !setup.inherit {
        // The repository's own instructions are part of the work; the user's are not.
        argv.words(&["--setting-sources", "project"]);
    }
    if setup.permission == Permission::Bypass {
        argv.words(&["--dangerously-skip-permissions"]);
    }
    let servers = servers(setup, task.access, files.tools.as_ref());
    if !servers.is_empty() {
        argv.pair("--mcp-config", files.own.join(SERVERS));
    }
    if files.tools.is_some() {
        // They are asked about by nobody, whatever the rest of them may do.
        argv.pair("--allowedTools", format!("mcp__{}", ToolServer::NAME));
    }
    let files = if servers.is_empty() { Vec::new() } else { vec![(SERVERS.to_owned(), json!({ "mcpServers": servers }).to_string())] };
    AgentCommand { argv: argv.0, environment: environment(setup, is_root), files, input: Input::Spoken }
}

/// The servers of a session. One that only looks has none but ours: what the tools of others do, nobody knows.
fn servers(setup: &EngineSetup, access: Access, tools: Option<&ToolServer>) -> Map<String, Value> {
    let mut servers = match access {
        Access::ReadOnly => Map::new(),
        Access::Full => setup.servers.clone(),
    };
    for server in servers.values_mut().filter_map(Value::as_object_mut).filter(|server| server.contains_key("url")) {
        // Without it the client takes every server for a program.
        server.entry("type").or_insert_with(|| "http".into());
    }
    if let Some(tools) = tools {
        // Its tools are there from the first turn, and not to be searched for.
        let server = json!({ "type": "stdio", "command": tools.program, "args": tools.arguments, "alwaysLoad": true });
        servers.insert(ToolServer::NAME.to_owned(), server);
    }
    servers
}

fn environment(setup: &EngineSetup, is_root: bool) -> Vec<(OsString, OsString)> {
    let mut variables = QUIET.to_vec();
    variables.push(("CLAUDE_CODE_MAX_RETRIES", RETRIES));
    if !setup.inherit {
        variables.push(("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"));
    }
    if is_root && setup.permission == Permission::Bypass {
        // Without it the client refuses to let root act without asking.
        variables.push(("IS_SANDBOX", "1"));
    }
    variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::agent::EngineKind;
    use proctor_domain::MicroDollars;

    use super::*;

    fn called(access: Access, inherit: bool, permission: Permission, is_root: bool) -> (String, Vec<String>) {
        let setup = EngineSetup {
            inherit,
            permission,
            effort: Some("high".to_owned()),
            fallback_model: Some("sonnet".to_owned()),
            ..EngineSetup::usual(EngineKind::Claude)
        };
        let task = AgentTask {
            system: "You are examined.".to_owned(),
            prompt: "Do it.".to_owned(),
            resume: Some("4f9e".to_owned()),
            model: Some("opus".to_owned()),
            schema: Some("{}".to_owned()),
            max_turns: Some(20),
            max_cost: Some(MicroDollars::dollars(2)),
            access,
        };
        let place = |name: &str| PathBuf::from("/s").join(name);
        let files = AgentFiles {
            system: place("system.md"),
            prompt: place("prompt.md"),
            conversations: place("c"),
            own: place("own"),
            tools: None,
        };
        let command = command(&setup, &task, &files, is_root);
        let words: Vec<_> = command.argv.into_iter().map(|word| word.into_string().unwrap()).collect();
        let names = command.environment.into_iter().map(|(name, _)| name.into_string().unwrap()).collect();
        (words.join(" "), names)
    }

    const ALWAYS: &str = "claude -p --input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio \
                          --disallowedTools AskUserQuestion,EnterPlanMode,ExitPlanMode --include-partial-messages --append-system-prompt-file /s/system.md --resume 4f9e \
                          --model opus --fallback-model sonnet --effort high --json-schema {} --max-turns 20 --max-budget-usd 2.00";

    #[test]
    fn one_that_only_looks_has_no_tool_that_writes_whatever_it_inherits() {
        let (words, _) = called(Access::ReadOnly, true, Permission::Bypass, false);

        let tools = "--tools Read,Grep,Glob --disable-slash-commands --strict-mcp-config";
        assert_eq!(words, format!("{ALWAYS} {tools} --dangerously-skip-permissions"));
    }

    #[test]
    fn the_users_own_settings_are_taken_in_only_when_asked() {
        let alone = called(Access::Full, false, Permission::Ask, true);
        let inheriting = called(Access::Full, true, Permission::Ask, true);

        assert_eq!(alone.0, format!("{ALWAYS} --strict-mcp-config --setting-sources project"));
        assert_eq!(inheriting.0, ALWAYS);
        assert!(alone.1.contains(&"CLAUDE_CODE_DISABLE_AUTO_MEMORY".to_owned()));
        assert!(!inheriting.1.contains(&"CLAUDE_CODE_DISABLE_AUTO_MEMORY".to_owned()));
    }

    #[test]
    fn the_sessions_tools_are_a_server_that_needs_no_leave() {
        let files = AgentFiles {
            system: "/s/system.md".into(),
            prompt: "/s/prompt.md".into(),
            conversations: "/c".into(),
            own: "/s/engine".into(),
            tools: ToolServer::of("/bin/proctor".as_ref(), "/s".as_ref()),
        };
        let setup = EngineSetup::usual(EngineKind::Claude);
        let task = AgentTask {
            system: String::new(),
            prompt: String::new(),
            resume: None,
            model: None,
            schema: None,
            max_turns: None,
            max_cost: None,
            access: Access::ReadOnly,
        };

        let command = command(&setup, &task, &files, false);

        let last: Vec<_> = command.argv.iter().rev().take(4).rev().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(last, ["--mcp-config", "/s/engine/servers.json", "--allowedTools", "mcp__proctor"]);
        let [(name, text)] = command.files.as_slice() else { panic!("{:?}", command.files) };
        let servers: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(name, "servers.json");
        assert_eq!(servers["mcpServers"]["proctor"]["args"], json!(["tools", "/s/engine/tools.sock"]));
    }

    #[test]
    fn a_box_is_claimed_only_where_root_may_act_without_asking() {
        let claimed = |permission, is_root| called(Access::Full, false, permission, is_root).1.contains(&"IS_SANDBOX".to_owned());

        assert_eq!(
            [claimed(Permission::Ask, true), claimed(Permission::Bypass, false), claimed(Permission::Bypass, true)],
            [false, false, true]
        );
    }
}
