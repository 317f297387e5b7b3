//! What the scripted agent does, for each case.

use super::stage::{Case, FAIL, FLOOD, LEAVE, PRINT_SECRET, RESET, SECRET, STAND, STAND_BY};

const GOES_ON: &str = r#"
[[scenario]]
on = "resume"
turn = [{ do = [{ say = "Going on." }] }]
"#;
const RETRYING: &str = r#"{ print = '{"type":"retrying","attempt":1,"status":429,"wait_ms":1000}' }"#;

pub(super) fn script(case: Case) -> String {
    let turns = |turns: &str| format!("{GOES_ON}[[scenario]]\nturn = [{turns}]\n");
    let does = |actions: &str| turns(&format!("{{ do = [{actions}] }}"));
    let done = r#"{ say = "It is done." }"#;
    let runs = |shell: &str, then: &str| does(&format!("{{ run = '''{shell}''' }}, {then}"));
    match case {
        // As of an engine that does not say what it costs.
        Case::Answers => turns(&format!("{{ do = [{done}], cost = 'unknown' }}")),
        Case::Stays => format!("{GOES_ON}[[scenario]]\nafter = [\"hang\"]\nturn = [{{ do = [{done}] }}]\n"),
        Case::GivesResult => does("{ result = { passed = true } }"),
        Case::GivesWrongResultFirst => does("{ results = [{ passed = 'yes' }, { passed = true }] }"),
        Case::GivesWrongResultAlways => does("{ results = [{ passed = 'yes' }] }"),
        Case::NeverEnds => turns(&[r#"{ do = [{ say = "Again." }, { run = "true" }] }"#; 9].join(", ")),
        Case::IsExpensive => turns(&[r#"{ do = [{ say = "Again." }, { run = "true" }], cost = 2.4 }"#; 9].join(", ")),
        Case::IsNotLoggedIn => does("{ refuse = 'not logged in' }"),
        Case::IsSlowedDownOnce | Case::BreaksOffOnce => does(&format!("{RETRYING}, {done}")),
        Case::IsSlowedDown | Case::IsOverloaded => does("{ rate-limit = {} }"),
        Case::IsSlowedDownForLong => does("{ rate-limit = { resets-in = 3600 } }"),
        Case::BreaksOff => does(r#"{ print-part = '{"type":"te' }, { die = "kill" }"#),
        Case::IsUsedUp => does(&format!("{{ usage-limit = {{ resets-at = {RESET} }} }}")),
        Case::Hears => does(&format!("{{ run = '''{STAND_BY}''' }}, {{ hear = {{}} }}")),
        Case::Works => does(&format!("{{ say = 'Starting.' }}, {{ run = '''{STAND}''' }}, {done}")),
        Case::Fails => runs(FAIL, done),
        Case::Floods => runs(FLOOD, done),
        Case::LeavesProcess => runs(LEAVE, done),
        Case::Writes => does(&format!("{{ write = {{ path = 'written', content = 'x' }} }}, {{ run = 'echo x > written' }}, {done}")),
        Case::SaysSecret => runs(PRINT_SECRET, &format!("{{ say = 'It printed {SECRET}' }}")),
        Case::CallsSessionTools => does(
            "{ call = { tool = 'note', input = { text = 'The tests were slow.' } } },
             { call = { tool = 'submit_result', input = { result = { passed = 'yes' } } } },
             { call = { tool = 'submit_result', input = { result = { passed = true } } } },
             { result = { passed = false } }",
        ),
        Case::IsCounted => turns(&format!(
            "{{ do = [{done}], usage = {{ input = 1000, output = 100, cache-read = 500, cache-write = 50 }}, cost = 0.25 }}"
        )),
    }
}
