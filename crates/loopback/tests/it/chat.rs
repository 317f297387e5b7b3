//! Chat Completions, as `opencode` speaks them.

use proctor_loopback::Server;
use serde_json::{Value, json};

use crate::client::{Answer, Client, serve};

const TWO_TURNS: &str = r#"
[[scenario]]
match = 'hello\.txt'
[[scenario.turn]]
thinking = "A shell will do."
text = "I write the file, äöü, in several chunks of text."
tools = [{ shell = "cat > hello.txt" }, { write = { path = "a b", content = "{{prompt}}" } }, { name = "mcp__srv__look", input = { deep = [1, "{{prompt}}"] } }]
usage = { input = 1000, output = 40, cache-read = 800, cache-write = 7 }
[[scenario.turn]]
text = "It said {{last_tool_output}}"
[[scenario]]
match = 'hello\.txt'
side = true
[[scenario.turn]]
text = "A title"
[default]
[[default.turn]]
text = "What?"
"#;

/// A request as `opencode` makes it.
fn conversation(messages: &[Value]) -> Value {
    let mut all = vec![json!({"role": "system", "content": "You are an agent. hello.txt"})];
    all.extend(messages.iter().cloned());
    let tools = ["bash", "write", "srv_look"].map(|name| json!({"type": "function", "function": {"name": name}}));
    json!({"model": "some-model", "stream": true, "stream_options": {"include_usage": true}, "messages": all, "tools": tools})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn ask(server: &Server, body: &Value) -> Answer {
    Client::connect(server.address()).post("/v1/chat/completions", "x-session-id: s\r\n", &body.to_string()).unwrap()
}

/// The message that the events of a stream add up to, and why it ends.
fn message(events: &[Value]) -> (Value, Value) {
    let (mut content, mut reasoning, mut calls) = (String::new(), String::new(), Vec::<Value>::new());
    let mut reason = Value::Null;
    for choice in events.iter().filter_map(|event| event["choices"].get(0)) {
        let delta = &choice["delta"];
        content.push_str(delta["content"].as_str().unwrap_or_default());
        reasoning.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if calls.len() == index {
                calls.push(call["function"].clone());
                assert!(call["id"].as_str().unwrap().starts_with("call_") && call["type"] == "function");
            } else {
                let so_far = calls[index]["arguments"].as_str().unwrap();
                calls[index]["arguments"] = json!(format!("{so_far}{}", call["function"]["arguments"].as_str().unwrap()));
            }
        }
        if !choice["finish_reason"].is_null() {
            reason = choice["finish_reason"].clone();
        }
    }
    (json!({"content": content, "reasoning_content": reasoning, "tool_calls": calls}), reason)
}

fn text(server: &Server, body: &Value) -> String {
    let (message, reason) = message(&ask(server, body).unnamed_events());
    assert_eq!(reason, "stop");
    message["content"].as_str().unwrap().to_owned()
}

fn expected() -> Value {
    let call = |name: &str, arguments: &Value| json!({"name": name, "arguments": arguments.to_string()});
    json!({
        "content": "I write the file, äöü, in several chunks of text.",
        "reasoning_content": "A shell will do.",
        "tool_calls": [
            call("bash", &json!({"command": "cat > hello.txt", "description": "a scripted command"})),
            call("write", &json!({"filePath": "a b", "content": "write hello.txt"})),
            call("srv_look", &json!({"deep": [1, "write hello.txt"]})),
        ],
    })
}

fn expected_usage() -> Value {
    json!({"prompt_tokens": 1807, "completion_tokens": 40, "total_tokens": 1847, "prompt_tokens_details": {"cached_tokens": 800}})
}

#[test]
fn a_turn_is_streamed_in_deltas_with_its_usage_and_a_mark_at_the_end() {
    let server = serve(TWO_TURNS);

    let answer = ask(&server, &conversation(&[user("write hello.txt")]));

    let events = answer.unnamed_events();
    assert!(answer.whole && answer.body.ends_with("data: [DONE]\n\n"));
    assert_eq!(message(&events), (expected(), json!("tool_calls")));
    assert_eq!(events.last().unwrap()["usage"], expected_usage());
    assert!(events.iter().all(|event| event["object"] == "chat.completion.chunk" && event["id"] == events[0]["id"]));
}

#[test]
fn the_same_is_given_as_one_object_to_who_wants_no_stream() {
    let server = serve(TWO_TURNS);
    let mut body = conversation(&[user("write hello.txt")]);
    body["stream"] = json!(false);

    let answer = ask(&server, &body).json();

    let choice = &answer["choices"][0];
    let calls: Vec<&Value> = choice["message"]["tool_calls"].as_array().unwrap().iter().map(|call| &call["function"]).collect();
    assert_eq!(
        (&answer["object"], &answer["model"], &answer["usage"]),
        (&json!("chat.completion"), &json!("some-model"), &expected_usage())
    );
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], expected()["content"]);
    assert_eq!(choice["message"]["reasoning_content"], expected()["reasoning_content"]);
    assert_eq!(json!(calls), expected()["tool_calls"]);
}

#[test]
fn the_next_turn_follows_the_tools_and_a_new_prompt_begins_anew() {
    let server = serve(TWO_TURNS);
    let mut messages = vec![
        user("write hello.txt"),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]}),
        json!({"role": "tool", "tool_call_id": "a", "content": "one"}),
        json!({"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]}),
    ];

    assert_eq!(text(&server, &conversation(&messages)), "It said two");

    messages.push(json!({"role": "assistant", "content": "It said two"}));
    messages.push(user("and now?"));

    assert_eq!(text(&server, &conversation(&messages)), "What?");
}

#[test]
fn a_title_is_asked_for_without_tools_and_answered_from_the_side() {
    let server = serve(TWO_TURNS);
    let mut body = conversation(&[user("Generate a title:"), user("write hello.txt")]);
    body["tools"] = json!(null);

    assert_eq!(text(&server, &body), "A title");
}

#[test]
fn a_structured_answer_is_all_the_text_where_json_is_asked_for() {
    let server = serve("[[default.turn]]\ntext = 'Here:'\nstructured = { passed = true }");
    let free = conversation(&[user("judge")]);
    let mut json_only = free.clone();
    json_only["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "verdict", "schema": {}}});

    assert_eq!(text(&server, &json_only), r#"{"passed":true}"#);
    assert_eq!(text(&server, &free), "Here:\n{\"passed\":true}");
}

#[test]
fn why_an_answer_ends_is_said_in_openais_words() {
    for (reason, expected) in [("max_tokens", "length"), ("refusal", "content_filter"), ("end_turn", "stop"), ("odd", "odd")] {
        let server = serve(&format!("[[default.turn]]\ntext = 'half'\nstop-reason = '{reason}'"));

        assert_eq!(message(&ask(&server, &conversation(&[user("x")])).unnamed_events()).1, expected);
    }
}

#[test]
fn a_failure_is_said_as_openai_says_it_and_met_as_often_as_scripted() {
    let server = serve("[[default.turn]]\ntext = 'fine'\nfail = { status = 429, retry-after = 3, times = 1 }");
    let body = conversation(&[user("x")]);

    let refused = ask(&server, &body);

    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("3")));
    assert_eq!(refused.json()["error"]["code"], "rate_limit_exceeded");
    assert_eq!(text(&server, &body), "fine");
}

#[test]
fn a_stream_is_cut_after_so_many_events() {
    let server = serve("[[default.turn]]\ntext = 'a text of more than one chunk, as it happens'\ncut = { after-events = 2, times = 1 }");
    let body = conversation(&[user("x")]);

    let cut = ask(&server, &body);

    assert_eq!((cut.whole, cut.unnamed_events().len()), (false, 2));
    assert!(ask(&server, &body).whole);
}
