//! `proctor mcp` with programs of others: the suite that checks servers of the protocol, the inspector's command line, and real agents.
//! Without their programs these tests say that they are skipped.

use std::path::Path;

use proctor_testkit::{Output, World, loopback};
use serde_json::{Value, json};

use crate::mcp_http::Served;
use crate::world;

/// Scenarios that a server can only pass which has just what they call: tools, prompts and resources of the suite's own example
/// server, and abilities that ours does not say it has. Everything else holds for any server.
const OF_THE_EXAMPLE_SERVER: [&str; 25] = [
    "logging-set-level",
    "completion-complete",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
];

/// Gives every request the token: the suite knows none.
const WITH_TOKEN: &str = "import { subscribe } from 'node:diagnostics_channel';\n\
                          subscribe('undici:request:create', ({ request }) => request.addHeader('authorization', `Bearer ${process.env.TOKEN}`));\n";

#[test]
fn the_official_suite_finds_nothing_that_holds_for_every_server() {
    let Some((node, suite)) = proctor_testkit::mcp_conformance() else { return };
    let world = world();
    let served = Served::start(&world, &[]);
    let world = world.with_variable("TOKEN", served.token.as_str()).with_variable("NODE_OPTIONS", "--import ./with-token.mjs");
    world.write("with-token.mjs", WITH_TOKEN);
    let expected: String = OF_THE_EXAMPLE_SERVER.iter().map(|scenario| format!("  - {scenario}\n")).collect();
    world.write("expected.yml", format!("server:\n{expected}"));
    let suite = suite.to_str().expect("a path");

    let output = world.run(&node, &[suite, "server", "--url", &served.url(), "--expected-failures", "expected.yml"]);
    let polled = world.run(&node, &[suite, "server", "--url", &served.url(), "--scenario", "server-sse-polling"]);

    let output = output.expect_code(0);
    for scenario in ["server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"] {
        assert!(output.stdout.contains(&format!("✓ {scenario}: ")), "{scenario}: {output}");
    }
    assert!(polled.stdout.contains("Passed: 2/2, 0 failed"), "{polled}");
}

/// What the inspector's command line says of a method.
fn inspected(world: &World, more: &[&str]) -> Option<Output> {
    let (node, inspector) = proctor_testkit::mcp_inspector()?;
    let proctor = world.program().to_str().expect("a path");
    Some(world.run(&node, &[&[inspector.to_str().expect("a path"), "--cli", proctor, "mcp"], more].concat()))
}

#[test]
fn the_inspectors_command_line_lists_and_calls_the_tools() {
    let world = world();
    let Some(listed) = inspected(&world, &["--method", "tools/list"]) else { return };
    let call = ["--method", "tools/call", "--tool-name", "record_dead_end", "--tool-arg", "route=a", "--tool-arg", "observation=b"];

    let called = inspected(&world, &call).expect("it is there").expect_code(0).json();

    let tools = listed.expect_code(0).json()["tools"].as_array().expect("tools").len();
    assert_eq!((tools, &called["isError"], &called["structuredContent"]["what"]), (10, &false.into(), &"proposed".into()));
}

/// A world with a dead end, in which a model on this machine asks for it before it says that it is done.
fn asking() -> (World, proctor_testkit::Server) {
    let mut world = world();
    let add = ["memory", "add", "fails", "--route", "cache the image by tag", "--observation", "the old image was used"];
    let _ = world.proctor(&add).expect_code(0);
    let model = loopback(
        r#"
[[scenario]]
name = "asks"
match = 'Cache the image'

[[scenario.turn]]
text = "I ask first."
tools = [{ name = "mcp__proctor__before_you_try", input = { approach = "cache the docker image by its tag" } }]

[[scenario.turn]]
text = "Done."
"#,
    );
    world.set_variable("ANTHROPIC_BASE_URL", model.url());
    world.set_variable("ANTHROPIC_API_KEY", "dummy");
    world.set_variable("CODEX_API_KEY", "dummy");
    (world, model)
}

/// The model was told of the dead end.
fn assert_told(model: &proctor_testkit::Server, output: &Output) {
    let requests = model.requests();
    let told = requests.iter().any(|request| request.body.to_string().contains("the old image was used"));
    assert!(told, "{output}");
}

#[test]
fn claude_code_asks_before_it_tries() {
    let Some(claude) = proctor_testkit::claude() else { return };
    let (world, model) = asking();
    let config: Value = json!({ "mcpServers": { "proctor": { "command": world.program(), "args": ["mcp"] } } });
    world.write("mcp.json", config.to_string());
    let tools = ["--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__proctor__before_you_try"];

    let output = world.run(claude, &[&["-p", "Cache the image"], &tools[..]].concat()).expect_code(0);

    assert!(output.stdout.contains("Done."), "{output}");
    assert_told(&model, &output);
}

#[test]
fn codex_asks_before_it_tries() {
    let Some(codex) = proctor_testkit::codex() else { return };
    let (world, model) = asking();
    let program = toml(world.program());
    let settings = [
        format!("mcp_servers.proctor.command={program}"),
        "mcp_servers.proctor.args=[\"mcp\"]".to_owned(),
        // Codex starts servers without most of the environment.
        format!("mcp_servers.proctor.env={{HOME={}}}", toml(&world.home())),
        "model_provider=\"loopback\"".to_owned(),
        format!(
            "model_providers.loopback={{name=\"loopback\",base_url=\"{}/v1\",env_key=\"CODEX_API_KEY\",wire_api=\"responses\"}}",
            model.url()
        ),
    ];
    let settings = settings.iter().flat_map(|setting| ["-c", setting.as_str()]);
    let arguments: Vec<&str> = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        .into_iter()
        .chain(settings)
        .chain(["Cache the image"])
        .collect();

    let output = world.run(codex, &arguments).expect_code(0);

    assert!(output.stdout.contains("Done."), "{output}");
    assert_told(&model, &output);
}

/// A path as TOML writes it.
fn toml(path: &Path) -> String {
    format!("{:?}", path.to_str().expect("a path"))
}
