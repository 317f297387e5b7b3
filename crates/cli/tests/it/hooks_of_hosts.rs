//! The real Claude Code and the real Codex call the hooks that were installed for them, and their model gets to see what was said.

use proctor_testkit::{Output, Server, World, loopback};

use crate::hooks::dead_end;
use crate::world;

fn here(host: &str, script: &str) -> (World, Server) {
    let mut world = world().with_file("src/a.rs", "fn a() {}\n").with_file("long.txt", &"text\n".repeat(400));
    dead_end(&world, "cache the image by tag", "src/a.rs");
    let _ = world.proctor(&["hook", "install", host, "--read-budget"]).expect_code(0);
    let model = loopback(script);
    for (name, value) in [("ANTHROPIC_BASE_URL", model.url()), ("ANTHROPIC_API_KEY", "dummy".into()), ("OPENAI_API_KEY", "dummy".into())] {
        world.set_variable(name, value);
    }
    world.set_variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    (world, model)
}

/// The requests of the main conversation, in order.
fn bodies(model: &Server, output: &Output) -> Vec<String> {
    let asked = |request: &proctor_loopback::RecordedRequest| {
        request.exchange.as_ref().is_some_and(|exchange| exchange.prompt.contains("Change it"))
    };
    let bodies: Vec<String> = model.requests().into_iter().filter(asked).map(|request| request.body).collect();
    assert!(bodies.len() > 1, "it asked once and again: {output}\n{:#?}", model.requests());
    bodies
}

#[test]
fn claude_code_is_told_of_the_memory_and_of_a_ruling_before_it_edits() {
    let Some(program) = proctor_testkit::claude() else { return };
    let script = r#"
[[scenario]]
match = 'Change it'
turn = [
  { tools = [{ name = "Read", input = { file_path = "REPOSITORY/src/a.rs", limit = 10 } }] },
  { tools = [{ name = "Edit", input = { file_path = "REPOSITORY/src/a.rs", old_string = "fn a", new_string = "fn b" } }] },
  { tools = [{ name = "Read", input = { file_path = "REPOSITORY/long.txt" } }] },
  { text = "Done." },
]
"#;
    let (mut world, _) = here("claude-code", "[default]\nturn = [{ text = 'x' }]");
    let model = loopback(&script.replace("REPOSITORY", world.repository().to_str().unwrap()));
    world.set_variable("ANTHROPIC_BASE_URL", model.url());

    let output = world.run(program, &["-p", "Change it", "--permission-mode", "acceptEdits"]).expect_code(0);

    let bodies = bodies(&model, &output);
    assert_eq!(bodies.len(), 4, "{output}");
    assert!(bodies[0].contains("Proctor keeps a memory of what others saw here: 1 dead end"), "{}", bodies[0]);
    assert!(!bodies[1].contains("Memory has a record about a.rs"), "reading is no edit");
    assert!(bodies[2].contains("Memory has a record about a.rs"), "{}", bodies[2]);
    assert!(bodies[3].contains("Not read: long.txt would give 400 lines"), "{}", bodies[3]);
    assert_eq!(world.read("src/a.rs"), "fn b() {}\n", "the edit was not stopped");
}

#[test]
fn codex_is_told_of_the_memory_and_of_a_ruling_before_it_patches() {
    let Some(program) = proctor_testkit::codex() else { return };
    let script = r#"
[[scenario]]
match = 'Change it'
turn = [
  { tools = [{ name = "exec", input = { input = 'text(await tools.apply_patch("*** Begin Patch\n*** Update File: src/a.rs\n@@\n-fn a() {}\n+fn b() {}\n*** End Patch\n"))' } }] },
  { tools = [{ shell = "cat long.txt" }] },
  { text = "Done." },
]
"#;
    let (world, model) = here("codex", script);
    let address = format!("openai_base_url=\"{}/v1\"", model.url());

    let options = [
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-hook-trust",
        "--sandbox",
        "danger-full-access",
        "-c",
        &address,
        "Change it",
    ];
    let output =
        world.run("sh", &[&["-c", "exec \"$0\" \"$@\" < /dev/null", program.to_str().unwrap()], &options[..]].concat()).expect_code(0);

    let bodies = bodies(&model, &output);
    assert!(bodies[0].contains("Proctor keeps a memory of what others saw here: 1 dead end"), "{output}\n{}", bodies[0]);
    assert!(bodies[1].contains("Memory has a record about a.rs"), "{output}\n{}", bodies[1]);
    assert!(bodies[2].contains("Not read: long.txt would give 400 lines"), "{output}\n{}", bodies[2]);
    assert_eq!(world.read("src/a.rs"), "fn b() {}\n", "the patch was not stopped");
}
