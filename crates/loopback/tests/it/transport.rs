//! The paths of the API, and HTTP itself.

use serde_json::json;

use crate::client::{Client, prompt, serve};

#[test]
fn models_are_listed_and_tokens_counted() {
    let server = serve("models = ['one', 'two']");
    let mut client = Client::connect(server.address());

    assert_eq!(client.get("/healthz").json(), json!({"ok": true}));
    let models = client.get("/v1/models?limit=1000").json();
    assert_eq!((&models["data"][1]["id"], &models["has_more"]), (&json!("two"), &json!(false)));
    assert_eq!(client.get("/v1/models/two").json()["id"], "two");
    assert_eq!(client.get("/v1/models/three").status, 404);
    assert_eq!(client.get("/v1/models/").status, 404);
    assert_eq!(client.post("/v1/messages/count_tokens", "", "{\"a\": 1}").unwrap().json(), json!({"input_tokens": 2}));
    assert_eq!(client.post("/v1/other", "", "").unwrap().json()["error"]["type"], "not_found_error");
    client.send(b"HEAD / HTTP/1.1\r\n\r\n");
    assert_eq!(client.read_answer().unwrap().status, 200);
    assert_eq!(client.get("/healthz").status, 200);
}

#[test]
fn requests_are_kept_in_memory_without_their_keys() {
    let server = serve("[[scenario]]\nname = 'greet'\nmatch = 'hi'\n[[scenario.turn]]\ntext = 'hello'");
    let mut client = Client::connect(server.address());
    client.post("/v1/messages", "X-Api-Key: secret\r\nAuthorization: Bearer secret\r\n", &prompt("hi").to_string()).unwrap();
    client.get("/v1/models");

    let seen = server.requests();
    let shown = client.get("/__requests").json();

    assert_eq!(
        seen.iter().map(|request| (request.number, request.path.as_str())).collect::<Vec<_>>(),
        [(1, "/v1/messages"), (2, "/v1/models")]
    );
    assert_eq!(seen[0].headers["x-api-key"], "<redacted>");
    let exchange = seen[0].exchange.as_ref().unwrap();
    assert_eq!((exchange.scenario.as_str(), exchange.turn, exchange.prompt.as_str(), exchange.fault_struck), ("greet", 1, "hi", false));
    assert_eq!(seen[1].exchange, None);
    assert_eq!(shown["requests"][0]["body"], prompt("hi"));
    assert!(!shown.to_string().contains("secret"));
}

#[test]
fn bodies_come_in_chunks_too_and_after_a_go_ahead() {
    let server = serve("");
    let mut client = Client::connect(server.address());
    client.send(b"POST /v1/messages/count_tokens HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");

    assert_eq!(client.read_line().unwrap(), "HTTP/1.1 100 Continue");
    assert_eq!(client.read_line().unwrap(), "");
    client.send(b"5\r\n12345\r\n3;note=x\r\n678\r\n0\r\nTrailer: x\r\n\r\n");
    assert_eq!(client.read_answer().unwrap().json(), json!({"input_tokens": 2}));
}

#[test]
fn what_can_not_be_served_is_refused_with_a_reason() {
    for (request, status) in [
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: 3\r\n\r\n{x}", 400),
        ("nonsense\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", 413),
        ("POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n", 413),
        ("POST /v1/messages HTTP/1.1\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx", 415),
        ("POST /v1/messages HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 501),
        ("GET /__requests HTTP/1.1\r\nhost: evil.example:80\r\n\r\n", 403),
        (&format!("GET / HTTP/1.1\r\nlong: {}\r\n\r\n", "x".repeat(100_000)), 431),
    ] {
        let server = serve("");
        let mut client = Client::connect(server.address());
        client.send(request.as_bytes());

        let answer = client.read_answer().unwrap();

        assert_eq!((answer.status, &answer.json()["type"]), (status, &json!("error")), "{request:.60}");
    }
}

#[test]
fn a_connection_is_closed_after_the_answer_where_the_client_wants_that() {
    let server = serve("");
    let mut client = Client::connect(server.address());
    client.send(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");

    assert_eq!(client.read_answer().unwrap().status, 200);
    assert_eq!(client.read_answer(), None);
}
