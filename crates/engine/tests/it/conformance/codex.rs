//! What the loopback model says to Codex, for each case.

use std::path::Path;

use super::claude;
use super::stage::{Case, STAND};

const AGAIN: &str = r#"
[[scenario]]
match = "^Your answer can't be used"
turn = [{ structured = { passed = true } }]
"#;

/// The cases are those of Claude Code; only the tools have other names.
pub(super) fn script(case: Case, work: &Path) -> String {
    match case {
        Case::Writes => writes(&work.join("written")),
        Case::Works => works(),
        // It is asked for a result again in a prompt of its own.
        Case::GivesWrongResultFirst => format!("{AGAIN}{}", claude::script(case, work)),
        Case::Answers
        | Case::GivesResult
        | Case::GivesWrongResultAlways
        | Case::NeverEnds
        | Case::IsExpensive
        | Case::IsNotLoggedIn
        | Case::IsSlowedDownOnce
        | Case::IsSlowedDown
        | Case::IsSlowedDownForLong
        | Case::IsOverloaded
        | Case::BreaksOffOnce
        | Case::BreaksOff
        | Case::IsUsedUp
        | Case::Stays
        | Case::LeavesProcess
        | Case::SaysSecret
        | Case::IsCounted
        | Case::CallsSessionTools => claude::script(case, work),
    }
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
    {{ name = "exec_command", input = {{ cmd = "echo x > {path}" }} }}
]
[[default.turn]]
text = "It is done."
"#
    )
}
