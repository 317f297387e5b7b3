//! Scripts that can't be used, and what is said about them.

use proctor_loopback::Script;

#[test]
fn a_mistake_is_named_with_its_place() {
    for (text, expected) in [
        ("scenarios = []", "line 1, column 1: unknown field `scenarios`"),
        ("[[scenario]]\nname = 'a'\n[[scenario.turn]]\ntxt = 'a'", "line 4, column 1: unknown field `txt`"),
        ("[[scenario]]\n[[scenario.turn]]\ntools = [{ shell = 'a', cwd = 'b' }]", "line 3, column 25: unknown field `cwd`"),
        ("[[default.turn]]\nfail = { status = 429, usage-limit = { until = 3 } }", "line 2, column 40: unknown field `until`"),
        ("[[default.turn]]\ndelay-ms = 'x'", "line 2, column 12: invalid type"),
        ("[[default.turn]]\nfail = { status = 1, count = 'x' }", "line 2, column 30: unknown variant `x`"),
        ("a = ", "line 1, column "),
        ("[[scenario]]\nmatch = '('", "scenario 1 (`scenario 1`): `match` is no regular expression"),
        ("[[scenario]]\nname = 'a'", "scenario 1 (`a`): there is no `turn`"),
        ("[default]", "default: there is no `turn`"),
        (
            "[[default.turn]]\n[[default.turn]]\nfail = { status = 200 }",
            "default, turn 2: the `status` of a failure is between 400 and 599",
        ),
        ("[[default.turn]]\ncut = {}\nhang = {}", "default, turn 1: a turn has at most one of"),
        ("[[default.turn]]\ntools = [{ shell = 'a', name = 'b' }]", "default, turn 1: a tool has either"),
        ("[[default.turn]]\ntools = [{}]", "default, turn 1: a tool has either"),
        ("[[default.turn]]\ntools = [{ name = 'a', input = 3 }]", "default, turn 1: the `input` of a tool is a table"),
        ("[[default.turn]]\nfail = { status = 429, usage-limit = {} }", "default, turn 1: a `usage-limit` has either"),
        ("[[default.turn]]\nstructured = { day = [2026-01-01] }", "default, turn 1: `structured` holds a date"),
        ("[[default.turn]]\nheaders = { a = \"b\\r\\nc: d\" }", "default, turn 1: the value of a header"),
        ("[[default.turn]]\nheaders = { 'a:' = 'b' }", "default, turn 1: the name of a header"),
    ] {
        let error = Script::parse(text).unwrap_err().to_string();

        assert!(error.starts_with(expected), "{text}\n{error}");
    }
}

#[test]
fn an_empty_script_is_one() {
    assert!("".parse::<Script>().is_ok());
}
