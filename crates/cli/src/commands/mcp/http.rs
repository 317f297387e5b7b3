//! The protocol as streamable HTTP, for callers on this machine that have the token.
//!
//! It listens on the loopback interface and nowhere else. A page in somebody's browser reaches that too, and may make its own name
//! point there: so a request needs the token, a `Host` that is this machine, and, where it says from which page it comes, an `Origin`
//! that is this server.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use proctor_domain::ExitCode;
use proctor_process::{Signal, Signals};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Semaphore;

use super::caller::Seat;
use super::server::Server;
use super::stdio::runtime;
use super::token::Token;
use crate::Invocation;
use crate::args::mcp::McpArgs;
use crate::report::{Kind, Report};

const PATH: &str = "/mcp";
/// More than the arguments of any tool may have.
const LONGEST_BODY: usize = 1024 * 1024;
const MOST_CONNECTIONS: usize = 64;
/// How long a caller may take for the head of a request.
const PATIENCE: Duration = Duration::from_secs(30);

type Mcp = StreamableHttpService<Server, LocalSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Who gets in, and to what.
struct Door {
    token: Token,
    service: Mcp,
    places: Arc<Semaphore>,
}

/// Serves until somebody ends this process.
pub(super) fn serve(invocation: &Invocation, seat: Seat, args: &McpArgs) -> Result<ExitCode, Report> {
    let signals = Signals::listen(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(|error| Report::failed_to(Kind::Environment, &error))?;
    let (listener, address) = listen(args.port)?;
    let token = match &args.token_file {
        Some(file) => Token::read(&invocation.directory.join(file))?,
        None => Token::draw(invocation, address.port())?,
    };
    invocation.printer.line(&format!("http://{address}{PATH}"));
    invocation.printer.flush();
    invocation.printer.say(&format!("callers need the token that is in {}", token.file().display()));
    let runtime = runtime()?;
    let config = config(address);
    let end = config.cancellation_token.clone();
    let service = StreamableHttpService::new(move || Ok(Server(seat.clone())), Arc::new(LocalSessionManager::default()), config);
    let door = Door { token, service, places: Arc::new(Semaphore::new(MOST_CONNECTIONS)) };
    let served = runtime.block_on(let_in(listener, Arc::new(door), &signals));
    end.cancel();
    runtime.shutdown_timeout(Duration::from_secs(1));
    served.map_err(|error| Report::new(Kind::Environment, format!("failed to go on listening at {address}")).because(&error))?;
    Ok(ExitCode::Done)
}

fn listen(port: u16) -> Result<(TcpListener, SocketAddr), Report> {
    let open = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    open().map_err(|error: std::io::Error| {
        let report = Report::new(Kind::Environment, format!("failed to listen at 127.0.0.1:{port}")).because(&error);
        if port == 0 { report } else { report.hint("without --port a free one is taken") }
    })
}

fn config(address: SocketAddr) -> StreamableHttpServerConfig {
    let names = [format!("127.0.0.1:{}", address.port()), format!("localhost:{}", address.port())];
    let origins: Vec<String> = names.iter().map(|name| format!("http://{name}")).collect();
    StreamableHttpServerConfig::default().with_allowed_hosts(names).with_allowed_origins(origins).with_max_request_body_bytes(LONGEST_BODY)
}

/// Takes callers until a signal comes.
async fn let_in(listener: TcpListener, door: Arc<Door>, signals: &Signals) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    // What signals arrive in is one end of a pair of sockets.
    let signals = UnixStream::from(signals.fd().try_clone_to_owned()?);
    let signals = tokio::net::UnixStream::from_std(signals)?;
    loop {
        // Whoever comes when all places are taken waits in the system's queue.
        let Ok(place) = Arc::clone(&door.places).acquire_owned().await else { return Ok(()) };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = signals.readable() => return Ok(()),
        };
        let stream = match stream {
            Ok((stream, _)) => stream,
            // A caller that hung up at once, or too many open files: neither is a reason to leave the others.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let door = Arc::clone(&door);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let door = Arc::clone(&door);
                async move { Ok::<_, Infallible>(answer(&door, request).await) }
            });
            let connection =
                http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(PATIENCE).serve_connection(TokioIo::new(stream), answer);
            // What goes wrong here is the caller's, who hung up.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn answer(door: &Door, request: Request<Incoming>) -> Answer {
    let is_let_in = request.headers().get(AUTHORIZATION).is_some_and(|header| door.token.is_in(header.as_bytes()));
    if !is_let_in {
        let mut refusal = refuse(StatusCode::UNAUTHORIZED, "the token is missing or another\n");
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refusal;
    }
    if request.uri().path() != PATH {
        return refuse(StatusCode::NOT_FOUND, "the server is at /mcp\n");
    }
    door.service.handle(request).await
}

fn refuse(status: StatusCode, why: &'static str) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
