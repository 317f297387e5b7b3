//! Scripted agents as processes of their own, and what their lines add up to.

mod stage;

use std::io::Read;

use proctor_domain::session::{SessionEnd, Spending, Usage};
use proctor_domain::{Cost, MicroDollars, Timestamp};
use proctor_engine::agent::{Access, AgentEvent, AgentTask};
use proctor_engine::check_script;
use proctor_process::{ProcessIdentity, Signal, Sink};

use crate::world::{is_gone, process_in, until};
pub(crate) use stage::agent_program;
use stage::{Played, Stage, task};

const SCHEMA: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;

/// What an agent does about every prompt, in one turn.
fn doing(actions: &str) -> Stage {
    Stage::new(&format!("[[default.turn]]\ndo = [{actions}]\n"))
}

fn owing() -> AgentTask {
    AgentTask { schema: Some(SCHEMA.to_owned()), ..task("judge this") }
}

fn crashed(code: &str) -> SessionEnd {
    SessionEnd::Crashed { reason: format!("the engine ended {code} and without a result") }
}

// What is no session at all.

#[test]
fn a_mistake_in_a_script_is_named_by_line_and_key() {
    let cases = [
        ("[[scenario]]\nmatsch = \"x\"", "line 2, column 1", "unknown field `matsch`", "in `matsch = \"x\"`"),
        ("\n[[default.turn]]\ndo = [{ sey = \"x\" }]", "line 3, column", "unknown variant `sey`", "sey"),
        ("[[default.turn]]\ndo = [{ say = 5 }]", "line 2, column", "expected a string", "say = 5"),
        ("[[default.turn]]\ndo = [{ say = \"a\", run = \"b\" }]", "line 2, column", "1 element", "say"),
        ("[[default.turn]]\ndo = [{ write = { path = \"a\" } }]", "line 2, column", "missing field `content`", "write"),
        ("[[default.turn]]\ncost = -1", "line 2, column", "not an amount of dollars", "cost"),
        ("[[default.turn]]\ndo = [{ results = [] }]", "line 2, column", "at least one", "results"),
        ("[[default.turn]]\ndo = [{ result = { on = 2026-01-01 } }]", "line 2, column", "JSON does not know", "result"),
        ("[[default.turn]]\ndo = [{ huge-line = 9999 }]", "line 2, column", "at most 1024 MiB", "huge-line"),
        ("[[default.turn]]\ndo = [{ rate-limit = { resets-in = 1, resets-at = 2 } }]", "line 2, column", "either", "rate-limit"),
        ("[default]\nmatch = \"x\"", "line 2, column 1", "unknown field `match`", "match"),
        ("[[scenario]]\nmatch = \"a(\"", "line 2, column 9", "no regular expression", "match"),
        ("say", "line 1, column", "", "say"),
    ];
    for (script, place, message, text) in cases {
        let stage = Stage::new(script);

        let error = check_script(&stage.script).unwrap_err().to_string();

        assert!([place, message, text].iter().all(|part| error.contains(part)), "{script}: {error}");
    }
}

#[test]
fn an_agent_without_a_readable_script_ends_before_it_has_begun() {
    let stage = Stage::new("[[scenario]]\nmatsch = \"x\"");

    let played = stage.play(&task("hello"));

    assert_eq!((played.code, played.stdout.as_str(), played.end), (Some(2), "", crashed("with exit code 2")));
    assert!(played.stderr.contains("line 2") && played.stderr.contains("matsch"), "{}", played.stderr);
    assert!(!played.report.responded);
}

#[test]
fn an_agent_that_fails_at_its_start_prints_no_line() {
    let played = Stage::new("[default]\nfail-start = \"no such model\"").play(&task("hello"));

    assert_eq!((played.code, played.stdout.as_str()), (Some(2), ""));
    assert_eq!(played.stderr, "scripted-agent: no such model\n");
    assert_eq!(played.report.conversation, None);
}

#[test]
fn an_unknown_conversation_is_refused_as_the_real_ones_refuse_it() {
    let stage = doing("{ say = \"hello\" }");
    for id in ["scripted-0000000000000000", "../escape", ""] {
        let played = stage.play(&AgentTask { resume: Some(id.to_owned()), ..task("go on") });

        assert_eq!((played.code, &played.end), (Some(1), &SessionEnd::Refused));
        assert_eq!(played.report.error, Some(format!("no conversation found with id {id}")));
        assert!(!played.report.responded);
    }
}

#[test]
fn a_refusal_is_no_answer() {
    let played = doing("{ refuse = \"not logged in\" }, { say = \"never said\" }").play(&task("hello"));

    assert_eq!((played.code, &played.end, played.report.responded), (Some(1), &SessionEnd::Refused, false));
    assert_eq!(played.report.error.as_deref(), Some("not logged in"));
    assert_eq!(played.report.cost(), Cost::Known(MicroDollars(0)));
}

// Endings that are no success.

#[test]
fn an_agent_can_crash_with_an_exit_code_or_a_signal() {
    let exited = doing("{ say = \"hm\" }, { exit = 3 }").play(&task("hello"));
    let died = doing("{ say = \"hm\" }, { die = \"kill\" }").play(&task("hello"));

    assert_eq!((exited.code, exited.end), (Some(3), crashed("with exit code 3")));
    assert_eq!((died.code, died.end, died.report.claim.as_deref()), (None, crashed("without an exit code"), Some("hm")));
}

#[test]
fn an_exit_code_of_zero_does_not_hide_an_error() {
    let played = doing("{ fail = { reason = \"overloaded\", exit = 0 } }").play(&task("hello"));

    assert_eq!((played.code, played.end), (Some(0), SessionEnd::Crashed { reason: "overloaded".to_owned() }));
    assert_eq!(played.report.error.as_deref(), Some("overloaded"));
}

#[test]
fn an_agent_that_exits_with_zero_and_says_nothing_has_crashed() {
    assert_eq!(doing("{ exit = 0 }").play(&task("hello")).end, crashed("with exit code 0"));
}

#[test]
fn limits_say_until_when() {
    let until = Some(Timestamp(1_790_000_000_000));
    let cases = [
        ("{ rate-limit = { resets-at = 1790000000 } }", SessionEnd::RateLimited { until }),
        ("{ rate-limit = {} }", SessionEnd::RateLimited { until: None }),
        ("{ usage-limit = { resets-at = 1790000000 } }", SessionEnd::UsageLimit { until }),
        ("{ usage-limit = {} }", SessionEnd::UsageLimit { until: None }),
    ];
    for (action, end) in cases {
        let played = doing(action).play(&task("hello"));

        assert_eq!((played.code, played.end, played.report.responded), (Some(1), end, false), "{action}");
    }
    let SessionEnd::UsageLimit { until: Some(later) } = doing("{ usage-limit = { resets-in = 3600 } }").play(&task("hello")).end else {
        panic!("no usage limit");
    };
    assert!(later > Timestamp(1_600_003_600_000), "{later:?}");
}

#[test]
fn turns_beyond_the_cap_are_not_begun() {
    let stage = Stage::new("default.turn = [{ do = [{ say = \"one\" }] }, { do = [{ say = \"two\" }] }, { do = [{ say = \"three\" }] }]");

    let stopped = stage.play(&AgentTask { max_turns: Some(2), ..task("hello") });
    let enough = stage.play(&AgentTask { max_turns: Some(3), ..task("hello") });

    assert_eq!((stopped.code, &stopped.end, stopped.report.turns), (Some(1), &SessionEnd::TurnLimit, 2));
    assert_eq!(stopped.report.claim.as_deref(), Some("two"));
    assert_eq!((enough.code, &enough.end, enough.report.turns), (Some(0), &SessionEnd::Completed, 3));
}

#[test]
fn money_is_looked_at_after_a_turn() {
    let stage = Stage::new("default.turn = [{ cost = 0.75 }, { cost = \"1.5\" }, { do = [{ say = \"three\" }] }]");

    let played = stage.play(&AgentTask { max_cost: Some(MicroDollars::dollars(1)), ..task("hello") });

    assert_eq!((played.code, &played.end, played.report.turns), (Some(1), &SessionEnd::Budget, 2));
    assert_eq!(played.report.cost(), Cost::Known(MicroDollars(2_250_000)));
}

#[test]
fn a_result_that_stays_wrong_is_given_up_after_five_tries() {
    let played = doing("{ results = [{ passed = \"yes\" }, { reasoning = \"good\" }] }").play(&owing());

    let refused = played.tool_results().iter().filter(|(failed, _)| *failed).count();
    assert_eq!((played.code, &played.end, refused, played.report.result), (Some(1), &SessionEnd::NoResult, 5, None));
    assert_eq!(played.report.turns, 5);
}

#[test]
fn each_wrong_result_is_a_turn_that_the_cap_counts() {
    let task = AgentTask { max_turns: Some(2), ..owing() };

    let played = doing("{ results = [{ passed = 1 }, { passed = 2 }, { passed = true }] }").play(&task);

    assert_eq!((played.code, played.end, played.report.turns), (Some(1), SessionEnd::TurnLimit, 2));
}

#[test]
fn prose_in_place_of_a_result_is_no_result() {
    let played = doing("{ say = \"It looks fine to me.\" }").play(&owing());

    assert_eq!((played.code, played.end), (Some(0), SessionEnd::NoResult));
}

#[test]
fn a_wait_that_was_in_vain_is_an_error() {
    let played = doing("{ wait = { file = \"never\", ms = 5 } }").play(&task("hello"));

    assert_eq!(played.end, SessionEnd::Crashed { reason: "waited 5 ms in vain for never".to_owned() });
}

#[test]
fn a_session_that_may_only_look_changes_nothing() {
    let stage = doing(
        "{ run = \"touch a\" }, { write = { path = \"b\", content = \"\" } }, { commit = { message = \"c\" } }, { leave = { command = \"touch d\" } }",
    );

    let played = stage.play(&AgentTask { access: Access::ReadOnly, ..task("hello") });

    assert_eq!(played.end, SessionEnd::Completed);
    assert_eq!(played.tool_results(), vec![(true, "refused: this session may only look".to_owned()); 4]);
    assert_eq!(std::fs::read_dir(stage.work("")).unwrap().count(), 0);
}

// Lines that are none, and processes that stay.

#[test]
fn half_a_line_and_garbage_are_garbage_and_a_new_kind_is_counted() {
    let played = doing(
        r#"{ print = "not JSON" }, { print = '{"type":"novelty"}' }, { say = "hm" }, { print-part = '{"type":"resu' }, { die = "kill" }"#,
    )
    .play(&task("hello"));

    let garbage = played.events.iter().filter(|event| **event == AgentEvent::Garbage).count();
    assert_eq!((garbage, played.report.unknown_lines, played.report.claim.as_deref()), (2, 1, Some("hm")));
    assert!(matches!(played.end, SessionEnd::Crashed { .. }));
}

#[test]
fn a_huge_line_is_one_line() {
    let played = doing("{ huge-line = 3 }, { stderr = \"a warning\" }").play(&task("hello"));

    assert_eq!(played.end, SessionEnd::Completed);
    assert!(played.events.iter().any(|event| matches!(event, AgentEvent::Text(text) if text.len() == 3 << 20)));
    assert_eq!(played.stderr, "a warning\n");
}

#[test]
fn an_agent_that_ignores_requests_to_end_goes_on() {
    let stage =
        doing("\"ignore-term\", { write = { path = \"deaf\", content = \"\" } }, { wait = { file = \"go\" } }, { say = \"still here\" }");
    let mut child = stage.program(&task("hello")).spawn().unwrap();
    drop(child.stdin.take());
    assert!(until(|| stage.work("deaf").exists()));

    child.signal(Signal::Terminate).unwrap();
    stage.put("work/go", "");
    let mut stdout = String::new();
    std::fs::File::from(child.stdout.take().unwrap()).read_to_string(&mut stdout).unwrap();

    assert_eq!(Played::of(&stdout, child.wait().unwrap().code, false).report.claim.as_deref(), Some("still here"));
}

#[test]
fn an_agent_that_hangs_ends_when_it_is_asked_to_whether_before_or_after_its_result() {
    let before = doing("{ write = { path = \"begun\", content = \"\" } }, \"hang\"");
    let after = Stage::new(
        "[default]\nafter = [{ write = { path = \"begun\", content = \"\" } }, \"hang\"]\n[[default.turn]]\ndo = [{ say = \"done\" }]",
    );
    for (stage, end) in [(before, crashed("without an exit code")), (after, SessionEnd::Completed)] {
        let mut child = stage.program(&task("hello")).spawn().unwrap();
        drop(child.stdin.take());
        assert!(until(|| stage.work("begun").exists()));

        child.signal(Signal::Terminate).unwrap();
        let mut stdout = String::new();
        std::fs::File::from(child.stdout.take().unwrap()).read_to_string(&mut stdout).unwrap();

        assert_eq!(child.wait().unwrap().signal, Some(15));
        assert_eq!(Played::of(&stdout, None, false).end, end);
    }
}

#[test]
fn what_comes_after_the_result_decides_the_exit_and_not_the_end() {
    let played = Stage::new("[default]\nafter = [{ print = \"bye\" }, { exit = 7 }]").play(&task("hello"));

    assert_eq!((played.code, played.end), (Some(7), SessionEnd::Completed));
    assert!(played.stdout.ends_with("\nbye\n"), "{}", played.stdout);
}

#[test]
fn a_process_that_is_left_behind_outlives_the_agent_in_a_session_of_its_own() {
    for hold in [false, true] {
        let stage = doing(&format!(
            "{{ leave = {{ command = 'echo $$ > pid; exec sleep 1000', hold-stdout = {hold} }} }}, {{ wait = {{ file = \"pid\" }} }}"
        ));

        let played = stage.play(&task("hello"));

        let left = process_in(&stage.work("pid"));
        let stdout = std::fs::read_link(format!("/proc/{}/fd/1", left.pid)).unwrap();
        assert_eq!((played.end, left.is_alive()), (SessionEnd::Completed, true));
        assert_eq!(stdout.to_string_lossy().starts_with("pipe:"), hold, "{}", stdout.display());
        left.signal(Signal::Kill).unwrap();
        assert!(is_gone(&left));
    }
}

#[test]
fn an_agent_that_is_busy_says_nothing_and_uses_the_processor() {
    let stage = doing("{ busy = { until-file = \"go\" } }, { say = \"done\" }");
    let mut child = stage.program(&task("hello")).spawn().unwrap();
    drop(child.stdin.take());

    assert!(until(|| processor_ticks(child.identity().unwrap()) > 5));
    stage.put("work/go", "");
    let mut stdout = String::new();
    std::fs::File::from(child.stdout.take().unwrap()).read_to_string(&mut stdout).unwrap();

    let played = Played::of(&stdout, child.wait().unwrap().code, false);
    let [started, text, turn, finished] = played.events.as_slice() else { panic!("{:?}", played.events) };
    assert!(matches!((started, text, turn), (AgentEvent::Started { .. }, AgentEvent::Text(_), AgentEvent::Turn)), "{finished:?}");
}

fn processor_ticks(process: ProcessIdentity) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse().unwrap()
}

#[test]
fn heartbeats_are_lines_of_no_weight() {
    let stage = doing("{ heartbeat = { until-file = \"go\" } }");
    let printed = stage.path("printed");
    let file = std::fs::File::create(&printed).unwrap();
    let mut child = stage.program(&task("hello")).stdout(Sink::File(file)).spawn().unwrap();
    drop(child.stdin.take());

    assert!(until(|| std::fs::read_to_string(&printed).unwrap().matches("heartbeat").count() >= 3));
    stage.put("work/go", "");
    assert_eq!(child.wait().unwrap().code, Some(0));

    let played = Played::of(&std::fs::read_to_string(&printed).unwrap(), Some(0), false);
    assert!(played.events.iter().filter(|event| **event == AgentEvent::Nothing).count() >= 3);
}

// What works.

#[test]
fn the_scripts_in_the_documentation_have_no_mistake() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripted-engine.md")).unwrap();
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let scripts: Vec<&&str> = blocks.iter().filter(|block| block.contains("turn")).collect();

    assert_eq!(scripts.len(), 3);
    for script in scripts {
        check_script(&Stage::new(script).script).unwrap();
    }
    for row in page.lines().filter(|line| line.starts_with("| `{") || line.starts_with("| `\"")) {
        let action = row.split('`').nth(1).unwrap();
        check_script(&doing(action).script).unwrap();
    }
}

#[test]
fn the_first_scenario_whose_conditions_hold_is_followed() {
    let stage = Stage::new(concat!(
        "[[scenario]]\ncontains = \"review\"\nif-file = \"fixed\"\nturn = [{ do = [{ say = \"good\" }] }]\n",
        "[[scenario]]\ncontains = \"review\"\nunless-file = \"fixed\"\nturn = [{ do = [{ say = \"bad\" }] }]\n",
        "[[scenario]]\nmatch = '(?i)^write \\w+$'\non = \"start\"\nturn = [{ do = [{ say = \"written\" }] }]\n",
        "[[scenario]]\non = \"resume\"\nturn = [{ do = [{ say = \"resumed\" }] }]\n",
        "# Never reached by these prompts, so nobody stumbles over it.\n[[scenario]]\ncontains = \"nobody\"\nmatch = \"(\"\n",
    ));
    let said = |prompt: &str| stage.play(&task(prompt)).report.claim.unwrap();

    assert_eq!([said("please review"), said("Write hello"), said("write")], ["bad", "written", "Nothing is scripted for this prompt."]);
    stage.put("work/fixed", "");
    let id = stage.play(&task("x")).report.conversation;
    assert_eq!(said("please review"), "good");
    assert_eq!(stage.play(&AgentTask { resume: id, ..task("Write hello") }).report.claim.as_deref(), Some("resumed"));
}

#[test]
fn an_agent_runs_writes_and_commits() {
    let stage = doing(concat!(
        "{ think = \"how?\" }, { run = \"git init -q; echo out; echo err >&2; exit 3\" }, { write = { path = \"a/b.txt\", content = \"hi\\n\" } },",
        "{ commit = { message = \"add b\", paths = [\"a\"] } }, { run = \"git log --format=%s\" }, { commit = { message = \"nothing\" } }",
    ));

    let played = stage.play(&task("hello"));

    let results = played.tool_results();
    assert_eq!(
        results[..4],
        [
            (true, "exit code 3\nout\nerr\n".to_owned()),
            (false, "3 bytes written".to_owned()),
            (false, String::new()),
            (false, "add b\n".to_owned())
        ]
    );
    assert!(results[4].0, "there was nothing to commit: {results:?}");
    assert_eq!((played.end, played.report.turns), (SessionEnd::Completed, 1));
    assert!(played.events.contains(&AgentEvent::Thinking("how?".to_owned())));
}

#[test]
fn usage_and_cost_add_up_by_model_and_an_unknown_cost_stays_unknown() {
    let usage = "usage = { input = 10, output = 2, cache-read = 3, cache-write = 4 }";
    let stage = Stage::new(&format!("default.turn = [{{ {usage}, cost = 0.25 }}, {{ {usage}, cost = 1 }}]"));
    let unknown = Stage::new("default.turn = [{ cost = 0.25 }, { cost = \"unknown\" }]");

    let played = stage.play(&AgentTask { model: Some("strong".to_owned()), ..task("hello") });

    let usage = Usage { input: 20, output: 4, cache_read: 6, cache_write: 8 };
    assert_eq!(played.report.spent, [Spending { model: "strong".to_owned(), usage, cost: Cost::Known(MicroDollars(1_250_000)) }]);
    assert_eq!(played.report.model.as_deref(), Some("strong"));
    let capped = unknown.play(&AgentTask { max_cost: Some(MicroDollars(1)), ..task("hello") });
    assert_eq!(capped.end, SessionEnd::Budget, "what was known before was too much");
    assert_eq!(unknown.play(&task("hello")).report.cost(), Cost::Unknown);
}

#[test]
fn a_result_is_what_the_schema_asks_for_unless_the_script_says_otherwise() {
    let right = doing("{ results = [{ passed = \"yes\" }, { passed = true }] }, { say = \"judged\" }").play(&owing());
    let wrong = doing("{ unvalidated-result = { passed = \"yes\" } }").play(&owing());
    let unasked = doing("{ result = { passed = true } }").play(&task("judge this"));

    assert_eq!((right.end, right.report.result.as_deref()), (SessionEnd::Completed, Some(r#"{"passed":true}"#)));
    assert_eq!((right.report.turns, right.report.claim.as_deref()), (2, Some("judged")));
    assert_eq!((wrong.end, wrong.report.result.as_deref()), (SessionEnd::Completed, Some(r#"{"passed":"yes"}"#)));
    assert_eq!((unasked.report.result, unasked.report.claim.as_deref()), (None, Some(r#"{"passed":true}"#)));
}

#[test]
fn a_conversation_that_goes_on_repeats_nothing_that_it_has_done() {
    let stage = Stage::new(concat!(
        "[default]\ncontinue = true\n",
        "turn = [{ do = [{ run = \"echo one >> log\" }] }, { do = [{ run = \"echo two >> log\" }, { die = \"kill\" }, { run = \"echo three >> log\" }] },\n",
        "{ do = [{ usage-limit = {} }, { run = \"echo four >> log\" }] }]\n",
    ));

    let died = stage.play(&task("hello"));
    let resume = || AgentTask { resume: died.report.conversation.clone(), ..task("go on") };
    let limited = stage.play(&resume());
    let ended = stage.play(&resume());

    assert_eq!((died.code, limited.end, ended.end), (None, SessionEnd::UsageLimit { until: None }, SessionEnd::Completed));
    assert_eq!(stage.read("work/log"), "one\ntwo\nthree\nfour\n");
    assert_eq!((died.report.turns, limited.report.turns, ended.report.turns), (1, 1, 1));
}

#[test]
fn a_kill_in_the_midst_of_an_action_repeats_that_one_only() {
    let kill_once = "echo two >> log; [ -e killed ] || { touch killed; kill -9 $PPID; }";
    let stage = Stage::new(&format!(
        "[default]\ncontinue = true\nturn = [{{ do = [{{ run = \"echo one >> log\" }}, {{ run = '{kill_once}' }}] }}]"
    ));

    let died = stage.play(&task("hello"));
    let ended = stage.play(&AgentTask { resume: died.report.conversation, ..task("go on") });

    assert_eq!((died.code, ended.end), (None, SessionEnd::Completed));
    assert_eq!(stage.read("work/log"), "one\ntwo\ntwo\n");
}

#[test]
fn a_conversation_is_held_by_one_process_at_a_time() {
    let stage = doing("{ write = { path = \"begun\", content = \"\" } }, \"hang\"");
    let printed = stage.path("printed");
    let file = std::fs::File::create(&printed).unwrap();
    let mut child = stage.program(&task("hello")).stdout(Sink::File(file)).spawn().unwrap();
    drop(child.stdin.take());
    assert!(until(|| stage.work("begun").exists()));
    let id = Played::of(&std::fs::read_to_string(&printed).unwrap(), None, false).report.conversation;

    let second = stage.play(&AgentTask { resume: id, ..task("go on") });

    assert_eq!(second.code, Some(2));
    assert!(second.stderr.contains("is in use"), "{}", second.stderr);
    child.signal(Signal::Kill).unwrap();
    child.wait().unwrap();
}

#[test]
fn sixty_four_agents_at_once_lose_nothing() {
    let stage = doing("{ run = \"echo line >> log\" }, { say = \"done\" }");
    let children: Vec<_> = (0..64)
        .map(|_| {
            let mut child = stage.program(&task("hello")).spawn().unwrap();
            drop(child.stdin.take());
            child
        })
        .collect();

    let mut conversations = std::collections::BTreeSet::new();
    for mut child in children {
        let mut stdout = String::new();
        std::fs::File::from(child.stdout.take().unwrap()).read_to_string(&mut stdout).unwrap();
        let played = Played::of(&stdout, child.wait().unwrap().code, false);
        assert_eq!(played.end, SessionEnd::Completed, "{stdout}");
        conversations.extend(played.report.conversation);
    }

    assert_eq!((conversations.len(), stage.read("work/log").lines().count()), (64, 64));
}

#[test]
fn a_prompt_of_megabytes_arrives() {
    let stage = Stage::new("[[scenario]]\nmatch = 'needle$'\nturn = [{ do = [{ say = \"found\" }] }]");

    let played = stage.play(&task(&format!("{}needle", "hay ".repeat(1 << 19))));

    assert_eq!(played.report.claim.as_deref(), Some("found"));
}
