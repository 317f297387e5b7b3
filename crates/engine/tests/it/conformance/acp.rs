//! What the loopback model says to the adapter of Claude Code, for each case, and what the adapter is told beside.

use std::path::Path;

use super::claude;
use super::stage::Case;

/// So that it sends nothing but requests to the model, and gives up soon.
pub(super) const QUIET: [(&str, &str); 4] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "3"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
];

/// What is asked again is a prompt of its own.
const RIGHT_AT_LAST: &str = r#"
[[scenario]]
match = "can't be used"
turn = [{ structured = { passed = true } }]
[default]
turn = [{ structured = { passed = 'yes' } }]
"#;

/// The cases are those of Claude Code. A prompt begins with its instructions here.
pub(super) fn script(case: Case, work: &Path) -> String {
    if case == Case::GivesWrongResultFirst {
        return RIGHT_AT_LAST.to_owned();
    }
    claude::script(case, work).replace("'^Go on'", r"'Go on\.\s*$'")
}
