//! The Gemini API, as `gemini` speaks it.

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
[default]
[[default.turn]]
text = "What?"
"#;

fn content(role: &str, part: &Value) -> Value {
    json!({"role": role, "parts": [part]})
}

fn user(text: &str) -> Value {
    content("user", &json!({"text": text}))
}

/// A request as `gemini` makes it.
fn conversation(contents: &[Value]) -> Value {
    let mut all = vec![user("<session_context>\nhello.txt</session_context>")];
    all.extend(contents.iter().cloned());
    let functions = ["run_shell_command", "write_file", "mcp_srv_look"].map(|name| json!({"name": name}));
    json!({"contents": all, "systemInstruction": {"parts": [{"text": "hello.txt"}]}, "tools": [{"functionDeclarations": functions}]})
}

fn post(server: &Server, method: &str, body: &Value) -> Answer {
    Client::connect(server.address()).post(&format!("/v1beta/models/some-model:{method}"), "", &body.to_string()).unwrap()
}

fn stream(server: &Server, body: &Value) -> Answer {
    post(server, "streamGenerateContent?alt=sse", body)
}

/// The parts of an answer, with neighbours of one kind put together and without ids.
fn parts(chunks: &[Value]) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    for part in chunks.iter().flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().unwrap()) {
        let mut part = part.clone();
        if let Some(id) = part.pointer_mut("/functionCall/id") {
            assert!(id.as_str().unwrap().starts_with("call_"));
            *id = json!("id");
        }
        match parts.last_mut() {
            Some(last) if last["text"].is_string() && part["text"].is_string() && last["thought"] == part["thought"] => {
                last["text"] = json!(format!("{}{}", last["text"].as_str().unwrap(), part["text"].as_str().unwrap()));
            }
            _ => parts.push(part),
        }
    }
    parts
}

fn text(server: &Server, body: &Value) -> String {
    let parts = parts(&stream(server, body).unnamed_events());
    assert_eq!(parts.len(), 1, "{parts:?}");
    parts[0]["text"].as_str().unwrap().to_owned()
}

fn expected() -> Vec<Value> {
    let call = |name: &str, args: Value| json!({"functionCall": {"id": "id", "name": name, "args": args}});
    vec![
        json!({"text": "A shell will do.", "thought": true}),
        json!({"text": "I write the file, äöü, in several chunks of text."}),
        call("run_shell_command", json!({"command": "cat > hello.txt", "description": "a scripted command"})),
        call("write_file", json!({"file_path": "a b", "content": "write hello.txt"})),
        call("mcp_srv_look", json!({"deep": [1, "write hello.txt"]})),
    ]
}

#[test]
fn a_turn_is_streamed_and_its_last_chunk_says_why_it_ends() {
    let server = serve(TWO_TURNS);

    let answer = stream(&server, &conversation(&[user("write hello.txt")]));

    let chunks = answer.unnamed_events();
    let (last, before) = chunks.split_last().unwrap();
    assert!(answer.whole && before.len() > 4);
    assert_eq!(parts(&chunks), expected());
    assert!(before.iter().all(|chunk| chunk["candidates"][0].get("finishReason").is_none()));
    assert_eq!((&last["candidates"][0]["finishReason"], &last["modelVersion"]), (&json!("STOP"), &json!("some-model")));
    assert_eq!(
        last["usageMetadata"],
        json!({"promptTokenCount": 1807, "cachedContentTokenCount": 800, "candidatesTokenCount": 40, "totalTokenCount": 1847})
    );
}

#[test]
fn the_same_is_given_as_one_object_to_who_wants_no_stream() {
    let server = serve(TWO_TURNS);

    let answer = post(&server, "generateContent", &conversation(&[user("write hello.txt")])).json();

    assert_eq!(answer["usageMetadata"]["totalTokenCount"], 1847);
    assert_eq!(parts(&[answer]), expected());
}

#[test]
fn the_next_turn_follows_the_tools_and_a_new_prompt_begins_anew() {
    let server = serve(TWO_TURNS);
    let mut contents = vec![
        user("write hello.txt"),
        content("model", &json!({"functionCall": {"name": "run_shell_command", "args": {}}})),
        content("user", &json!({"functionResponse": {"name": "run_shell_command", "response": {"output": "hi"}}})),
    ];

    assert_eq!(text(&server, &conversation(&contents)), "It said hi");

    contents[2]["parts"][0]["functionResponse"]["response"] = json!({"other": 1});

    assert_eq!(text(&server, &conversation(&contents)), r#"It said {"other":1}"#);

    contents.push(content("model", &json!({"text": "It said hi"})));
    contents.push(user("and now?"));

    assert_eq!(text(&server, &conversation(&contents)), "What?");
}

#[test]
fn a_structured_answer_is_all_the_text_where_json_is_asked_for() {
    let server = serve("[[default.turn]]\ntext = 'Here:'\nstructured = { passed = true }");
    let mut body = conversation(&[user("judge")]);
    body["generationConfig"] = json!({"responseMimeType": "application/json"});

    assert_eq!(text(&server, &body), r#"{"passed":true}"#);
}

#[test]
fn why_an_answer_ends_is_said_in_geminis_words() {
    for (reason, expected) in [("max_tokens", "MAX_TOKENS"), ("refusal", "SAFETY"), ("tool_use", "STOP"), ("ODD", "ODD")] {
        let server = serve(&format!("[[default.turn]]\ntext = 'half'\nstop-reason = '{reason}'"));

        let answer = post(&server, "generateContent", &conversation(&[user("x")])).json();

        assert_eq!(answer["candidates"][0]["finishReason"], expected);
    }
}

#[test]
fn failures_are_said_as_google_says_them() {
    let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"});
    let quota = json!({
        "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
    });
    for (fail, code, status, details) in [
        ("{ status = 401 }", 401, "UNAUTHENTICATED", json!([])),
        ("{ status = 429, retry-after = 3 }", 429, "RESOURCE_EXHAUSTED", json!([retry])),
        ("{ status = 429, retry-after = 3, usage-limit = { resets-in = 9 } }", 429, "RESOURCE_EXHAUSTED", json!([quota, retry])),
        ("{ status = 529 }", 529, "UNAVAILABLE", json!([])),
        ("{ status = 500, type = 'ODD' }", 500, "ODD", json!([])),
    ] {
        let server = serve(&format!("[[default.turn]]\nfail = {fail}"));

        let answer = stream(&server, &conversation(&[user("x")]));

        let error = json!({"code": code, "message": "a scripted failure", "status": status, "details": details});
        assert_eq!((answer.status, answer.json()), (code, json!({"error": error})), "{fail}");
    }
}

#[test]
fn a_stream_is_cut_after_so_many_events() {
    let server = serve("[[default.turn]]\ntext = 'a text of more than one chunk, as it happens'\ncut = { after-events = 1, times = 1 }");
    let body = conversation(&[user("x")]);

    let cut = stream(&server, &body);

    assert_eq!((cut.whole, cut.unnamed_events().len()), (false, 1));
    assert!(stream(&server, &body).whole);
}

#[test]
fn tokens_are_counted_and_models_listed() {
    let server = serve("models = ['one', 'two']");
    let mut client = Client::connect(server.address());

    assert_eq!(client.post("/v1beta/models/one:countTokens", "", "12345678").unwrap().json(), json!({"totalTokens": 2}));
    assert_eq!(client.get("/v1beta/models").json()["models"][1]["name"], "models/two");
    assert_eq!(client.get("/v1beta/models/two").json()["name"], "models/two");
    assert_eq!(client.get("/v1beta/models/three").status, 404);
    assert_eq!(client.post("/v1beta/models/one:embedContent", "", "{}").unwrap().status, 404);
}

#[test]
fn a_key_is_blacked_out_wherever_it_stands() {
    let server = serve("");

    Client::connect(server.address())
        .post("/v1beta/models/m:generateContent?key=secret", "x-goog-api-key: secret\r\n", &conversation(&[user("x")]).to_string())
        .unwrap();

    let seen = &server.requests()[0];
    assert_eq!((seen.headers["x-goog-api-key"].as_str(), seen.path.as_str()), ("<redacted>", "/v1beta/models/m:generateContent"));
}

#[test]
fn what_the_client_asks_for_its_own_use_gets_a_value_of_its_schema() {
    let server = serve("");
    let mut body = conversation(&[user("x")]);
    body["tools"] = json!(null);
    let schema = json!({"type": "object", "properties": {"model_choice": {"type": "string", "enum": ["flash", "pro"]}}});
    body["generationConfig"] = json!({"responseMimeType": "application/json", "responseJsonSchema": schema});

    assert_eq!(text(&server, &body), r#"{"model_choice":"flash"}"#);
}
