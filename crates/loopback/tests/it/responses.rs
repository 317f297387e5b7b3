//! The Responses API, as `codex` speaks it.

use proctor_loopback::Server;
use serde_json::{Value, json};

use crate::client::{Answer, Client, serve};

const TWO_TURNS: &str = r#"
[[scenario]]
match = 'hello\.txt'
[[scenario.turn]]
thinking = "A shell will do."
text = "I write the file, äöü, in several chunks of text."
tools = [{ shell = "cat > hello.txt" }, { write = { path = "a b", content = "{{prompt}}" } }, { name = "mcp__srv__look", input = { deep = [1, "{{prompt}}"] } }, { name = "apply_patch", input = { input = "*** Begin" } }]
usage = { input = 1000, output = 40, cache-read = 800, cache-write = 7 }
[[scenario.turn]]
text = "It said {{last_tool_output}}"
[default]
[[default.turn]]
text = "What?"
"#;

fn said_by(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
}

/// A request as `codex` makes it.
fn conversation(items: &[Value]) -> Value {
    let mut input = vec![
        said_by("developer", "You are an agent. hello.txt"),
        said_by("user", "# AGENTS.md instructions for /x\nhello.txt"),
        said_by("user", "<environment_context>\nhello.txt</environment_context>"),
    ];
    input.extend(items.iter().cloned());
    json!({
        "model": "some-model", "stream": true, "input": input, "prompt_cache_key": "key",
        "tools": [
            {"type": "function", "name": "exec_command"}, {"type": "web_search"}, {"type": "custom", "name": "apply_patch"},
            {"type": "namespace", "name": "mcp__srv", "tools": [{"type": "function", "name": "look"}]},
        ],
    })
}

fn ask(server: &Server, body: &Value) -> Answer {
    Client::connect(server.address()).post("/v1/responses", "session-id: s\r\n", &body.to_string()).unwrap()
}

fn text(server: &Server, body: &Value) -> String {
    let end = ask(server, body).events().pop().unwrap();
    assert_eq!((&end["type"], end["response"]["output"].as_array().unwrap().len()), (&json!("response.completed"), 1), "{end}");
    end["response"]["output"][0]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Without what differs from answer to answer.
fn without_ids(mut items: Vec<Value>) -> Vec<Value> {
    for item in &mut items {
        let kind = item["type"].as_str().unwrap().to_owned();
        let prefix = match kind.as_str() {
            "reasoning" => "rs_",
            "message" => "msg_",
            "function_call" => "fc_",
            _ => "ctc_",
        };
        for (key, prefix) in [("id", prefix), ("call_id", "call_")] {
            if let Some(id) = item.get_mut(key) {
                assert!(id.as_str().unwrap().starts_with(prefix), "{id}");
                *id = json!("id");
            }
        }
    }
    items
}

fn expected() -> Vec<Value> {
    let call = |name: &str, arguments: &Value| {
        json!({
            "type": "function_call", "id": "id", "call_id": "id", "status": "completed", "name": name,
            "arguments": arguments.to_string(),
        })
    };
    let mut look = call("look", &json!({"deep": [1, "write hello.txt"]}));
    look["namespace"] = json!("mcp__srv");
    vec![
        json!({
            "type": "reasoning", "id": "id", "encrypted_content": "c2NyaXB0ZWQ=",
            "summary": [{"type": "summary_text", "text": "A shell will do."}],
        }),
        json!({
            "type": "message", "id": "id", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "I write the file, äöü, in several chunks of text.", "annotations": []}],
        }),
        call("exec_command", &json!({"cmd": "cat > hello.txt"})),
        call("exec_command", &json!({"cmd": "printf %s 'write hello.txt' > 'a b'"})),
        look,
        json!({
            "type": "custom_tool_call", "id": "id", "call_id": "id", "status": "completed", "name": "apply_patch", "input": "*** Begin",
        }),
    ]
}

#[test]
fn a_turn_is_streamed_as_items_and_repeated_at_the_end() {
    let server = serve(TWO_TURNS);

    let answer = ask(&server, &conversation(&[said_by("user", "write hello.txt")]));

    let events = answer.events();
    let end = events.last().unwrap();
    let items = end["response"]["output"].as_array().unwrap().clone();
    let done: Vec<Value> =
        events.iter().filter(|event| event["type"] == "response.output_item.done").map(|event| event["item"].clone()).collect();
    assert!(answer.whole);
    assert_eq!(done, items);
    assert_eq!(without_ids(items), expected());
    assert_eq!((&end["type"], &end["response"]["status"]), (&json!("response.completed"), &json!("completed")));
    assert_eq!(
        end["response"]["usage"],
        json!({
            "input_tokens": 1807, "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 7}, "output_tokens": 40,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1847,
        })
    );
    assert!(events.iter().enumerate().all(|(number, event)| event["sequence_number"] == json!(number)));
}

#[test]
fn the_deltas_of_an_item_add_up_to_it() {
    let server = serve(TWO_TURNS);

    let events = ask(&server, &conversation(&[said_by("user", "write hello.txt")])).events();

    let added = |kind: &str, index: usize| -> String {
        let deltas = events.iter().filter(|event| event["type"] == kind && event["output_index"] == json!(index));
        deltas.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    assert_eq!(added("response.reasoning_summary_text.delta", 0), "A shell will do.");
    assert_eq!(added("response.output_text.delta", 1), "I write the file, äöü, in several chunks of text.");
    assert_eq!(added("response.function_call_arguments.delta", 2), r#"{"cmd":"cat > hello.txt"}"#);
    assert_eq!(added("response.custom_tool_call_input.delta", 5), "*** Begin");
}

#[test]
fn the_same_is_given_as_one_object_to_who_wants_no_stream() {
    let server = serve(TWO_TURNS);
    let mut body = conversation(&[said_by("user", "write hello.txt")]);
    body["stream"] = json!(false);

    let answer = ask(&server, &body).json();

    assert_eq!((&answer["object"], &answer["model"], &answer["status"]), (&json!("response"), &json!("some-model"), &json!("completed")));
    assert_eq!(without_ids(answer["output"].as_array().unwrap().clone()), expected());
}

#[test]
fn the_next_turn_follows_the_tools_and_a_new_prompt_begins_anew() {
    let server = serve(TWO_TURNS);
    let mut items = vec![
        said_by("user", "write hello.txt"),
        json!({"type": "reasoning", "summary": []}),
        said_by("assistant", "I will"),
        json!({"type": "function_call", "call_id": "a", "name": "exec_command", "arguments": "{}"}),
        json!({"type": "custom_tool_call", "call_id": "b", "name": "apply_patch", "input": ""}),
        json!({"type": "function_call_output", "call_id": "a", "output": "one"}),
        json!({"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "two"}]}),
    ];

    assert_eq!(text(&server, &conversation(&items)), "It said two");

    items.push(said_by("assistant", "It said two"));
    items.push(said_by("user", "and now?"));

    assert_eq!(text(&server, &conversation(&items)), "What?");
    assert_eq!(text(&server, &json!({"input": "just this", "stream": true, "tools": [{"name": "shell"}]})), "What?");
}

#[test]
fn a_structured_answer_is_all_the_text_where_json_is_asked_for() {
    let server = serve("[[default.turn]]\ntext = 'Here:'\nstructured = { passed = true }");
    let mut body = conversation(&[said_by("user", "judge")]);
    body["text"] = json!({"format": {"type": "json_schema", "name": "verdict", "schema": {}}});

    assert_eq!(text(&server, &body), r#"{"passed":true}"#);
}

#[test]
fn tools_may_be_offered_within_the_conversation() {
    let server = serve("[[default.turn]]\ntools = [{ shell = 'ls' }]");
    let exec = json!({"type": "custom", "name": "exec"});
    let added = json!({"type": "additional_tools", "tools": [{"type": "namespace", "name": "functions", "tools": [exec]}]});
    let mut body = conversation(&[added, said_by("user", "x")]);
    body["tools"] = json!(null);
    body["stream"] = json!(false);

    let call = &ask(&server, &body).json()["output"][0];

    assert_eq!((&call["type"], &call["name"], call.get("namespace")), (&json!("custom_tool_call"), &json!("exec"), None));
    assert_eq!(call["input"], "const result = await tools.exec_command({\"cmd\":\"ls\"});\ntext(result.output);\n");
}

#[test]
fn who_asks_for_a_socket_is_told_that_there_is_none() {
    let server = serve("");
    let mut client = Client::connect(server.address());
    client.send(b"GET /v1/responses HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");

    assert_eq!(client.read_answer().unwrap().status, 426);
}

#[test]
fn an_answer_that_lacks_its_end_says_why() {
    for (reason, expected) in [("max_tokens", "max_output_tokens"), ("refusal", "content_filter")] {
        let server = serve(&format!("[[default.turn]]\ntext = 'half'\nstop-reason = '{reason}'"));

        let end = ask(&server, &conversation(&[said_by("user", "x")])).events().pop().unwrap();

        assert_eq!(end["type"], "response.incomplete");
        assert_eq!(
            (&end["response"]["status"], &end["response"]["incomplete_details"]["reason"]),
            (&json!("incomplete"), &json!(expected))
        );
    }
}

#[test]
fn failures_are_said_as_openai_says_them() {
    for (fail, status, kind, code) in [
        ("{ status = 401 }", 401, "invalid_request_error", json!("invalid_api_key")),
        ("{ status = 429, retry-after = 3 }", 429, "requests", json!("rate_limit_exceeded")),
        ("{ status = 529 }", 529, "server_error", json!("server_is_overloaded")),
        ("{ status = 500 }", 500, "server_error", json!(null)),
        ("{ status = 400 }", 400, "invalid_request_error", json!(null)),
        ("{ status = 429, type = 'insufficient_quota' }", 429, "insufficient_quota", json!("insufficient_quota")),
    ] {
        let server = serve(&format!("[[default.turn]]\nfail = {fail}"));

        let answer = ask(&server, &conversation(&[said_by("user", "x")]));

        assert_eq!((answer.status, answer.header("retry-after").is_some()), (status, fail.contains("retry-after")), "{fail}");
        assert!(answer.header("x-request-id").unwrap().starts_with("req_"));
        let error = json!({"message": "a scripted failure", "type": kind, "param": null, "code": code});
        assert_eq!(answer.json(), json!({"error": error}), "{fail}");
    }
}

#[test]
fn a_plans_limit_says_when_it_is_reset() {
    for (window, header) in [("five-hours", "x-codex-primary-reset-at"), ("seven-days", "x-codex-secondary-reset-at")] {
        let fail = format!("{{ status = 429, usage-limit = {{ resets-at = 9999999999, window = '{window}' }} }}");
        let server = serve(&format!("[[default.turn]]\nfail = {fail}"));

        let answer = ask(&server, &conversation(&[said_by("user", "x")]));

        let error = &answer.json()["error"];
        assert_eq!((&error["type"], &error["resets_at"]), (&json!("usage_limit_reached"), &json!(9_999_999_999_u64)));
        assert_eq!(answer.header(header), Some("9999999999"));
    }
}

#[test]
fn a_stream_is_cut_once_for_each_session() {
    let server = serve("[[default.turn]]\ntext = 'a text of more than one chunk, as it happens'\ncut = { after-events = 4, times = 1 }");
    let body = conversation(&[said_by("user", "x")]);
    let mut other = body.clone();
    other["prompt_cache_key"] = json!("other");

    let of_header = [ask(&server, &body), ask(&server, &body)];
    let of_key = Client::connect(server.address()).post("/v1/responses", "", &other.to_string()).unwrap();

    assert_eq!((of_header[0].whole, of_header[0].events().len(), of_header[1].whole), (false, 4, true));
    assert!(!of_key.whole);
    let seen: Vec<String> = server.requests().into_iter().map(|request| request.exchange.unwrap().session).collect();
    assert_eq!(seen, ["s", "s", "other"]);
}

#[test]
fn tokens_are_counted_and_groups_of_tools_are_listed() {
    let server = serve("");
    let mut client = Client::connect(server.address());
    let body = conversation(&[said_by("user", "x")]);

    let counted = client.post("/v1/responses/input_tokens", "", "12345678").unwrap().json();
    client.post("/v1/responses", "", &body.to_string()).unwrap();

    assert_eq!(counted, json!({"object": "response.input_tokens", "input_tokens": 2}));
    let tools = server.requests().pop().unwrap().exchange.unwrap().tools;
    assert_eq!(tools, ["exec_command", "apply_patch", "mcp__srv__look"]);
}
