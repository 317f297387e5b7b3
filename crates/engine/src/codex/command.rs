//! How `codex` is called.

use std::ffi::OsString;

use super::account;
use super::schema::strict;
use crate::agent::{Access, AgentCommand, AgentFiles, AgentTask, Arguments, EngineSetup, Input, Permission, Variable};
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

/// The first version whose app-server was tried and does all that is asked of it.
const FIRST_WITH_SERVER: [u64; 3] = [0, 120, 0];
/// A provider that is OpenAI with a key from a variable, as the app-server has to be told.
const KEYED: &str = "proctor";
const OPENAI: &str = "https://api.openai.com/v1";

/// How Codex is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `codex app-server`
    Server,
    /// `codex exec`, which is over with its prompt.
    Exec,
}

impl Way {
    /// One that is not known to be older has an app-server. That does not look at a key in a variable, unless a provider of its
    /// own says so; which provider it is, the user's own settings may say.
    fn of(setup: &EngineSetup, has_key: bool) -> Self {
        let numbers = |version: &str| version.split(['.', '-']).map_while(|number| number.parse().ok()).collect::<Vec<u64>>();
        let is_older = setup.version.as_deref().is_some_and(|version| numbers(version) < FIRST_WITH_SERVER.to_vec());
        if is_older || (setup.inherit && has_key) { Self::Exec } else { Self::Server }
    }
}

/// What the session host starts for this task.
pub(super) fn command(setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, variable: &Variable<'_>) -> AgentCommand {
    let has_key = account::has_key(variable);
    let mut argv = Arguments(vec![setup.program.clone().into()]);
    argv.0.extend(setup.arguments.iter().map(OsString::from));
    let way = Way::of(setup, has_key);
    match way {
        Way::Server => argv.words(&["app-server"]),
        Way::Exec => {
            argv.words(&["exec"]);
            argv.words(if task.resume.is_some() { &["resume"] } else { &[] });
            // It may run where there is no repository: it is Proctor that knows what is lost.
            argv.words(&["--json", "--skip-git-repo-check"]);
        }
    }
    ALWAYS.iter().for_each(|setting| argv.setting(setting));
    if !setup.inherit {
        ALONE.iter().for_each(|setting| argv.setting(setting));
        provider(&mut argv, has_key, variable);
    }
    if task.access == Access::ReadOnly {
        argv.setting("web_search=\"disabled\"");
    }
    if let Some(effort) = &setup.effort {
        argv.text("model_reasoning_effort", effort);
    }
    servers(&mut argv, setup, task.access, files.tools.as_ref());
    let environment = environment(setup, files, variable);
    match way {
        Way::Server => AgentCommand { argv: argv.0, environment, files: Vec::new(), input: Input::Spoken },
        Way::Exec => {
            exec(&mut argv, setup.permission, task, files);
            let schema = task.schema.iter().map(|schema| (SCHEMA.to_owned(), strict(schema)));
            AgentCommand { argv: argv.0, environment, files: schema.collect(), input: Input::Prompt }
        }
    }
}

/// The task, of which the app-server is told by what is said to it.
fn exec(argv: &mut Arguments, permission: Permission, task: &AgentTask, files: &AgentFiles) {
    access(argv, task.access, permission);
    if !task.system.is_empty() {
        // Beside the client's own instructions about its tools. There is no file for it.
        argv.text("developer_instructions", &task.system);
    }
    if let Some(model) = &task.model {
        argv.pair("--model", model);
    }
    // Versions that are old do not take it where a conversation goes on. The result is asked for in words all the same.
    if task.schema.is_some() && task.resume.is_none() {
        argv.pair("--output-schema", files.own.join(SCHEMA));
    }
    argv.0.extend(task.resume.iter().map(OsString::from));
    // The prompt is read from the standard input.
    argv.words(&["-"]);
}

/// Where the provider is, and by which variable's key it lets in. A conversation belongs to its provider, so that it has the same name
/// whichever way it is run.
fn provider(argv: &mut Arguments, is_keyed: bool, variable: &Variable<'_>) {
    let address = variable(PROVIDER).and_then(|address| address.into_string().ok()).filter(|address| !address.is_empty());
    if !is_keyed {
        if let Some(address) = address {
            argv.text("openai_base_url", &address);
        }
        return;
    }
    let of_account = r#"{ "OpenAI-Organization" = "OPENAI_ORGANIZATION", "OpenAI-Project" = "OPENAI_PROJECT" }"#;
    let provider = format!("model_providers.{KEYED}");
    argv.text("model_provider", KEYED);
    argv.text(&format!("{provider}.name"), "OpenAI");
    argv.text(&format!("{provider}.base_url"), address.as_deref().unwrap_or(OPENAI));
    argv.text(&format!("{provider}.env_key"), account::API_KEY);
    argv.text(&format!("{provider}.wire_api"), "responses");
    argv.setting(&format!("{provider}.env_http_headers={of_account}"));
}

/// The servers of tools that the settings name, and that of the session's own tools, which nobody is asked about. One that only looks
/// has none but ours: what the tools of others do, nobody knows.
fn servers(argv: &mut Arguments, setup: &EngineSetup, access: Access, tools: Option<&ToolServer>) {
    for (name, server) in setup.servers.iter().filter(|_| access == Access::Full) {
        if let (Some(server), name) = (toml(server), toml_edit::Key::new(name)) {
            argv.setting(&format!("mcp_servers.{name}={server}"));
        }
    }
    let Some(tools) = tools else { return };
    let server = format!("mcp_servers.{}", ToolServer::NAME);
    argv.text(&format!("{server}.command"), &tools.program);
    let arguments: toml_edit::Array = tools.arguments.iter().map(String::as_str).collect();
    argv.setting(&format!("{server}.args={arguments}"));
    argv.text(&format!("{server}.default_tools_approval_mode"), "approve");
}

/// The same value in TOML, in one line; there is no nothing there.
fn toml(value: &serde_json::Value) -> Option<toml_edit::Value> {
    Some(match value {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(value) => (*value).into(),
        serde_json::Value::Number(number) => number.as_i64().map(Into::into).or_else(|| number.as_f64().map(Into::into))?,
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Array(items) => items.iter().filter_map(toml).collect::<toml_edit::Array>().into(),
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, value)| Some((name.as_str(), toml(value)?)));
            fields.collect::<toml_edit::InlineTable>().into()
        }
    })
}

/// The client's own box, which holds for what its commands write. Within a box that lets an agent write, one of its own can't
/// always be made, and would forbid what that allows.
fn access(argv: &mut Arguments, access: Access, permission: Permission) {
    match (access, permission) {
        (Access::ReadOnly, _) => argv.setting("sandbox_mode=\"read-only\""),
        (Access::Full, Permission::Bypass) => argv.words(&["--dangerously-bypass-approvals-and-sandbox"]),
        (Access::Full, Permission::Ask) => argv.setting("sandbox_mode=\"workspace-write\""),
    }
}

fn environment(setup: &EngineSetup, files: &AgentFiles, variable: &Variable<'_>) -> Vec<(OsString, OsString)> {
    let home = (!setup.inherit).then(|| (account::FOLDER.into(), account::own_home(files).into()));
    let key = account::provider_key(variable).map(|key| (account::API_KEY.into(), key));
    home.into_iter().chain(key).collect()
}

impl Arguments {
    fn setting(&mut self, setting: &str) {
        self.pair("-c", setting);
    }

    fn text(&mut self, key: &str, text: &str) {
        self.setting(&format!("{key}={}", toml_edit::Value::from(text)));
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

    fn variables(name: &str) -> Option<OsString> {
        match name {
            "HOME" => Some("/nowhere".into()),
            "OPENAI_API_KEY" => Some("key".into()),
            PROVIDER => Some("http://127.0.0.1:1/v1".into()),
            _ => None,
        }
    }

    fn words(command: &AgentCommand) -> String {
        command.argv.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    /// How one is called whose version is not known.
    fn called(task: &AgentTask, setup: &EngineSetup) -> (String, AgentCommand) {
        let command = command(setup, task, &files(), &variables);
        (words(&command), command)
    }

    /// How one is called that is too old for its app-server.
    fn executed(task: &AgentTask, permission: Permission) -> (String, AgentCommand) {
        called(task, &EngineSetup { version: Some("0.119.9".to_owned()), permission, ..usual() })
    }

    fn usual() -> EngineSetup {
        EngineSetup::usual(EngineKind::Codex)
    }

    /// The settings of a command whose keys begin so, as the file that they would be.
    fn settings(command: &AgentCommand, table: &str) -> toml_edit::DocumentMut {
        let given = command.argv.iter().filter_map(|word| word.to_str()).filter(|word| word.starts_with(table) && word.contains('='));
        given.map(|setting| format!("{setting}\n")).collect::<String>().parse().unwrap()
    }

    #[test]
    fn one_that_is_not_known_to_be_old_is_spoken_to() {
        let way = |version: Option<&str>, inherit| {
            let setup = EngineSetup { version: version.map(str::to_owned), inherit, ..usual() };
            [true, false].map(|has_key| Way::of(&setup, has_key))
        };

        assert_eq!(way(None, false), [Way::Server; 2]);
        assert_eq!([way(Some("0.171.0"), false), way(Some("0.120.0-alpha.1"), false), way(Some("1.0"), false)], [[Way::Server; 2]; 3]);
        assert_eq!([way(Some("0.119.9"), false), way(Some("0.9"), true)], [[Way::Exec; 2]; 2]);
        // It does not look at the key, and which provider it would be for, only the user's settings know.
        assert_eq!(way(None, true), [Way::Exec, Way::Server]);
    }

    #[test]
    fn what_is_said_to_one_that_is_spoken_to_is_no_argument() {
        let (words, command) = called(&task(Access::Full), &usual());

        assert!(words.starts_with("codex app-server -c check_for_update_on_startup=false "), "{words}");
        for said in ["examined", "gpt-5", "sandbox", "schema", "web_search"] {
            assert!(!words.contains(said), "{said}: {words}");
        }
        assert_eq!((command.input, command.files.len()), (Input::Spoken, 0));
        assert!(called(&task(Access::ReadOnly), &usual()).0.contains("-c web_search=\"disabled\""));
    }

    #[test]
    fn a_key_in_a_variable_is_that_of_a_provider_of_its_own() {
        let (words, keyed) = called(&task(Access::Full), &usual());
        let without = command(&usual(), &task(Access::Full), &files(), &|name| (name == "HOME").then(|| "/nowhere".into()));

        let document = settings(&keyed, "model_provider");
        let provider = &document["model_providers"]["proctor"];
        assert_eq!((document["model_provider"].as_str(), provider["env_key"].as_str()), (Some("proctor"), Some("CODEX_API_KEY")));
        assert_eq!(provider["base_url"].as_str(), Some("http://127.0.0.1:1/v1"));
        assert_eq!(provider["env_http_headers"]["OpenAI-Project"].as_str(), Some("OPENAI_PROJECT"));
        assert!(!words.contains("=key") && keyed.environment.contains(&("CODEX_API_KEY".into(), "key".into())));
        assert!(settings(&without, "model_provider").is_empty());
    }

    #[test]
    fn one_that_only_looks_is_in_a_box_that_can_not_be_written_whatever_is_permitted() {
        for permission in [Permission::Ask, Permission::Bypass] {
            let (words, _) = executed(&task(Access::ReadOnly), permission);

            assert!(words.contains("-c web_search=\"disabled\" -c sandbox_mode=\"read-only\""), "{words}");
            assert!(!words.contains("--dangerously"), "{words}");
        }
    }

    #[test]
    fn one_that_works_is_in_the_clients_box_unless_it_needs_none() {
        let (asking, _) = executed(&task(Access::Full), Permission::Ask);
        let (boxed, _) = executed(&task(Access::Full), Permission::Bypass);

        assert!(asking.contains("sandbox_mode=\"workspace-write\"") && !asking.contains("--dangerously"), "{asking}");
        assert!(boxed.contains("--dangerously-bypass-approvals-and-sandbox") && !boxed.contains("sandbox_mode"), "{boxed}");
    }

    #[test]
    fn a_conversation_is_gone_on_with_by_its_id() {
        let resuming = AgentTask { resume: Some("01a2".to_owned()), ..task(Access::Full) };

        let (fresh, _) = executed(&task(Access::Full), Permission::Bypass);
        let (going_on, _) = executed(&resuming, Permission::Bypass);

        assert!(fresh.starts_with("codex exec --json --skip-git-repo-check -c "), "{fresh}");
        assert!(fresh.ends_with("--model gpt-5 --output-schema /s/own/schema.json -"), "{fresh}");
        assert!(going_on.starts_with("codex exec resume --json "), "{going_on}");
        assert!(going_on.ends_with("--model gpt-5 01a2 -"), "{going_on}");
    }

    #[test]
    fn the_users_own_settings_are_taken_in_only_when_asked() {
        let home = |command: &AgentCommand| command.environment.iter().find(|(name, _)| name == "CODEX_HOME").cloned();

        let (alone, own) = called(&task(Access::Full), &usual());
        let (inheriting, theirs) = called(&task(Access::Full), &EngineSetup { inherit: true, ..usual() });

        assert!(alone.contains("features.plugins=false") && alone.contains("\"http://127.0.0.1:1/v1\""), "{alone}");
        assert!(!inheriting.contains("features.plugins") && !inheriting.contains("http://"), "{inheriting}");
        assert_eq!((home(&own), home(&theirs)), (Some(("CODEX_HOME".into(), "/c/codex".into())), None));
        assert!(own.environment.contains(&("CODEX_API_KEY".into(), "key".into())));
    }

    #[test]
    fn the_sessions_tools_are_a_server_that_nobody_is_asked_about() {
        let files = AgentFiles { tools: ToolServer::of("/bin/a \"proctor\"".as_ref(), "/s".as_ref()), ..files() };

        let command = command(&usual(), &task(Access::ReadOnly), &files, &|_| None);

        let server = &settings(&command, "mcp_servers.")["mcp_servers"]["proctor"];
        assert_eq!(server["command"].as_str(), Some("/bin/a \"proctor\""));
        let arguments: Vec<_> = server["args"].as_array().unwrap().iter().filter_map(|argument| argument.as_str()).collect();
        assert_eq!(arguments, ["tools", "/s/engine/tools.sock"]);
        assert_eq!(server["default_tools_approval_mode"].as_str(), Some("approve"));
    }

    #[test]
    fn servers_are_for_those_that_work_and_an_effort_for_all() {
        let servers = r#"{"a.b": {"command": "x", "args": ["-y", 7], "env": {"K": "\"v\""}, "startup_timeout_sec": 1.5, "cwd": null}}"#;
        let setup = EngineSetup { servers: serde_json::from_str(servers).unwrap(), effort: Some("high".to_owned()), ..usual() };

        let (words, command) = called(&task(Access::Full), &setup);
        let (looking, _) = called(&task(Access::ReadOnly), &setup);

        assert!(looking.contains("model_reasoning_effort") && !looking.contains("mcp_servers"), "{looking}");
        let server = &settings(&command, "mcp_servers.")["mcp_servers"]["a.b"];
        assert_eq!((server["command"].as_str(), server["env"]["K"].as_str()), (Some("x"), Some("\"v\"")));
        assert_eq!((server["args"][1].as_integer(), server["startup_timeout_sec"].as_float()), (Some(7), Some(1.5)));
        assert!(server.get("cwd").is_none() && words.contains("-c model_reasoning_effort=\"high\""), "{words}");
    }

    #[test]
    fn texts_are_settings_that_can_be_read_back_and_the_schema_is_a_file() {
        let (_, command) = executed(&task(Access::Full), Permission::Ask);

        let document = settings(&command, "developer_instructions=");
        assert_eq!(document["developer_instructions"].as_str(), Some("You are \"examined\".\nIt is 5 o'clock."));
        let [(name, schema)] = command.files.as_slice() else { panic!("{:?}", command.files) };
        assert_eq!(name, "schema.json");
        assert!(schema.contains(r#""additionalProperties":false"#), "{schema}");
    }
}
