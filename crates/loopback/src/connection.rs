//! One connection, from its first request to its end.

use std::io::{self, BufReader, Read};
use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};

use crate::answer::{Choice, choose, compose};
use crate::closing::Closing;
use crate::conversation::{Conversation, Delivery};
use crate::faults::{Asker, Faults, Struck};
use crate::format::{self, Asked, Format, Refused};
use crate::http::{self, NoRequest, Persistence, Request};
use crate::models;
use crate::request_log::{Exchange, RecordedRequest, RequestLog};
use crate::script::{Script, Told, Turn};
use crate::server::Ids;
use crate::tools::Tool;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) script: Script,
    pub(crate) faults: Faults,
    pub(crate) log: RequestLog,
    pub(crate) ids: Ids,
    pub(crate) closing: Closing,
}

/// How an answer left the connection.
enum After {
    /// It can carry the next request.
    Whole,
    /// It was broken off, as the script says.
    Broken,
}

/// Answers requests until the client goes, misbehaves, or the server stops.
pub(crate) fn serve(desk: &Desk, stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while !desk.closing.is_closed() {
        let request = match http::read_request(&mut reader, &mut writer) {
            Ok(request) => request,
            Err(NoRequest::Gone) => break,
            Err(NoRequest::Refused(status, reason)) => {
                if refuse(desk, stream, format::fallback(), status, reason).is_ok() {
                    drain(stream);
                }
                break;
            }
        };
        match answer(desk, stream, &request) {
            Ok(After::Whole) if request.persistence == Persistence::Kept => {}
            Ok(_) | Err(_) => break,
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Lets a refused client read why: closing with unread bytes would reset the connection and lose the answer.
fn drain(stream: &TcpStream) {
    const MOST: u64 = 1024 * 1024;
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(200)));
    let _ = io::copy(&mut stream.take(MOST), &mut io::sink());
}

fn answer(desk: &Desk, stream: &TcpStream, request: &Request) -> io::Result<After> {
    // A web page that has its own name resolved to this address could read prompts; a browser says that name.
    if !request.header("host").is_none_or(is_local) {
        refuse(desk, stream, format::fallback(), 403, "this server answers to 127.0.0.1 and localhost only")?;
        return Ok(After::Broken);
    }
    let path = request.path.as_str();
    match (request.method.as_str(), path) {
        ("GET", "/healthz") => respond(desk, stream, &json!({"ok": true})),
        ("GET", "/__requests") => respond(desk, stream, &desk.log.to_json()),
        ("POST", _) => match format::find(path) {
            Some((format, Asked::Answer)) => post(desk, stream, request, format),
            Some((format, Asked::TokenCount)) => {
                desk.log.add(RecordedRequest::new(request, None));
                respond(desk, stream, &format.tokens(request.body.len() / 4))
            }
            None => other(desk, stream, request),
        },
        _ => other(desk, stream, request),
    }
}

fn post(desk: &Desk, stream: &TcpStream, request: &Request, format: &dyn Format) -> io::Result<After> {
    if let Ok(body) = serde_json::from_slice(&request.body) {
        return converse(desk, stream, request, format, &format.read(request, &body));
    }
    desk.log.add(RecordedRequest::new(request, None));
    refuse(desk, stream, format, 400, "the body is not JSON")?;
    Ok(After::Whole)
}

fn other(desk: &Desk, stream: &TcpStream, request: &Request) -> io::Result<After> {
    desk.log.add(RecordedRequest::new(request, None));
    if request.method == "HEAD" {
        let mut writer = stream;
        http::write_json(&mut writer, 200, &[], b"")?;
        return Ok(After::Whole);
    }
    if request.header("upgrade").is_some() {
        // `codex` asks for a socket first, and does without one at once when this is the answer.
        refuse(desk, stream, format::fallback(), 426, "this server speaks plain HTTP")?;
        return Ok(After::Broken);
    }
    let models = if request.method == "GET" { models::listed(&desk.script.models, &request.path) } else { None };
    match models {
        Some(models) => respond(desk, stream, &models),
        None => {
            refuse(desk, stream, format::fallback(), 404, "there is nothing at this path")?;
            Ok(After::Whole)
        }
    }
}

fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost")
}

fn respond(desk: &Desk, stream: &TcpStream, body: &Value) -> io::Result<After> {
    let mut writer = stream;
    http::write_json(&mut writer, 200, &desk.ids.request_headers(), body.to_string().as_bytes())?;
    Ok(After::Whole)
}

fn refuse(desk: &Desk, stream: &TcpStream, format: &dyn Format, status: u16, reason: &str) -> io::Result<()> {
    let refused = Refused { status, kind: None, message: reason, retry_after: None, limit: None };
    refuse_as(stream, format, desk.ids.request_headers(), &refused)
}

fn refuse_as(stream: &TcpStream, format: &dyn Format, mut headers: Vec<(String, String)>, refused: &Refused) -> io::Result<()> {
    let answer = format.refusal(refused);
    headers.extend(refused.retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
    headers.extend(answer.headers);
    let mut writer = stream;
    http::write_json(&mut writer, refused.status, &headers, answer.body.to_string().as_bytes())
}

fn converse(desk: &Desk, stream: &TcpStream, request: &Request, format: &dyn Format, conversation: &Conversation) -> io::Result<After> {
    let Some(choice) = choose(&desk.script, conversation) else {
        refuse(desk, stream, format, 500, "the script has no answer")?;
        return Ok(After::Whole);
    };
    let asker = Asker { session: conversation.session.clone(), messages: conversation.messages };
    let struck = choice.turn.fault.as_ref().and_then(|fault| desk.faults.strike(fault, choice.place, asker));
    let exchange = exchange(conversation, choice, struck.is_some());
    desk.log.add(RecordedRequest::new(request, Some(exchange)));
    desk.closing.wait(choice.turn.delay);
    let mut headers = desk.ids.request_headers();
    headers.extend(choice.turn.headers.iter().cloned());
    let delivered = |most_events| Delivered { format, turn: choice.turn, conversation, headers: headers.clone(), most_events };
    match struck {
        None => deliver(desk, stream, &delivered(usize::MAX)),
        Some(Struck::Refuse { refused, told: Told::ByEvent }) if conversation.delivery == Delivery::Streamed => {
            let answer = compose(choice.turn, conversation, || desk.ids.next());
            let mut writer = stream;
            http::begin_events(&mut writer, &headers)?;
            http::write_event(&mut writer, &format.failure(&answer, &refused))?;
            http::end_events(&mut writer)?;
            Ok(After::Whole)
        }
        Some(Struck::Refuse { refused, .. }) => {
            refuse_as(stream, format, headers, &refused)?;
            Ok(After::Whole)
        }
        Some(Struck::Cut { after_events }) => {
            deliver(desk, stream, &delivered(after_events))?;
            Ok(After::Broken)
        }
        Some(Struck::Hang { after_events }) => {
            deliver(desk, stream, &delivered(after_events))?;
            // Until the client has had enough, or the server stops and shuts the connection down.
            io::copy(&mut &*stream, &mut io::sink())?;
            Ok(After::Broken)
        }
    }
}

fn exchange(conversation: &Conversation, choice: Choice, fault_struck: bool) -> Exchange {
    Exchange {
        session: conversation.session.clone(),
        prompt: conversation.prompt.clone(),
        tools: conversation.tools.iter().map(Tool::full_name).collect(),
        scenario: choice.scenario.name.clone(),
        turn: choice.place.turn + 1,
        fault_struck,
    }
}

/// An answer on its way.
struct Delivered<'a> {
    format: &'a dyn Format,
    turn: &'a Turn,
    conversation: &'a Conversation,
    headers: Vec<(String, String)>,
    /// Events before it is broken off; with none, not even the head is sent.
    most_events: usize,
}

fn deliver(desk: &Desk, stream: &TcpStream, delivered: &Delivered) -> io::Result<After> {
    let turn = delivered.turn;
    let answer = compose(turn, delivered.conversation, || desk.ids.next());
    let mut writer = stream;
    if delivered.conversation.delivery == Delivery::Whole {
        // An answer that is one object has no parts to break it between.
        if delivered.most_events == usize::MAX {
            let body = delivered.format.whole(&answer).to_string();
            http::write_json(&mut writer, 200, &delivered.headers, body.as_bytes())?;
        }
        return Ok(After::Whole);
    }
    if delivered.most_events == 0 {
        return Ok(After::Broken);
    }
    http::begin_events(&mut writer, &delivered.headers)?;
    let all = delivered.format.streamed(&answer);
    for event in all.iter().take(delivered.most_events) {
        desk.closing.wait(turn.chunk_delay);
        if desk.closing.is_closed() {
            return Ok(After::Broken);
        }
        http::write_event(&mut writer, event)?;
    }
    if delivered.most_events == usize::MAX {
        http::end_events(&mut writer)?;
    }
    Ok(After::Whole)
}
