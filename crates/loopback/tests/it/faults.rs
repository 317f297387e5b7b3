//! What goes wrong on purpose.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proctor_loopback::Server;
use serde_json::{Value, json};

use crate::client::{Client, prompt, serve};

fn status(server: &Server, session: &str) -> u16 {
    Client::connect(server.address()).ask(session, &prompt("x")).unwrap().status
}

#[test]
fn a_failure_has_its_status_its_type_and_a_retry_time_where_one_is_scripted() {
    for (fail, status, kind, retry_after) in [
        ("{ status = 401 }", 401, "authentication_error", None),
        ("{ status = 429 }", 429, "rate_limit_error", None),
        ("{ status = 429, retry-after = 3 }", 429, "rate_limit_error", Some("3")),
        ("{ status = 529 }", 529, "overloaded_error", None),
        ("{ status = 500 }", 500, "api_error", None),
        ("{ status = 500, type = 'odd' }", 500, "odd", None),
    ] {
        let server = serve(&format!("[[default.turn]]\nfail = {fail}"));
        let mut client = Client::connect(server.address());

        let answers = [client.ask("s", &prompt("x")).unwrap(), client.ask("s", &prompt("x")).unwrap()];

        for answer in answers {
            assert_eq!((answer.status, answer.header("retry-after")), (status, retry_after), "{fail}");
            assert_eq!(answer.json(), json!({"type": "error", "error": {"type": kind, "message": "a scripted failure"}}), "{fail}");
        }
    }
}

#[test]
fn a_session_meets_a_failure_as_often_as_scripted_whatever_others_meet() {
    let server = serve("[[default.turn]]\ntext = 'fine'\nfail = { status = 529, times = 2 }");

    assert_eq!(["a", "a", "b", "a", "b", "b"].map(|session| status(&server, session)), [529, 529, 529, 200, 529, 200]);
}

#[test]
fn a_failure_counted_for_the_server_is_met_by_whoever_comes_first() {
    let server = serve("[[default.turn]]\ntext = 'fine'\nfail = { status = 529, times = 2, count = 'server' }");

    assert_eq!(["a", "b", "c", "a"].map(|session| status(&server, session)), [529, 529, 200, 200]);
}

#[test]
fn a_usage_limit_says_when_it_ends_and_then_ends() {
    let server = serve("[[default.turn]]\ntext = 'fine'\nfail = { status = 429, usage-limit = { resets-in = 2 } }");
    let refused = Client::connect(server.address()).ask("a", &prompt("x")).unwrap();

    assert_eq!(refused.status, 429);
    let reset: u64 = refused.header("anthropic-ratelimit-unified-reset").unwrap().parse().unwrap();
    let expected = [
        ("retry-after", "2".to_owned()),
        ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
        ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
        ("anthropic-ratelimit-unified-5h-reset", reset.to_string()),
        ("anthropic-ratelimit-unified-5h-status", "rejected".to_owned()),
    ];
    for (name, value) in expected {
        assert_eq!(refused.header(name), Some(value.as_str()));
    }

    let started = Instant::now();
    while status(&server, "b") == 429 {
        assert!(started.elapsed() < Duration::from_secs(20), "the limit does not end");
    }

    #[allow(clippy::disallowed_methods, reason = "the server speaks of the time of day, and no clock of ours can be given to it")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(now >= reset);
}

#[test]
fn a_usage_limit_may_end_at_a_fixed_time_and_be_one_of_seven_days() {
    let server = serve(
        "[[default.turn]]\nfail = { status = 429, retry-after = 9, usage-limit = { resets-at = 9999999999, window = 'seven-days' } }",
    );

    let refused = Client::connect(server.address()).ask("a", &prompt("x")).unwrap();

    assert_eq!(refused.header("retry-after"), Some("9"));
    assert_eq!(refused.header("anthropic-ratelimit-unified-7d-reset"), Some("9999999999"));
    assert_eq!(refused.header("anthropic-ratelimit-unified-representative-claim"), Some("seven_day"));
}

#[test]
fn a_stream_is_cut_after_so_many_events_and_whole_when_asked_again() {
    let server = serve("[[default.turn]]\ntext = 'a text of more than one chunk, as it happens'\ncut = { after-events = 3, times = 1 }");

    let cut = Client::connect(server.address()).ask("s", &prompt("x")).unwrap();
    let whole = Client::connect(server.address()).ask("s", &prompt("x")).unwrap();

    assert_eq!((cut.status, cut.whole, cut.events().len()), (200, false, 3));
    assert!(whole.whole);
}

#[test]
fn a_connection_cut_after_no_event_ends_without_an_answer() {
    let server = serve("[[default.turn]]\ncut = {}");

    assert_eq!(Client::connect(server.address()).ask("s", &prompt("x")), None);
}

#[test]
fn a_hang_keeps_the_connection_open_until_the_client_goes() {
    let server = serve("[[default.turn]]\ntext = 'half'\nhang = { after-events = 2 }");
    let mut client = Client::connect(server.address());
    let body = prompt("x").to_string();
    client.send(format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    let mut text = String::new();
    let mut read = || {
        let mut buffer = [0; 4096];
        let read = client.stream().read(&mut buffer)?;
        assert!(read > 0, "the connection was closed");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        std::io::Result::Ok(text.matches("event: ").count())
    };

    while read().unwrap() < 2 {}

    client.stream().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert_eq!(read().unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(client);
    server.stop();
}

#[test]
fn delays_are_kept_before_the_first_byte_and_before_each_event() {
    let server = serve("[[default.turn]]\ntext = 'x'\ndelay-ms = 200\nchunk-delay-ms = 20");
    let started = Instant::now();

    let answer = Client::connect(server.address()).ask("s", &prompt("x")).unwrap();

    let least = Duration::from_millis(200 + 20 * u64::try_from(answer.events().len()).unwrap());
    assert!(started.elapsed() >= least);
}

#[test]
fn a_failure_may_be_told_within_a_stream_in_the_words_of_each_format() {
    let server = serve("[[default.turn]]\nfail = { status = 529, in-stream = true }");
    let openai = json!({"message": "a scripted failure", "type": "server_error", "param": null, "code": "server_is_overloaded"});
    let ask = |path: &str, body: Value| {
        let answer = Client::connect(server.address()).post(path, "", &body.to_string()).unwrap();
        assert_eq!((answer.status, answer.whole), (200, true), "{path}");
        answer
    };

    let messages = ask("/v1/messages", prompt("x"));
    let responses = ask("/v1/responses", json!({"stream": true, "input": "x", "tools": [{"name": "shell"}]}));
    let chat = ask("/v1/chat/completions", json!({"stream": true, "tools": [{"function": {"name": "bash"}}]}));
    let gemini = ask(
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        json!({"tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}]}),
    );

    assert_eq!(messages.events(), [json!({"type": "error", "error": {"type": "overloaded_error", "message": "a scripted failure"}})]);
    let failed = &responses.events()[0];
    assert_eq!((&failed["type"], &failed["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert_eq!(failed["response"]["error"], json!({"code": "server_is_overloaded", "message": "a scripted failure"}));
    assert_eq!(chat.unnamed_events(), [json!({"error": openai})]);
    assert_eq!(gemini.unnamed_events()[0]["error"]["status"], "UNAVAILABLE");

    let mut whole = prompt("x");
    whole["stream"] = json!(false);
    assert_eq!(Client::connect(server.address()).ask("s", &whole).unwrap().status, 529);
}
