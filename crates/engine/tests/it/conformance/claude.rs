//! What the loopback model says, for each case.

use std::path::Path;

use super::stage::{Case, FAIL, FLOOD, LEAVE, PRINT_SECRET, RESET, STAND, STAND_BY};

const ANSWERS: &str = r#"
[[scenario]]
match = '^Go on'
turn = [{ text = "Going on." }]
"#;

const CALLS: &str = r#"
{ tools = [
    { name = "mcp__proctor__note", input = { text = "The tests were slow." } },
    { name = "mcp__proctor__submit_result", input = { result = { passed = "yes" } } },
] },
{ tools = [{ name = "mcp__proctor__submit_result", input = { result = { passed = true } } }] },
{ structured = { passed = false } }
"#;

pub(super) fn script(case: Case, work: &Path) -> String {
    let answer = |turns: &str| format!("{ANSWERS}[default]\nturn = [{turns}]\n");
    let fails = |fault: &str| answer(&format!(r#"{{ text = "It is done.", fail = {{ {fault} }} }}"#));
    let runs = |shell: &str, then: &str| answer(&format!("{{ tools = [{{ shell = '''{shell}''' }}] }}, {{ text = \"{then}\" }}"));
    match case {
        Case::Answers | Case::Stays => answer(r#"{ text = "It is done." }"#),
        Case::GivesResult => answer("{ structured = { passed = true } }"),
        Case::GivesWrongResultFirst => answer("{ structured = { passed = 'yes' } }, { structured = { passed = true } }"),
        Case::GivesWrongResultAlways => answer("{ structured = { passed = 'yes' } }"),
        Case::NeverEnds => answer(r#"{ text = "Again.", tools = [{ shell = "true" }] }"#),
        Case::IsExpensive => answer(r#"{ text = "Again.", tools = [{ shell = "true" }], usage = { input = 400000, output = 40000 } }"#),
        Case::IsNotLoggedIn => fails("status = 401"),
        Case::IsSlowedDownOnce => fails("status = 429, retry-after = 1, times = 1"),
        Case::IsSlowedDown => fails("status = 429"),
        Case::IsSlowedDownForLong => fails("status = 429, retry-after = 3600"),
        Case::IsOverloaded => fails("status = 529"),
        Case::BreaksOffOnce => answer(r#"{ text = "It is done.", cut = { after-events = 2, times = 1 } }"#),
        Case::BreaksOff => answer(r#"{ text = "It is done.", cut = { after-events = 4 } }"#),
        Case::IsUsedUp => fails(&format!("status = 429, usage-limit = {{ resets-at = {RESET} }}")),
        Case::Hears => {
            format!("[[scenario]]\nmatch = 'desk 4711'\nturn = [{{ text = \"Heard: desk 4711\" }}]\n{}", runs(STAND_BY, "It is done."))
        }
        Case::Works => runs(STAND, "It is done."),
        Case::Fails => runs(FAIL, "It is done."),
        Case::Floods => runs(FLOOD, "It is done."),
        Case::LeavesProcess => runs(LEAVE, "It is done."),
        Case::Writes => answer(&writes(&work.join("written"))),
        Case::SaysSecret => runs(PRINT_SECRET, "It printed {{last_tool_output}}"),
        Case::CallsSessionTools => answer(&CALLS.replace('\n', " ")),
        Case::IsCounted => {
            answer(r#"{ text = "It is done.", usage = { input = 1000, output = 100, cache-read = 500, cache-write = 50 } }"#)
        }
    }
}

/// Asks for tools whether they are offered or not.
fn writes(file: &Path) -> String {
    let path = file.display();
    format!(
        r#"{{ tools = [
            {{ name = "Write", input = {{ file_path = "{path}", content = "x" }} }},
            {{ name = "Bash", input = {{ command = "echo x > '{path}'", description = "write" }} }},
            {{ name = "Task", input = {{ description = "write", prompt = "write", subagent_type = "general-purpose" }} }}
        ] }}, {{ text = "It is done." }}"#
    )
    .replace('\n', " ")
}
