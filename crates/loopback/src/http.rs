//! As much of HTTP/1.1 as a local model needs: requests with a known length or in chunks, answers whole or in chunks.
//!
//! A library for servers would hide the connection, and breaking it in the middle of an answer is one of the things
//! this server is for; `httparse` reads the heads.

use std::fmt::Write as _;
use std::io::{self, BufRead, Read, Write};

use serde_json::Value;

/// The longest head of a request.
const HEAD: usize = 64 * 1024;
/// The longest body: more than any model's context.
const BODY: usize = 64 * 1024 * 1024;
/// The longest line that says how long a chunk is.
const CHUNK_LINE: u64 = 1024;
const HEADERS: usize = 128;

/// A request that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) persistence: Persistence,
}

/// What becomes of the connection after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Persistence {
    #[default]
    Kept,
    Closed,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum NoRequest {
    /// The client is gone, or went in the middle.
    Gone,
    /// It is answered with this status and reason, and the connection is closed.
    Refused(u16, &'static str),
}

impl From<io::Error> for NoRequest {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

struct Head {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    persistence: Persistence,
}

/// Reads the next request. `writer` gets the go-ahead that some clients want before they send a body.
pub(crate) fn read_request(reader: &mut impl BufRead, writer: &mut impl Write) -> Result<Request, NoRequest> {
    let Head { method, path, headers, persistence } = parse_head(&read_head(reader)?)?;
    if find(&headers, "content-encoding").is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(NoRequest::Refused(415, "send bodies without compression"));
    }
    let chunked = match find(&headers, "transfer-encoding") {
        Some(encoding) if encoding.eq_ignore_ascii_case("chunked") => true,
        Some(_) => return Err(NoRequest::Refused(501, "the transfer encoding is not known")),
        None => false,
    };
    let length = match find(&headers, "content-length") {
        Some(length) => length.parse::<usize>().map_err(|_| NoRequest::Refused(400, "the content length is no number"))?,
        None => 0,
    };
    if find(&headers, "expect").is_some_and(|expected| expected.eq_ignore_ascii_case("100-continue")) {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if chunked { read_chunks(reader)? } else { read_body(reader, length)? };
    Ok(Request { method, path, headers, body, persistence })
}

fn read_head(reader: &mut impl BufRead) -> Result<Vec<u8>, NoRequest> {
    let mut head = Vec::new();
    loop {
        let room = u64::try_from(HEAD - head.len()).unwrap_or(0);
        let read = reader.by_ref().take(room).read_until(b'\n', &mut head)?;
        if read == 0 {
            return Err(if head.len() == HEAD { NoRequest::Refused(431, "the head is too long") } else { NoRequest::Gone });
        }
        // Empty lines before a request are allowed.
        if head == b"\r\n" || head == b"\n" {
            head.clear();
        }
        if head.ends_with(b"\r\n\r\n") || head.ends_with(b"\n\n") {
            return Ok(head);
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Head, NoRequest> {
    let mut parsed = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut parsed);
    let malformed = NoRequest::Refused(400, "this is no HTTP request");
    if !request.parse(bytes).is_ok_and(|status| status.is_complete()) {
        return Err(malformed);
    }
    let (Some(method), Some(target)) = (request.method, request.path) else { return Err(malformed) };
    let headers: Vec<(String, String)> = request
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned()))
        .collect();
    let connection = find(&headers, "connection").unwrap_or_default().to_ascii_lowercase();
    let closed = connection.contains("close") || (request.version == Some(0) && !connection.contains("keep-alive"));
    Ok(Head {
        method: method.to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        persistence: if closed { Persistence::Closed } else { Persistence::Kept },
        headers,
    })
}

const TOO_LONG: NoRequest = NoRequest::Refused(413, "the body is too long");

fn read_body(reader: &mut impl BufRead, length: usize) -> Result<Vec<u8>, NoRequest> {
    if length > BODY {
        return Err(TOO_LONG);
    }
    // Grows with what arrives: a length is only what the client says.
    let mut body = Vec::new();
    reader.by_ref().take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(&mut body)?;
    if body.len() == length { Ok(body) } else { Err(NoRequest::Gone) }
}

fn read_chunks(reader: &mut impl BufRead) -> Result<Vec<u8>, NoRequest> {
    let malformed = || NoRequest::Refused(400, "the chunks are malformed");
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let Ok(httparse::Status::Complete((_, size))) = httparse::parse_chunk_size(&line) else { return Err(malformed()) };
        let size = usize::try_from(size).map_err(|_| TOO_LONG)?;
        if size == 0 {
            // What follows the last chunk is of no interest here.
            while !matches!(read_line(reader)?.as_slice(), b"\r\n" | b"\n") {}
            return Ok(body);
        }
        if size > BODY - body.len() {
            return Err(TOO_LONG);
        }
        body.extend(read_body(reader, size)?);
        if read_line(reader)?.trim_ascii() != b"" {
            return Err(malformed());
        }
    }
}

fn read_line(reader: &mut impl BufRead) -> Result<Vec<u8>, NoRequest> {
    let mut line = Vec::new();
    reader.by_ref().take(CHUNK_LINE).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\n") { Ok(line) } else { Err(NoRequest::Gone) }
}

/// The head of an answer, up to what says how its body ends.
fn head(status: u16, content_type: &str, headers: &[(String, String)]) -> String {
    // Clients go by the number; the phrase is for people who look at the wire.
    let phrase = if status < 400 { "OK" } else { "Error" };
    let mut head = format!("HTTP/1.1 {status} {phrase}\r\ncontent-type: {content_type}\r\n");
    for (name, value) in headers {
        // Writing to a string can't fail.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head
}

/// Writes an answer whose body is JSON. The answer to `HEAD` has none.
pub(crate) fn write_json(writer: &mut impl Write, status: u16, headers: &[(String, String)], body: &[u8]) -> io::Result<()> {
    let mut answer = head(status, "application/json", headers);
    let _ = write!(answer, "content-length: {}\r\n\r\n", body.len());
    let mut answer = answer.into_bytes();
    answer.extend_from_slice(body);
    writer.write_all(&answer)
}

/// Begins a stream of events.
pub(crate) fn begin_events(writer: &mut impl Write, headers: &[(String, String)]) -> io::Result<()> {
    let mut answer = head(200, "text/event-stream; charset=utf-8", headers);
    answer.push_str("cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n");
    writer.write_all(answer.as_bytes())
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    /// INVARIANT: one line.
    pub(crate) text: String,
}

impl Event {
    /// An event that is called what its `type` says.
    pub(crate) fn named_by_type(value: &Value) -> Self {
        Self { name: value["type"].as_str().map(str::to_owned), text: value.to_string() }
    }

    pub(crate) fn unnamed(value: &Value) -> Self {
        Self { name: None, text: value.to_string() }
    }
}

/// Writes one event, as one chunk in one call.
pub(crate) fn write_event(writer: &mut impl Write, event: &Event) -> io::Result<()> {
    let name = event.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
    let text = format!("{name}data: {}\n\n", event.text);
    writer.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

/// Ends a stream of events, so that the connection can be used again.
pub(crate) fn end_events(writer: &mut impl Write) -> io::Result<()> {
    writer.write_all(b"0\r\n\r\n")
}
