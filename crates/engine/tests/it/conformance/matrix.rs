//! The page that says which engine passes what: made from the lists of the suite, so that a cell that says "yes" is a test.

use std::collections::BTreeMap;
use std::path::Path;

use super::{with_acp, with_claude, with_codex, with_opencode, with_scripted};

/// The engines, as the page calls them, and the behaviours that are tests of them.
const ENGINES: [(&str, &[&str]); 5] = [
    ("`claude`", with_claude::BEHAVIOURS),
    ("`codex`", with_codex::BEHAVIOURS),
    ("`opencode`", with_opencode::BEHAVIOURS),
    ("`acp`", with_acp::BEHAVIOURS),
    ("`scripted`", with_scripted::BEHAVIOURS),
];

/// Why what OpenCode is asked again and again is no test of it.
const STARTS: &str = "each time that it is asked again its program starts anew, which takes seconds of the processor; that it is asked again \
                      once is shown";

const MONEY_CAP: &str = "a_money_cap_holds_after_the_turn_that_breaks_it";

/// Why a behaviour is no test of an engine, or why its test shows nothing.
const REASONS: &[(&str, &str, &str)] = &[
    ("`opencode`", "a_result_that_is_wrong_every_time_is_none", STARTS),
    ("`opencode`", "a_result_that_is_prose_is_none", STARTS),
    (
        "`opencode`",
        "what_was_used_and_spent_is_told_by_model",
        "the format in which it asks the loopback model knows no tokens written to a cache; the rest is shown by its recordings",
    ),
    ("`acp`", MONEY_CAP, "it tells what it used when it is done, and no sooner"),
    ("`acp`", "a_prompt_is_a_text_whatever_it_begins_with", "the adapter sends along the file that a prompt names after an `@`"),
    ("`acp`", "a_model_without_a_price_costs_nobody_knows_what", "the adapter takes no model that it does not list itself"),
];

const BEGIN: &str = "# What every engine owes

<!-- Made from the suite itself; the test `conformance::matrix` says how to make it anew. -->

One suite of behaviours runs against every engine under the real session host: `claude`, `codex`, `opencode` and an agent of the Agent
Client Protocol (the adapter of Claude Code) are the real programs in the versions that [`proctor engines`](engines.md) names, and talk to
the [loopback model](loopback-model.md). A \"yes\" is a test that passes; anything else says why it is none.

";

/// Why this behaviour is not shown of this engine; `None` where it is.
fn reason(engine: &str, behaviour: &str, run: &[&str]) -> Option<&'static str> {
    let own = REASONS.iter().find(|(of, what, _)| *of == engine && *what == behaviour).map(|(_, _, reason)| *reason);
    if own.is_some() || run.contains(&behaviour) {
        return own;
    }
    panic!("why is `{behaviour}` no test of {engine}?")
}

fn page() -> String {
    let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut table = format!("| behaviour | {} |\n|---|{}\n", ENGINES.map(|(name, _)| name).join(" | "), "---|".repeat(ENGINES.len()));
    for behaviour in with_scripted::BEHAVIOURS {
        let cells = ENGINES.map(|(name, run)| match reason(name, behaviour, run) {
            None => "yes".to_owned(),
            Some(reason) => {
                let count = notes.len() + 1;
                format!("({})", notes.entry(reason).or_insert(count))
            }
        });
        table.push_str(&format!("| {} | {} |\n", behaviour.replace('_', " "), cells.join(" | ")));
    }
    let mut notes: Vec<(&str, usize)> = notes.into_iter().collect();
    notes.sort_by_key(|(_, number)| *number);
    let notes: String = notes.iter().map(|(reason, number)| format!("\n({number}) {reason}.\n")).collect();
    format!("{BEGIN}{table}{notes}")
}

#[test]
fn the_page_says_what_is_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    let page = page();
    if std::env::var_os("PROCTOR_WRITE_PAGES").is_some() {
        proctor_process::durable::write(&path, page.as_bytes(), proctor_process::durable::Durability::Renamed).unwrap();
    }

    let written = std::fs::read_to_string(&path).unwrap_or_default();

    assert!(
        written == page,
        "docs/conformance.md is out of date: PROCTOR_WRITE_PAGES=1 cargo test -p proctor-engine --test it the_page_says_what_is_run"
    );
}

#[test]
fn nothing_is_run_that_is_not_in_the_suite() {
    for (name, run) in ENGINES {
        for behaviour in run {
            assert!(with_scripted::BEHAVIOURS.contains(behaviour), "{name}: {behaviour}");
        }
    }
}
