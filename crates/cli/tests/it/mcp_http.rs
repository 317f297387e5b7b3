//! `proctor mcp --http`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use proctor_testkit::{Background, World, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::procedures::LIMIT;
use crate::world;

/// A server with its address and its token.
pub(crate) struct Served {
    pub(crate) server: Background,
    address: String,
    pub(crate) token: String,
    token_file: PathBuf,
}

impl Served {
    pub(crate) fn start(world: &World, more: &[&str]) -> Self {
        let server = world.start(&[&["mcp", "--http"], more].concat());
        wait_for("the server listens", LIMIT, || {
            server.stderr_so_far().ends_with(".token\n") || server.stderr_so_far().ends_with("my-token\n")
        });
        let said = server.stderr_so_far();
        let token_file = PathBuf::from(said.trim_end().split_once("the token that is in ").expect("a path").1);
        let token = fs::read_to_string(&token_file).expect("a token").trim().to_owned();
        let address = server.stdout_so_far();
        let address = address.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp\n")).expect("an address").to_owned();
        Self { server, address, token, token_file }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Sends a request with these further lines in its head; the status, and everything after it.
    fn send(&self, path: &str, head: &[String], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let host = if head.iter().any(|line| line.starts_with("Host:")) { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head: String = head.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!(
            "POST {path} HTTP/1.1\r\n{host}{head}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: \
             {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // A server that refuses by the head alone may hang up before it has the body.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer}"));
        (status, answer)
    }

    fn let_in(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// A message of a session that was begun with `initialize`; the answer's object.
    fn ask(&self, session: &str, message: &Value) -> Value {
        let head = [self.let_in(), format!("Mcp-Session-Id: {session}"), "MCP-Protocol-Version: 2025-06-18".to_owned()];
        let (status, answer) = self.send("/mcp", &head, &message.to_string());
        assert_eq!(status, 200, "{answer}");
        let line = answer.lines().find_map(|line| line.strip_prefix("data: {")).expect("an event");
        serde_json::from_str(&format!("{{{line}")).expect("a message")
    }

    fn begin(&self) -> String {
        let (status, answer) = self.send("/mcp", &[self.let_in()], &hello().to_string());
        assert_eq!(status, 200, "{answer}");
        let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").trim().to_owned();
        let head = [self.let_in(), format!("Mcp-Session-Id: {session}")];
        assert_eq!(self.send("/mcp", &head, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).0, 202);
        session
    }
}

fn hello() -> Value {
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

#[test]
fn a_caller_with_the_token_uses_the_tools_and_is_named_in_what_it_records() {
    let world = world();
    let served = Served::start(&world, &[]);
    let session = served.begin();

    let call = json!({ "name": "record_dead_end", "arguments": { "route": "a", "observation": "b" } });
    let recorded = served.ask(&session, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }));

    assert_eq!(recorded["result"]["structuredContent"]["what"], "proposed", "{recorded}");
    assert!(world.read("proctor/memory/pending.md").contains("agent=tester"));
}

#[test]
fn nobody_is_let_in_without_the_token_from_a_page_or_under_another_name() {
    let world = world();
    let served = Served::start(&world, &[]);
    let token = served.let_in();
    let port = served.address.rsplit_once(':').unwrap().1.to_owned();
    let begin = |path: &str, head: &[String]| served.send(path, head, &hello().to_string()).0;

    assert!(served.address.starts_with("127.0.0.1:"), "{}", served.address);
    for (status, path, head) in [
        (401, "/mcp", vec![]),
        (401, "/mcp", vec!["Authorization: Bearer 0123456789abcdef".to_owned()]),
        (401, "/mcp", vec![format!("{token}0")]),
        (401, "/mcp", vec![token.replace("Bearer", "Basic")]),
        (401, "/else", vec![]),
        (403, "/mcp", vec![token.clone(), "Host: evil.example".to_owned()]),
        (403, "/mcp", vec![token.clone(), format!("Host: evil.example:{port}")]),
        (403, "/mcp", vec![token.clone(), "Origin: http://evil.example".to_owned()]),
        (403, "/mcp", vec![token.clone(), "Origin: null".to_owned()]),
        (404, "/else", vec![token.clone()]),
        (200, "/mcp", vec![token.clone(), format!("Host: localhost:{port}"), format!("Origin: http://localhost:{port}")]),
    ] {
        assert_eq!(begin(path, &head), status, "{path} {head:?}");
    }
    let (status, answer) = served.send("/mcp", &[], "");
    assert!(status == 401 && answer.to_lowercase().contains("\r\nwww-authenticate: bearer\r\n"), "{answer}");
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    let world = world();
    let served = Served::start(&world, &[]);

    let (status, _) = served.send("/mcp", &[served.let_in()], &" ".repeat(1024 * 1024 + 1));

    assert_eq!(status, 413);
    assert_eq!(served.send("/mcp", &[served.let_in()], &hello().to_string()).0, 200, "and the next one is served");
}

#[test]
fn the_token_is_in_a_file_of_its_owner_alone_that_goes_with_the_server() {
    let world = world();
    let served = Served::start(&world, &[]);
    let (token, file) = (served.token.clone(), served.token_file.clone());

    let mode = fs::metadata(&file).unwrap().permissions().mode();
    served.server.signal(Signal::TERM);
    let ended = served.server.wait(LIMIT);

    assert_eq!((mode & 0o777, token.len()), (0o600, 64));
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(!ended.stdout.contains(&token) && !ended.stderr.contains(&token), "{ended}");
    assert!(!file.exists());
}

#[test]
fn a_token_of_ones_own_is_taken_from_a_file_that_nobody_else_can_read() {
    let world = world();
    world.write("../my-token", "one-of-my-own-choice\n");
    let file = world.root().join("my-token");
    let with = ["--token-file", "../my-token"];
    let refused = world.proctor(&["mcp", "--http", "--token-file", "../my-token"]).expect_code(2);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

    let served = Served::start(&world, &with);

    assert!(refused.stderr.contains("may be read by others: `chmod 600` it"), "{refused}");
    assert_eq!((served.token.as_str(), served.send("/mcp", &[served.let_in()], &hello().to_string()).0), ("one-of-my-own-choice", 200));
    served.server.signal(Signal::INT);
    let _ = served.server.wait(LIMIT).expect_code(0);
    assert!(file.exists(), "what somebody else keeps stays");
    world.write("../my-token", "short\n");
    let short = world.proctor(&["mcp", "--http", "--token-file", "../my-token"]).expect_code(2);
    assert!(short.stderr.contains("holds no token: one line of at least 16"), "{short}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let world = world();
    let served = Served::start(&world, &[]);
    let port = served.address.rsplit_once(':').unwrap().1;

    let second = world.proctor(&["mcp", "--http", "--port", port]).expect_code(1);

    assert!(second.stderr.starts_with(&format!("error: failed to listen at 127.0.0.1:{port}\n")), "{second}");
    let _ = world.proctor(&["mcp", "--port", port]).expect_code(2);
}
