//! Engines that the settings make up.

use insta::assert_snapshot;
use proctor_testkit::World;
use serde_json::json;

use crate::world;

/// A step whose agent is judged.
const CARD: &str = "description: Says hello\nsteps:\n  - id: greet\n    run:\n      agents:\n        - prompt: Write hello.txt\n          \
                    model: strong\n    validate:\n      severity: review\n      instructions:\n        - It is polite.\n";

/// Does the work, and judges it.
const PROGRAM: &str = r#"#!/bin/bash
asked=$(cat)
case $asked in
  *passed*) echo 'I read it: {"passed": true, "reasoning": "It says hello."}' ;;
  *) echo "hello from $PROCTOR_MODEL" > hello.txt; echo "I wrote $1." ;;
esac
"#;

/// A world whose user has an engine of their own, a program that prints an answer.
fn world_with_own() -> World {
    let world = world().with_card("greet", CARD).with_file("../agent.sh", PROGRAM);
    let program = world.root().join("agent.sh");
    let settings = format!("[engines.mine]\ncommand = ['bash', '{}', 'hello.txt']\nmodels = {{ strong = 'best-1' }}\n", program.display());
    world.write("../config/proctor/config.toml", settings);
    let config = world.root().join("config");
    world.with_variable("XDG_CONFIG_HOME", config).with_variable("PROCTOR_CONFINE", "none")
}

#[test]
fn a_program_that_prints_answers_does_a_step_and_judges_it() {
    let world = world_with_own();
    world.commit_all("Begin");

    let _ = world.proctor(&["procedure", "run", "greet", "--engine", "mine"]).expect_code(0);

    assert_eq!(world.read("hello.txt"), "hello from best-1\n");
    let shown = world.proctor(&["procedure", "status", "--json"]).expect_code(0).json();
    assert_eq!(shown["steps"][0]["validate"]["reasoning"], "It says hello.");
    assert_eq!((&shown["cost_complete"], &shown["steps"][0]["run"]["sessions"][0]["cost_usd"]), (&json!(false), &json!(null)));
    let listed = world.proctor(&["engines", "--json"]).expect_code(0).json();
    let mine = listed["engines"].as_array().unwrap().iter().find(|engine| engine["name"] == "mine").unwrap();
    assert_eq!((&mine["kind"], &mine["usable"], &mine["models"]["strong"]), (&json!("command"), &json!(true), &json!("best-1")));
}

#[test]
fn an_engine_that_nobody_made_up_is_refused_with_those_that_there_are() {
    let world = world_with_own();
    world.commit_all("Begin");

    assert_snapshot!(world.proctor(&["procedure", "run", "greet", "--engine", "yours"]).snapshot(), @"
    exit 2
    --- stderr
    error: failed to choose the engine `yours`; there are claude, codex, opencode, scripted, mine

    hint: `proctor engines` lists what can drive agents here
    ");
}

#[test]
fn an_engine_of_a_repository_runs_only_with_consent() {
    let world = world().with_card("greet", CARD).with_file("agent.sh", PROGRAM).with_variable("PROCTOR_CONFINE", "none");
    world.write("proctor.toml", "engine = 'ours'\n[engines.ours]\ncommand = ['bash', 'agent.sh', 'hello.txt']\n");
    world.commit_all("Begin");

    let refused = world.proctor(&["procedure", "run", "greet"]).expect_code(4);
    let looked = world.proctor(&["runs"]);

    assert!(refused.stderr.contains("asks for what you have not accepted: engines"), "{refused}");
    let _ = looked.expect_code(0);
    let accepted = world.proctor(&["trust", "--yes"]).expect_code(0);
    assert!(accepted.stderr.contains("to run these programs as engines (engines): ours: bash agent.sh hello.txt (command)"), "{accepted}");
    let _ = world.proctor(&["procedure", "run", "greet"]).expect_code(0);
    assert!(world.has("hello.txt"));
}

#[test]
fn a_made_up_engine_that_can_not_be_meant_is_shown_at_its_place() {
    let world = world();
    let said = |text: &str| {
        world.write("proctor.toml", text);
        world.proctor(&["engines"]).expect_code(2).stderr
    };

    for (text, expected) in [
        ("[engines.cluade]\nprogram = 'x'\n", "did you mean `engines.claude`?"),
        ("[engines.mine]\ncommand = []\n", "`engines.mine.command` wants a program and its arguments"),
        ("[engines.mine]\ncommand = 'mine --print'\n", "`engines.mine.command` wants a list of strings"),
        ("[engines.Mine]\ncommand = ['mine']\n", "`Mine` is no name of an engine"),
        ("[engines.mine]\ncommand = ['mine']\npermision = 'ask'\n", "did you mean `engines.mine.permission`?"),
        ("[engines.mine]\ncommand = ['mine']\nmodels = { best = 'x' }\n", "unknown key `engines.mine.models.best`"),
        ("[engines.mine]\ncommand = ['mine']\nmodels = { strong = '--x' }\n", "`engines.mine.models.strong`"),
    ] {
        let stderr = said(text);
        assert!(stderr.contains(expected), "{text}: {stderr}");
    }
}

/// Two accounts of one engine, whose programs say which variable they got.
#[test]
fn two_accounts_of_one_engine_have_each_its_own_variables_and_none_of_the_callers() {
    let world = world().with_variable("WORK_KEY", "key-of-work").with_variable("PROCTOR_CONFINE", "none");
    world.write("../claude.sh", "#!/bin/bash\n[ \"$1\" = --version ] && echo '2.1.332 (Claude Code)' || { cat >/dev/null; exit 1; }\n");
    let program = world.root().join("claude.sh");
    let account = |name: &str, env: &str| format!("[engines.{name}]\nclaude = ['bash', '{}']\nenv = {{ {env} }}\n", program.display());
    let folder = world.root().join("work-claude");
    let settings =
        account("work", "ANTHROPIC_API_KEY = '$WORK_KEY'") + &account("home", &format!("CLAUDE_CONFIG_DIR = '{}'", folder.display()));
    world.write(world.user_settings(), settings);

    let listed = world.proctor(&["engines", "--json"]).expect_code(0).json();

    let of = |name: &str| listed["engines"].as_array().unwrap().iter().find(|engine| engine["name"] == name).unwrap().clone();
    assert_eq!((&of("work")["kind"], &of("work")["login_by"]), (&json!("claude"), &json!("ANTHROPIC_API_KEY")));
    let ambient = world.with_variable("ANTHROPIC_API_KEY", "key-of-somebody");
    let listed = ambient.proctor(&["engines", "--json"]).expect_code(0).json();
    let of = |name: &str| listed["engines"].as_array().unwrap().iter().find(|engine| engine["name"] == name).unwrap().clone();
    assert_eq!(of("claude")["login_by"], "ANTHROPIC_API_KEY");
    assert_eq!((&of("home")["login"], &of("home")["login_by"]), (&json!("logged-out"), &json!(null)), "it takes nobody else's key");
}

#[test]
fn an_account_whose_key_is_not_there_is_refused() {
    let world = world_with_own();
    let settings = "[engines.mine]\ncommand = ['bash', 'agent.sh']\nenv = { TEAM = '$TEAM_KEY' }\n";
    world.write("../config/proctor/config.toml", settings);
    world.commit_all("Begin");

    let refused = world.proctor(&["procedure", "run", "greet", "--engine", "mine"]).expect_code(4);

    assert!(refused.stderr.contains("its settings take a value from the variable TEAM_KEY, which is not set"), "{refused}");
    let listed = world.proctor(&["engines", "--json"]).expect_code(0).json();
    let mine = listed["engines"].as_array().unwrap().iter().find(|engine| engine["name"] == "mine").unwrap();
    assert_eq!(mine["usable"], false);
}

#[test]
fn a_limit_that_one_run_met_holds_the_next_one_of_that_account_back_and_not_that_of_another() {
    let world = world().with_card("greet", "description: d\nsteps:\n  - id: greet\n    run:\n      agents:\n        - prompt: Write\n");
    let (limited, good) =
        ("[[default.turn]]\ndo = [{ usage-limit = { resets-in = 3600 } }]\n", "[[default.turn]]\ndo = [{ say = 'Done.' }]\n");
    world.write("../limited.toml", limited);
    world.write("../good.toml", good);
    world.commit_all("Begin");
    let run = |script: &str, more: &[&str]| {
        let script = world.root().join(script).display().to_string();
        world.proctor(&[["procedure", "run", "greet", "--script", &script].as_slice(), more].concat())
    };

    let _ = run("limited.toml", &[]).expect_code(5);
    let held = run("good.toml", &[]).expect_code(5);
    let asked = run("good.toml", &["--ignore-limits"]).expect_code(0);

    assert!(held.stderr.contains("scripted is at a limit until"), "{held}");
    let shown = world.proctor(&["runs", "--json"]).expect_code(0).json();
    assert_eq!(shown["runs"].as_array().map(Vec::len), Some(3), "{asked}");
}
