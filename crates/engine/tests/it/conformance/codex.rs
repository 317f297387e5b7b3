//! What the loopback model says to Codex, for each case.

use std::path::Path;

use super::claude;
use super::stage::{Case, STAND};

pub(super) const AGAIN: &str = r#"
[[scenario]]
match = "^Your answer can't be used"
turn = [{ structured = { passed = true } }]
"#;

/// The cases are those of Claude Code; only the tools have other names.
pub(super) fn script(case: Case, work: &Path) -> String {
    if case == Case::Writes {
        return writes(&work.join("written"));
    }
    if case == Case::Works {
        return works();
    }
    // It is asked for a result again in a prompt of its own.
    let again = if case == Case::GivesWrongResultFirst { AGAIN } else { "" };
    format!("{again}{}", claude::script(case, work))
}

/// Says something first: that a command runs is told a moment after it does.
fn works() -> String {
    format!(
        r#"
[[scenario]]
match = '^Go on'
turn = [{{ text = "Going on." }}]
[[default.turn]]
text = "Starting."
tools = [{{ shell = '''{STAND}''' }}]
[[default.turn]]
text = "It is done."
"#
    )
}

/// Asks for tools whether they are offered or not.
fn writes(file: &Path) -> String {
    let path = file.display();
    format!(
        r#"
[[default.turn]]
tools = [
    {{ name = "apply_patch", input = {{ input = "*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n" }} }},
    {{ name = "exec_command", input = {{ cmd = "echo x > '{path}'" }} }}
]
[[default.turn]]
text = "It is done."
"#
    )
}

/// What holds beside the suite, for Codex alone.
mod alone {
    use proctor_domain::session::SessionEnd;
    use proctor_engine::TRANSCRIPT;
    use proctor_engine::agent::{AgentTask, EngineKind};

    use super::super::stage::{Case, SCHEMA, Stage, task, write};
    use super::super::{DONE, going_on, outcome};

    /// The last version that has no app-server that was tried.
    const OLDER: &str = "0.119.0";

    fn stage(case: Case) -> Option<Stage> {
        Stage::of(EngineKind::Codex, case)
    }

    #[test]
    fn a_key_in_a_variable_reaches_the_provider() {
        for version in [None, Some(OLDER)] {
            let Some(mut stage) = stage(Case::Answers) else { return };
            stage.setup.version = version.map(str::to_owned);

            assert_eq!(outcome(&stage.play(&task("Do it."))), DONE);

            assert!(stage.model_was_told("authorization"), "{version:?}");
        }
    }

    #[test]
    fn what_a_repository_says_of_codex_does_not_count_and_is_not_trusted() {
        let Some(mut stage) = stage(Case::Answers) else { return };
        let work = stage.world.spec.directory.clone();
        for folder in [".git", ".codex"] {
            std::fs::create_dir_all(work.join(folder)).unwrap();
        }
        write(&work.join(".git/HEAD"), "ref: refs/heads/main\n");
        write(&work.join(".codex/config.toml"), "developer_instructions = \"The repository says so.\"\n");

        let first = stage.play(&task("Do it."));
        let second = stage.play(&going_on(&first));

        assert_eq!((outcome(&first), second.end), (DONE, SessionEnd::Completed));
        assert!(!stage.model_saw("The repository says so."));
        assert!(!stage.world.path().join("conversations/codex/config.toml").exists());
    }

    /// However slow the machine is: by itself Codex asks five times.
    #[test]
    fn a_login_that_is_refused_twice_is_given_up_before_codex_itself_does() {
        let Some(mut stage) = stage(Case::IsNotLoggedIn) else { return };

        let report = stage.play(&task("Do it."));

        assert_eq!(report.end, SessionEnd::Refused, "{report:?}");
        assert!((2..4).contains(&stage.asked()), "asked {} times: {}", stage.asked(), stage.transcript());
    }

    #[test]
    fn one_that_is_older_is_run_by_exec_and_asked_again_in_a_program_of_its_own() {
        let Some(mut stage) = stage(Case::GivesWrongResultFirst) else { return };
        stage.setup.version = Some(OLDER.to_owned());

        let report = stage.play(&AgentTask { schema: Some(SCHEMA.to_owned()), ..task("Judge it.") });

        let agent = report.agent.unwrap();
        assert_eq!((report.end, agent.turns, agent.result.as_deref()), (SessionEnd::Completed, 2, Some(r#"{"passed":true}"#)));
        assert_eq!(stage.world.read(TRANSCRIPT).matches(r#"{"type":"thread.started""#).count(), 2);
    }

    #[test]
    fn a_conversation_that_was_begun_by_exec_goes_on_with_the_app_server() {
        let Some(mut stage) = stage(Case::IsCounted) else { return };
        stage.setup.version = Some(OLDER.to_owned());
        let first = stage.play(&task("Do it with care."));
        stage.setup.version = None;

        let second = stage.play(&going_on(&first));

        assert_eq!(outcome(&second), (SessionEnd::Completed, Some("Going on.")), "{second:?}");
        assert!(stage.model_saw("Do it with care."));
        let (first, second) = (first.agent.unwrap(), second.agent.unwrap());
        assert_eq!((&first.conversation, second.turns), (&second.conversation, 1));
        assert!(second.spent[0].usage.input < first.spent[0].usage.input, "{second:?}");
    }
}
