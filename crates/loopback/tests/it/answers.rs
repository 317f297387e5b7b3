//! What a script says, and to whom.

use serde_json::{Value, json};

use crate::client::{Client, conversation, prompt, said, serve};

const TWO_TURNS: &str = r#"
[[scenario]]
match = 'hello\.txt'
[[scenario.turn]]
thinking = "A shell will do."
text = "I write the file, äöü, in several chunks of text."
tools = [{ shell = "cat > hello.txt" }, { write = { path = "a b", content = "{{prompt}}" } }, { name = "Skill", input = { skill = "x", deep = [1, "{{prompt}}"] } }]
usage = { input = 1000, output = 40, cache-read = 800, cache-write = 7 }
[[scenario.turn]]
text = "It said {{last_tool_output}}"
[default]
[[default.turn]]
text = "What?"
"#;

fn without_ids(mut blocks: Vec<Value>) -> Vec<Value> {
    for block in &mut blocks {
        if let Some(id) = block.get_mut("id") {
            assert!(id.as_str().unwrap().starts_with("toolu_"));
            *id = json!("id");
        }
    }
    blocks
}

#[test]
fn a_turn_is_streamed_with_all_its_blocks_and_its_usage() {
    let server = serve(TWO_TURNS);

    let answer = Client::connect(server.address()).ask("s", &prompt("write hello.txt")).unwrap();

    assert!(answer.whole);
    assert_eq!(
        without_ids(answer.blocks()),
        [
            json!({"type": "thinking", "thinking": "A shell will do.", "signature": "c2NyaXB0ZWQ="}),
            json!({"type": "text", "text": "I write the file, äöü, in several chunks of text."}),
            json!({"type": "tool_use", "id": "id", "name": "Bash", "input": {"command": "cat > hello.txt", "description": "a scripted command"}}),
            json!({"type": "tool_use", "id": "id", "name": "Write", "input": {"file_path": "a b", "content": "write hello.txt"}}),
            json!({"type": "tool_use", "id": "id", "name": "Skill", "input": {"skill": "x", "deep": [1, "write hello.txt"]}}),
        ]
    );
    let events = answer.events();
    assert_eq!(events[0]["message"]["usage"]["cache_read_input_tokens"], 800);
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    assert_eq!(
        end["usage"],
        json!({"input_tokens": 1000, "output_tokens": 40, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 7, "service_tier": "standard"})
    );
    assert_eq!(events.last().unwrap(), &json!({"type": "message_stop"}));
}

#[test]
fn the_same_is_given_as_one_object_to_who_wants_no_stream() {
    let server = serve(TWO_TURNS);
    let mut body = prompt("write hello.txt");
    body["stream"] = json!(false);

    let answer = Client::connect(server.address()).ask("s", &body).unwrap().json();

    assert_eq!(answer["stop_reason"], "tool_use");
    assert_eq!(answer["model"], "some-model");
    assert_eq!(answer["usage"]["output_tokens"], 40);
    assert_eq!(answer["content"].as_array().unwrap().len(), 5);
    assert_eq!(answer["content"][3]["input"], json!({"file_path": "a b", "content": "write hello.txt"}));
}

#[test]
fn the_next_turn_follows_the_tools_and_the_last_is_repeated() {
    let server = serve(TWO_TURNS);
    let mut messages = vec![
        json!({"role": "user", "content": "write hello.txt"}),
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "hi"}]}),
    ];

    assert_eq!(said(&server, &conversation(&json!(messages))), "It said hi");

    messages.extend(messages[1..].to_vec());

    assert_eq!(said(&server, &conversation(&json!(messages))), "It said hi");

    // A resumed session: a new prompt after all that.
    messages.push(json!({"role": "user", "content": "and now?"}));

    assert_eq!(said(&server, &conversation(&json!(messages))), "What?");
}

#[test]
fn a_structured_answer_goes_through_the_tool_for_it_or_is_text() {
    let server =
        serve("[[default.turn]]\nstructured = { passed = 'yes' }\n[[default.turn]]\nstructured = { passed = true, why = '{{prompt}}' }");
    let wrong = Client::connect(server.address()).ask("s", &prompt("judge")).unwrap();
    let rejected = json!([
        {"role": "user", "content": "judge"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "StructuredOutput", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "does not match"}]},
    ]);
    let mut without_tool = conversation(&rejected);
    without_tool["tools"] = json!([{"name": "Bash"}]);
    let right = Client::connect(server.address()).ask("s", &conversation(&rejected)).unwrap();

    assert_eq!(
        without_ids(wrong.blocks()),
        [json!({"type": "tool_use", "id": "id", "name": "StructuredOutput", "input": {"passed": "yes"}})]
    );
    assert_eq!(right.blocks()[0]["input"], json!({"passed": true, "why": "judge"}));
    assert_eq!(said(&server, &without_tool), r#"{"passed":true,"why":"judge"}"#);
}

#[test]
fn a_call_is_mapped_to_the_tools_on_offer() {
    let server = serve("[[default.turn]]\ntools = [{ write = { path = \"it's\", content = '$x' } }]");
    let ask = |tools: Value| {
        let mut body = prompt("x");
        body["tools"] = tools;
        Client::connect(server.address()).ask("s", &body).unwrap().blocks().remove(0)
    };

    assert_eq!(ask(json!([{"name": "bash"}]))["input"]["command"], r"printf %s '$x' > 'it'\''s'");
    assert_eq!(ask(json!([{"name": "Read"}]))["text"], "[loopback model: the client offers no tool for the next scripted call]");
}

#[test]
fn requests_without_tools_are_answered_by_side_scenarios_only() {
    let server = serve("[[scenario]]\nmatch = 'x'\nside = true\n[[scenario.turn]]\ntext = 'a title'\n[[default.turn]]\ntext = 'main'");
    let mut side = prompt("x");
    side["tools"] = json!([]);
    let mut unknown = prompt("y");
    unknown["tools"] = json!(null);

    assert_eq!(said(&server, &side), "a title");
    assert_eq!(said(&server, &unknown), "A scripted answer.");
    assert_eq!(said(&server, &prompt("x")), "main");
}

#[test]
fn headers_and_the_stop_reason_are_as_scripted() {
    let server = serve(
        "[[default.turn]]\ntext = 'no'\nstop-reason = 'refusal'\nheaders = { anthropic-ratelimit-unified-status = 'allowed_warning' }",
    );

    let answer = Client::connect(server.address()).ask("s", &prompt("x")).unwrap();

    assert_eq!(answer.header("anthropic-ratelimit-unified-status"), Some("allowed_warning"));
    assert!(answer.header("request-id").unwrap().starts_with("req_"));
    assert!(answer.events().iter().any(|event| event["delta"]["stop_reason"] == "refusal"));
}

#[test]
fn ids_differ_between_answers_and_between_servers() {
    let id = |server: &proctor_loopback::Server| {
        Client::connect(server.address()).ask("s", &prompt("x")).unwrap().events()[0]["message"]["id"].as_str().unwrap().to_owned()
    };
    let (one, other) = (serve(""), serve(""));

    let ids = std::collections::BTreeSet::from([id(&one), id(&one), id(&other)]);

    assert_eq!(ids.len(), 3);
}
