//! How `codex` is called.

use std::ffi::OsString;

use super::account;
use super::schema::strict;
use crate::agent::{Access, AgentCommand, AgentFiles, AgentTask, EngineSetup, Input, Permission, Variable};
use crate::tools::ToolServer;

/// The variable that says where the provider is. The client has a setting of this name instead.
const PROVIDER: &str = "OPENAI_BASE_URL";
/// The file of the schema, among the engine's own.
const SCHEMA: &str = "schema.json";

/// Settings of every session: nothing is sent but requests to the model, nobody is asked, and without a network it gives up
/// after as many attempts as with one.
const ALWAYS: [&str; 6] = [
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    "feedback.enabled=false",
    "otel.metrics_exporter=\"none\"",
    "features.unbounded_connection_retries=false",
    "approval_policy=\"never\"",
];

/// What the user has at their account or in their home, and what goes on by itself or works where nobody counts it.
const ALONE: [&str; 5] = [
    "skills.include_instructions=false",
    "features.apps=false",
    "features.plugins=false",
    "features.goals=false",
    "features.multi_agent=false",
];

/// What the session host starts for this task.
pub(super) fn command(setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, variable: &Variable<'_>) -> AgentCommand {
    let mut argv = Arguments(vec![setup.program.clone().into()]);
    argv.0.extend(setup.arguments.iter().map(OsString::from));
    argv.words(&["exec"]);
    argv.words(if task.resume.is_some() { &["resume"] } else { &[] });
    // It may run where there is no repository: it is Proctor that knows what is lost.
    argv.words(&["--json", "--skip-git-repo-check"]);
    ALWAYS.iter().for_each(|setting| argv.setting(setting));
    if !setup.inherit {
        ALONE.iter().for_each(|setting| argv.setting(setting));
        if let Some(address) = variable(PROVIDER).and_then(|address| address.into_string().ok()).filter(|address| !address.is_empty()) {
            argv.setting(&format!("openai_base_url={}", toml_edit::Value::from(address)));
        }
    }
    access(&mut argv, task.access, setup.permission);
    if !task.system.is_empty() {
        // Beside the client's own instructions about its tools. There is no file for it.
        argv.setting(&format!("developer_instructions={}", toml_edit::Value::from(task.system.as_str())));
    }
    if let Some(tools) = &files.tools {
        session_tools(&mut argv, tools);
    }
    if let Some(model) = &task.model {
        argv.pair("--model", model);
    }
    if task.schema.is_some() {
        argv.pair("--output-schema", files.own.join(SCHEMA));
    }
    argv.0.extend(task.resume.iter().map(OsString::from));
    // The prompt is read from the standard input.
    argv.words(&["-"]);
    AgentCommand {
        argv: argv.0,
        environment: environment(setup, files, variable),
        files: task.schema.iter().map(|schema| (SCHEMA.to_owned(), strict(schema))).collect(),
        input: Input::Prompt,
    }
}

/// The server of the session's tools, which nobody is asked about.
fn session_tools(argv: &mut Arguments, tools: &ToolServer) {
    let server = format!("mcp_servers.{}", ToolServer::NAME);
    argv.setting(&format!("{server}.command={}", toml_edit::Value::from(tools.program.as_str())));
    let arguments: toml_edit::Array = tools.arguments.iter().map(String::as_str).collect();
    argv.setting(&format!("{server}.args={arguments}"));
    argv.setting(&format!("{server}.default_tools_approval_mode=\"approve\""));
}

/// The client's own box, which holds for what its commands write. Within a box that lets an agent write, one of its own can't
/// always be made, and would forbid what that allows.
fn access(argv: &mut Arguments, access: Access, permission: Permission) {
    match (access, permission) {
        (Access::ReadOnly, _) => {
            argv.setting("sandbox_mode=\"read-only\"");
            argv.setting("web_search=\"disabled\"");
        }
        (Access::Full, Permission::Bypass) => argv.words(&["--dangerously-bypass-approvals-and-sandbox"]),
        (Access::Full, Permission::Ask) => argv.setting("sandbox_mode=\"workspace-write\""),
    }
}

fn environment(setup: &EngineSetup, files: &AgentFiles, variable: &Variable<'_>) -> Vec<(OsString, OsString)> {
    let home = (!setup.inherit).then(|| (account::FOLDER.into(), account::own_home(files).into()));
    let key = account::provider_key(variable).map(|key| ("CODEX_API_KEY".into(), key));
    home.into_iter().chain(key).collect()
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn pair(&mut self, flag: &str, value: impl Into<OsString>) {
        self.0.push(flag.into());
        self.0.push(value.into());
    }

    fn setting(&mut self, setting: &str) {
        self.pair("-c", setting);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::agent::EngineKind;

    fn files() -> AgentFiles {
        let place = |name: &str| PathBuf::from("/s").join(name);
        AgentFiles { system: place("system.md"), prompt: place("prompt.md"), conversations: "/c".into(), own: place("own"), tools: None }
    }

    fn task(access: Access) -> AgentTask {
        AgentTask {
            system: "You are \"examined\".\nIt is 5 o'clock.".to_owned(),
            prompt: "Do it.".to_owned(),
            resume: None,
            model: Some("gpt-5".to_owned()),
            schema: Some(r#"{"type":"object","properties":{"passed":{"type":"boolean"}}}"#.to_owned()),
            max_turns: Some(20),
            max_cost: None,
            access,
        }
    }

    fn called(task: &AgentTask, inherit: bool, permission: Permission) -> (String, AgentCommand) {
        let setup = EngineSetup { inherit, permission, ..EngineSetup::usual(EngineKind::Codex) };
        let variables = |name: &str| match name {
            "HOME" => Some("/nowhere".into()),
            "OPENAI_API_KEY" => Some("key".into()),
            PROVIDER => Some("http://127.0.0.1:1/v1".into()),
            _ => None,
        };
        let command = command(&setup, task, &files(), &variables);
        let words: Vec<_> = command.argv.iter().map(|word| word.to_str().unwrap()).collect();
        (words.join(" "), command)
    }

    #[test]
    fn one_that_only_looks_is_in_a_box_that_can_not_be_written_whatever_is_permitted() {
        for permission in [Permission::Ask, Permission::Bypass] {
            let (words, _) = called(&task(Access::ReadOnly), true, permission);

            assert!(words.contains("-c sandbox_mode=\"read-only\" -c web_search=\"disabled\""), "{words}");
            assert!(!words.contains("--dangerously"), "{words}");
        }
    }

    #[test]
    fn one_that_works_is_in_the_clients_box_unless_it_needs_none() {
        let (asking, _) = called(&task(Access::Full), false, Permission::Ask);
        let (boxed, _) = called(&task(Access::Full), false, Permission::Bypass);

        assert!(asking.contains("sandbox_mode=\"workspace-write\"") && !asking.contains("--dangerously"), "{asking}");
        assert!(boxed.contains("--dangerously-bypass-approvals-and-sandbox") && !boxed.contains("sandbox_mode"), "{boxed}");
    }

    #[test]
    fn a_conversation_is_gone_on_with_by_its_id() {
        let resuming = AgentTask { resume: Some("01a2".to_owned()), ..task(Access::Full) };

        let (fresh, _) = called(&task(Access::Full), false, Permission::Bypass);
        let (going_on, _) = called(&resuming, false, Permission::Bypass);

        assert!(fresh.starts_with("codex exec --json --skip-git-repo-check -c "), "{fresh}");
        assert!(fresh.ends_with("--model gpt-5 --output-schema /s/own/schema.json -"), "{fresh}");
        assert!(going_on.starts_with("codex exec resume --json "), "{going_on}");
        assert!(going_on.ends_with("--output-schema /s/own/schema.json 01a2 -"), "{going_on}");
    }

    #[test]
    fn the_users_own_settings_are_taken_in_only_when_asked() {
        let home = |command: &AgentCommand| command.environment.iter().find(|(name, _)| name == "CODEX_HOME").cloned();

        let (alone, own) = called(&task(Access::Full), false, Permission::Ask);
        let (inheriting, theirs) = called(&task(Access::Full), true, Permission::Ask);

        assert!(alone.contains("features.plugins=false") && alone.contains("openai_base_url=\"http://127.0.0.1:1/v1\""), "{alone}");
        assert!(!inheriting.contains("features.plugins") && !inheriting.contains("openai_base_url"), "{inheriting}");
        assert_eq!((home(&own), home(&theirs)), (Some(("CODEX_HOME".into(), "/c/codex".into())), None));
        assert!(own.environment.contains(&("CODEX_API_KEY".into(), "key".into())));
    }

    #[test]
    fn the_sessions_tools_are_a_server_that_nobody_is_asked_about() {
        let files = AgentFiles { tools: ToolServer::of("/bin/a \"proctor\"".as_ref(), "/s".as_ref()), ..files() };
        let setup = EngineSetup::usual(EngineKind::Codex);

        let command = command(&setup, &task(Access::ReadOnly), &files, &|_| None);

        let settings = command.argv.iter().filter_map(|word| word.to_str()?.strip_prefix("mcp_servers."));
        let document: toml_edit::DocumentMut = settings.map(|setting| format!("{setting}\n")).collect::<String>().parse().unwrap();
        let server = &document["proctor"];
        assert_eq!(server["command"].as_str(), Some("/bin/a \"proctor\""));
        let arguments: Vec<_> = server["args"].as_array().unwrap().iter().filter_map(|argument| argument.as_str()).collect();
        assert_eq!(arguments, ["tools", "/s/engine/tools.sock"]);
        assert_eq!(server["default_tools_approval_mode"].as_str(), Some("approve"));
    }

    #[test]
    fn texts_are_settings_that_can_be_read_back_and_the_schema_is_a_file() {
        let (_, command) = called(&task(Access::Full), false, Permission::Ask);

        let setting = command.argv.iter().find(|word| word.to_string_lossy().starts_with("developer_instructions=")).unwrap();
        let document: toml_edit::DocumentMut = setting.to_str().unwrap().parse().unwrap();
        assert_eq!(document["developer_instructions"].as_str(), Some("You are \"examined\".\nIt is 5 o'clock."));
        let [(name, schema)] = command.files.as_slice() else { panic!("{:?}", command.files) };
        assert_eq!(name, "schema.json");
        assert!(schema.contains(r#""additionalProperties":false"#), "{schema}");
    }
}
