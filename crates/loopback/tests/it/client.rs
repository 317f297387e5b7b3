//! A client of our own, so that nothing between the test and the wire is polite.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use proctor_loopback::{Script, Server};
use serde_json::{Value, json};

/// Longer than anything takes that is not hanging.
const LIMIT: Duration = Duration::from_secs(20);

/// A server on a free port.
pub(crate) fn serve(script: &str) -> Server {
    Server::start(Script::parse(script).unwrap(), 0).unwrap()
}

/// One connection.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

/// An answer, read to its end or to where it broke off.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Whether it ended as its head says.
    pub(crate) whole: bool,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &str) -> Option<Answer> {
        let length = body.len();
        self.send(format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}content-length: {length}\r\n\r\n{body}").as_bytes());
        self.read_answer()
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: localhost:1\r\n\r\n").as_bytes());
        self.read_answer().unwrap()
    }

    /// Asks the model as session `session`, and wants a stream.
    pub(crate) fn ask(&mut self, session: &str, body: &Value) -> Option<Answer> {
        self.post("/v1/messages?beta=true", &format!("X-Claude-Code-Session-Id: {session}\r\n"), &body.to_string())
    }

    /// `None` when the connection ends instead.
    pub(crate) fn read_answer(&mut self) -> Option<Answer> {
        let first = self.read_line()?;
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse::<usize>().unwrap());
        let (body, whole) = match length {
            Some(length) => {
                let mut body = vec![0; length];
                self.reader.read_exact(&mut body).unwrap();
                (body, true)
            }
            None => self.read_chunks(),
        };
        Some(Answer { status, headers, body: String::from_utf8(body).unwrap(), whole })
    }

    fn read_chunks(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            let Some(size) = self.read_line() else { return (body, false) };
            let size = usize::from_str_radix(&size, 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return (body, true);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    /// A line without its end; `None` at the end of the connection, orderly or not.
    pub(crate) fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) => panic!("{error}"),
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The events of a stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        let parsed = self.data().into_iter().map(|(name, data)| {
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(name, data["type"].as_str());
            data
        });
        parsed.collect()
    }

    /// The events of a stream whose events have no names, without the mark at its end.
    pub(crate) fn unnamed_events(&self) -> Vec<Value> {
        let data = self.data().into_iter().filter(|(_, data)| *data != "[DONE]");
        data.map(|(name, data)| {
            assert_eq!(name, None);
            serde_json::from_str(data).unwrap()
        })
        .collect()
    }

    /// The names and texts of the events.
    fn data(&self) -> Vec<(Option<&str>, &str)> {
        assert_eq!(self.header("content-type"), Some("text/event-stream; charset=utf-8"));
        let events = self.body.split_terminator("\n\n").map(|event| match event.split_once('\n') {
            Some((name, data)) => (name.strip_prefix("event: "), data.strip_prefix("data: ").unwrap()),
            None => (None, event.strip_prefix("data: ").unwrap()),
        });
        events.collect()
    }

    /// The blocks that the events of a stream add up to.
    pub(crate) fn blocks(&self) -> Vec<Value> {
        let mut blocks: Vec<Value> = Vec::new();
        let mut input = String::new();
        for event in self.events() {
            let delta = &event["delta"];
            match event["type"].as_str().unwrap() {
                "content_block_start" => blocks.push(event["content_block"].clone()),
                "content_block_delta" => {
                    let block = blocks.last_mut().unwrap();
                    for key in ["text", "thinking", "signature"] {
                        if let Some(more) = delta[key].as_str() {
                            block[key] = json!(format!("{}{more}", block[key].as_str().unwrap()));
                        }
                    }
                    input.push_str(delta["partial_json"].as_str().unwrap_or_default());
                }
                "content_block_stop" if !input.is_empty() => {
                    let block = blocks.last_mut().unwrap();
                    block["input"] = serde_json::from_str(&std::mem::take(&mut input)).unwrap();
                }
                _ => {}
            }
        }
        blocks
    }
}

/// A request as `claude` makes it, with a prompt alone.
pub(crate) fn prompt(text: &str) -> Value {
    conversation(&json!([{"role": "user", "content": text}]))
}

/// The same with these messages.
pub(crate) fn conversation(messages: &Value) -> Value {
    json!({
        "model": "some-model", "stream": true, "messages": messages,
        "tools": [{"name": "Bash"}, {"name": "Write"}, {"name": "StructuredOutput"}],
    })
}

/// What the model says to `body`, as the one text of the answer.
pub(crate) fn said(server: &Server, body: &Value) -> String {
    let answer = Client::connect(server.address()).ask("s", body).unwrap();
    let blocks = answer.blocks();
    assert!(answer.whole && blocks.len() == 1, "{answer:?}");
    blocks[0]["text"].as_str().unwrap().to_owned()
}
