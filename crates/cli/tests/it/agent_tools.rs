//! What agents tell by the tools of their sessions, and what it comes to in a run.

use proctor_domain::session::Work;
use proctor_process::confine::BoxKind;
use proctor_testkit::{Output, World};

use crate::agent_scene::{
    conversation, file_of, in_box, kind_of, report, step_of, wait_until_printed, with_container, without_network, world_of,
};
use crate::box_scene::{ALL_KINDS, is_here};
use crate::procedures::{LIMIT, newest_run};
use crate::scene::record;

const ONE: &str = "steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";
const CHECKED: &str =
    "steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n    validate:\n      shells: ['test -e built']\n";
const ISOLATED: &str = "isolation: worktree\nsteps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";

/// An agent that does its work, keeps a note, and says that it is blocked.
const BLOCKED: &str = r#"[[default.turn]]
do = [
  { write = { path = "built", content = "x" } },
  { call = { tool = "note", input = { text = "The cache was cold." } } },
  { call = { tool = "report_blocked", input = { reason = "There is no network." } } },
  { say = "I stopped." },
]
"#;

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

#[test]
fn an_agent_that_is_blocked_fails_a_step_that_nothing_checks() {
    let world = world_of(ONE, BLOCKED);

    let output = run(&world).expect_code(1);

    assert!(output.stderr.contains("agent 1 says that it is blocked: There is no network."), "{output}");
}

#[test]
fn where_something_checks_the_work_the_check_decides_and_what_was_told_is_shown() {
    let world = world_of(CHECKED, BLOCKED);

    let _ = run(&world).expect_code(0);

    let shown = world.proctor(&["show", &newest_run(&world)]).expect_code(0).stdout;
    for told in ["note of agent 1:\n    | The cache was cold.\n", "agent 1 says that it is blocked:\n    | There is no network.\n"] {
        assert!(shown.contains(told), "{shown}");
    }
    let step = step_of(&world);
    let told = &report(&step, Work::Agent(1)).agent.as_ref().unwrap().told;
    assert_eq!((told.notes.as_slice(), told.blocked.as_deref()), (&["The cache was cold.".to_owned()][..], Some("There is no network.")));
}

#[test]
fn the_tools_of_a_session_are_reached_from_its_box() {
    for kind in ALL_KINDS {
        if !is_here(kind) {
            continue;
        }
        // They need no network.
        let world = without_network(in_box(with_container(world_of(ISOLATED, BLOCKED)), kind.name()));

        let output = run(&world).expect_code(1);

        assert!(output.stderr.contains("agent 1 says that it is blocked: There is no network."), "{kind}: {output}");
        assert_eq!(kind_of(&world).as_deref(), Some(kind.name()));
    }
}

#[test]
fn another_sessions_tools_are_called_from_no_box_and_from_none() {
    let standing = r#"[[default.turn]]
do = [{ say = "Standing." }, { wait = { file = "GO" } }]
"#;
    for kind in [BoxKind::Bwrap, BoxKind::Landlock, BoxKind::None] {
        if kind != BoxKind::None && !is_here(kind) {
            continue;
        }
        let other = world_of(ONE, "");
        let go = other.root().join("go");
        other.write("../agent.toml", standing.replace("GO", &go.display().to_string()));
        let driver = other.start(&["procedure", "run", "work"]);
        let socket = wait_until_printed(&other, "Standing.").join("engine/tools.sock");
        assert!(socket.exists(), "the session has tools");
        let world = world_of(ISOLATED, "");
        let call = format!("'{}' tools '{}' < /dev/null > seen 2>&1; echo $? >> seen", world.program().display(), socket.display());
        world.write("../agent.toml", format!("[[default.turn]]\ndo = [{{ run = '''{call}''' }}]\n"));
        let world = in_box(world, kind.name());

        let _ = run(&world).expect_code(0);

        other.write("../go", "");
        let _ = driver.wait(LIMIT).expect_code(0);
        let seen = world.read("seen");
        assert!(seen.starts_with("proctor tools: failed to ") && seen.ends_with("\n1\n"), "{kind}: {seen}");
        let hidden = seen.contains("No such file");
        assert!(hidden || seen.contains("it hung up"), "{kind}: {seen}");
    }
}

#[test]
fn the_bridge_alone_says_what_it_is_for() {
    let world = crate::world();

    let output = world.proctor(&["tools"]);

    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output}");
    assert!(output.stderr.contains("it takes the socket of a session"), "{output}");
}

/// An agent that asks in the middle of its work, and finishes it when it is told.
const ASKS: &str = r#"[[scenario]]
contains = "The left one."
turn = [{ do = [{ write = { path = "built", content = "x" } }, { say = "Done." }] }]

[[default.turn]]
do = [
  { write = { path = "half", content = "x" } },
  { call = { tool = "ask", input = { question = "Left or right?" } } },
  { say = "I asked." },
]
"#;

fn asking(card: &str) -> (World, String) {
    let world = world_of(card, ASKS);
    let output = run(&world).expect_code(5);
    let run = newest_run(&world);
    assert!(output.stderr.contains("the agent of step `build` asks: Left or right?"), "{output}");
    assert!(output.stderr.contains(&format!("`proctor answer {run} -m 'your answer' --resume`")), "{output}");
    (world, run)
}

#[test]
fn an_agent_that_asks_parks_its_run_and_goes_on_in_its_conversation_with_the_answer() {
    let (world, run) = asking(ONE);
    let standing = world.proctor(&["procedure", "status", &run, "--json"]).json()["standing"].clone();
    assert_eq!((&standing["state"], &standing["waits_for"]), (&"parked".into(), &"answer".into()), "{standing}");

    let _ = world.proctor(&["procedure", "resume", &run]).expect_code(5);
    let answered = world.proctor(&["answer", &run, "-m", "The left one."]).expect_code(0);
    let waiting = world.proctor(&["procedure", "status", &run]).stdout;
    let _ = world.proctor(&["procedure", "resume", &run]).expect_code(0);

    assert!(answered.stderr.contains("step `build`") && answered.stderr.contains("is answered"), "{answered}");
    assert!(waiting.contains("the agent of step `build` was answered, and the run has not gone on yet"), "{waiting}");
    let step = step_of(&world);
    assert!(world.has("built") && world.has("half"));
    assert_eq!((step.sessions.len(), step.attempts), (2, 1), "a question is no failed attempt");
    assert_eq!(conversation(&step.sessions[0]), conversation(&step.sessions[1]));
    let prompt = file_of(&world, &step.sessions[1], "prompt.md");
    assert!(prompt.starts_with("You asked a person, who answers:\n\nThe left one.\n"), "{prompt}");
    let shown = world.proctor(&["show", &run]).stdout;
    assert!(shown.contains("agent 1 asks:\n    | Left or right?\n") && shown.contains(": The left one."), "{shown}");
    let told = record(&world)["steps"][0]["answers"][0].clone();
    assert_eq!((&told["question"], &told["answer"]), (&"Left or right?".into(), &"The left one.".into()));
}

#[test]
fn an_agent_that_does_not_remember_its_question_is_told_it_with_the_answer() {
    let (world, run) = asking(ONE);
    for file in std::fs::read_dir(world.state().join("conversations")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }

    let _ = world.proctor(&["answer", &run, "-m", "The left one.", "--resume"]).expect_code(0);

    let step = step_of(&world);
    let prompt = file_of(&world, step.sessions.last().unwrap(), "prompt.md");
    assert!(prompt.contains("Left or right?") && prompt.contains("The person answered:\n\nThe left one.\n"), "{prompt}");
    assert!(world.has("built"));
}

#[test]
fn an_answer_to_an_agent_has_words_and_a_rejection_fails_the_step() {
    let (world, run) = asking(CHECKED);

    for wordless in [vec!["answer", &run], vec!["answer", &run, "approve"]] {
        let output = world.proctor(&wordless).expect_code(4);
        assert!(output.stderr.contains("the answer has no words"), "{output}");
    }
    let _ = world.proctor(&["answer", &run, "reject", "-m", "Neither."]).expect_code(0);
    let output = world.proctor(&["procedure", "resume", &run]).expect_code(1);

    assert!(output.stderr.contains("it was rejected: Neither."), "{output}");
    assert!(!world.has("built"));
}
