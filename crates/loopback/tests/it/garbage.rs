//! Whatever arrives, the server goes on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use proptest::prelude::*;

use crate::client::{Client, prompt, said, serve};

/// Requests that are nearly right, with anything in the places where it hurts.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "(GET|POST|HEAD|X) /(v1/messages|v1/responses|v1/chat/completions|v1beta/models/m:generateContent|v1/models/)?.{0,8} HTTP/1\\.[019]",
        ".{0,40}"
    ];
    let header = prop_oneof![
        "content-length: (-)?[0-9]{0,3}",
        "transfer-encoding: (chunked|x)",
        "expect: 100-continue",
        "connection: close",
        "host: .{0,9}",
        ".{0,20}"
    ];
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "[0-9a-fA-F]{1,20}\r\n.{0,20}\r\n0\r\n\r\n".prop_map(String::into_bytes),
        proptest::sample::subsequence(
            vec![
                "{\"messages\":",
                "{\"input\":",
                "{\"contents\":",
                "[",
                "{\"role\":\"user\",\"content\":",
                "\"hi\"",
                "null",
                "}",
                "]",
                ",\"tools\":[{\"name\":1}]",
                "}"
            ],
            0..11
        )
        .prop_map(|parts| parts.concat().into_bytes()),
    ];
    (line, proptest::collection::vec(header, 0..4), body).prop_map(|(line, headers, body)| {
        let mut bytes = format!("{line}\r\n{}\r\n\r\n", headers.join("\r\n")).into_bytes();
        bytes.extend(body);
        bytes
    })
}

#[test]
fn garbage_ends_no_server() {
    let server = serve("[[default.turn]]\ntext = 'still here'");

    proptest!(ProptestConfig::with_cases(256), |(requests in proptest::collection::vec(request(), 1..3))| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // It may hang up before it has heard everything.
        let _ = stream.write_all(&requests.concat());
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let end = stream.read_to_end(&mut answer);
        prop_assert!(end.is_ok() || end.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset);
        prop_assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "));
    });

    assert_eq!(said(&server, &prompt("x")), "still here");
    assert_eq!(Client::connect(server.address()).get("/healthz").status, 200);
}
