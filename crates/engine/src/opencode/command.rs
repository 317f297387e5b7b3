//! How `opencode` is called.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::config::{LOOKING, WITNESS, config, only_looks};
use crate::agent::{Access, AgentCommand, AgentFiles, AgentTask, EngineSetup, Input};

/// Variables of every session: nothing is sent but requests to the model, nothing is fetched or replaced while it runs.
const QUIET: [&str; 4] =
    ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_SHARE"];
/// Where it looks for the user's configuration.
pub(super) const CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Tells the witness what that was before: the commands of the agent are to find the user's own.
const OUTER_CONFIG_HOME: &str = "PROCTOR_OUTER_CONFIG_HOME";
/// The title of the conversation. Without one the model is asked for it.
const TITLE: &str = "proctor";

/// Tells what `opencode run` does not.
const WITNESS_TEXT: &str = include_str!("witness.js");
/// The user's configuration, in sessions that take none in. An installation for plug-ins of which nothing is missing, so
/// that nothing is fetched for it.
const NO_CONFIGURATION: [(&str, &str); 3] = [
    ("config/opencode/.gitignore", ""),
    ("config/opencode/node_modules/.keep", ""),
    ("config/opencode/package-lock.json", r#"{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}"#),
];

/// What the session host starts for this task; `config_home` is the caller's.
pub(super) fn command(setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, config_home: Option<&OsStr>) -> AgentCommand {
    let mut argv: Vec<OsString> = vec![setup.program.clone().into()];
    argv.extend(setup.arguments.iter().map(OsString::from));
    // Whoever asks for thoughts gets those that there are.
    argv.extend(["run", "--format", "json", "--thinking", "--title", TITLE].map(OsString::from));
    if only_looks(setup, task.access) {
        argv.extend(["--agent", LOOKING].map(OsString::from));
    } else {
        // What a configuration forbids outright stays forbidden.
        argv.push("--auto".into());
    }
    for (flag, value) in [("--session", &task.resume), ("--model", &task.model)] {
        argv.extend(value.iter().flat_map(|value| [OsString::from(flag), value.into()]));
    }
    let files_of_ours = if setup.inherit { &[] } else { NO_CONFIGURATION.as_slice() };
    let written = [(WITNESS, WITNESS_TEXT)].into_iter().chain(files_of_ours.iter().copied());
    AgentCommand {
        argv,
        environment: environment(setup, task.access, files, config_home),
        files: written.map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
        input: Input::Prompt,
    }
}

fn environment(setup: &EngineSetup, access: Access, files: &AgentFiles, config_home: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = QUIET.map(|name| (name.into(), "1".into())).into();
    variables.push(("OPENCODE_CONFIG_CONTENT".into(), config(setup, access, files).into()));
    if access == Access::ReadOnly {
        // A project's plug-ins run when the client starts, and write what they like.
        variables.push(("OPENCODE_DISABLE_PROJECT_CONFIG".into(), "1".into()));
    }
    if !setup.inherit {
        let folder = |path: &Path| path.to_owned().into_os_string();
        variables.push((CONFIG_HOME.into(), folder(&files.own.join("config"))));
        variables.push((OUTER_CONFIG_HOME.into(), config_home.unwrap_or_default().to_owned()));
        // The home in which it looks for more of it, of other clients too; nothing else is looked for there.
        variables.push(("OPENCODE_TEST_HOME".into(), folder(&files.own)));
    }
    variables
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::Value;

    use super::*;
    use crate::agent::{EngineKind, Permission};

    fn called(access: Access, inherit: bool, permission: Permission) -> AgentCommand {
        let setup = EngineSetup { inherit, permission, ..EngineSetup::usual(EngineKind::OpenCode) };
        let task = AgentTask {
            system: "You are examined.".to_owned(),
            prompt: "Do it.".to_owned(),
            resume: Some("ses_1".to_owned()),
            model: Some("anthropic/claude-opus-4-5".to_owned()),
            schema: None,
            max_turns: None,
            max_cost: None,
            access,
        };
        let place = |name: &str| PathBuf::from("/s").join(name);
        let files =
            AgentFiles { system: place("system.md"), prompt: place("p"), conversations: place("c"), own: place("engine"), tools: None };
        command(&setup, &task, &files, Some(OsStr::new("/home/a/config")))
    }

    fn words(command: &AgentCommand) -> String {
        let words: Vec<_> = command.argv.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    fn variable(command: &AgentCommand, name: &str) -> Option<String> {
        command.environment.iter().find(|(found, _)| found == name).map(|(_, value)| value.to_str().unwrap().to_owned())
    }

    fn config(command: &AgentCommand) -> Value {
        serde_json::from_str(&variable(command, "OPENCODE_CONFIG_CONTENT").unwrap()).unwrap()
    }

    const ALWAYS: &str = "opencode run --format json --thinking --title proctor";
    const TASK: &str = "--session ses_1 --model anthropic/claude-opus-4-5";

    #[test]
    fn one_that_only_looks_has_an_agent_of_its_own_that_is_denied_whatever_it_is_not_allowed() {
        for (access, permission) in [(Access::ReadOnly, Permission::Bypass), (Access::Full, Permission::Ask)] {
            let command = called(access, true, permission);

            assert_eq!(words(&command), format!("{ALWAYS} --agent proctor-looking {TASK}"));
            let permission = &config(&command)["agent"]["proctor-looking"]["permission"];
            let rules = permission.as_object().unwrap();
            assert_eq!(rules.keys().next().unwrap(), "*", "the last rule that fits decides");
            assert_eq!((&rules["*"], &rules["grep"], rules.get("bash")), (&"deny".into(), &"allow".into(), None));
        }
    }

    #[test]
    fn one_that_may_do_all_is_asked_about_nothing() {
        let command = called(Access::Full, false, Permission::Bypass);

        assert_eq!(words(&command), format!("{ALWAYS} --auto {TASK}"));
        assert_eq!(config(&command).get("agent"), None);
    }

    #[test]
    fn the_users_own_configuration_is_taken_in_only_when_asked() {
        let alone = called(Access::Full, false, Permission::Bypass);
        let inheriting = called(Access::Full, true, Permission::Bypass);

        assert_eq!(variable(&alone, CONFIG_HOME).as_deref(), Some("/s/engine/config"));
        assert_eq!(variable(&alone, OUTER_CONFIG_HOME).as_deref(), Some("/home/a/config"));
        assert_eq!([variable(&inheriting, CONFIG_HOME), variable(&inheriting, "OPENCODE_TEST_HOME")], [None, None]);
        assert_eq!([alone.files.len(), inheriting.files.len()], [4, 1]);
        for command in [&alone, &inheriting] {
            let config = config(command);
            assert_eq!(config["instructions"], serde_json::json!(["/s/system.md"]));
            assert_eq!(config["plugin"], serde_json::json!(["/s/engine/witness.js"]));
        }
    }

    #[test]
    fn the_sessions_tools_are_a_server_and_all_that_one_that_only_looks_has_beside_looking() {
        let tools = crate::tools::ToolServer::of("/bin/proctor".as_ref(), "/s".as_ref());
        let files = AgentFiles { system: "/s/a".into(), prompt: "/s/p".into(), conversations: "/c".into(), own: "/s/engine".into(), tools };
        let setup = EngineSetup::usual(EngineKind::OpenCode);

        let config: Value = serde_json::from_str(&super::config(&setup, Access::ReadOnly, &files)).unwrap();

        assert_eq!(config["mcp"]["proctor"]["command"], serde_json::json!(["/bin/proctor", "tools", "/s/engine/tools.sock"]));
        let rules = config["agent"]["proctor-looking"]["permission"].as_object().unwrap();
        assert_eq!((rules.keys().next().unwrap().as_str(), &rules["proctor_*"]), ("*", &"allow".into()));
    }

    #[test]
    fn a_projects_own_configuration_is_not_for_one_that_only_looks() {
        let disabled = |access| variable(&called(access, true, Permission::Bypass), "OPENCODE_DISABLE_PROJECT_CONFIG");

        assert_eq!([disabled(Access::Full), disabled(Access::ReadOnly)], [None, Some("1".to_owned())]);
    }
}
